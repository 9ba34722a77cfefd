"""When the memory of a buffer is in use: from the first to the last access, through views, loops and branches (part of `plan-memory`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, FixedBitwidthType, MemRefType
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from gradir.dialects.upstream import arith, func, memref, scf
from gradir.lowering.bufferize.timeline import Timeline
from gradir.lowering.workspace import ALIGNMENT

VIEWS = (memref.SubviewOp, memref.CastOp, memref.CollapseShapeOp, memref.ExpandShapeOp, memref.ViewOp, memref.ReinterpretCastOp)


@dataclass(frozen=True, eq=False, slots=True)
class Interval:
    """A buffer and the part of the timeline (both ends included) where its bytes matter."""

    alloc: memref.AllocOp
    start: int
    end: int
    bytes: int


class Lifetimes:
    """The buffers of one function: `static` in program order, and those whose sizes only the run knows (their bytes count as 1)."""

    def __init__(self, function: func.FuncOp) -> None:
        self.time = Timeline(function.body.block)
        allocs = [op for op in self.time.start if isinstance(op, memref.AllocOp)]
        self.static = [i for op in allocs if not is_run_time(op) if (i := self._interval(op, padded_bytes(op))) is not None]
        self.run_time = [i for op in allocs if is_run_time(op) if (i := self._interval(op, 1)) is not None]
        self.run_time_count = sum(map(is_run_time, allocs))

    def of_argument(self, argument: BlockArgument) -> tuple[int, int] | None:
        """First and last moment at which an argument is accessed."""
        return self._touched(argument, self.time.body)

    def _interval(self, alloc: memref.AllocOp, size: int) -> Interval | None:
        moments = self._touched(alloc.memref, cast("Block", alloc.parent))
        return None if moments is None else Interval(alloc, *moments, size)

    @cached_property
    def _edges(self) -> dict[SSAValue, list[SSAValue]]:
        """From each memref to the values that may be the same memory in another guise."""
        edges: dict[SSAValue, list[SSAValue]] = {}

        def link(sources: Sequence[SSAValue], targets: Sequence[SSAValue]) -> None:
            for source, target in zip(sources, targets):
                if isinstance(source.type, MemRefType):
                    edges.setdefault(source, []).append(target)

        for op in self.time.start:
            if isinstance(op, VIEWS):
                link(op.operands[:1], op.results)
            elif isinstance(op, arith.SelectOp):
                link(op.operands[1:2], op.results)
                link(op.operands[2:3], op.results)
            elif isinstance(op, scf.ForOp):
                arguments, last = op.body.block.args[1:], cast("Operation", op.body.block.last_op)
                for sources in (op.iter_args, last.operands):
                    link(sources, arguments)
                    link(sources, op.results)
            elif isinstance(op, scf.WhileOp):
                condition = cast("scf.ConditionOp", op.before_region.block.last_op)
                link(op.arguments, op.before_region.block.args)
                link(condition.args, op.after_region.block.args)
                link(condition.args, op.results)
                link(cast("Operation", op.after_region.block.last_op).operands, op.before_region.block.args)
            elif isinstance(op, scf.IfOp | scf.IndexSwitchOp):
                for region in op.regions:
                    if region.first_block is not None:
                        link(cast("Operation", region.block.last_op).operands, op.results)
        return edges

    def _touched(self, memory: SSAValue, block: Block) -> tuple[int, int] | None:
        """First and last moment at which `memory` is accessed, in terms of `block`, where it comes into being."""
        time, edges = self.time, self._edges
        seen: set[SSAValue] = {memory}
        stack: list[SSAValue] = [memory]
        ops: list[Operation] = []
        while stack:
            value = stack.pop()
            for target in edges.get(value, ()):
                if target not in seen:
                    seen.add(target)
                    stack.append(target)
            ops += [time.anchor(use.operation) for use in value.uses if not isinstance(use.operation, (*VIEWS, memref.DeallocOp))]
        if not ops:
            return None
        while not all(time.lift(op, block) for op in ops):  # passed out of its block: it lives in the enclosing one
            parent = block.parent_op()
            assert parent is not None and parent.parent is not None
            block = parent.parent
        lifted = [cast("Operation", time.lift(op, block)) for op in ops]
        return min(time.start[op] for op in lifted), max(time.end[op] for op in lifted)


def is_run_time(op: memref.AllocOp) -> bool:
    """Does only the run know the size of the buffer?"""
    return DYNAMIC_INDEX in cast("MemRefType[Any]", op.memref.type).get_shape()


def element_count(type_: MemRefType[Any]) -> int:
    """Elements of a static memref."""
    return prod(type_.get_shape())


def bytes_of(type_: MemRefType[Any]) -> int:
    """Bytes of a static memref."""
    element = type_.element_type
    width = element.bitwidth if isinstance(element, FixedBitwidthType) else 64
    return element_count(type_) * max(1, width // 8)


def padded_bytes(alloc: memref.AllocOp) -> int:
    """The bytes of a static buffer, rounded up to the alignment of offsets."""
    return -(-bytes_of(cast("MemRefType[Any]", alloc.memref.type)) // ALIGNMENT) * ALIGNMENT
