"""mbarriers: objects in shared memory that count arrivals and bytes of copies, phase after phase.

A phase is over when as many have arrived as the object was made for and all bytes that were expected have come. Whoever sees that a phase
is over knows all that those who arrived in it knew, and the copies that were counted in it land: not before, so nobody can count on less.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gradir.ptx.races import SharedHistory

Array = np.ndarray[Any, np.dtype[Any]]
Landing = Callable[[], None]


@dataclass
class Mbarriers:
    """The mbarriers of a batch. Arrays are [slot, block]: a slot is an address at which some block has an mbarrier."""

    blocks: int
    history: SharedHistory
    slots: dict[int, int] = field(default_factory=dict[int, int])
    copies: dict[int, list[tuple[int, Landing]]] = field(default_factory=dict[int, list[tuple[int, Landing]]])
    """Key of an mbarrier -> copies that were counted there and have not landed, each with its phase."""

    def __post_init__(self) -> None:
        shape = (0, self.blocks)
        self.live = np.zeros(shape, np.bool_)
        self.count, self.pending, self.expected, self.phase = (np.zeros(shape, np.int64) for _ in range(4))
        self.made_by, self.made_at, self.made_place = (np.zeros(shape, np.int64) for _ in range(3))
        self.fenced = np.zeros(shape, np.bool_)
        """Was the initialisation made visible to copies by `fence.mbarrier_init`?"""
        clocks = self.history.clocks.shape[1]
        self.building, self.over = (np.zeros((*shape, clocks), np.int32) for _ in range(2))
        """What those know who arrived in this phase, and who arrived in phases that are over."""

    def slot(self, offset: int) -> int:
        """The slot of an address; a new one where nobody has an mbarrier yet."""
        found = self.slots.get(offset)
        if found is None:
            found = self.slots[offset] = len(self.slots)
            names = ("live", "count", "pending", "expected", "phase", "made_by", "made_at", "made_place", "fenced", "building", "over")
            for name in names:
                old = getattr(self, name)
                setattr(self, name, np.concatenate([old, np.zeros((1, *old.shape[1:]), old.dtype)]))
        return found

    def key(self, slot: Array, block: Array) -> Array:
        """One number for an mbarrier of a block."""
        return slot * self.blocks + block

    def make(self, slot: Array, block: Array, counts: Array, warps: Array, place: int) -> None:
        """`mbarrier.init`: phase 0 begins."""
        at = (slot, block)
        self.live[at], self.fenced[at] = True, False
        self.count[at] = self.pending[at] = counts
        self.expected[at] = self.phase[at] = 0
        self.building[at], self.over[at] = 0, 0
        self.made_by[at] = warps % self.history.peers
        self.made_at[at] = self.history.clocks[warps, warps % self.history.peers]
        self.made_place[at] = place

    def arrive(self, slot: Array, block: Array, counts: Array, clocks: Array, *, dropped: bool = False) -> tuple[Array, Array]:
        """Arrivals, one row each; the keys of mbarriers whose phase is over, and the rows that came too many."""
        np.maximum.at(self.building, (slot, block), clocks)
        too_many = np.zeros(slot.shape, np.bool_)
        over: list[Array] = []
        left = counts.astype(np.int64)
        if dropped:
            np.subtract.at(self.count, (slot, block), left)
        total = np.zeros_like(self.pending)
        np.add.at(total, (slot, block), left)
        while total.any():
            taken = np.minimum(total, self.pending)
            self.pending -= taken
            total -= taken
            moved = self._advance()
            over.append(moved)
            if not len(moved) and total.any():
                too_many = total[slot, block] > 0
                break
        return (np.concatenate(over) if over else np.zeros(0, np.int64)), too_many

    def expect(self, slot: Array, block: Array, sizes: Array) -> Array:
        """More bytes (fewer, where negative) have to come in this phase; the keys of mbarriers whose phase is over."""
        np.add.at(self.expected, (slot, block), sizes)
        return self._advance()

    def bring(self, slot: int, block: int, size: int, agent: int, time: int, landing: Landing) -> Array:
        """A copy of an agent counts here; the keys of mbarriers whose phase is over."""
        column = self.history.peers + agent
        self.building[slot, block, column] = max(self.building[slot, block, column], time)
        self.copies.setdefault(slot * self.blocks + block, []).append((int(self.phase[slot, block]), landing))
        self.expected[slot, block] -= size
        return self._advance()

    def _advance(self) -> Array:
        done = self.live & (self.pending == 0) & (self.expected == 0) & (self.count > 0)
        if not done.any():
            return np.zeros(0, np.int64)
        at = np.nonzero(done)
        self.over[at] = np.maximum(self.over[at], self.building[at])
        self.building[at] = 0
        self.phase[at] += 1
        self.pending[at] = self.count[at]
        return self.key(at[0], at[1])

    def seen(self, slot: Array, block: Array, warps: Array) -> None:
        """These warps have seen the last phase that is over: its copies land, and they know what those knew who arrived."""
        for key in np.unique(self.key(slot, block)):
            at = divmod(int(key), self.blocks)
            flying = self.copies.get(int(key), [])
            for phase, landing in flying:
                if phase < self.phase[at]:
                    landing()
            self.copies[int(key)] = [entry for entry in flying if entry[0] >= self.phase[at]]
        np.maximum.at(self.history.clocks, warps, self.over[slot, block])

    def state(self, slot: int, block: int) -> str:
        """For a report: `in phase 3, 1 of 2 have to arrive, 0 bytes have to come`."""
        at = (slot, block)
        return f"in phase {self.phase[at]}, {self.pending[at]} of {self.count[at]} have to arrive, {self.expected[at]} bytes have to come"
