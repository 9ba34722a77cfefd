"""Making the source of an insert where it will be inserted.

That moves the write of the slice up from the insert to where the source is made, so no read and no other write of the slice may lie
between: an anti-dependence, asked of the same lifetimes and reads as sharing. The slice is recorded as a `Part` of its host, which
holds the source before the insert and, where the source is read later, after it.
"""

from __future__ import annotations

from bisect import insort

from xdsl.ir import Block, Operation, SSAValue

from gradir.dialects.upstream import func, scf, tensor
from gradir.lowering.bufferize.buffers import Buffer, Part, Slot, overlapping, start_of
from gradir.lowering.bufferize.ownership import CHAIN, Ownership
from gradir.lowering.bufferize.slices import Slice, disjoint
from gradir.lowering.bufferize.timeline import Timeline
from gradir.lowering.bufferize.views import Content


class Forwarding:
    """Decides insert by insert, in program order, once it is known who shares memory."""

    def __init__(self, ownership: Ownership) -> None:
        self._ownership = ownership
        self._contents = ownership.contents
        self._time = ownership.time

    def forward(self, insert: tensor.InsertSliceOp) -> bool:
        """Let the source of `insert` be made in place, in the slice it is inserted into, if nothing reads or writes it in between."""
        source = self._contents.whole(insert.source)
        if source is None or not source.owned or self._contents.view(insert.source).kind != "whole":
            return False
        result = self._contents.content(insert.result)
        inner, host = self._ownership.buffer(source), self._ownership.buffer(result)
        if inner.storage is not None or inner is host or inner.mixed or host.mixed:
            return False
        destination = self._contents.view(insert.dest)
        if not destination.content.empty and destination.content.buffer is not host:
            return False
        block = insert.parent
        assert block is not None
        if any(self._time.lift(op, block) is None for op in inner.definitions()):
            return False
        if any(self._writes_whole_buffers(op) for op in inner.definitions()):
            return False
        events = inner.events()
        place = self._time.common_block(events)
        first = min((op for e in events if (op := self._time.lift(e, place)) is not None), key=self._time.start.__getitem__)
        scalars = (*insert.offsets, *insert.sizes, *insert.strides)
        if not all(available(self._time, v, first) for v in (*scalars, *_sizes(host))):
            return False
        at = self._time.late(insert)
        start, end = inner.extent()
        part = Part(start, max(at, end), source, self._contents.slices[insert], result)
        if not self._untouched(insert, host, part, at):
            return False
        if any(s.end > at and s.content is not source for s in inner.segments) or not self._ownership.stays(host, part, at + 1, part.end):
            return False
        inner.storage = Slot(insert, host)
        insort(host.parts, part, key=start_of)
        host.longest_part = max(host.longest_part, part.end - part.start)
        host.hosted.append(inner)
        return True

    def _writes_whole_buffers(self, op: Operation) -> bool:
        """Is `op` a call of a library, which leaves no gaps between the rows of what it writes?"""
        if not isinstance(op, func.CallOp):
            return False
        facts = self._contents.kernels.get(op.callee.root_reference.data)
        return facts is not None and facts.contiguous

    def _untouched(self, insert: tensor.InsertSliceOp, host: Buffer, part: Part, at: int) -> bool:
        """Is the slice neither read nor written by others from the first write of the source to the insert at `at`?"""
        begin, slice_ = part.start, part.slice
        passed, base = self._versions(insert, host, slice_, begin)
        for segment in overlapping(host.segments, begin, at - 1):
            if segment.content is not base and segment.content not in passed:
                return False
        if base is not None and any(begin <= position <= at for position, _ in base.definitions):
            return False
        pending = host.parts_at(begin, at)
        if len(pending) > CHAIN or not all(disjoint(p.slice, slice_) for p in pending):
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
        return isinstance(op, tensor.InsertSliceOp) and self._contents.content(op.result).buffer is host

    def _versions(self, insert: tensor.InsertSliceOp, host: Buffer, slice_: Slice, begin: int) -> tuple[list[Content], Content | None]:
        """Going back from the destination of `insert`: versions made since `begin` by inserts elsewhere, and the first that was not."""
        passed: list[Content] = []
        value = insert.dest
        for _ in range(CHAIN):
            content = self._contents.content(value)
            if content.empty:
                return passed, None
            owner = value.owner
            if not isinstance(owner, tensor.InsertSliceOp) or owner.parent is not insert.parent or self._time.start[owner] < begin:
                return passed, content
            value = owner.operands[1]  # much faster than `.dest`
            before = self._contents.content(value)
            if not disjoint(self._contents.slices[owner], slice_) or not (before.empty or before.buffer is host):
                return passed, content
            passed.append(content)
        return passed, self._contents.content(value)


def _sizes(host: Buffer) -> list[SSAValue]:
    """The run-time sizes of the memory of `host`, where an op states them: those of arguments are known from the start."""
    value = next((c.value for c in host.members if c.value is not None), None)
    while value is not None:
        owner = value.owner
        if isinstance(owner, tensor.EmptyOp):
            return list(owner.dynamic_sizes)
        if isinstance(owner, tensor.InsertSliceOp):
            value = owner.dest
        elif isinstance(owner, func.CallOp):
            value = owner.operands[len(owner.operands) - len(owner.results) + owner.results.index(value)]
        elif isinstance(owner, scf.ForOp):
            value = owner.iter_args[owner.results.index(value)]
        elif isinstance(owner, Block) and isinstance(loop := owner.parent_op(), scf.ForOp):
            value = loop.iter_args[owner.args.index(value) - 1]
        else:
            break
    return []


def available(time: Timeline, value: SSAValue, at: Operation, depth: int = 32) -> bool:
    """Can the scalar `value` be computed right before `at`: from what is known there, by index arithmetic?"""
    owner = value.owner
    if isinstance(owner, Block):
        return time.lift(at, owner) is not None
    assert owner.parent is not None
    enclosing = time.lift(at, owner.parent)
    if enclosing is not None and time.start[owner] < time.start[enclosing]:
        return True
    movable = owner.name.startswith("arith.") and depth > 0
    return movable and all(available(time, v, at, depth - 1) for v in owner.operands)
