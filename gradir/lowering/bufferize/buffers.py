"""Memory in the making: buffers, the stretches of the timeline during which contents occupy them, and slices that were handed out early.

Plain data and interval questions; who may share is `ownership`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import NamedTuple, TypeAlias, TypeVar

from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import Operation

from gradir.dialects.upstream import tensor
from gradir.lowering.bufferize.slices import Slice
from gradir.lowering.bufferize.views import Content, Tensor


class Segment(NamedTuple):
    """A stretch of the timeline during which a content occupies its buffer."""

    start: int
    end: int
    content: Content
    legal: frozenset[Content]


@dataclass(frozen=True, eq=False, slots=True)
class Part:
    """A slice of the host buffer that holds `content` from `start` to `end`, before and after `result` takes it over."""

    start: int
    end: int
    content: Content
    slice: Slice
    result: Content


@dataclass(frozen=True, eq=False, slots=True)
class Slot:
    """Storage in the slice of `insert` within the buffer `host`."""

    insert: tensor.InsertSliceOp
    host: Buffer


@dataclass(frozen=True, eq=False, slots=True)
class Rotation:
    """Storage in the buffer that a loop writes next, for its carried value number `index`."""

    loop: Operation
    index: int


Storage: TypeAlias = Slot | Rotation | int | None
"""An int is the number of the output; None is memory of its own."""


@dataclass(eq=False, slots=True)
class Buffer:
    """Memory for `members`, which are never live at the same time."""

    type: Tensor
    members: list[Content]
    segments: list[Segment]
    storage: Storage = None
    parts: list[Part] = field(default_factory=list[Part])
    longest_part: int = 0
    hosted: list[Buffer] = field(default_factory=list["Buffer"])
    mixed: bool = False
    """True when some members have another shape than `type`."""

    def parts_at(self, start: int, end: int) -> list[Part]:
        """The parts that are needed somewhere in the interval."""
        return overlapping(self.parts, start, end, self.longest_part)

    def extent(self) -> tuple[int, int]:
        """From the first write to the last read of anything that lies here: a part may be made before its host has a content."""
        starts = [self.segments[0].start, *(part.start for part in self.parts)]
        ends = [self.segments[-1].end, *(part.end for part in self.parts)]
        return min(starts), max(ends)

    def events(self) -> list[Operation]:
        """Ops at which the memory must exist."""
        found: list[Operation] = []
        stack = [self]
        while stack:
            buffer = stack.pop()
            stack += buffer.hosted
            for content in buffer.members:
                found += [op for _, op in content.definitions]
                found += [read.op for read in content.reads]
                found += content.mentions
        return found

    def definitions(self) -> list[Operation]:
        """Ops that write the memory."""
        return [op for content in self.members for _, op in content.definitions]


def same_elements(a: Tensor, b: Tensor) -> bool:
    """Could two types be laid over the same memory: equal, or static with equally many elements?"""
    if a.element_type != b.element_type:
        return False
    p, q = a.get_shape(), b.get_shape()
    return p == q or (DYNAMIC_INDEX not in (*p, *q) and prod(p) == prod(q))


def start_of(stretch: Segment | Part) -> int:
    """Sorting key of stretches."""
    return stretch.start


_Stretch = TypeVar("_Stretch", Segment, Part)


def overlapping(stretches: Sequence[_Stretch], start: int, end: int, longest: int = 0) -> list[_Stretch]:
    """Those of `stretches` (sorted by start) that meet the interval; apart from each other, or none of them longer than `longest`."""
    found: list[_Stretch] = []
    k = bisect_right(stretches, end, key=start_of) - 1
    while k >= 0 and (stretches[k].end >= start or stretches[k].start >= start - longest):
        if stretches[k].end >= start:
            found.append(stretches[k])
        k -= 1
    return found


def mixes(buffer: Buffer, other: Buffer) -> bool:
    """Would one buffer for both hold contents of different shapes?"""
    return buffer.mixed or other.mixed or buffer.type.get_shape() != other.type.get_shape()


def touch(a: Segment, b: Segment) -> bool:
    """Do two segments that meet do so in one moment, at which that is legal?"""
    return (a.end == b.start and b.content in a.legal) or (b.end == a.start and a.content in b.legal)
