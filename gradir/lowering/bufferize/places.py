"""Where in memory a memref may point: enough to say which operands of a call may overlap."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from gradir.lowering.bufferize.slices import Slice, disjoint


@dataclass(frozen=True, slots=True)
class Step:
    """One slice on the way to a view. `earlier`: where the slice was in an earlier iteration of the loop that moves it."""

    slice: Slice
    earlier: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """A view into one piece of memory, which `storage` stands for, by a path of slices as far as it is known."""

    storage: object
    path: tuple[Step, ...] = ()

    def within(self, slice_: Slice | None, *, earlier: bool = False) -> Place:
        """The place of a view into this one."""
        return self if slice_ is None else Place(self.storage, (*self.path, Step(slice_, earlier)))

    def at_some_time(self) -> Place:
        """The place without what holds in the current iteration only."""
        known = next((k for k, step in enumerate(self.path) if step.earlier), len(self.path))
        return Place(self.storage, self.path[:known])


Places: TypeAlias = frozenset[Place]


def may_overlap(a: Iterable[Place], b: Iterable[Place]) -> bool:
    """Could a memref in one of the places `a` and one in a place of `b` have an element in common?"""
    b = tuple(b)
    return any(_overlap(p, q) for p in a for q in b)


def _overlap(p: Place, q: Place) -> bool:
    if p.storage is not q.storage:
        return False
    for s, t in zip(p.path, q.path):
        same = s.slice is t.slice or (s.slice.offsets == t.slice.offsets and s.slice.spans == t.slice.spans)
        if same and s.earlier != t.earlier:
            return False
        if not (s.earlier or t.earlier) and disjoint(s.slice, t.slice):
            return False
        if not same:
            return True
    return True
