"""Which contents may lie in the same memory: one analysis of lifetimes and of reads that a write must not overtake.

A `Buffer` is memory for one or more contents. Two contents share a buffer only if they are never live at the same time, where the write
of one may coincide with the last read of the other only if the reading op says so (`Read.legal`). Whatever asks for sharing (loops,
branches, inserts, outputs) therefore cannot make a wrong decision, only a useless one; a request that fails changes nothing. A content
that is not `owned` never shares: nothing is written over arguments, constants and what a pointer points to.

Sharing comes first. Then `forwarding` hands out slices early: `Part`s of their host, against which later reads are checked. Segments
are kept sorted, requests merge the smaller buffer into the larger: the whole analysis is O(n log n).
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue

from gradir.dialects.upstream import tensor
from gradir.lowering.bufferize.buffers import Buffer, Part, Segment, Slot, mixes, overlapping, same_elements, start_of, touch
from gradir.lowering.bufferize.contents import Contents
from gradir.lowering.bufferize.lifetimes import lifetime
from gradir.lowering.bufferize.slices import Slice, disjoint
from gradir.lowering.bufferize.views import Content, Origin, Read

CHAIN = 256
"""Inserts that one question looks back over: keeps long chains of inserts linear."""


class Ownership:
    """Assigns contents of one function to buffers, on request."""

    def __init__(self, contents: Contents) -> None:
        self.contents = contents
        self.time = contents.timeline

    def buffer(self, content: Content) -> Buffer:
        """The buffer of an owned content; its own one at first."""
        if content.buffer is None:
            content.buffer = Buffer(content.type, [content], lifetime(self.time, content))
        return content.buffer

    # -- sharing

    def share(self, a: Content, b: Content) -> bool:
        """Give both contents one buffer if that is possible; otherwise nothing changes. Only before anything is forwarded."""
        if not (a.owned and b.owned) or a.empty or b.empty:
            return False
        small, large = sorted((self.buffer(a), self.buffer(b)), key=_size)
        if small is large:
            return True
        if (small.storage is not None and large.storage is not None) or not same_elements(small.type, large.type):
            return False
        if any(self._collides(s, large.segments) for s in small.segments):
            return False
        for segment in small.segments:
            insort(large.segments, segment, key=start_of)
        large.members += small.members
        for content in small.members:
            content.buffer = large
        large.mixed |= mixes(small, large)
        if small.storage is not None:
            large.storage = small.storage
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
        at = bisect_right(others, segment.start, key=start_of)
        k = at - 1
        while k >= 0 and others[k].end >= segment.start:
            if not touch(others[k], segment):
                return True
            k -= 1
        k = at
        while k < len(others) and others[k].start <= segment.end:
            if not touch(others[k], segment):
                return True
            k += 1
        return False

    def _meets_part(self, content: Content, read: Read, host: Buffer) -> bool:
        """Would `read` see a part of `host` that `content` does not have: one that is made before its insert?"""
        start = self.time.start[self.time.anchor(read.op)]
        return any(not self._preserves(content, p, set()) for p in host.parts_at(start, read.position))

    def _keeps(self, segment: Segment, part: Part, end: int) -> bool:
        """Does the slice of `part`, needed until `end`, survive `segment`?"""
        if segment.start == end and (source := segment.content.sources.get(end)) is not None:
            return self._is_preserved(source, part, set())  # the value is taken over at the very end: nothing else matters any more
        return self._preserves(segment.content, part, set())

    def _preserves(self, content: Content, part: Part, seen: set[Content]) -> bool:
        """Was `content` made from `part.result` by changing other slices only?"""
        if content is part.result or content in seen:  # a loop preserves it if each step does
            return True
        if len(seen) > CHAIN:
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
                insort(buffer.segments, segment, key=start_of)
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
        segments = lifetime(self.time, content, reads)
        others = [s for s in buffer.segments if s.content is not content]
        if any(self._collides(s, others) for s in segments) or any(self._meets_part(content, r, buffer) for r in reads):
            return False
        if isinstance(buffer.storage, Slot):
            part = next(p for p in buffer.storage.host.parts if p.content.buffer is buffer)
            end = max(s.end for s in segments)
            if content is not part.content or not self.stays(buffer.storage.host, part, part.end + 1, end):
                return False
            if isinstance(buffer.storage.host.storage, Slot) and end > part.end:  # what lies in a part of a part is not asked again
                return False
        plan.append((content, reads, segments))
        return True

    def _replace_part(self, buffer: Buffer, content: Content, end: int) -> None:
        assert isinstance(buffer.storage, Slot)
        host = buffer.storage.host
        host.parts = [Part(p.start, max(p.end, end), p.content, p.slice, p.result) if p.content is content else p for p in host.parts]
        host.longest_part = max(p.end - p.start for p in host.parts)

    def stays(self, host: Buffer, part: Part, start: int, end: int) -> bool:
        """Does the slice of `part` keep its elements from `start` to `end`, after the insert?"""
        if not all(self._keeps(s, part, end) for s in overlapping(host.segments, start, end)):
            return False
        return all(p.content is part.content or disjoint(p.slice, part.slice) for p in host.parts_at(start, end))

    def exit_reads(self, content: Content) -> list[Read]:
        """The reads of a carried value behind its loop."""
        return [r for r in content.reads if r.origin is content.exit]

    def whole_loop(self, loop: Operation, origin: Origin) -> Read:
        """A read that lasts as long as `loop`."""
        return Read(loop, self.time.end[loop], origin)


def _size(buffer: Buffer) -> int:
    return len(buffer.segments)
