"""Derivatives of the further functions of one number. Conventions at singular points: docs/numerics.md, "Derivatives"."""

from __future__ import annotations

import math

from xdsl.ir import SSAValue

from gradir.autodiff.registry import Contribution, skip, vjp
from gradir.autodiff.tensors import TensorBuilder
from gradir.dialects.nd import mathematics as nd
from gradir.dialects.nd.elementwise import ExpOp, MaxOp, RsqrtOp, SqrtOp
from gradir.dialects.types import element_of

Rule = tuple[Contribution, ...]


def _unit_circle(t: TensorBuilder, x: SSAValue) -> SSAValue:
    """(1 - x) (1 + x) = 1 - x^2 without cancellation at 1 and -1"""
    one = t.full_like(1.0, x)
    return t.mul(t.sub(one, x), t.add(one, x))


@vjp(nd.CbrtOp)
def cbrt_vjp(t: TensorBuilder, op: nd.CbrtOp, ct: SSAValue) -> Rule:
    """d cbrt(x) = dx / (3 cbrt(x)^2), inf at 0"""
    y = op.result
    return (t.mul_strong(ct, t.div(t.full_like(1.0, y), t.scale(t.mul(y, y), 3.0))),)


@vjp(nd.TanOp)
def tan_vjp(t: TensorBuilder, op: nd.TanOp, ct: SSAValue) -> Rule:
    """d tan(x) = (1 + tan(x)^2) dx"""
    y = op.result
    return (t.mul_strong(ct, t.add(t.mul(y, y), t.full_like(1.0, y))),)


@vjp(nd.AsinOp)
def asin_vjp(t: TensorBuilder, op: nd.AsinOp, ct: SSAValue) -> Rule:
    """d asin(x) = dx / sqrt(1 - x^2), inf at 1 and -1"""
    return (t.mul_strong(ct, t.unary(RsqrtOp, _unit_circle(t, op.operand))),)


@vjp(nd.AcosOp)
def acos_vjp(t: TensorBuilder, op: nd.AcosOp, ct: SSAValue) -> Rule:
    """d acos(x) = -dx / sqrt(1 - x^2), -inf at 1 and -1"""
    return (t.neg(t.mul_strong(ct, t.unary(RsqrtOp, _unit_circle(t, op.operand)))),)


@vjp(nd.AtanOp)
def atan_vjp(t: TensorBuilder, op: nd.AtanOp, ct: SSAValue) -> Rule:
    """d atan(x) = dx / (1 + x^2)"""
    x = op.operand
    one = t.full_like(1.0, x)
    return (t.mul_strong(ct, t.div(one, t.add(t.mul(x, x), one))),)


@vjp(nd.SinhOp)
def sinh_vjp(t: TensorBuilder, op: nd.SinhOp, ct: SSAValue) -> Rule:
    """d sinh(x) = cosh(x) dx"""
    return (t.mul_strong(ct, t.unary(nd.CoshOp, op.operand)),)


@vjp(nd.CoshOp)
def cosh_vjp(t: TensorBuilder, op: nd.CoshOp, ct: SSAValue) -> Rule:
    """d cosh(x) = sinh(x) dx"""
    return (t.mul_strong(ct, t.unary(nd.SinhOp, op.operand)),)


@vjp(nd.AsinhOp)
def asinh_vjp(t: TensorBuilder, op: nd.AsinhOp, ct: SSAValue) -> Rule:
    """d asinh(x) = dx / sqrt(1 + x^2), as s / sqrt(s^2 + (s x)^2) with s = 1 / max(1, |x|) so that the squares stay in range"""
    x = op.operand
    size = t.abs(x)
    unit = t.full_like(1.0, size)
    s = t.convert(t.div(unit, t.binary(MaxOp, unit, size)), element_of(x))
    scaled = t.mul(s, x)
    return (t.mul_strong(ct, t.mul(s, t.unary(RsqrtOp, t.add(t.mul(s, s), t.mul(scaled, scaled))))),)


@vjp(nd.AcoshOp)
def acosh_vjp(t: TensorBuilder, op: nd.AcoshOp, ct: SSAValue) -> Rule:
    """d acosh(x) = dx / (sqrt(x - 1) sqrt(x + 1)), inf at 1"""
    x = op.operand
    one = t.full_like(1.0, x)
    root = t.mul(t.unary(SqrtOp, t.sub(x, one)), t.unary(SqrtOp, t.add(x, one)))
    return (t.mul_strong(ct, t.div(one, root)),)


@vjp(nd.AtanhOp)
def atanh_vjp(t: TensorBuilder, op: nd.AtanhOp, ct: SSAValue) -> Rule:
    """d atanh(x) = dx / (1 - x^2), inf at 1 and -1"""
    x = op.operand
    return (t.mul_strong(ct, t.div(t.full_like(1.0, x), _unit_circle(t, x))),)


@vjp(nd.ErfcOp)
def erfc_vjp(t: TensorBuilder, op: nd.ErfcOp, ct: SSAValue) -> Rule:
    """d erfc(x) = -2/sqrt(pi) exp(-x^2) dx"""
    x = op.operand
    return (t.mul_strong(ct, t.scale(t.unary(ExpOp, t.neg(t.mul(x, x))), -2.0 / math.sqrt(math.pi))),)


@vjp(nd.ErfInvOp)
def erf_inv_vjp(t: TensorBuilder, op: nd.ErfInvOp, ct: SSAValue) -> Rule:
    """d erf_inv(x) = sqrt(pi)/2 exp(erf_inv(x)^2) dx, inf at 1 and -1"""
    y = op.result
    return (t.mul_strong(ct, t.scale(t.unary(ExpOp, t.mul(y, y)), math.sqrt(math.pi) / 2.0)),)


for _op in nd.ROUNDING:
    skip(_op, "piecewise constant: derivative 0 everywhere")
for _op in (*nd.CLASSES, *nd.BITS):
    skip(_op, "integer or boolean result: no derivative")
