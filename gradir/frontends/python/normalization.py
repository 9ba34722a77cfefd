"""Normalisations and attention: composites that a target may take whole."""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import FloatAttr, f64

from gradir.dialects import nd
from gradir.dialects.types import i64_attr
from gradir.frontends.python.activation import floats
from gradir.frontends.python.arrays import Array
from gradir.frontends.python.operands import as_array, astype, broadcast_to, common_dtype, one_axis, with_shape
from gradir.frontends.python.shape import expand_dims, squeeze
from gradir.frontends.python.sizes import whole
from gradir.frontends.python.trace import apply, apply_several, user_error


def _vectors(x: Array, dim: int, *values: Any) -> list[Array]:
    return [broadcast_to(as_array(v, x.dtype), (x.shape[dim],)) for v in values]


def _eps(eps: float) -> FloatAttr[Any]:
    return FloatAttr(float(eps), f64)


def batch_norm(x: Any, scale: Any, bias: Any, axis: int = -1, eps: float = 1e-5) -> tuple[Array, Array, Array]:
    """((x - mean) / sqrt(var + eps) * scale + bias, mean, var): statistics of `x` over all dimensions but `axis`, var biased"""
    x = floats(x)
    dim = one_axis(x, axis)
    scale, bias = _vectors(x, dim, scale, bias)
    results = apply_several(nd.BatchNormTrainOp, [x, scale, bias], [x.type, scale.type, scale.type], dim=i64_attr(dim), eps=_eps(eps))
    return results[0], results[1], results[2]


def batch_norm_inference(x: Any, scale: Any, bias: Any, mean: Any, var: Any, axis: int = -1, eps: float = 1e-5) -> Array:
    """(x - mean) / sqrt(var + eps) * scale + bias with the statistics given, along `axis`"""
    x = floats(x)
    dim = one_axis(x, axis)
    return apply(nd.BatchNormInferOp, [x, *_vectors(x, dim, scale, bias, mean, var)], x.type, dim=i64_attr(dim), eps=_eps(eps))


def group_norm(x: Any, scale: Any, bias: Any, groups: int, eps: float = 1e-5) -> Array:
    """Each of `groups` groups of the last dimension normalised over its channels and all dimensions but the first: `x` [N, spatial.., C]"""
    x = floats(x)
    groups = whole("groups", groups, 1)
    return apply(nd.GroupNormOp, [x, *_vectors(x, one_axis(x, -1), scale, bias)], x.type, groups=i64_attr(groups), eps=_eps(eps))


def rms_norm(x: Any, scale: Any, eps: float = 1e-5) -> Array:
    """x / sqrt(mean(x**2) + eps) * scale over the last dimension"""
    x = floats(x)
    return apply(nd.RmsNormOp, [x, *_vectors(x, one_axis(x, -1), scale)], x.type, eps=_eps(eps))


def attention(q: Any, k: Any, v: Any, *, mask: Any = None, bias: Any = None, causal: bool = False, scale: float | None = None) -> Array:
    """softmax(scale * q k^T + bias) v per head: q [B, T, H, D], k [B, S, K, D], v [B, S, K, E] -> [B, T, H, E]; or all without B

    Query head h reads key head h // (H / K). `mask` (true: may be seen) and `bias` broadcast to [B, H, T, S]; `causal`: row i sees the keys
    0 to i. `scale` is 1 / sqrt(D) unless given. A row that sees no key is 0, and its gradients are 0.
    """
    dtype = common_dtype(q, k, v)
    arrays = [floats(astype(x, dtype)) for x in (q, k, v)]
    if all(x.ndim == 3 for x in arrays):  # one element of a batch
        q, k, v = (expand_dims(x, 0) for x in arrays)
        return squeeze(attention(q, k, v, mask=mask, bias=bias, causal=causal, scale=scale), 0)
    if any(x.ndim != 4 for x in arrays):
        raise user_error(
            "attention: shapes do not fit",
            code="GR001",
            op="nd.attention",
            expected="q [B, T, H, D], k [B, S, K, D], v [B, S, K, E], or all without B",
            found=", ".join(str(x.shape) for x in arrays),
        )
    query, keys, _ = arrays
    scores = (query.shape[0], query.shape[2], query.shape[1], keys.shape[1])
    extra = [broadcast_to(as_array(x, kind), scores) for x, kind in ((mask, _bool()), (bias, query.dtype)) if x is not None]
    options = nd.AttentionOp.options(query.type, mask is not None, bias is not None, causal, scale)
    result = with_shape(query, (*query.shape[:3], arrays[2].shape[3]))
    return apply(nd.AttentionOp, [*arrays, *extra], result, **options)


def _bool() -> Any:
    return as_array(True).dtype
