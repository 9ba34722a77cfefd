"""Derivatives of the activations: closed forms that hold at infinities, where those of the expansions would be inf - inf."""

from __future__ import annotations

from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from gradir.autodiff.registry import Contribution, vjp
from gradir.autodiff.tensors import TensorBuilder
from gradir.dialects import nd
from gradir.dialects.types import NARROW_CLASSES, element_of

Rule = tuple[Contribution, ...]


def _wide(t: TensorBuilder, x: SSAValue) -> SSAValue:
    return t.convert(x, f32) if isinstance(element_of(x), NARROW_CLASSES) else x


@vjp(nd.SiluOp)
def silu_vjp(t: TensorBuilder, op: nd.SiluOp, ct: SSAValue) -> Rule:
    """dx = ct (s + y (1 - s)), s = logistic(x), y the result"""
    x = _wide(t, op.operand)
    s, y = t.unary(nd.LogisticOp, x), t.unary(nd.SiluOp, x)
    slope = t.add(s, t.mul_strong(y, t.unary(nd.LogisticOp, t.neg(x))))
    return (t.convert(t.mul_strong(_wide(t, ct), slope), element_of(op.operand)),)


@vjp(nd.SoftplusOp)
def softplus_vjp(t: TensorBuilder, op: nd.SoftplusOp, ct: SSAValue) -> Rule:
    """dx = ct logistic(x)"""
    return (t.mul_strong(ct, t.unary(nd.LogisticOp, op.operand)),)
