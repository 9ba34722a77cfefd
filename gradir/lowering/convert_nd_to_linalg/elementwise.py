"""Elementwise ops: one nest each, by tables from op to scalar body for floats, integers and i1."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerType, UnitAttr, i1
from xdsl.ir import Operation, SSAValue

from gradir.dialects import nd
from gradir.dialects.types import element_of, is_unsigned, shape_of
from gradir.dialects.upstream import arith, math
from gradir.dialects.upstream.math import NONPOSITIVE
from gradir.lowering.convert_nd_to_linalg import scalars as body
from gradir.lowering.convert_nd_to_linalg.conversions import convert
from gradir.lowering.convert_nd_to_linalg.function import Lowering
from gradir.lowering.convert_nd_to_linalg.rules import lowers
from gradir.lowering.convert_nd_to_linalg.scalars import Body, Scalars, float_op, integer_op
from gradir.lowering.convert_nd_to_linalg.views import View

FLOAT: dict[type[Operation], Body] = {
    nd.ReluOp: body.relu_float,
    nd.NegOp: float_op(arith.NegfOp),
    nd.AbsOp: float_op(math.AbsFOp),
    nd.SignOp: body.sign_float,
    nd.Expm1Op: float_op(math.ExpM1Op),
    nd.LogOp: float_op(math.LogOp),
    nd.Log1pOp: float_op(math.Log1pOp),
    nd.SqrtOp: float_op(math.SqrtOp),
    nd.RsqrtOp: body.rsqrt,
    nd.TanhOp: float_op(math.TanhOp),
    nd.LogisticOp: body.logistic,
    nd.ErfOp: float_op(math.ErfOp),
    nd.SinOp: float_op(math.SinOp),
    nd.CosOp: float_op(math.CosOp),
    nd.FloorOp: float_op(math.FloorOp),
    nd.CeilOp: float_op(math.CeilOp),
    nd.IsFiniteOp: body.is_finite,
    nd.AddOp: float_op(arith.AddfOp),
    nd.SubOp: float_op(arith.SubfOp),
    nd.MulOp: float_op(arith.MulfOp),
    nd.MulStrongOp: body.mul_strong_float,
    nd.DivOp: float_op(arith.DivfOp),
    nd.RemOp: float_op(arith.RemFOp),
    nd.PowOp: float_op(math.PowFOp),
    nd.MaxOp: float_op(arith.MaximumfOp),
    nd.MinOp: float_op(arith.MinimumfOp),
    nd.Atan2Op: float_op(math.Atan2Op),
    nd.ClampOp: body.clamp_float,
}

INTEGER: dict[type[Operation], Body] = {
    nd.ReluOp: body.relu_integer,
    nd.NegOp: body.negate_integer,
    nd.AbsOp: body.abs_integer,
    nd.SignOp: body.sign_integer,
    nd.NotOp: body.complement,
    nd.AddOp: integer_op(arith.AddiOp),
    nd.SubOp: integer_op(arith.SubiOp),
    nd.MulOp: integer_op(arith.MuliOp),
    nd.MulStrongOp: integer_op(arith.MuliOp),
    nd.DivOp: body.divide_integer,
    nd.RemOp: body.remainder_integer,
    nd.PowOp: body.power_integer,
    nd.MaxOp: integer_op(arith.MaxSIOp, arith.MaxUIOp),
    nd.MinOp: integer_op(arith.MinSIOp, arith.MinUIOp),
    nd.AndOp: integer_op(arith.AndIOp),
    nd.OrOp: integer_op(arith.OrIOp),
    nd.XorOp: integer_op(arith.XOrIOp),
    nd.ShlOp: body.shift(arith.ShLIOp),
    nd.ShrUOp: body.shift(arith.ShRUIOp),
    nd.ShrSOp: body.shift_right_signed,
    nd.ClampOp: body.clamp_integer,
}

BOOLEAN: dict[type[Operation], Body] = {
    nd.NotOp: body.complement,
    nd.AddOp: integer_op(arith.OrIOp),
    nd.MaxOp: integer_op(arith.OrIOp),
    nd.OrOp: integer_op(arith.OrIOp),
    nd.MulOp: integer_op(arith.AndIOp),
    nd.MulStrongOp: integer_op(arith.AndIOp),
    nd.MinOp: integer_op(arith.AndIOp),
    nd.AndOp: integer_op(arith.AndIOp),
    nd.XorOp: integer_op(arith.XOrIOp),
    nd.ClampOp: body.clamp_bit,
}


@lowers(*FLOAT, *INTEGER)
def lower_elementwise(lowering: Lowering, op: nd.NdOp) -> View:
    """`result[i] = f(operands[i])`."""
    element = element_of(op.operands[0])
    table = BOOLEAN if element == i1 else INTEGER if isinstance(element, IntegerType) else FLOAT
    inputs = [lowering.view(v) for v in op.operands]
    return lowering.elementwise(op, inputs, table[type(op)], unsigned=is_unsigned(element))


@lowers(nd.ExpOp)
def lower_exp(lowering: Lowering, op: nd.ExpOp) -> View:
    """Says so where the operand is x - max(x), as in every softmax."""
    shifted = is_shifted_by_maximum(op.operands[0])

    def power(s: Scalars, x: SSAValue) -> SSAValue:
        result = s.f(math.ExpOp, x)
        if shifted and isinstance(result.owner, Operation):
            result.owner.attributes[NONPOSITIVE] = UnitAttr()
        return result

    return lowering.elementwise(op, [lowering.view(op.operands[0])], power)


def is_shifted_by_maximum(value: SSAValue) -> bool:
    """Is `value` x - max(.., c) with the maximum of x over some dimensions, spread over x again? Then it is 0 at most, or NaN."""
    difference = value.owner
    if not isinstance(difference, nd.SubOp):
        return False
    x, spread = difference.operands
    if not isinstance(spread.owner, nd.BroadcastOp):
        return False
    shape, kept = shape_of(x), spread.owner.numbers("dims")
    top = spread.owner.operands[0]
    if isinstance(top.owner, nd.ReshapeOp):  # of a reduction that keeps its dimensions
        kept = tuple(d for d, n in zip(kept, shape_of(top)) if n != 1)
        top = top.owner.operands[0]
        if [shape[d] for d in kept] != [n for n in shape_of(top) if n != 1] or any(shape[d] == 1 for d in kept):
            return False
    candidates = [top, *(top.owner.operands if isinstance(top.owner, nd.MaxOp) else ())]
    for reduced in (v.owner for v in candidates):
        if isinstance(reduced, nd.ReduceMaxOp) and reduced.operands[0] is x:
            left = [d for d in range(len(shape)) if d not in reduced.numbers("dims")]
            return [d for d in left if shape[d] != 1] == [d for d in kept if shape[d] != 1]
    return False


@lowers(nd.SelectOp)
def lower_select(lowering: Lowering, op: nd.SelectOp) -> View:
    """Moves elements as they are: no widening."""
    return lowering.elementwise(op, [lowering.view(v) for v in op.operands], Scalars.select, compute=False)


@lowers(nd.CompareOp)
def lower_compare(lowering: Lowering, op: nd.CompareOp) -> View:
    direction = op.direction.data.value

    def compare(s: Scalars, x: SSAValue, y: SSAValue) -> SSAValue:
        return body.compare(s, direction, x, y)

    return lowering.elementwise(op, [lowering.view(v) for v in op.operands], compare, unsigned=is_unsigned(element_of(op.lhs)))


@lowers(nd.ConvertOp)
def lower_convert(lowering: Lowering, op: nd.ConvertOp) -> View:
    view, target = lowering.view(op.operand), element_of(op.result)
    if view.element == target:
        return view

    def one(s: Scalars, x: SSAValue) -> SSAValue:
        return convert(s, x, view.element, target)

    return lowering.elementwise(op, [view], one, compute=False)
