"""Derivatives of elementwise ops. Conventions at kinks and singular points: docs/numerics.md, "Derivatives".

Every product of a cotangent with a local derivative is strong (0 * inf = 0), so that a branch not taken cannot poison.
"""

from __future__ import annotations

import math
from typing import Any

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import SSAValue

from gradir.autodiff.registry import Contribution, skip, vjp
from gradir.autodiff.tensors import TensorBuilder, is_differentiable
from gradir.dialects import nd
from gradir.dialects.types import element_of, is_complex

Rule = tuple[Contribution, ...]


@vjp(nd.ReluOp)
def relu_vjp(t: TensorBuilder, op: nd.ReluOp, ct: SSAValue) -> Rule:
    """relu'(x) = 0 for x <= 0 (0 included), else 1; a NaN keeps the cotangent. Read off the result, which is kept anyway."""
    y = op.result
    return (t.select(t.compare("le", y, t.full_like(0.0, y)), t.full_like(0.0, ct), ct),)


@vjp(nd.NegOp)
def neg_vjp(t: TensorBuilder, op: nd.NegOp, ct: SSAValue) -> Rule:
    """d(-x) = -dx"""
    return (t.neg(ct),)


@vjp(nd.AbsOp)
def abs_vjp(t: TensorBuilder, op: nd.AbsOp, ct: SSAValue) -> Rule:
    """d|x| = sign(x) dx, 0 at 0; of complex z: Re(conj(sign(z)) dz)"""
    sign = t.unary(nd.SignOp, op.operand)
    if not is_complex(element_of(sign)):
        return (t.mul_strong(ct, sign),)
    return (t.mul_strong(t.convert(ct, element_of(sign)), t.unary(nd.ConjOp, sign)),)


@vjp(nd.SignOp)
def sign_vjp(t: TensorBuilder, op: nd.SignOp, ct: SSAValue) -> Rule:
    """Of complex z, s = z / |z|: ds = i s Im(conj(s) dz) / |z|, 0 at 0. Real numbers: skipped."""
    z, s = op.operand, op.result
    # Re(ct ds) = -Im(ct s) / |z| Im(conj(s) dz), and y Im(w dz) = Re(-i y w dz)
    size = t.abs(z)
    one = t.full_like(1.0, size)
    size = t.select(t.compare("eq", size, t.full_like(0.0, size)), one, size)
    slope = t.mul_strong(t.imag(t.mul(ct, s)), t.div(one, size))
    return (t.mul(t.complex(t.full_like(0.0, slope), slope), t.unary(nd.ConjOp, s)),)


@vjp(nd.ExpOp)
def exp_vjp(t: TensorBuilder, op: nd.ExpOp, ct: SSAValue) -> Rule:
    """d exp(x) = exp(x) dx"""
    return (t.mul_strong(ct, op.result),)


@vjp(nd.Expm1Op)
def expm1_vjp(t: TensorBuilder, op: nd.Expm1Op, ct: SSAValue) -> Rule:
    """d expm1(x) = exp(x) dx; not expm1(x) + 1, which cancels for very negative x"""
    return (t.mul_strong(ct, t.unary(nd.ExpOp, op.operand)),)


@vjp(nd.LogOp)
def log_vjp(t: TensorBuilder, op: nd.LogOp, ct: SSAValue) -> Rule:
    """d log(x) = dx / x"""
    return (t.mul_strong(ct, t.div(t.full_like(1.0, ct), op.operand)),)


@vjp(nd.Log1pOp)
def log1p_vjp(t: TensorBuilder, op: nd.Log1pOp, ct: SSAValue) -> Rule:
    """d log1p(x) = dx / (1 + x)"""
    one = t.full_like(1.0, ct)
    return (t.mul_strong(ct, t.div(one, t.add(op.operand, one))),)


@vjp(nd.SqrtOp)
def sqrt_vjp(t: TensorBuilder, op: nd.SqrtOp, ct: SSAValue) -> Rule:
    """d sqrt(x) = dx / (2 sqrt(x))"""
    return (t.mul_strong(ct, t.div(t.full_like(0.5, ct), op.result)),)


@vjp(nd.RsqrtOp)
def rsqrt_vjp(t: TensorBuilder, op: nd.RsqrtOp, ct: SSAValue) -> Rule:
    """d x^(-1/2) = -1/2 x^(-1/2) / x dx"""
    return (t.mul_strong(ct, t.div(t.scale(op.result, -0.5), op.operand)),)


@vjp(nd.TanhOp)
def tanh_vjp(t: TensorBuilder, op: nd.TanhOp, ct: SSAValue) -> Rule:
    """d tanh(x) = (1 - tanh(x)^2) dx"""
    y = op.result
    return (t.mul_strong(ct, t.sub(t.full_like(1.0, y), t.mul(y, y))),)


@vjp(nd.LogisticOp)
def logistic_vjp(t: TensorBuilder, op: nd.LogisticOp, ct: SSAValue) -> Rule:
    """d s(x) = s(x) (1 - s(x)) dx"""
    y = op.result
    return (t.mul_strong(ct, t.mul(y, t.sub(t.full_like(1.0, y), y))),)


@vjp(nd.ErfOp)
def erf_vjp(t: TensorBuilder, op: nd.ErfOp, ct: SSAValue) -> Rule:
    """d erf(x) = 2/sqrt(pi) exp(-x^2) dx"""
    x = op.operand
    return (t.mul_strong(ct, t.scale(t.unary(nd.ExpOp, t.neg(t.mul(x, x))), 2.0 / math.sqrt(math.pi))),)


@vjp(nd.SinOp)
def sin_vjp(t: TensorBuilder, op: nd.SinOp, ct: SSAValue) -> Rule:
    """d sin(x) = cos(x) dx"""
    return (t.mul_strong(ct, t.unary(nd.CosOp, op.operand)),)


@vjp(nd.CosOp)
def cos_vjp(t: TensorBuilder, op: nd.CosOp, ct: SSAValue) -> Rule:
    """d cos(x) = -sin(x) dx"""
    return (t.neg(t.mul_strong(ct, t.unary(nd.SinOp, op.operand))),)


@vjp(nd.AddOp)
def add_vjp(t: TensorBuilder, op: nd.AddOp, ct: SSAValue) -> Rule:
    """d(x + y) = dx + dy"""
    return (ct, ct)


@vjp(nd.SubOp)
def sub_vjp(t: TensorBuilder, op: nd.SubOp, ct: SSAValue) -> Rule:
    """d(x - y) = dx - dy"""
    return (ct, lambda: t.neg(ct))


@vjp(nd.MulOp)
def mul_vjp(t: TensorBuilder, op: nd.MulOp, ct: SSAValue) -> Rule:
    """d(x y) = dx y + x dy"""
    return (lambda: t.mul_strong(ct, op.rhs), lambda: t.mul_strong(ct, op.lhs))


@vjp(nd.MulStrongOp)
def mul_strong_vjp(t: TensorBuilder, op: nd.MulStrongOp, ct: SSAValue) -> Rule:
    """d(x y) = dx y + x dy, strong again"""
    return (lambda: t.mul_strong(ct, op.rhs), lambda: t.mul_strong(ct, op.lhs))


@vjp(nd.DivOp)
def div_vjp(t: TensorBuilder, op: nd.DivOp, ct: SSAValue) -> Rule:
    """d(x / y) = dx / y - (x / y) / y dy"""
    y = op.rhs
    return (
        lambda: t.mul_strong(ct, t.div(t.full_like(1.0, y), y)),
        lambda: t.neg(t.mul_strong(ct, t.div(op.result, y))),
    )


@vjp(nd.RemOp)
def rem_vjp(t: TensorBuilder, op: nd.RemOp, ct: SSAValue) -> Rule:
    """rem(x, y) = x - y trunc(x / y): d = dx - trunc(x / y) dy"""
    x, y = op.lhs, op.rhs

    def by_divisor() -> SSAValue:
        # x - rem(x, y) is the exact multiple of y; trunc(x / y) as written would round up just below an integer.
        quotient = t.div(t.sub(x, op.result), y)
        whole = t.unary(nd.FloorOp, t.add(t.unary(nd.AbsOp, quotient), t.full_like(0.5, quotient)))
        return t.neg(t.mul_strong(ct, t.mul(whole, t.unary(nd.SignOp, quotient))))

    return (ct, by_divisor)


@vjp(nd.PowOp)
def pow_vjp(t: TensorBuilder, op: nd.PowOp, ct: SSAValue) -> Rule:
    """d x^y = y x^(y-1) dx + x^y log(x) dy; y = 0: no dx; x = 0: dy 0 if y >= 0, else -inf; x < 0: dy NaN"""
    x, y = op.lhs, op.rhs

    def by_base() -> SSAValue:
        one = t.full_like(1.0, y)
        return t.mul_strong(ct, t.mul_strong(y, t.binary(nd.PowOp, x, t.sub(y, one))))

    def by_exponent() -> SSAValue:
        zero = t.full_like(0.0, x)
        size = t.real(y)
        flat = t.logical_and(t.compare("eq", x, zero), t.compare("ge", size, t.full_like(0.0, size)))
        slope = t.mul(op.result, t.unary(nd.LogOp, x))
        return t.mul_strong(ct, t.select(flat, zero, slope))

    return (by_base, by_exponent)


def extremum_vjp(direction: str) -> Any:
    """The winner takes the cotangent, a tie halves it, a NaN counts as the winner."""

    def rule(t: TensorBuilder, op: Any, ct: SSAValue) -> Rule:
        """d max(x, y) = w dx + (1 - w) dy with w in {0, 1/2, 1}"""
        x, y = op.lhs, op.rhs
        above, below = t.compare(direction, x, y), t.compare(direction, y, x)
        x_nan, y_nan = t.is_nan(x), t.is_nan(y)
        half = t.scale(ct, 0.5)
        zero = t.full_like(0.0, ct)

        def share(wins: SSAValue, loses: SSAValue, nan: SSAValue, other_nan: SSAValue) -> SSAValue:
            alone = t.logical_or(wins, t.logical_and(nan, t.logical_not(other_nan)))
            beaten = t.logical_or(loses, t.logical_and(other_nan, t.logical_not(nan)))
            return t.select(alone, ct, t.select(beaten, zero, half))

        return (lambda: share(above, below, x_nan, y_nan), lambda: share(below, above, y_nan, x_nan))

    return rule


vjp(nd.MaxOp)(extremum_vjp("gt"))
vjp(nd.MinOp)(extremum_vjp("lt"))


@vjp(nd.Atan2Op)
def atan2_vjp(t: TensorBuilder, op: nd.Atan2Op, ct: SSAValue) -> Rule:
    """d atan2(y, x) = (x dy - y dx) / (x^2 + y^2), 0 at the origin; scaled so that the squares stay in range"""
    y, x = op.lhs, op.rhs
    zero, one = t.full_like(0.0, ct), t.full_like(1.0, ct)
    size = t.binary(nd.MaxOp, t.unary(nd.AbsOp, x), t.unary(nd.AbsOp, y))
    origin = t.compare("eq", size, zero)
    size = t.select(origin, one, size)
    xs, ys = t.div(x, size), t.div(y, size)
    norm = t.mul(t.select(origin, one, t.add(t.mul(xs, xs), t.mul(ys, ys))), size)
    return (lambda: t.mul_strong(ct, t.div(xs, norm)), lambda: t.neg(t.mul_strong(ct, t.div(ys, norm))))


@vjp(nd.SelectOp)
def select_vjp(t: TensorBuilder, op: nd.SelectOp, ct: SSAValue) -> Rule:
    """d select(p, x, y) = select(p, dx, dy)"""
    zero = t.full_like(0.0, ct)
    return (None, lambda: t.select(op.pred, ct, zero), lambda: t.select(op.pred, zero, ct))


@vjp(nd.ClampOp)
def clamp_vjp(t: TensorBuilder, op: nd.ClampOp, ct: SSAValue) -> Rule:
    """1 to the operand inside and at a bound, 1 to the bound outside, to `hi` when lo > hi; a NaN takes the cotangent"""
    return clamp_shares(t, op.lo, op.operand, op.hi, ct)


def clamp_shares(t: TensorBuilder, lo: SSAValue, x: SSAValue, hi: SSAValue, ct: SSAValue) -> Rule:
    """The shares of lo, x and hi in the cotangent of `clamp(lo, x, hi)`."""
    valid = t.logical_not(t.is_nan(x))
    over = t.logical_or(t.compare("gt", x, hi), t.logical_or(t.compare("gt", lo, hi), t.is_nan(hi)))
    to_hi = t.logical_and(valid, over)
    under = t.logical_or(t.compare("lt", x, lo), t.is_nan(lo))
    to_lo = t.logical_and(valid, t.logical_and(t.logical_not(over), under))
    zero = t.full_like(0.0, ct)
    return (
        lambda: t.select(to_lo, ct, zero),
        lambda: t.select(t.logical_or(to_hi, to_lo), zero, ct),
        lambda: t.select(to_hi, ct, zero),
    )


@vjp(nd.ConvertOp)
def convert_vjp(t: TensorBuilder, op: nd.ConvertOp, ct: SSAValue) -> Rule:
    """The cotangent is cast to the operand's type; integers on either side have none."""
    if not is_differentiable(op.operand.type) or isinstance(element_of(op.result), IntegerType):
        return (None,)
    return (lambda: t.convert(ct, element_of(op.operand)),)


for _op in (nd.SignOp, nd.FloorOp, nd.CeilOp):
    skip(_op, "piecewise constant: derivative 0 everywhere")
for _op in (nd.IsFiniteOp, nd.CompareOp, nd.NotOp, nd.AndOp, nd.OrOp, nd.XorOp, nd.ShlOp, nd.ShrSOp, nd.ShrUOp):
    skip(_op, "integer or boolean result: no derivative")
