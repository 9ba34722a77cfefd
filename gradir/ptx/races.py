"""Races in shared memory, by vector clocks: an access that nothing orders after an earlier one of another warp, whatever ran first.

Every warp has a clock for each warp of its block: how much of that warp's past is known to be over. A barrier joins the clocks of those
that take part (and `gradir.ptx.ordering` those that synchronise by fences). An access is compared with the last writes and reads of its
bytes; bytes are grouped by the narrowest access of the kernel. Two strong accesses, such as atomics, never race.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


class SharedHistory:
    """Who accessed which part of the shared memory of every block last, and what every warp knows to be over."""

    def __init__(self, blocks: int, per_block: int, size: int, granule: int) -> None:
        self.granule = granule
        self.per_block = per_block
        self.clocks = np.zeros((blocks * per_block, per_block), np.int32)
        self.clocks[np.arange(blocks * per_block), np.arange(blocks * per_block) % per_block] = 1
        count = -(-size // granule)
        self._writer = np.full((blocks, count), -1, np.int8)
        self._written_at = np.zeros((blocks, count), np.int32)
        self._write_place = np.zeros((blocks, count), np.int32)
        self._strong = np.zeros((blocks, count), np.bool_)
        self._read_at = np.zeros((blocks, count, self.per_block), np.int32)
        self._read_place = np.zeros((blocks, count), np.int32)

    def join(self, warps: Array, arrived: Array | None = None) -> None:
        """A barrier of one block: all of `warps` know what each of them, and `arrived` (clocks of warps that went on), knows."""
        known = self.clocks[warps].max(0)
        if arrived is not None:
            known = np.maximum(known, arrived)
        self.clocks[warps] = known
        self.tick(warps)

    def tick(self, warps: Array) -> None:
        """What these warps do from now on is later than what others have been told of."""
        self.clocks[warps, warps % self.per_block] += 1

    def write(self, warps: Array, blocks: Array, offsets: Array, width: int, place: int, *, strong: bool = False) -> tuple[Array, Array]:
        """Lanes whose write races, and the instruction of the other access; arguments are flat, one entry per lane."""
        return self._access(warps, blocks, offsets, width, place, writes=True, strong=strong)

    def read(self, warps: Array, blocks: Array, offsets: Array, width: int, place: int, *, strong: bool = False) -> tuple[Array, Array]:
        """Lanes whose read races with a write, and the instruction of that."""
        return self._access(warps, blocks, offsets, width, place, writes=False, strong=strong)

    def _access(
        self, warps: Array, blocks: Array, offsets: Array, width: int, place: int, *, writes: bool, strong: bool
    ) -> tuple[Array, Array]:
        races = np.zeros(warps.shape, np.bool_)
        others = np.full(warps.shape, -1, np.int32)
        mine = warps % self.per_block
        known = self.clocks[warps]
        now = known[np.arange(len(warps)), mine]
        for cell in self._cells(offsets, width):
            self._with_writer(known, mine, blocks, cell, races, others, strong)
            if not writes:
                if not strong:
                    self._read_at[blocks, cell, mine] = now
                    self._read_place[blocks, cell] = place
                continue
            self._with_readers(known, mine, blocks, cell, races, others)
            self._writer[blocks, cell] = mine
            self._written_at[blocks, cell] = now
            self._write_place[blocks, cell] = place
            self._strong[blocks, cell] = strong
            if not strong:
                twice = (self._writer[blocks, cell] != mine) & ~races  # another warp in the same step
                others[twice] = place
                races |= twice
        return races, others

    def _with_readers(self, known: Array, mine: Array, blocks: Array, cell: Array, races: Array, others: Array) -> None:
        unknown = self._read_at[blocks, cell] > known
        unknown[np.arange(len(mine)), mine] = False
        bad = unknown.any(1) & ~races
        others[bad] = self._read_place[blocks, cell][bad]
        races |= bad

    def _with_writer(self, known: Array, mine: Array, blocks: Array, cell: Array, races: Array, others: Array, strong: bool) -> None:
        writer = self._writer[blocks, cell]
        told = known[np.arange(len(mine)), np.maximum(writer, 0)]
        bad = (writer >= 0) & (writer != mine) & (self._written_at[blocks, cell] > told) & ~races
        if strong:
            bad &= ~self._strong[blocks, cell]
        others[bad] = self._write_place[blocks, cell][bad]
        races |= bad

    def _cells(self, offsets: Array, width: int) -> list[Array]:
        first = offsets // self.granule
        return [first + k for k in range(max(1, width // self.granule))]
