"""Scalars that differ from lane to lane: a tensor of `n` elements, index values as i64; `arith` on them is `nd`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.dialects.builtin import IndexType, TensorType, i64
from xdsl.ir import Attribute, Operation, SSAValue

from gradir.autodiff.batching.lanes import Lanes
from gradir.dialects import nd
from gradir.dialects.upstream import arith

BINARY: dict[type[Operation], type[Operation]] = {
    arith.AddiOp: nd.AddOp,
    arith.SubiOp: nd.SubOp,
    arith.MuliOp: nd.MulOp,
    arith.DivSIOp: nd.DivOp,
    arith.RemSIOp: nd.RemOp,
    arith.MaxSIOp: nd.MaxOp,
    arith.MinSIOp: nd.MinOp,
    arith.AndIOp: nd.AndOp,
    arith.OrIOp: nd.OrOp,
    arith.XOrIOp: nd.XorOp,
    arith.AddfOp: nd.AddOp,
    arith.SubfOp: nd.SubOp,
    arith.MulfOp: nd.MulOp,
    arith.DivfOp: nd.DivOp,
}

_DIRECTIONS = {"eq": "eq", "ne": "ne", "slt": "lt", "sle": "le", "sgt": "gt", "sge": "ge"}
"""Predicates of integers that `nd.compare` has: not the unsigned ones, of signless operands."""


def _convert(lanes: Lanes, op: Operation, operands: list[SSAValue]) -> SSAValue:
    """Casts between integer and index types."""
    kind: Attribute = op.results[0].type
    return lanes.t.convert(operands[0], i64 if isinstance(kind, IndexType) else kind)


def _compare(lanes: Lanes, op: arith.CmpiOp, operands: list[SSAValue]) -> SSAValue:
    return lanes.t.compare(_DIRECTIONS[op.predicate_name], operands[0], operands[1])


def _ceil_div(lanes: Lanes, op: Operation, operands: list[SSAValue]) -> SSAValue:
    """For a >= 0 and b > 0: what trip counts are made of."""
    a, b = operands
    one = lanes.t.full(1, a.type)
    return lanes.t.div(lanes.t.sub(lanes.t.add(a, b), one), b)


def _select(lanes: Lanes, op: Operation, operands: list[SSAValue]) -> SSAValue:
    pred, on_true, on_false = operands
    if isinstance(op.results[0].type, TensorType):
        return lanes.lane_select(pred, on_true, on_false)
    return lanes.t.select(pred, on_true, on_false)


OTHER: dict[type[Operation], Callable[[Lanes, Any, list[SSAValue]], SSAValue]] = {
    arith.IndexCastOp: _convert,
    arith.ExtSIOp: _convert,
    arith.TruncIOp: _convert,
    arith.CmpiOp: _compare,
    arith.CeilDivSIOp: _ceil_div,
    arith.SelectOp: _select,
}


def is_scalar_op(op: Operation) -> bool:
    """Whether `scalar_op` covers the op."""
    if isinstance(op, arith.CmpiOp):
        return op.predicate_name in _DIRECTIONS
    return type(op) in BINARY or type(op) in OTHER


def scalar_op(lanes: Lanes, op: Operation, operands: list[SSAValue]) -> SSAValue:
    """The op of `arith` on lanes."""
    kind = BINARY.get(type(op))
    if kind is not None:
        return lanes.t.binary(kind, operands[0], operands[1])
    return OTHER[type(op)](lanes, op, operands)
