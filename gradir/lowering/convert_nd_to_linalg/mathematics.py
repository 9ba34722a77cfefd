"""Further functions of one number: one nest each, by a table from op to scalar body. Polynomials come later, in `expand-math`."""

from __future__ import annotations

from math import pi, sqrt

from xdsl.dialects.builtin import f64
from xdsl.ir import Operation, SSAValue

from gradir.dialects.nd import mathematics as nd
from gradir.dialects.nd.base import NdOp
from gradir.dialects.types import element_of, is_unsigned
from gradir.dialects.upstream import arith, math
from gradir.lowering.convert_nd_to_linalg.function import Lowering
from gradir.lowering.convert_nd_to_linalg.rules import lowers
from gradir.lowering.convert_nd_to_linalg.scalars import Body, Scalars, float_op, integer_op
from gradir.lowering.convert_nd_to_linalg.views import View

_WINITZKI = 0.147


def erf_inv(s: Scalars, x: SSAValue) -> SSAValue:
    """S. Winitzki's approximation (2e-3), two or (f64) three of Halley's steps on erf, or on erfc above 1/2, where 1 - |x| is exact."""
    one, half, inf = s.like(1, x), s.like(0.5, x), s.like(float("inf"), x)
    a = s.f(math.AbsFOp, x)
    rest = s.f(arith.SubfOp, one, a)
    w = s.f(arith.NegfOp, s.f(math.LogOp, s.f(arith.MulfOp, rest, s.f(arith.AddfOp, one, a))))
    t = s.f(arith.SubfOp, s.like(2 / (pi * _WINITZKI), x), s.f(arith.MulfOp, w, half))
    u = s.f(arith.MulfOp, w, s.like(1 / _WINITZKI, x))
    root = s.f(math.SqrtOp, s.f(arith.AddfOp, s.f(arith.MulfOp, t, t), u))
    small = s.f(arith.DivfOp, u, s.f(arith.AddfOp, root, t))
    y = s.f(math.SqrtOp, s.select(s.cmpf("ogt", t, s.like(0, x)), small, s.f(arith.SubfOp, root, t)))
    for _ in range(3 if x.type == f64 else 2):
        near = s.f(arith.SubfOp, s.f(math.ErfOp, y), a)
        error = s.select(s.cmpf("ogt", a, half), s.f(arith.SubfOp, rest, s.f(math.ErfcOp, y)), near)
        slope = s.f(arith.MulfOp, s.f(math.ExpOp, s.f(arith.MulfOp, y, y)), s.like(sqrt(pi) / 2, x))
        step = s.f(arith.MulfOp, error, slope)
        y = s.f(arith.SubfOp, y, s.f(arith.DivfOp, step, s.f(arith.AddfOp, one, s.f(arith.MulfOp, y, step))))
    return s.f(math.CopySignOp, s.select(s.cmpf("oeq", a, one), inf, y), x)


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
    nd.ErfInvOp: erf_inv,
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
