"""Derivatives of composites whose closed form is better than that of their expansion.

`layer_norm` and `gelu` have no rule here on purpose: they are differentiated through `decompose`.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import SSAValue

from gradir.autodiff.registry import Contribution, skip, vjp
from gradir.autodiff.rules.indexing import clamped
from gradir.autodiff.tensors import TensorBuilder
from gradir.dialects import nd
from gradir.dialects.types import element_of, shape_of, tensor

Rule = tuple[Contribution, ...]


@vjp(nd.SoftmaxOp)
def softmax_vjp(t: TensorBuilder, op: nd.SoftmaxOp, ct: SSAValue) -> Rule:
    """dx = y (ct - sum(ct y)); a row of -inf has y = 0, hence dx = 0"""
    y, dim = op.result, op.number("dim")
    inner = t.expand(t.sum(t.mul_strong(ct, y), [dim]), y.type, [dim])
    return (t.mul_strong(y, t.sub(ct, inner)),)


@vjp(nd.LogSoftmaxOp)
def log_softmax_vjp(t: TensorBuilder, op: nd.LogSoftmaxOp, ct: SSAValue) -> Rule:
    """dx = ct - softmax(x) sum(ct), with softmax(x) = exp(y)"""
    y, dim = op.result, op.number("dim")
    total = t.expand(t.sum(ct, [dim]), y.type, [dim])
    return (t.sub(ct, t.mul_strong(t.unary(nd.ExpOp, y), total)),)


@vjp(nd.LogsumexpOp)
def logsumexp_vjp(t: TensorBuilder, op: nd.LogsumexpOp, ct: SSAValue) -> Rule:
    """dx = softmax(x) ct"""
    x, dim = op.operand, op.number("dim")
    weights = t.emit(nd.SoftmaxOp, [x], x.type, dim=op.dim)
    return (t.mul_strong(weights, t.expand(ct, x.type, [dim])),)


@vjp(nd.CrossEntropyOp)
def cross_entropy_vjp(t: TensorBuilder, op: nd.CrossEntropyOp, ct: SSAValue) -> Rule:
    """dlogits = (softmax(logits) - onehot(labels)) ct; labels, clamped as in the value, take none"""
    x = op.operands[0]
    last = len(shape_of(x)) - 1
    count = shape_of(x)[last]
    assert isinstance(count, int), "verified"
    labels = clamped(t, op.operands[1], count)
    weights = t.emit(nd.SoftmaxOp, [x], x.type, dim=softmax_axis(last))
    classes = tensor(element_of(labels), shape_of(x))
    hot = t.compare("eq", t.iota(classes, last), t.broadcast(labels, classes, range(last)))
    one, zero = t.full_like(1.0, x), t.full_like(0.0, x)
    difference = t.sub(weights, t.select(hot, one, zero))
    return (t.mul_strong(difference, t.expand(ct, x.type, [last])), None)


def softmax_axis(dim: int) -> IntegerAttr:
    return IntegerAttr(dim, i64)


skip(nd.QuantizeOp, "integer result: no derivative")
