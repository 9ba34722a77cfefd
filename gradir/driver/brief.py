"""Whether a function runs for less time than the GIL takes to be released and taken back: estimated from its level-3 form.

Every scalar operation counts one, a transcendental one more; what cannot be counted, loops of unknown trips and sizes of the run
among it, is not brief. The count stops as soon as it is too high, so that large programs cost nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any, cast

from xdsl.dialects.builtin import IntegerAttr, MemRefType
from xdsl.ir import Block, Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineDimExpr

from gradir.dialects.upstream import arith, func, linalg, scf

LIMIT = 4096
"""Operations of a brief call: 0.5 us as vectors, some 4 us one by one."""

TRANSCENDENTAL = 16


def is_brief(function: func.FuncOp, functions: Mapping[str, func.FuncOp]) -> bool:
    """Whether a call of `function` (level 3) is that short; `functions` are those of its module, by name."""
    return _count(function.body.block, functions, LIMIT) is not None


def _count(block: Block, functions: Mapping[str, func.FuncOp], limit: float) -> float | None:
    """Operations that one run of `block` takes; None when there are more than `limit` or nobody knows."""
    total = 0.0
    for op in block.ops:
        cost = _cost(op, functions, limit - total)
        if cost is None or total + cost > limit:
            return None
        total += cost
    return total


def _cost(op: Operation, functions: Mapping[str, func.FuncOp], limit: float) -> float | None:
    if isinstance(op, func.CallOp):
        callee = functions.get(op.callee.string_value())
        return _count(callee.body.block, functions, limit) if callee is not None and callee.body.blocks else None
    if isinstance(op, linalg.GenericOp):
        points = _points(op)
        each = None if points is None else _count(op.body.block, functions, limit / max(1, points))
        return None if points is None or each is None else points * each
    if isinstance(op, scf.ForOp):
        bounds = [_constant(value) for value in (op.lb, op.ub, op.step)]
        if None in bounds:
            return None
        trips = len(range(*cast("list[int]", bounds)))
        each = _count(op.body.block, functions, limit / max(1, trips))
        return None if each is None else trips * each
    if isinstance(op, linalg.FillOp) or op.name in ("memref.copy", "linalg.copy"):
        return _elements(op.operands[-1])
    dialect = op.name.partition(".")[0]
    if op.regions or dialect not in ("arith", "math", "memref", "func", "linalg", "scf"):
        return None
    return TRANSCENDENTAL if dialect == "math" else 1


def _points(op: linalg.GenericOp) -> int | None:
    """Points of the iteration space: every loop is a dimension of some operand."""
    extents: dict[int, int] = {}
    for operand, row in zip(op.operands, op.indexing_maps.data, strict=True):
        if isinstance(operand.type, MemRefType):
            shape = cast("MemRefType[Any]", operand.type).get_shape()
            extents |= {e.position: n for e, n in zip(row.data.results, shape, strict=True) if isinstance(e, AffineDimExpr)}
    complete = len(extents) == len(op.iterator_types) and min(extents.values(), default=0) >= 0
    return prod(extents.values()) if complete else None


def _elements(value: SSAValue) -> int | None:
    if not isinstance(value.type, MemRefType):
        return None
    shape = cast("MemRefType[Any]", value.type).get_shape()
    return prod(shape) if min(shape, default=0) >= 0 else None


def _constant(value: SSAValue) -> int | None:
    op = value.op if isinstance(value, OpResult) else None
    return op.value.value.data if isinstance(op, arith.ConstantOp) and isinstance(op.value, IntegerAttr) else None
