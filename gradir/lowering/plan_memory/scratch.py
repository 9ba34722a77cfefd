"""What a kernel at level 4 allocates while it runs: panels and bands too large for the stack (read by memory reports)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects.builtin import IntegerAttr, MemRefType
from xdsl.ir import Block, SSAValue

from gradir.dialects.upstream import arith, func, memref, scf
from gradir.lowering.plan_memory.lifetimes import bytes_of, is_run_time


def scratch_of(kernel: func.FuncOp, threads: int) -> int:
    """The most bytes of known size that are allocated at once when `threads` threads run the kernel's parallel loops."""
    return _most(kernel.body.block, threads) if kernel.body.first_block is not None else 0


def _most(block: Block, threads: int) -> int:
    """The most bytes that are allocated at once while the ops of a block run one after the other."""
    live = most = 0
    sizes: dict[SSAValue, int] = {}
    for op in block.ops:
        if isinstance(op, memref.AllocOp) and not is_run_time(op):
            sizes[op.memref] = bytes_of(cast("MemRefType[Any]", op.memref.type))
            live += sizes[op.memref]
        elif isinstance(op, memref.DeallocOp):
            live -= sizes.pop(op.memref, 0)
        inner = max((_most(b, threads) for region in op.regions for b in region.blocks), default=0)
        if isinstance(op, scf.ParallelOp):
            inner *= min(threads, _iterations(op.lowerBound, op.upperBound, op.step, threads))
        most = max(most, live + inner)
    return most


def _iterations(lower: Sequence[SSAValue], upper: Sequence[SSAValue], step: Sequence[SSAValue], unknown: int) -> int:
    """How often a parallel loop runs its body, `unknown` where that is not constant."""
    total = 1
    for low, high, by in zip(lower, upper, step):
        numbers = [_constant(v) for v in (low, high, by)]
        if None in numbers:
            return unknown
        first, last, width = cast("list[int]", numbers)
        total *= max(0, -(-(last - first) // width))
    return total


def _constant(value: SSAValue) -> int | None:
    op = value.owner
    return op.value.value.data if isinstance(op, arith.ConstantOp) and isinstance(op.value, IntegerAttr) else None


__all__ = ["scratch_of"]
