"""Which contents may lie in the same memory: one analysis of lifetimes and of reads that a write must not overtake.

A `Buffer` is memory for one or more contents. Two contents share a buffer only if they are never live at the same time, where the write of
one may coincide with the last read of the other only if the reading op says so (`Read.legal`). Whatever asks for sharing (loops, branches,
inserts, outputs) therefore cannot make a wrong decision, only a useless one; a request that fails changes nothing. A content that is not
`owned` never shares: nothing is written over arguments, constants and what a pointer points to.

`forward` puts the source of an insert into the insert's slice. That moves the write of the slice up from the insert to where the source is
made, so no read and no other write of the slice may lie between; the moved write is recorded as a `Part` of the host buffer, and later
requests are checked against it. Segments are kept sorted, requests merge the smaller buffer into the larger: the whole analysis is O(n log n).
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import NamedTuple, TypeAlias, TypeVar

from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import Block, Operation, SSAValue

from gradir.dialects.upstream import func, scf, tensor
from gradir.lowering.bufferize.contents import Content, Contents, Origin, Read, Tensor
from gradir.lowering.bufferize.slices import Slice, disjoint
from gradir.lowering.bufferize.timeline import LOOPS, Timeline

JOINS = (scf.ForOp, scf.WhileOp, scf.YieldOp, scf.ConditionOp, func.ReturnOp)
"""Ops at which values are handed on to carried values, results of branches, outputs."""

_CHAIN = 256
"""Inserts that one question looks back over: keeps long chains of inserts linear."""


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
        return _overlapping(self.parts, start, end, self.longest_part)

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


class Ownership:
    """Assigns contents of one function to buffers, on request."""

    def __init__(self, contents: Contents) -> None:
        self.contents = contents
        self.time: Timeline = contents.timeline

    # -- lifetimes

    def lifetime(self, content: Content, extra: Iterable[Read] = ()) -> list[Segment]:
        """Where `content` is live, in order; `extra` are reads to come."""
        found: _Ends = {}
        nothing: frozenset[Content] = frozenset()
        for read in (*content.reads, *extra):
            op, position, legal = self.time.anchor(read.op), read.position, read.legal
            block = op.parent
            while block is not read.origin.block:
                assert block is not None
                parent = block.parent_op()
                assert parent is not None, "a read outlives the block of its content"
                if isinstance(parent, LOOPS):  # every iteration reads it
                    position = max(position, self.time.end[parent])
                else:
                    _raise(found, (block, self.time.block_start[block]), position, read.op, legal)
                    position = self.time.start[parent]
                legal, block = nothing, parent.parent
            _raise(found, (read.origin.block, read.origin.position), position, read.op, legal)
        segments = [Segment(start, end, content, legal) for (_, start), (end, _, legal) in found.items()]
        segments += [Segment(start, end, content, nothing) for start, end in content.spans]
        segments += [Segment(position, position, content, nothing) for position, _ in content.definitions]
        return _merged(segments)

    def buffer(self, content: Content) -> Buffer:
        """The buffer of an owned content; its own one at first."""
        if content.buffer is None:
            content.buffer = Buffer(content.type, [content], self.lifetime(content))
        return content.buffer

    # -- sharing

    def share(self, *contents: Content) -> bool:
        """Give all of `contents` one buffer if that is possible; otherwise nothing changes."""
        if not all(c.owned and not c.empty for c in contents):
            return False
        buffers = list(dict.fromkeys(self.buffer(c) for c in contents))
        if len(buffers) == 1:
            return True
        outputs = {b.storage for b in buffers if b.storage is not None}
        if len(outputs) > 1 or not all(isinstance(s, int) for s in outputs):
            return False
        buffers.sort(key=lambda b: len(b.segments))
        *small, large = buffers
        if not all(same_elements(b.type, large.type) for b in small):
            return False
        joined: list[Segment] = []
        for buffer in small:
            if any(self._collides(s, joined) or self._collides(s, large.segments) or self._spoils(s, large) for s in buffer.segments):
                return False
            others = [other for other in buffers if other is not buffer and buffer.parts]
            met = (s for other in others for p in buffer.parts for s in _overlapping(other.segments, p.start, p.end))
            if any(self._spoils(s, buffer) for s in met):
                return False
            for segment in buffer.segments:
                insort(joined, segment, key=_start)
        if sum(1 for b in buffers if b.parts) > 1 or (any(b.parts for b in buffers) and any(_mixes(b, large) for b in small)):
            return False
        for segment in joined:
            insort(large.segments, segment, key=_start)
        for buffer in small:
            large.members += buffer.members
            if buffer.parts:
                large.parts, large.longest_part = buffer.parts, buffer.longest_part
            large.hosted += buffer.hosted
            large.mixed |= _mixes(buffer, large)
            for content in buffer.members:
                content.buffer = large
            for part in buffer.hosted:
                assert isinstance(part.storage, Slot)
                part.storage = Slot(part.storage.insert, large)
        large.storage = next(iter(outputs), None)
        return True

    def release(self, content: Content) -> None:
        """Take `content` out of its buffer: it lies behind a pointer from now on. Only before anything is forwarded."""
        buffer: Buffer | None = content.buffer
        if buffer is not None:
            buffer.members.remove(content)
            buffer.segments = [s for s in buffer.segments if s.content is not content]
        content.owned = False
        content.buffer = None

    def _collides(self, segment: Segment, others: Sequence[Segment]) -> bool:
        """Is some segment of `others` (sorted) live at the same time, not merely touching where that is legal?"""
        at = bisect_right(others, segment.start, key=_start)
        k = at - 1
        while k >= 0 and others[k].end >= segment.start:
            if not _touch(others[k], segment):
                return True
            k -= 1
        k = at
        while k < len(others) and others[k].start <= segment.end:
            if not _touch(others[k], segment):
                return True
            k += 1
        return False

    def _spoils(self, segment: Segment, host: Buffer) -> bool:
        """Would `segment` write over a part of `host` while it is needed?"""
        return any(not self._keeps(segment, p, p.end) for p in host.parts_at(segment.start, segment.end))

    def _keeps(self, segment: Segment, part: Part, end: int) -> bool:
        """Does the slice of `part`, needed until `end`, survive `segment`?"""
        if segment.start == end and (source := segment.content.sources.get(end)) is not None:
            return self._is_preserved(source, part, set())  # the value is taken over at the very end: nothing else matters any more
        return self._preserves(segment.content, part, set())

    def _preserves(self, content: Content, part: Part, seen: set[Content]) -> bool:
        """Was `content` made from `part.result` by changing other slices only?"""
        if content is part.result or content in seen:  # a loop preserves it if each step does
            return True
        if len(seen) > _CHAIN:
            return False
        seen.add(content)
        sources = self._made_from(content, part.slice)
        return sources is not None and all(self._is_preserved(v, part, seen) for v in sources)

    def _is_preserved(self, value: SSAValue, part: Part, seen: set[Content]) -> bool:
        view = self.contents.view(value)
        return view.kind == "whole" and not view.content.empty and self._preserves(view.content, part, seen)

    def _made_from(self, content: Content, slice_: Slice) -> list[SSAValue] | None:
        """The values whose elements in `slice_` are those of `content`; None when it has its own."""
        if content.sources:
            return list(content.sources.values())
        owner = content.value.owner if content.value is not None else None
        if isinstance(owner, tensor.InsertSliceOp) and disjoint(self.contents.slices[owner], slice_):
            return [owner.dest]
        return None

    # -- more reads

    def extend(self, content: Content, reads: Sequence[Read]) -> bool:
        """Let `content` also be read by `reads`, if no other content of its buffer stands in the way; otherwise nothing changes."""
        plan: list[tuple[Content, list[Read], list[Segment] | None]] = []
        if not self._plan_extension(content, list(reads), plan):
            return False
        for target, more, segments in plan:
            target.reads += more
            buffer: Buffer | None = target.buffer
            if buffer is None or segments is None:
                continue
            buffer.segments = [s for s in buffer.segments if s.content is not target]
            for segment in segments:
                insort(buffer.segments, segment, key=_start)
            if isinstance(buffer.storage, Slot):
                self._replace_part(buffer, target, max(s.end for s in segments))
        return True

    def _plan_extension(self, content: Content, reads: list[Read], plan: list[tuple[Content, list[Read], list[Segment] | None]]) -> bool:
        if not reads:
            return True
        if content.pointer is not None:
            plan.append((content, reads, None))
            return all(
                self._plan_extension(target, [Read(r.op, r.position, origin) for r in reads], plan)
                for target, origin in content.pointer.targets
            )
        if not content.owned or content.empty:
            plan.append((content, reads, None))
            return True
        buffer = self.buffer(content)
        segments = self.lifetime(content, reads)
        others = [s for s in buffer.segments if s.content is not content]
        grown = _grown([s for s in buffer.segments if s.content is content], segments)
        if any(self._collides(s, others) for s in segments) or any(self._spoils(s, buffer) for s in grown):
            return False
        if isinstance(buffer.storage, Slot):
            part = next(p for p in buffer.storage.host.parts if p.content.buffer is buffer)
            end = max(s.end for s in segments)
            if content is not part.content or not self._stays(buffer.storage.host, part, part.end, end):
                return False
        plan.append((content, reads, segments))
        return True

    def _replace_part(self, buffer: Buffer, content: Content, end: int) -> None:
        assert isinstance(buffer.storage, Slot)
        host = buffer.storage.host
        host.parts = [Part(p.start, max(p.end, end), p.content, p.slice, p.result) if p.content is content else p for p in host.parts]
        host.longest_part = max(p.end - p.start for p in host.parts)

    def _stays(self, host: Buffer, part: Part, start: int, end: int) -> bool:
        """Does the slice of `part` keep its elements from `start` to `end`, after the insert?"""
        if not all(self._keeps(s, part, end) for s in _overlapping(host.segments, start, end)):
            return False
        return all(p.content is part.content or disjoint(p.slice, part.slice) for p in host.parts_at(start, end))

    # -- sources of inserts

    def forward(self, insert: tensor.InsertSliceOp) -> bool:
        """Let the source of `insert` be made in place, in the slice it is inserted into, if nothing reads or writes it in between."""
        source = self.contents.whole(insert.source)
        if source is None or not source.owned or self.contents.view(insert.source).kind != "whole":
            return False
        result = self.contents.content(insert.result)
        inner, host = self.buffer(source), self.buffer(result)
        if inner.storage is not None or inner is host or inner.mixed or host.mixed:
            return False
        destination = self.contents.view(insert.dest)
        if not destination.content.empty and destination.content.buffer is not host:
            return False
        block = insert.parent
        assert block is not None
        if any(self.time.lift(op, block) is None for op in inner.definitions()):
            return False
        events = inner.events()
        place = self.time.common_block(events)
        first = min((op for e in events if (op := self.time.lift(e, place)) is not None), key=lambda op: self.time.start[op])
        scalars = (*insert.offsets, *insert.sizes, *insert.strides)
        if not all(self.available(v, first) for v in scalars):
            return False
        at = self.time.late(insert)
        part = Part(inner.segments[0].start, max(at, inner.segments[-1].end), source, self.contents.slices[insert], result)
        if not self._untouched(insert, host, part, at):
            return False
        if any(s.end > at and s.content is not source for s in inner.segments) or not self._stays(host, part, at + 1, part.end):
            return False
        inner.storage = Slot(insert, host)
        insort(host.parts, part, key=_start)
        host.longest_part = max(host.longest_part, part.end - part.start)
        host.hosted.append(inner)
        return True

    def _untouched(self, insert: tensor.InsertSliceOp, host: Buffer, part: Part, at: int) -> bool:
        """Is the slice neither read nor written by others from the first write of the source to the insert at `at`?"""
        begin, slice_ = part.start, part.slice
        passed, base = self._versions(insert, host, slice_, begin)
        for segment in _overlapping(host.segments, begin, at - 1):
            if segment.content is not base and segment.content not in passed:
                return False
        if base is not None and any(begin <= position <= at for position, _ in base.definitions):
            return False
        pending = host.parts_at(begin, at)
        if len(pending) > _CHAIN or not all(disjoint(p.slice, slice_) for p in pending):
            return False
        for content in (*passed, *([] if base is None else [base])):
            for read in content.reads:
                if not begin <= read.position <= at or (read.through and self._shares_result(read.op, host)):
                    continue
                if read.part is None or not disjoint(read.part, slice_):
                    return False
        return True

    def _shares_result(self, op: Operation, host: Buffer) -> bool:
        """Is `op` an insert that changes `host` in place, so that it touches its own slice only?"""
        return isinstance(op, tensor.InsertSliceOp) and self.contents.content(op.result).buffer is host

    def _versions(self, insert: tensor.InsertSliceOp, host: Buffer, slice_: Slice, begin: int) -> tuple[list[Content], Content | None]:
        """Going back from the destination of `insert`: versions made since `begin` by inserts elsewhere, and the first that was not."""
        passed: list[Content] = []
        value = insert.dest
        for _ in range(_CHAIN):
            content = self.contents.content(value)
            if content.empty:
                return passed, None
            owner = value.owner
            if not isinstance(owner, tensor.InsertSliceOp) or owner.parent is not insert.parent or self.time.start[owner] < begin:
                return passed, content
            value = owner.operands[1]  # much faster than `.dest`
            before = self.contents.content(value)
            if not disjoint(self.contents.slices[owner], slice_) or not (before.empty or before.buffer is host):
                return passed, content
            passed.append(content)
        return passed, self.contents.content(value)

    def available(self, value: SSAValue, at: Operation, depth: int = 32) -> bool:
        """Can the scalar `value` be computed right before `at`: from what is known there, by index arithmetic?"""
        owner = value.owner
        if isinstance(owner, Block):
            return self.time.lift(at, owner) is not None
        assert owner.parent is not None
        enclosing = self.time.lift(at, owner.parent)
        if enclosing is not None and self.time.start[owner] < self.time.start[enclosing]:
            return True
        movable = owner.name.startswith("arith.") and depth > 0
        return movable and all(self.available(v, at, depth - 1) for v in owner.operands)

    def exit_reads(self, content: Content) -> list[Read]:
        """The reads of a carried value behind its loop."""
        return [r for r in content.reads if r.origin is content.exit]

    def whole_loop(self, loop: Operation, origin: Origin) -> Read:
        """A read that lasts as long as `loop`."""
        return Read(loop, self.time.end[loop], origin)


def _start(stretch: Segment | Part) -> int:
    return stretch.start


_Stretch = TypeVar("_Stretch", Segment, Part)


def _overlapping(stretches: Sequence[_Stretch], start: int, end: int, longest: int = 0) -> list[_Stretch]:
    """Those of `stretches` (sorted by start) that meet the interval; apart from each other, or none of them longer than `longest`."""
    found: list[_Stretch] = []
    k = bisect_right(stretches, end, key=_start) - 1
    while k >= 0 and (stretches[k].end >= start or stretches[k].start >= start - longest):
        if stretches[k].end >= start:
            found.append(stretches[k])
        k -= 1
    return found


def _grown(old: Sequence[Segment], new: Sequence[Segment]) -> list[Segment]:
    """What `new` segments cover and `old` ones did not."""
    found: list[Segment] = []
    for segment in new:
        covered = max((s.end + 1 for s in old if s.start <= segment.start <= s.end), default=segment.start)
        if covered <= segment.end:
            found.append(segment._replace(start=covered))
    return found


def _mixes(buffer: Buffer, other: Buffer) -> bool:
    return buffer.mixed or other.mixed or buffer.type.get_shape() != other.type.get_shape()


def _touch(a: Segment, b: Segment) -> bool:
    return (a.end == b.start and b.content in a.legal) or (b.end == a.start and a.content in b.legal)


_Ends: TypeAlias = dict[tuple[Block, int], tuple[int, Operation, frozenset[Content]]]
"""Per block and start of a stretch: its end, the op that reads there, what may come into being at that moment."""


def _raise(found: _Ends, key: tuple[Block, int], position: int, op: Operation, legal: frozenset[Content]) -> None:
    known = found.get(key)
    if known is None or known[0] < position:
        found[key] = (position, op, legal)
    elif known[0] == position:
        # where control flow hands values on, a content that is taken over in place is not written: other reads there do not mind
        handed_on = known[1] is op and isinstance(op, JOINS)
        found[key] = (position, op, known[2] | legal if handed_on else known[2] & legal)


def _merged(segments: list[Segment]) -> list[Segment]:
    """The same stretches without overlaps, in order."""
    segments.sort(key=lambda s: (s.start, s.end))
    merged: list[Segment] = []
    for segment in segments:
        last = merged[-1] if merged else None
        if last is None or segment.start > last.end:
            merged.append(segment)
        elif segment.end > last.end:
            merged[-1] = Segment(last.start, segment.end, last.content, segment.legal)
        elif segment.end == last.end and segment.start < segment.end:
            merged[-1] = Segment(last.start, last.end, last.content, last.legal & segment.legal)
    return merged
