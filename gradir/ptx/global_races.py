"""Races in global memory, between warps of one block and of different ones.

Of every piece of an allocation the last write is kept, and two reads since then by warps that nothing orders (of two blocks, where there
are such): a write that is ordered behind both and races with a third reader is the one thing that goes unseen. Reads of an allocation are
only written down until somebody writes to it, so what a kernel only reads costs nothing more.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradir.ptx.ordering import Ordering

Array = np.ndarray[Any, np.dtype[Any]]
REMEMBERED = 1 << 22
"""Reads (of lanes) that are written down before they are sorted into the table after all."""


class _Pieces:
    """The accesses to one allocation. Warps are counted from 1; 0 is nobody."""

    def __init__(self, order: Ordering, count: int) -> None:
        self.order = order
        self.count = count
        self.reads: list[tuple[Array, Array, Array, int]] = []
        self.remembered = 0
        self.table = False

    def _make_table(self) -> None:
        self.table = True
        self.writer, self.written_at, self.write_place = (np.zeros(self.count, np.int32) for _ in range(3))
        self.strong = np.zeros(self.count, np.bool_)
        self.second: Array | None = None  # of unordered strong writes the one before the last, by another warp
        self.second_at = np.zeros(0, np.int32)
        self.reader, self.read_at = np.zeros((2, self.count), np.int32), np.zeros((2, self.count), np.int32)
        self.read_place = np.zeros(self.count, np.int32)

    def read(self, warps: Array, cells: list[Array], place: int, strong: bool) -> tuple[Array, Array]:
        races, others = np.zeros(warps.shape, np.bool_), np.full(warps.shape, -1, np.int32)
        now, mine = self.order.now(warps), self.order.identity(warps)
        for cell in cells:
            if self.table:
                self._against_writes(warps, cell, races, others, strong)
            if strong:
                continue
            if self.table:
                self._note_reads(mine, now, cell, place)
            else:
                self.reads.append((mine, now, cell, place))
                self.remembered += len(cell)
        if self.remembered > REMEMBERED:
            self._sort_in()
        return races, others

    def write(self, warps: Array, cells: list[Array], place: int, strong: bool) -> tuple[Array, Array]:
        races, others = np.zeros(warps.shape, np.bool_), np.full(warps.shape, -1, np.int32)
        if not self.table or self.reads:
            self._sort_in()
        now, mine = self.order.now(warps), self.order.identity(warps) + 1
        for cell in cells:
            self._against_writes(warps, cell, races, others, strong)
            for slot in range(2):
                reader = self.reader[slot][cell]
                if reader.any():
                    bad = (reader > 0) & self.order.unordered(warps, np.maximum(reader - 1, 0), self.read_at[slot][cell]) & ~races
                    others[bad] = self.read_place[cell][bad]
                    races |= bad
                    self.reader[slot][cell] = 0
            self._keep_second(mine, cell, strong)
            self.writer[cell], self.written_at[cell], self.write_place[cell], self.strong[cell] = mine, now, place, strong
            if not strong:
                twice = (self.writer[cell] != mine) & ~races  # another warp in the same step
                others[twice] = place
                races |= twice
        return races, others

    def _keep_second(self, mine: Array, cell: Array, strong: bool) -> None:
        if not strong:
            if self.second is not None:
                self.second[cell] = 0
            return
        before = self.writer[cell]
        other = (before > 0) & (before != mine) & self.strong[cell]
        if other.any():
            if self.second is None:
                self.second, self.second_at = np.zeros(self.count, np.int32), np.zeros(self.count, np.int32)
            self.second[cell[other]], self.second_at[cell[other]] = before[other], self.written_at[cell[other]]

    def _against_writes(self, warps: Array, cell: Array, races: Array, others: Array, strong: bool) -> None:
        writer = self.writer[cell]
        if not writer.any():
            return
        bad = (writer > 0) & self.order.unordered(warps, np.maximum(writer - 1, 0), self.written_at[cell]) & ~races
        if strong:
            bad &= ~self.strong[cell]
        elif self.second is not None:
            second = self.second[cell]
            bad |= (second > 0) & self.order.unordered(warps, np.maximum(second - 1, 0), self.second_at[cell]) & ~races
        others[bad] = self.write_place[cell][bad]
        races |= bad

    def _sort_in(self) -> None:
        if not self.table:
            self._make_table()
        for mine, now, cell, place in self.reads:
            self._note_reads(mine, now, cell, place)
        self.reads, self.remembered = [], 0

    def _note_reads(self, mine: Array, now: Array, cell: Array, place: int) -> None:
        """Readers replace those that they know to be over or are themselves; else they take the second slot, other blocks first."""
        me = mine + 1
        for slot in range(2):
            reader, at = self.reader[slot], self.read_at[slot]
            old = reader[cell]
            free = old == 0
            if not free.all():
                free |= (old == me) | ~self._unordered_since(mine, old, at[cell])
            if slot == 1 and not free.all():
                per = self.order.peers
                first = self.reader[0][cell]
                free |= ((old - 1) // per == (first - 1) // per) & (mine // per != (first - 1) // per)
            chosen = cell[free]
            reader[chosen], at[chosen] = me[free], now[free]
            left = self.reader[slot][cell] != me  # several warps in one step, and those that found no room
            self.read_place[cell] = place
            if not left.any():
                return
            me, mine, now, cell = me[left], mine[left], now[left], cell[left]

    def _unordered_since(self, mine: Array, old: Array, at: Array) -> Array:
        resident = mine - self.order.first * self.order.peers
        inside = (resident >= 0) & (resident < len(self.order.clocks))
        found = np.ones(mine.shape, np.bool_)
        found[inside] = self.order.unordered(resident[inside], np.maximum(old[inside] - 1, 0), at[inside])
        return found


class GlobalHistory:
    """The accesses of a launch to its allocations, by their numbers."""

    def __init__(self, order: Ordering, granule: int) -> None:
        self.order = order
        self.granule = granule
        self._pieces: dict[int, _Pieces] = {}

    def read(self, number: int, size: int, warps: Array, offsets: Array, width: int, place: int, strong: bool) -> tuple[Array, Array]:
        """Lanes whose read of an allocation of `size` bytes races with a write, and the instruction of that; entries are lanes."""
        return self._of(number, size).read(warps, self._cells(offsets, width), place, strong)

    def write(self, number: int, size: int, warps: Array, offsets: Array, width: int, place: int, strong: bool) -> tuple[Array, Array]:
        """The same of writes."""
        return self._of(number, size).write(warps, self._cells(offsets, width), place, strong)

    def _of(self, number: int, size: int) -> _Pieces:
        found = self._pieces.get(number)
        if found is None:
            found = self._pieces[number] = _Pieces(self.order, -(-size // self.granule))
        return found

    def _cells(self, offsets: Array, width: int) -> list[Array]:
        first = offsets // self.granule
        return [first + k for k in range(max(1, width // self.granule))]
