"""Bulk copies that are on their way, groups of those that read shared memory, and how tensor copies laid out what they brought.

A copy takes its bytes when it is issued. Into shared memory it counts at an mbarrier and lands when somebody sees the phase over; out of
shared memory it lands in global memory when its thread has waited for its group, or when the kernel ends.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gradir.ptx.memory import POISON, Allocation
from gradir.ptx.operands import Operands
from gradir.ptx.pending import CELL, Pending
from gradir.ptx.state import LANES, Gang
from gradir.ptx.tensor_maps import PIECE

Array = np.ndarray[Any, np.dtype[Any]]
WRITERS, READERS = 4, 4
"""Agents of copies into and out of shared memory: each has a clock of its own in the history of shared memory."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """Pieces of 16 bytes that go to shared memory: flat places, bytes, what is being read of whom."""

    place: int
    at: Array
    data: Array
    reading: tuple[Allocation, Array] | None = None
    """Words of four bytes of global memory, each once."""


@dataclass
class Layout:
    """Of every piece of 16 bytes of shared memory, the tensor copy that wrote it (0: none), and where in the box it was."""

    pieces: int

    def __post_init__(self) -> None:
        self.ticket, self.row, self.column = (np.zeros(self.pieces, np.int32) for _ in range(3))
        self.swizzle = np.zeros(self.pieces, np.int16)
        self.tickets = 0

    def written(self, at: Array, rows: Array, columns: Array, swizzle: int) -> None:
        """A copy has laid out a box: pieces at flat places `at`, their rows and columns in it."""
        self.tickets += 1
        place = at // PIECE
        self.ticket[place], self.row[place], self.column[place], self.swizzle[place] = self.tickets, rows, columns, swizzle

    def forget(self, at: Array, size: int) -> None:
        """Others have written there."""
        self.ticket[at // PIECE] = 0
        if size > PIECE:
            self.ticket[(at + size - 1) // PIECE] = 0


@dataclass
class Store:
    """A copy out of shared memory of one thread."""

    warp: int
    lane: int
    group: int
    agent: int
    time: int
    place: int
    land: Callable[[], None]
    read: bool = False
    """Has the thread waited until its bytes were read?"""


@dataclass
class Bulk:
    """The bulk copies of a batch."""

    warps: int
    first_agent: int
    """Number of the first agent of copies; those of warpgroups come before."""
    layout: Layout | None
    stores: list[Store] = field(default_factory=list[Store])

    def __post_init__(self) -> None:
        self.opened = np.zeros((self.warps, LANES), np.int64)
        """Of each thread, how many bulk groups it has committed."""

    def start(self, machine: Operands, pending: Pending, arrival: Arrival) -> None:
        """From now on nobody can count on what is where the pieces go."""
        if pending.flying is None:
            pending.flying = np.zeros(pending.cells, np.int32)
        bytes_ = arrival.at[:, None] + np.arange(PIECE)
        machine.blocks.shared.reshape(-1)[bytes_] = POISON
        pending.flying[arrival.at[:, None] // CELL + np.arange(PIECE // CELL)] = arrival.place + 1
        if arrival.reading is not None:
            allocation, words = arrival.reading
            allocation.being_read(np.zeros(0, np.int64), 4, 0)
            assert allocation.reading is not None
            allocation.reading[words] += 1

    def land(self, machine: Operands, pending: Pending, arrival: Arrival) -> None:
        """Somebody knows that the pieces have come."""
        assert pending.flying is not None
        bytes_ = arrival.at[:, None] + np.arange(PIECE)
        machine.blocks.shared.reshape(-1)[bytes_] = arrival.data
        machine.blocks.defined.reshape(-1)[bytes_] = True
        pending.flying[arrival.at[:, None] // CELL + np.arange(PIECE // CELL)] = 0
        if arrival.reading is not None and arrival.reading[0].reading is not None:
            arrival.reading[0].reading[arrival.reading[1]] -= 1

    def commit(self, gang: Gang, mask: Array) -> None:
        """Close the open bulk group of these lanes."""
        self.opened[gang.warps] += mask

    def wait(self, machine: Operands, gang: Gang, mask: Array, keep: int, *, read: bool) -> None:
        """Of these lanes all groups but the `keep` last have read shared memory, and unless `read`, written global memory."""
        kept: list[Store] = []
        inside = {int(warp): row for row, warp in enumerate(gang.warps)}
        for store in self.stores:
            row = inside.get(store.warp)
            if row is None or not mask[row, store.lane] or store.group >= self.opened[store.warp, store.lane] - keep:
                kept.append(store)
                continue
            one = np.array([store.warp])
            machine.history.told(one, np.array([store.agent]), np.array([store.time]))
            store.read = True
            if read:
                kept.append(store)
            else:
                store.land()
        self.stores = kept

    def finish(self, machine: Operands) -> None:
        """All warps have ended: what is still on its way out lands; what nobody waited for is reported."""
        for store in self.stores:
            store.land()
            if not store.read:
                machine.position = store.place
                warps, lanes = np.array([store.warp]), np.array([store.lane])
                machine.report_of("unwaited copy", warps, lanes, "the block ends while the copy may still read its shared memory")
        self.stores = []
