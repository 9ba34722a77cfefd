"""What every warp knows to be over: vector clocks that barriers join within a block, and fences with atomics carry between blocks.

Within a block a warp has a clock for each warp of the block. Between blocks it has rows of such clocks, which it gets by the patterns of
the PTX memory model: a release (a fence and then a strong write to a place, or a `.release` write) tells what the writer knows to the
place, an acquire (a strong read of the place and then a fence, or an `.acquire` read) takes it from there. Strong accesses are atomics and
`.volatile`, `.relaxed`, `.acquire` and `.release` ones. Fences and accesses of scope `.cta` tell nothing to other blocks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Place: TypeAlias = "tuple[int | str, int, int]"
"""A place in memory that warps tell each other things through: allocation, offset, and the block that may know (-1: all of them)."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a warp knew at its last fence: of its own block and of others."""

    own: Array
    others: Array | None
    everywhere: bool


@dataclass
class Ordering:
    """The clocks of a launch; those within blocks are of the batch that is resident."""

    total: int
    """Blocks of the grid."""
    per_block: int
    """Warps of a block."""
    active: bool = False
    """Does the kernel have fences, or accesses that acquire or release? Without them strong accesses tell nothing."""
    first: int = 0
    """The first resident block."""
    clocks: Array = field(default_factory=lambda: np.zeros((0, 0), np.int32))
    """[resident warp, warp of its block]"""
    known: dict[int, Array] = field(default_factory=dict[int, Array])
    """Of resident warps that were told something of other blocks, [block, warp] clocks."""
    fenced: dict[int, Told] = field(default_factory=dict[int, Told])
    heard: dict[int, set[Place]] = field(default_factory=dict[int, set[Place]])
    """Places that a warp has read since its last fence."""
    places: dict[Place, Array] = field(default_factory=dict[Place, Array])
    """What was told to places: [block, warp] clocks, or [warp] of the one block that may know."""

    def begin(self, first: int, blocks: int) -> None:
        """A batch of blocks becomes resident."""
        self.first = first
        warps = blocks * self.per_block
        self.clocks = np.zeros((warps, self.per_block), np.int32)
        self.clocks[np.arange(warps), np.arange(warps) % self.per_block] = 1
        self.known, self.fenced, self.heard = {}, {}, {}

    def identity(self, warps: Array) -> Array:
        """Numbers of resident warps within the whole grid."""
        return (warps + self.first * self.per_block).astype(np.int32)

    def now(self, warps: Array) -> Array:
        """The warps' own clocks."""
        return self.clocks[warps, warps % self.per_block]

    def tick(self, warps: Array) -> None:
        """What these warps do from now on is later than what others have been told of."""
        self.clocks[warps, warps % self.per_block] += 1

    def join(self, warps: Array, arrived: Array | None = None) -> None:
        """A barrier of one block: all of `warps` know what each of them, and `arrived` (clocks of warps that went on), knows."""
        clocks = self.clocks[warps].max(0)
        if arrived is not None:
            clocks = np.maximum(clocks, arrived)
        self.clocks[warps] = clocks
        self._share(warps)
        self.tick(warps)

    def join_all(self) -> None:
        """A barrier of every resident block, of all its warps."""
        clocks = self.clocks.reshape(-1, self.per_block, self.per_block)
        clocks[:] = clocks.max(1, keepdims=True)
        warps = np.arange(len(self.clocks))
        if self.known or self.fenced or self.heard:
            for block in warps.reshape(-1, self.per_block):
                self._share(block)
        self.tick(warps)

    def _share(self, warps: Array) -> None:
        """What warps of a block know of other blocks, and have fenced, is common to them behind a barrier."""
        if not self.known and not self.fenced:
            return
        mine = [int(w) for w in warps]
        rows = [self.known[w] for w in mine if w in self.known]
        if rows:
            common = np.maximum.reduce(rows)
            self.known.update((w, common) for w in mine)
        told = [self.fenced[w] for w in mine if w in self.fenced]
        if told:
            others = [t.others for t in told if t.others is not None]
            wide = [t.own for t in told if t.everywhere]
            own = np.maximum.reduce(wide or [t.own for t in told])
            both = Told(own, np.maximum.reduce(others) if others else None, bool(wide))
            self.fenced.update((w, both) for w in mine)

    # Between blocks

    def fence(self, warps: Array, *, everywhere: bool) -> None:
        """`fence` or `membar`: later strong writes tell what is known now, earlier strong reads have been listened to."""
        for warp in (int(w) for w in warps):
            for place in sorted(self.heard.pop(warp, ()), key=str):
                self._take(warp, place, everywhere)
            self.fenced[warp] = Told(self.clocks[warp].copy(), self.known.get(warp), everywhere)
        self.tick(warps)

    def tell(self, warp: int, allocation: int | str, offset: int, *, release: bool, everywhere: bool, replace: bool) -> None:
        """A strong write of a warp; `replace` where it is not part of a read-modify-write."""
        told = Told(self.clocks[warp].copy(), self.known.get(warp), everywhere) if release else self.fenced.get(warp)
        block = warp // self.per_block + self.first
        wide, narrow = (allocation, offset, -1), (allocation, offset, block)
        if replace:
            self.places.pop(wide, None)
            self.places.pop(narrow, None)
        if told is None:
            return
        before = self.places.get(narrow)
        self.places[narrow] = told.own if before is None else np.maximum(before, told.own)
        if told.everywhere and everywhere:
            rows = self.places.get(wide)
            rows = np.zeros((self.total, self.per_block), np.int32) if rows is None else rows
            if told.others is not None:
                rows = np.maximum(rows, told.others)
            rows[block] = np.maximum(rows[block], told.own)
            self.places[wide] = rows

    def listen(self, warp: int, allocation: int | str, offset: int, *, acquire: bool, everywhere: bool) -> None:
        """A strong read of a warp."""
        block = warp // self.per_block + self.first
        places: list[Place] = [(allocation, offset, block), *([(allocation, offset, -1)] if everywhere else [])]
        for place in places:
            if acquire:
                self._take(warp, place, everywhere)
            elif place in self.places:
                self.heard.setdefault(warp, set()).add(place)

    def _take(self, warp: int, place: Place, everywhere: bool) -> None:
        found = self.places.get(place)
        if found is None:
            return
        block = warp // self.per_block + self.first
        if place[2] >= 0:
            self.clocks[warp] = np.maximum(self.clocks[warp], found)
            return
        if everywhere:
            self.clocks[warp] = np.maximum(self.clocks[warp], found[block])
            before = self.known.get(warp)
            self.known[warp] = found.copy() if before is None else np.maximum(before, found)

    # Questions

    def unordered(self, warps: Array, others: Array, at: Array) -> Array:
        """Which accesses by resident `warps` are not ordered behind those of warps `others` of the grid at their clocks `at`?"""
        mine = self.identity(warps)
        found = others != mine
        if not found.any():
            return found
        block = others // self.per_block
        same = block == mine // self.per_block
        within = others % self.per_block
        near = np.flatnonzero(found & same)
        found[near] = self.clocks[warps[near], within[near]] < at[near]
        if self.known:
            far = np.flatnonzero(found & ~same)
            for warp in np.unique(warps[far]):
                rows = self.known.get(int(warp))
                if rows is not None:
                    chosen = far[warps[far] == warp]
                    found[chosen] = rows[block[chosen], within[chosen]] < at[chosen]
        return found
