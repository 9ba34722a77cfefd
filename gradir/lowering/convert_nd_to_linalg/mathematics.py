"""Further functions of one number: one nest each, by a table from op to scalar body. Polynomials come later, in `expand-math`."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from gradir.dialects.nd import mathematics as nd
from gradir.dialects.nd.base import NdOp
from gradir.dialects.types import element_of, is_unsigned
from gradir.dialects.upstream import math
from gradir.lowering.convert_nd_to_linalg.function import Lowering
from gradir.lowering.convert_nd_to_linalg.rules import lowers
from gradir.lowering.convert_nd_to_linalg.scalars import Body, Scalars, float_op, integer_op
from gradir.lowering.convert_nd_to_linalg.views import View


def is_nan(s: Scalars, x: SSAValue) -> SSAValue:
    return s.cmpf("uno", x, x)


def is_inf(s: Scalars, x: SSAValue) -> SSAValue:
    return s.cmpf("oeq", s.f(math.AbsFOp, x), s.like(float("inf"), x))


BODIES: dict[type[Operation], Body] = {
    nd.RoundEvenOp: float_op(math.RoundEvenOp),
    nd.RoundAwayOp: float_op(math.RoundOp),
    nd.TruncOp: float_op(math.TruncOp),
    nd.CbrtOp: float_op(math.CbrtOp),
    nd.TanOp: float_op(math.TanOp),
    nd.AsinOp: float_op(math.AsinOp),
    nd.AcosOp: float_op(math.AcosOp),
    nd.AtanOp: float_op(math.AtanOp),
    nd.SinhOp: float_op(math.SinhOp),
    nd.CoshOp: float_op(math.CoshOp),
    nd.AsinhOp: float_op(math.AsinhOp),
    nd.AcoshOp: float_op(math.AcoshOp),
    nd.AtanhOp: float_op(math.AtanhOp),
    nd.ErfcOp: float_op(math.ErfcOp),
    nd.IsNanOp: is_nan,
    nd.IsInfOp: is_inf,
    nd.PopcntOp: integer_op(math.CtPopOp),
    nd.ClzOp: integer_op(math.CountLeadingZerosOp),
}


@lowers(*BODIES)
def lower_function(lowering: Lowering, op: NdOp) -> View:
    """`result[i] = f(operand[i])`."""
    (operand,) = op.operands
    return lowering.elementwise(op, [lowering.view(operand)], BODIES[type(op)], unsigned=is_unsigned(element_of(operand)))
