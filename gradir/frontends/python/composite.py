"""Composites: ops that keep their identity until a target had the chance to take them whole."""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import FloatAttr, IntegerAttr, f64, i64
from xdsl.ir import Operation

from gradir.dialects import nd
from gradir.frontends.python import promotion
from gradir.frontends.python.arrays import Array
from gradir.frontends.python.elementwise import negative
from gradir.frontends.python.operands import as_array, astype, broadcast_to, one_axis, with_shape
from gradir.frontends.python.reduction import mean, sum
from gradir.frontends.python.shape import reshape
from gradir.frontends.python.trace import apply, user_error


def _float(x: Any) -> Array:
    x = as_array(x)
    return x if promotion.is_inexact(x.dtype) else astype(x, promotion.FLOAT32)


def _along(kind: type[Operation], x: Array, axis: int) -> Array:
    dim = one_axis(x, axis)
    return apply(kind, [x], x.type, dim=IntegerAttr(dim, i64))


def softmax(x: Any, axis: int = -1) -> Array:
    """exp(x - max) / sum; a row of -inf gives 0"""
    return _along(nd.SoftmaxOp, _float(x), axis)


def log_softmax(x: Any, axis: int = -1) -> Array:
    """log(softmax(x)), finite whenever the exact result is"""
    return _along(nd.LogSoftmaxOp, _float(x), axis)


def logsumexp(x: Any, axis: int = -1, keepdims: bool = False) -> Array:
    """log(sum(exp(x))) without overflow"""
    x = _float(x)
    dim = one_axis(x, axis)
    shape = tuple(n for k, n in enumerate(x.shape) if k != dim)
    out = apply(nd.LogsumexpOp, [x], with_shape(x, shape), dim=IntegerAttr(dim, i64))
    return reshape(out, tuple(1 if k == dim else n for k, n in enumerate(x.shape))) if keepdims else out


def layer_norm(x: Any, scale: Any, bias: Any, eps: float = 1e-5) -> Array:
    """(x - mean) / sqrt(var + eps) * scale + bias over the last dimension"""
    x = _float(x)
    scale, bias = (broadcast_to(as_array(v, x.dtype), x.shape[-1:]) for v in (scale, bias))
    return apply(nd.LayerNormOp, [x, scale, bias], x.type, eps=FloatAttr(float(eps), f64))


def cross_entropy(logits: Any, labels: Any, label_smoothing: float = 0.0) -> Array:
    """-log_softmax(logits)[labels]: one loss per row. Labels are integers [N], or probabilities [N, C]

    `label_smoothing` a mixes the labels with the uniform distribution: (1 - a) labels + a / C.
    """
    x, y = _float(logits), as_array(labels)
    if label_smoothing:
        uniform = negative(mean(log_softmax(x), -1))
        return cross_entropy(x, y) * (1 - label_smoothing) + uniform * label_smoothing
    if x.ndim == 2 and y.shape == x.shape and promotion.is_float(y.dtype):
        return negative(sum(log_softmax(x) * y, -1))
    if x.ndim != 2 or y.shape != x.shape[:1] or y.dtype.kind not in "iu":
        raise user_error(
            "cross_entropy: shapes do not fit",
            code="GR001",
            op="nd.cross_entropy",
            expected="logits [N, C] and integer labels [N]",
            found=f"{x.type} and {y.type}",
        )
    return apply(nd.CrossEntropyOp, [x, y], with_shape(x, x.shape[:1]))
