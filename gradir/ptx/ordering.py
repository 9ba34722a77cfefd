"""What every warp knows to be over: vector clocks that barriers join within a block, and fences with atomics carry between blocks.

Within a group (a block, or a cluster of blocks) a warp has a clock for each warp of the group. Between groups it has rows of such clocks,
which it gets by the patterns of the PTX memory model: a release (a fence and then a strong write to a place, or a `.release` write) tells
what the writer knows to the place, an acquire (a strong read of the place and then a fence, or an `.acquire` read) takes it from there.
Strong accesses are atomics and `.volatile`, `.relaxed`, `.acquire` and `.release` ones. Fences and accesses of scope `.cta` tell nothing to
other groups.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Place: TypeAlias = "tuple[int | str, int, int]"
"""A place in memory that warps tell each other things through: allocation, offset, and the group that may know (-1: all of them)."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a warp knew at its last fence: of its own group and of others."""

    own: Array
    others: Array | None
    everywhere: bool


@dataclass
class Ordering:
    """The clocks of a launch; those within blocks are of the batch that is resident."""

    total: int
    """Groups of the grid."""
    peers: int
    """Warps of a group."""
    active: bool = False
    """Does the kernel have fences, or accesses that acquire or release? Without them strong accesses tell nothing."""
    first: int = 0
    """The first resident group."""
    clocks: Array = field(default_factory=lambda: np.zeros((0, 0), np.int32))
    """[resident warp, warp of its group (and whatever else it has a clock for)], those of `gradir.ptx.races`."""
    known: dict[int, Array] = field(default_factory=dict[int, Array])
    """Of resident warps that were told something of other groups, [group, warp] clocks."""
    fenced: dict[int, Told] = field(default_factory=dict[int, Told])
    heard: dict[int, set[Place]] = field(default_factory=dict[int, set[Place]])
    """Places that a warp has read since its last fence."""
    places: dict[Place, Array] = field(default_factory=dict[Place, Array])
    """What was told to places: [group, warp] clocks, or [warp] of the one group that may know."""

    def begin(self, first: int, clocks: Array) -> None:
        """Groups become resident, whose warps have these clocks."""
        self.first, self.clocks = first, clocks
        self.known, self.fenced, self.heard = {}, {}, {}

    def identity(self, warps: Array) -> Array:
        """Numbers of resident warps within the whole grid."""
        return (warps + self.first * self.peers).astype(np.int32)

    def now(self, warps: Array) -> Array:
        """The warps' own clocks."""
        return self.clocks[warps, warps % self.peers]

    def tick(self, warps: Array) -> None:
        """What these warps do from now on is later than what others have been told of."""
        self.clocks[warps, warps % self.peers] += 1

    def share(self, warps: Array) -> None:
        """What warps of a block know of other groups, and have fenced, is common to them behind a barrier."""
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

    # Between groups

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
        group = warp // self.peers + self.first
        wide, narrow = (allocation, offset, -1), (allocation, offset, group)
        if replace:
            self.places.pop(wide, None)
            self.places.pop(narrow, None)
        if told is None:
            return
        before = self.places.get(narrow)
        self.places[narrow] = told.own if before is None else np.maximum(before, told.own)
        if told.everywhere and everywhere:
            rows = self.places.get(wide)
            rows = np.zeros((self.total, self.peers), np.int32) if rows is None else rows
            if told.others is not None:
                rows = np.maximum(rows, told.others)
            rows[group] = np.maximum(rows[group], told.own[: self.peers])
            self.places[wide] = rows

    def listen(self, warp: int, allocation: int | str, offset: int, *, acquire: bool, everywhere: bool) -> None:
        """A strong read of a warp."""
        group = warp // self.peers + self.first
        places: list[Place] = [(allocation, offset, group), *([(allocation, offset, -1)] if everywhere else [])]
        for place in places:
            if acquire:
                self._take(warp, place, everywhere)
            elif place in self.places:
                self.heard.setdefault(warp, set()).add(place)

    def _take(self, warp: int, place: Place, everywhere: bool) -> None:
        found = self.places.get(place)
        if found is None:
            return
        group = warp // self.peers + self.first
        if place[2] >= 0:
            self.clocks[warp] = np.maximum(self.clocks[warp], found)
            return
        if everywhere:
            self.clocks[warp, : self.peers] = np.maximum(self.clocks[warp, : self.peers], found[group])
            before = self.known.get(warp)
            self.known[warp] = found.copy() if before is None else np.maximum(before, found)

    # Questions

    def unordered(self, warps: Array, others: Array, at: Array) -> Array:
        """Which accesses by resident `warps` are not ordered behind those of warps `others` of the grid at their clocks `at`?"""
        mine = self.identity(warps)
        found = others != mine
        if not found.any():
            return found
        group = others // self.peers
        same = group == mine // self.peers
        within = others % self.peers
        near = np.flatnonzero(found & same)
        found[near] = self.clocks[warps[near], within[near]] < at[near]
        if self.known:
            far = np.flatnonzero(found & ~same)
            for warp in np.unique(warps[far]):
                rows = self.known.get(int(warp))
                if rows is not None:
                    chosen = far[warps[far] == warp]
                    found[chosen] = rows[group[chosen], within[chosen]] < at[chosen]
        return found
