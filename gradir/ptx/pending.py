"""Asynchronous copies into shared memory that have not landed.

A copy takes its bytes when it is issued; where it goes to there is poison until the thread that issued it has waited for it: nobody may
count on less, and reads and writes of those bytes in between are reported. `cp.async` is waited for by groups of a thread, which are kept
here; copies that complete otherwise (mbarriers, bulk groups) are started and landed by whoever keeps them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gradir.ptx.memory import POISON, Allocation
from gradir.ptx.operands import Operands
from gradir.ptx.state import LANES, Gang

Array = np.ndarray[Any, np.dtype[Any]]
CELL = 4
"""Bytes of shared memory that are on their way or not together: no asynchronous copy is narrower."""


@dataclass(frozen=True, slots=True)
class Copy:
    """Pieces of one size on their way; all arrays have one entry per piece."""

    place: int
    """The instruction that issued them."""
    warps: Array
    lanes: Array
    at: Array
    """The first byte in the shared memory of all blocks: block * bytes of a block + offset."""
    data: Array
    """[piece, byte]"""
    group: Array
    """Number of the group of the thread that they belong to; of no meaning for copies that complete otherwise."""
    sources: tuple[tuple[Allocation, Array, Array], ...] = ()
    """What is still being read: allocations, offsets there, and which pieces come from it."""

    def part(self, chosen: Array) -> Copy:
        """Some of the pieces."""
        sources = tuple((allocation, offsets[chosen], pieces[chosen]) for allocation, offsets, pieces in self.sources)
        return Copy(self.place, self.warps[chosen], self.lanes[chosen], self.at[chosen], self.data[chosen], self.group[chosen], sources)


@dataclass
class Pending:
    """The copies of a batch that have not landed."""

    warps: int
    cells: int
    flying: Array | None = None
    """Of each cell the instruction whose copy goes there, plus one; None before the first copy."""
    copies: list[Copy] = field(default_factory=list[Copy])
    """Copies that groups are waited for."""

    def __post_init__(self) -> None:
        self.opened = np.zeros((self.warps, LANES), np.int64)
        """Of each thread, how many groups it has committed."""

    def touched(self, at: Array, size: int) -> tuple[Array, Array]:
        """Of accesses to `size` bytes at flat places: does a copy still go there, and which instruction issued it?"""
        place = np.zeros(at.shape, np.int64)
        if self.flying is not None:
            first = at // CELL
            for k in range(max(1, size // CELL)):
                place = np.maximum(place, self.flying[first + k])
        return place > 0, place - 1

    def start(self, machine: Operands, copy: Copy) -> None:
        """The pieces are on their way: nobody can count on what is in their place."""
        if self.flying is None:
            self.flying = np.zeros(self.cells, np.int32)
        size = copy.data.shape[1]
        busy, others = self.touched(copy.at, size)
        if busy.any():
            message = "copies to where another asynchronous copy still goes"
            machine.report_of("race", copy.warps[busy], copy.lanes[busy], message, int(others[busy][0]))
        self._history(machine, copy, "copies to what another warp may still read or write")
        bytes_ = copy.at[:, None] + np.arange(size)
        machine.blocks.shared.reshape(-1)[bytes_] = POISON
        self.flying[copy.at[:, None] // CELL + np.arange(max(1, size // CELL))] = copy.place + 1
        for allocation, offsets, pieces in copy.sources:
            allocation.being_read(offsets[pieces], size, 1)

    def land(self, machine: Operands, copy: Copy) -> None:
        """The pieces have been waited for by those who issued them."""
        self._history(machine, copy, "a copy lands where another warp may still read or write")
        self.deliver(machine, copy)

    def deliver(self, machine: Operands, copy: Copy) -> None:
        """The pieces are there for somebody who knows of them from an mbarrier."""
        assert self.flying is not None
        machine.changes += 1
        size = copy.data.shape[1]
        bytes_ = copy.at[:, None] + np.arange(size)
        machine.blocks.shared.reshape(-1)[bytes_] = copy.data
        machine.blocks.defined.reshape(-1)[bytes_] = True
        self.flying[copy.at[:, None] // CELL + np.arange(max(1, size // CELL))] = 0
        for allocation, offsets, pieces in copy.sources:
            allocation.being_read(offsets[pieces], size, -1)

    def _history(self, machine: Operands, copy: Copy, what: str) -> None:
        stride = machine.blocks.shared.shape[1]
        races, others = machine.history.write(copy.warps, copy.at // stride, copy.at % stride, copy.data.shape[1], copy.place)
        if races.any():
            machine.report_of("race", copy.warps[races], copy.lanes[races], what, int(others[races][0]))

    def issue(self, machine: Operands, copy: Copy) -> None:
        """A copy of the open groups of its threads."""
        if len(copy.warps):
            self.start(machine, copy)
            self.copies.append(copy)

    def commit(self, gang: Gang, mask: Array) -> None:
        """Close the open group of these lanes."""
        self.opened[gang.warps] += mask

    def wait(self, machine: Operands, gang: Gang, mask: Array, keep: int) -> None:
        """Of these lanes all groups land but the `keep` last; with -1 the open one too."""
        limits = np.full((self.warps, LANES), -1, np.int64)
        limits[gang.warps] = np.where(mask, self.opened[gang.warps] - keep, -1)
        kept: list[Copy] = []
        for copy in self.copies:
            done = copy.group < limits[copy.warps, copy.lanes]
            if done.all():
                self.land(machine, copy)
                continue
            if done.any():
                self.land(machine, copy.part(done))
            kept.append(copy.part(~done) if done.any() else copy)
        self.copies = kept
