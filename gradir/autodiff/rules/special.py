"""Derivatives of the special functions."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from gradir.autodiff.registry import Contribution, vjp
from gradir.autodiff.tensors import TensorBuilder
from gradir.dialects.nd import special as nd
from gradir.dialects.nd.elementwise import SignOp
from gradir.errors import GradirError
from gradir.ir.passes import error_at

Rule = tuple[Contribution, ...]


@vjp(nd.LgammaOp)
def lgamma_vjp(t: TensorBuilder, op: nd.LgammaOp, ct: SSAValue) -> Rule:
    """d lgamma(x) = digamma(x) dx"""
    return (t.mul_strong(ct, t.unary(nd.DigammaOp, op.operand)),)


@vjp(nd.DigammaOp)
def digamma_vjp(t: TensorBuilder, op: nd.DigammaOp, ct: SSAValue) -> Rule:
    """d digamma(x) = trigamma(x) dx"""
    return (t.mul_strong(ct, t.unary(nd.TrigammaOp, op.operand)),)


@vjp(nd.TrigammaOp)
def trigamma_vjp(t: TensorBuilder, op: nd.TrigammaOp, ct: SSAValue) -> Rule:
    """d trigamma(x) = polygamma(2, x) dx"""
    x = op.operand
    return (t.mul_strong(ct, t.binary(nd.PolygammaOp, t.full_like(2.0, x), x)),)


@vjp(nd.PolygammaOp)
def polygamma_vjp(t: TensorBuilder, op: nd.PolygammaOp, ct: SSAValue) -> Rule:
    """d polygamma(n, x) = polygamma(n + 1, x) dx"""
    n, x = op.lhs, op.rhs
    return (
        lambda: _unknown(op, "the order"),
        lambda: t.mul_strong(ct, t.binary(nd.PolygammaOp, t.add(n, t.full_like(1.0, n)), x)),
    )


@vjp(nd.ZetaOp)
def zeta_vjp(t: TensorBuilder, op: nd.ZetaOp, ct: SSAValue) -> Rule:
    """d zeta(s, q) = -s zeta(s + 1, q) dq"""
    s, q = op.lhs, op.rhs

    def by_q() -> SSAValue:
        return t.neg(t.mul_strong(ct, t.mul(s, t.binary(nd.ZetaOp, t.add(s, t.full_like(1.0, s)), q))))

    return (lambda: _unknown(op, "the exponent"), by_q)


def _unknown(op: Operation, what: str) -> SSAValue:
    raise _no_rule(op, what)


def _no_rule(op: Operation, what: str) -> GradirError:
    return error_at(
        op, f"no derivative by {what}", part="autodiff", code="AD001", expected="a derivative by the second operand alone",
        found=f"{what} depends on an argument in `wrt`", hint="cut the path with ad.stop_gradient",
    )  # fmt: skip


@vjp(nd.BesselI0eOp)
def bessel_i0e_vjp(t: TensorBuilder, op: nd.BesselI0eOp, ct: SSAValue) -> Rule:
    """d i0e(x) = (i1e(x) - sign(x) i0e(x)) dx"""
    x = op.operand
    return (t.mul_strong(ct, t.sub(t.unary(nd.BesselI1eOp, x), t.mul(t.unary(SignOp, x), op.result))),)


@vjp(nd.BesselI1eOp)
def bessel_i1e_vjp(t: TensorBuilder, op: nd.BesselI1eOp, ct: SSAValue) -> Rule:
    """d i1e(x) = (i0e(x) - i1e(x) (sign(x) + 1/x)) dx, 1/2 at 0"""
    x, y = op.operand, op.result
    zero = t.compare("eq", x, t.full_like(0.0, x))
    ratio = t.select(zero, t.full_like(0.5, x), t.div(y, x))
    slope = t.sub(t.unary(nd.BesselI0eOp, x), t.add(t.mul(t.unary(SignOp, x), y), ratio))
    return (t.mul_strong(ct, slope),)


@vjp(nd.FmaOp)
def fma_vjp(t: TensorBuilder, op: nd.FmaOp, ct: SSAValue) -> Rule:
    """d(a b + c) = b da + a db + dc"""
    return (lambda: t.mul_strong(ct, op.b), lambda: t.mul_strong(ct, op.a), ct)
