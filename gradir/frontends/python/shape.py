"""Moving data, numpy's names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, i64

from gradir.dialects import nd
from gradir.dialects.types import i64_array
from gradir.frontends.python.arrays import OPERATORS, Array
from gradir.frontends.python.operands import as_array, broadcast_to, common_dtype, is_scalar, normalize_axes, with_shape
from gradir.frontends.python.trace import apply, user_error


def reshape(x: Any, *shape: Any) -> Array:
    """The same elements in row-major order; one size may be -1"""
    x = as_array(x)
    sizes = list(shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape)
    if sizes.count(-1) == 1:
        known = int(np.prod([n for n in sizes if n != -1], dtype=np.int64))
        sizes[sizes.index(-1)] = x.size // known if known else 0
    if int(np.prod(sizes, dtype=np.int64)) != x.size or any(n < 0 for n in sizes):
        raise user_error(
            "reshape changes the number of elements", code="GR001", op="nd.reshape", expected=f"{x.size} elements", found=str(tuple(shape))
        )
    return x if tuple(sizes) == x.shape else apply(nd.ReshapeOp, [x], with_shape(x, tuple(sizes)))


def flatten(x: Any) -> Array:
    """One dimension"""
    return reshape(x, (-1,))


def transpose(x: Any, axes: Sequence[int] | None = None) -> Array:
    """Result dimension k is operand dimension axes[k]; reversed by default"""
    x = as_array(x)
    perm = tuple(range(x.ndim))[::-1] if axes is None else tuple(a % x.ndim for a in axes)
    if sorted(perm) != list(range(x.ndim)):
        raise user_error(
            "transpose needs every axis once",
            code="GR104",
            op="nd.transpose",
            expected=f"a permutation of 0..{x.ndim - 1}",
            found=str(axes),
        )
    if perm == tuple(range(x.ndim)):
        return x
    return apply(nd.TransposeOp, [x], with_shape(x, tuple(x.shape[p] for p in perm)), perm=i64_array(perm))


def swapaxes(x: Any, a: int, b: int) -> Array:
    """Exchange two dimensions"""
    x = as_array(x)
    perm = list(range(x.ndim))
    perm[a % x.ndim], perm[b % x.ndim] = perm[b % x.ndim], perm[a % x.ndim]
    return transpose(x, perm)


def expand_dims(x: Any, axis: int) -> Array:
    """A new dimension of size 1"""
    x = as_array(x)
    at = axis % (x.ndim + 1)
    return reshape(x, (*x.shape[:at], 1, *x.shape[at:]))


def squeeze(x: Any, axis: int | tuple[int, ...] | None = None) -> Array:
    """Drop dimensions of size 1"""
    x = as_array(x)
    axes = tuple(k for k, n in enumerate(x.shape) if n == 1) if axis is None else normalize_axes(x, axis)
    return reshape(x, tuple(n for k, n in enumerate(x.shape) if k not in axes))


def broadcast(x: Any, shape: Sequence[int]) -> Array:
    """Repeat along new and size-1 dimensions"""
    return broadcast_to(as_array(x), tuple(shape))


def concatenate(arrays: Sequence[Any], axis: int = 0) -> Array:
    """Join along an existing dimension"""
    dtype = common_dtype(*arrays)
    inputs = [as_array(a, dtype) for a in arrays]
    first = inputs[0]
    (dim,) = normalize_axes(first, axis)
    for x in inputs[1:]:
        if x.ndim != first.ndim or any(a != b for k, (a, b) in enumerate(zip(x.shape, first.shape)) if k != dim):
            raise user_error(
                "concatenate: shapes differ",
                code="GR001",
                op="nd.concatenate",
                expected=f"{first.shape} except along {dim}",
                found=str(x.shape),
            )
    if len(inputs) == 1:
        return first
    shape = (*first.shape[:dim], sum(x.shape[dim] for x in inputs), *first.shape[dim + 1 :])
    return apply(nd.ConcatenateOp, inputs, with_shape(first, shape), dim=IntegerAttr(dim, i64))


def stack(arrays: Sequence[Any], axis: int = 0) -> Array:
    """Join along a new dimension"""
    return concatenate([expand_dims(a, axis) for a in arrays], axis)


def split(x: Any, parts: int, axis: int = 0) -> list[Array]:
    """Equal parts along a dimension"""
    x = as_array(x)
    (dim,) = normalize_axes(x, axis)
    if x.shape[dim] % parts:
        raise user_error("split: sizes do not divide", code="GR001", expected=f"a multiple of {parts}", found=str(x.shape[dim]))
    n = x.shape[dim] // parts
    out: list[Array] = []
    for k in range(parts):
        start, limit = [0] * x.ndim, list(x.shape)
        start[dim], limit[dim] = k * n, (k + 1) * n
        out.append(slice_(x, start, limit, [1] * x.ndim))
    return out


def slice_(x: Array, start: Sequence[int], limit: Sequence[int], stride: Sequence[int]) -> Array:
    """A static, strided window"""
    shape = tuple(max(0, -(-(hi - lo) // st)) for lo, hi, st in zip(start, limit, stride))
    if shape == x.shape:
        return x
    arrays = {"start": i64_array(tuple(start)), "limit": i64_array(tuple(limit)), "stride": i64_array(tuple(stride))}
    return apply(nd.SliceOp, [x], with_shape(x, shape), **arrays)


def flip(x: Any, axis: int | tuple[int, ...] | None = None) -> Array:
    """Reverse the order along dimensions"""
    x = as_array(x)
    return apply(nd.ReverseOp, [x], x.type, dims=i64_array(normalize_axes(x, axis)))


def pad(x: Any, widths: Any, value: Any = 0) -> Array:
    """Constant padding; `widths` is (low, high) per dimension, negative removes"""
    x = as_array(x)
    pairs = [(w, w) if isinstance(w, int) else tuple(w) for w in ([widths] * x.ndim if isinstance(widths, int) else widths)]
    low, high = tuple(p[0] for p in pairs), tuple(p[1] for p in pairs)
    shape = tuple(n + lo + hi for n, lo, hi in zip(x.shape, low, high))
    fill = as_array(value, x.dtype) if is_scalar(value) else as_array(value)
    arrays = {"low": i64_array(low), "high": i64_array(high), "interior": i64_array((0,) * x.ndim)}
    return apply(nd.PadOp, [x, fill], with_shape(x, shape), **arrays)


OPERATORS.update(reshape=reshape, transpose=transpose, flatten=flatten)
