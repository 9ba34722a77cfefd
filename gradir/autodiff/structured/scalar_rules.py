"""Derivatives of `arith` and `math` on floats: those of the level-1 ops of the same meaning, with the same conventions at kinks.

A rule gives one number times the cotangent for each operand, so the tangent of the result is the sum of what the rule gives for the
tangents of the operands: forward mode needs no rules of its own but for casts and selections.
"""

from __future__ import annotations

import math as numbers
from collections.abc import Mapping, Sequence
from typing import Any

from xdsl.ir import Operation, SSAValue

from gradir.autodiff.registry import JVP, VJP, Contribution, jvp, skip, vjp
from gradir.autodiff.rules import elementwise, mathematics, special
from gradir.autodiff.scalars import DIRECT, constant, is_strong_product
from gradir.autodiff.tensors import TensorBuilder
from gradir.dialects import nd
from gradir.dialects.types import element_of
from gradir.dialects.upstream import arith, math

Rule = tuple[Contribution, ...]
Tangents = Mapping[int, SSAValue]

FAMILIES = (elementwise, mathematics, special)
"""Importing these registers the rules that are shared."""


def _zeros(t: TensorBuilder, like: SSAValue) -> SSAValue:
    """Zeros of the type of a scalar or a tensor."""
    return t.full_like(0.0, like)


def _sum_of_parts(t: TensorBuilder, op: Operation, tangents: Tangents) -> Sequence[SSAValue | None]:
    """`dy = sum_k w_k dx_k`, where the reverse rule gives `w_k ct`."""
    total: SSAValue | None = None
    for k, tangent in tangents.items():
        part = VJP[type(op)](t, op, tangent)[k]
        if part is not None:
            part = part() if callable(part) else part
            total = part if total is None else t.add(total, part)
    return [total]


for _level1, _scalar in DIRECT.items():
    if _level1 in VJP:
        VJP[_scalar] = VJP[_level1]
        JVP[_scalar] = _sum_of_parts
for _op in (math.FloorOp, math.CeilOp, math.RoundOp, math.RoundEvenOp, math.TruncOp):
    skip(_op, "piecewise constant: derivative 0 everywhere")


@vjp(math.RsqrtOp)
def rsqrt_vjp(t: TensorBuilder, op: math.RsqrtOp, ct: SSAValue) -> Rule:
    """d x^(-1/2) = -1/2 x^(-1/2) / x dx"""
    return (t.mul_strong(ct, t.div(t.scale(op.result, -0.5), op.operand)),)


@vjp(math.Exp2Op)
def exp2_vjp(t: TensorBuilder, op: math.Exp2Op, ct: SSAValue) -> Rule:
    """d 2^x = log(2) 2^x dx"""
    return (t.mul_strong(ct, t.scale(op.result, numbers.log(2.0))),)


@vjp(math.Log2Op)
def log2_vjp(t: TensorBuilder, op: math.Log2Op, ct: SSAValue) -> Rule:
    """d log2(x) = dx / (log(2) x)"""
    return (t.mul_strong(ct, t.div(t.full_like(1.0 / numbers.log(2.0), ct), op.operand)),)


@vjp(math.Log10Op)
def log10_vjp(t: TensorBuilder, op: math.Log10Op, ct: SSAValue) -> Rule:
    """d log10(x) = dx / (log(10) x)"""
    return (t.mul_strong(ct, t.div(t.full_like(1.0 / numbers.log(10.0), ct), op.operand)),)


@vjp(math.CopySignOp)
def copysign_vjp(t: TensorBuilder, op: math.CopySignOp, ct: SSAValue) -> Rule:
    """|x| with the sign of s: d = sign(x) sign(s) dx, 0 at x = 0"""
    one = t.full_like(1.0, op.lhs)
    direction = t.emit(math.CopySignOp, [one, op.rhs], one.type, fastmath=op.fastmath)
    return (t.mul_strong(ct, t.mul(t.unary(nd.SignOp, op.lhs), direction)), None)


@vjp(math.FPowIOp)
def fpowi_vjp(t: TensorBuilder, op: math.FPowIOp, ct: SSAValue) -> Rule:
    """d x^n = n x^(n-1) dx, 0 at n = 0"""
    n = op.rhs
    one = constant(t.builder, 1, n.type)
    less = t.builder(arith.SubiOp, [n, one], [n.type], {"overflowFlags": arith.IntegerOverflowAttr("none")})
    power = t.emit(math.FPowIOp, [op.lhs, less], op.result.type, fastmath=op.fastmath)
    times = t.emit(arith.SIToFPOp, [n], op.result.type)
    return (t.mul_strong(ct, t.mul_strong(times, power)), None)


def _number_vjp(direction: str) -> Any:
    """`maxnumf`, `minnumf`: a number beats a NaN, a tie halves the cotangent."""

    def rule(t: TensorBuilder, op: Any, ct: SSAValue) -> Rule:
        """d maxnum(x, y) = w dx + (1 - w) dy with w in {0, 1/2, 1}"""
        x, y = op.lhs, op.rhs
        x_wins = t.logical_or(t.compare(direction, x, y), t.is_nan(y))
        y_wins = t.logical_or(t.compare(direction, y, x), t.is_nan(x))
        half, zero = t.scale(ct, 0.5), _zeros(t, ct)

        def share(mine: SSAValue, other: SSAValue) -> SSAValue:
            return t.select(mine, t.select(other, half, ct), t.select(other, zero, half))

        return (lambda: share(x_wins, y_wins), lambda: share(y_wins, x_wins))

    return rule


vjp(arith.MaxnumfOp)(_number_vjp("gt"))
vjp(arith.MinnumfOp)(_number_vjp("lt"))


@vjp(math.ClampFOp)
def clamp_vjp(t: TensorBuilder, op: math.ClampFOp, ct: SSAValue) -> Rule:
    """1 to the operand inside and at a bound, 1 to the bound outside, to `max` when min > max; a NaN takes the cotangent"""
    low, value, high = elementwise.clamp_shares(t, op.min, op.value, op.max, ct)
    return (value, low, high)


for _op in (
    math.RsqrtOp,
    math.Exp2Op,
    math.Log2Op,
    math.Log10Op,
    math.CopySignOp,
    math.FPowIOp,
    math.ClampFOp,
    arith.MaxnumfOp,
    arith.MinnumfOp,
):
    jvp(_op)(_sum_of_parts)


@vjp(arith.ExtFOp)
@vjp(arith.TruncFOp)
def cast_vjp(t: TensorBuilder, op: Any, ct: SSAValue) -> Rule:
    """The cotangent is cast back."""
    return (lambda: t.convert(ct, element_of(op.input)),)


@jvp(arith.ExtFOp)
@jvp(arith.TruncFOp)
def cast_jvp(t: TensorBuilder, op: Any, tangents: Tangents) -> Sequence[SSAValue | None]:
    """The tangent is cast too."""
    return [t.convert(tangents[0], element_of(op.result))]


def _choose(t: TensorBuilder, op: arith.SelectOp, on_true: SSAValue, on_false: SSAValue) -> SSAValue:
    return t.emit(arith.SelectOp, [op.cond, on_true, on_false], op.result.type)


@vjp(arith.SelectOp)
def select_vjp(t: TensorBuilder, op: arith.SelectOp, ct: SSAValue) -> Rule:
    """d select(p, x, y) = select(p, dx, dy); a strong product is a product, also where a factor is 0"""
    if is_strong_product(op):
        return (None, None, ct)
    return (
        None,
        lambda: _choose(t, op, ct, t.zeros_as(ct, ct.type)),
        lambda: _choose(t, op, t.zeros_as(ct, ct.type), ct),
    )


@jvp(arith.SelectOp)
def select_jvp(t: TensorBuilder, op: arith.SelectOp, tangents: Tangents) -> Sequence[SSAValue | None]:
    """`dy = select(p, dx, dy)`"""
    if is_strong_product(op):
        return [tangents.get(2)]
    given = next(iter(tangents.values()))
    x, y = (tangents[k] if k in tangents else t.zeros_as(given, given.type) for k in (1, 2))
    return [_choose(t, op, x, y)]
