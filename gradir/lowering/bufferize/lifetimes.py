"""Where on the timeline a content is live: one stretch per block that reads it, with gaps where another branch runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from xdsl.ir import Block, Operation

from gradir.dialects.upstream import func, scf
from gradir.lowering.bufferize.buffers import Segment
from gradir.lowering.bufferize.timeline import LOOPS, Timeline
from gradir.lowering.bufferize.views import Content, Read

JOINS = (scf.ForOp, scf.WhileOp, scf.YieldOp, scf.ConditionOp, func.ReturnOp)
"""Ops at which values are handed on to carried values, results of branches, outputs."""

Ends: TypeAlias = dict[tuple[Block, int], tuple[int, Operation, frozenset[Content]]]
"""Per block and start of a stretch: its end, the op that reads there, what may come into being at that moment."""


def lifetime(time: Timeline, content: Content, extra: Iterable[Read] = ()) -> list[Segment]:
    """Where `content` is live, in order; `extra` are reads to come."""
    found: Ends = {}
    nothing: frozenset[Content] = frozenset()
    for read in (*content.reads, *extra):
        op, position, legal = time.anchor(read.op), read.position, read.legal
        block = op.parent
        while block is not read.origin.block:
            assert block is not None
            parent = block.parent_op()
            assert parent is not None, "a read outlives the block of its content"
            if isinstance(parent, LOOPS):  # every iteration reads it
                position = max(position, time.end[parent])
            else:
                _raise(found, (block, time.block_start[block]), position, read.op, legal)
                position = time.start[parent]
            legal, block = nothing, parent.parent
        _raise(found, (read.origin.block, read.origin.position), position, read.op, legal)
    segments = [Segment(start, end, content, legal) for (_, start), (end, _, legal) in found.items()]
    segments += [Segment(start, end, content, nothing) for start, end in content.spans]
    segments += [Segment(position, position, content, nothing) for position, _ in content.definitions]
    return _merged(segments)


def _raise(found: Ends, key: tuple[Block, int], position: int, op: Operation, legal: frozenset[Content]) -> None:
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
