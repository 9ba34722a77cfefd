"""Moving data, numpy's names."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, i64

from gradir import size_algebra
from gradir.dialects import nd
from gradir.dialects.nd.indexing import RUN_TIME
from gradir.dialects.nd.shape import TO_END
from gradir.dialects.types import i64_array
from gradir.frontends.python.arrays import OPERATORS, Array
from gradir.frontends.python.dims import Dim, at_least, divides, sized
from gradir.frontends.python.operands import as_array, broadcast_to, common_dtype, is_scalar, normalize_axes, one_axis, with_shape
from gradir.frontends.python.run_time_sizes import require_multiple
from gradir.frontends.python.sizes import axis_of, pairs, sizes, whole
from gradir.frontends.python.trace import apply, user_error


def reshape(x: Any, *shape: Any) -> Array:
    """The same elements in row-major order; one size may be -1"""
    x = as_array(x)
    wanted: list[Any] = list(sizes("a size", shape[0] if len(shape) == 1 else shape, None))
    count = x.size
    if wanted.count(-1) == 1:
        known = math.prod(n for n in wanted if n != -1)
        wanted[wanted.index(-1)] = _rest(x, count, known) if known else 0
    product = math.prod(wanted)
    fits = size_algebra.same_count(product, count) if isinstance(product, Dim) or isinstance(count, Dim) else product == count
    if not fits or any(isinstance(n, int) and n < 0 for n in wanted):
        raise user_error(
            "reshape changes the number of elements", code="GR001", op="nd.reshape", expected=f"{count} elements", found=str(shape)
        )
    return x if tuple(wanted) == x.shape else apply(nd.ReshapeOp, [x], with_shape(x, tuple(wanted)))


def _rest(x: Array, count: Any, known: Any) -> Any:
    """What -1 stands for: count / known. Where sizes are known only at run time and it may not be whole, the program checks it."""
    if not isinstance(count, Dim) and not isinstance(known, Dim):
        return count // known
    exact = size_algebra.quotient(count, known)
    if exact is not None:
        return sized(exact)
    if isinstance(known, int) and not divides(known, count):
        require_multiple(count, known, f"reshape of {x.shape}: the number of elements, {count}, is no multiple of {known}")
    return sized(size_algebra.floordiv(count, known))


def flatten(x: Any) -> Array:
    """One dimension"""
    return reshape(x, (-1,))


def transpose(x: Any, axes: Sequence[int] | None = None) -> Array:
    """Result dimension k is operand dimension axes[k]; reversed by default"""
    x = as_array(x)
    perm = tuple(range(x.ndim))[::-1] if axes is None else tuple(axis_of(a, x.ndim) for a in axes)
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
    a, b = axis_of(a, x.ndim), axis_of(b, x.ndim)
    perm[a], perm[b] = b, a
    return transpose(x, perm)


def expand_dims(x: Any, axis: int | tuple[int, ...]) -> Array:
    """A new dimension of size 1, or several: `axis` is where it stands in the result"""
    x = as_array(x)
    given = axis if isinstance(axis, tuple) else (axis,)
    rank = x.ndim + len(given)
    places = {axis_of(at, rank) for at in given}
    if len(places) != len(given):
        raise user_error("expand_dims: an axis twice", code="GR104", op="nd.reshape", expected="distinct axes", found=str(axis))
    sizes_left = iter(x.shape)
    return reshape(x, tuple(1 if k in places else next(sizes_left) for k in range(rank)))


def squeeze(x: Any, axis: int | tuple[int, ...] | None = None) -> Array:
    """Drop dimensions of size 1"""
    x = as_array(x)
    axes = tuple(k for k, n in enumerate(x.shape) if n == 1) if axis is None else normalize_axes(x, axis)
    return reshape(x, tuple(n for k, n in enumerate(x.shape) if k not in axes))


def broadcast(x: Any, shape: int | Sequence[int]) -> Array:
    """Repeat along new and size-1 dimensions"""
    return broadcast_to(as_array(x), sizes("a size", shape))


def concatenate(arrays: Sequence[Any], axis: int = 0) -> Array:
    """Join along an existing dimension"""
    if not arrays:
        raise user_error("concatenate: no arrays", code="GR001", op="nd.concatenate", expected="at least one", found="none")
    dtype = common_dtype(*arrays)
    inputs = [as_array(a, dtype) for a in arrays]
    first = inputs[0]
    dim = one_axis(first, axis)
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


def split(x: Any, parts: int | Sequence[int], axis: int = 0) -> list[Array]:
    """Equal parts along a dimension; of a list of positions, the parts between them"""
    x = as_array(x)
    dim = one_axis(x, axis)
    if isinstance(parts, list | tuple | np.ndarray):
        cuts = [0, *(min(max(at + x.shape[dim] if at < 0 else at, 0), x.shape[dim]) for at in map(int, parts)), x.shape[dim]]
        return [part_of(x, dim, low, max(high - low, 0)) for low, high in itertools.pairwise(cuts)]
    count = whole("the number of parts", parts, 1)
    if x.shape[dim] % count != 0:
        raise user_error("split: sizes do not divide", code="GR001", expected=f"a multiple of {parts}", found=str(x.shape[dim]))
    return [part_of(x, dim, k * (x.shape[dim] // count), x.shape[dim] // count) for k in range(count)]


def part_of(x: Array, dim: int, start: Any, size: Any) -> Array:
    """`size` elements of one dimension from `start` on, which are there."""
    if isinstance(start, Dim) or (isinstance(size, Dim) and start + size != x.shape[dim]):
        shape = (*x.shape[:dim], size, *x.shape[dim + 1 :])
        starts = [as_array(start if k == dim else 0) for k in range(x.ndim)]
        numbers = i64_array(RUN_TIME if isinstance(n, Dim) else n for n in shape)
        return apply(nd.DynamicSliceOp, [x, *starts], with_shape(x, shape), sizes=numbers)
    low, high = [0] * x.ndim, list(x.shape)
    low[dim], high[dim] = start, start + size
    return slice_(x, low, high, [1] * x.ndim)


def slice_(x: Array, start: Sequence[int], limit: Sequence[Any], stride: Sequence[int]) -> Array:
    """A strided window from numbers on; a limit of run-time size is the size itself, or the size less a number."""
    lengths = (size_algebra.minus(hi, lo) for lo, hi in zip(start, limit))
    shape = tuple(at_least(size_algebra.ceildiv(length, step), 0) for length, step in zip(lengths, stride))
    if shape == x.shape and not any(start):
        return x
    ends = [_limit(n, hi) for n, hi in zip(x.shape, limit)]
    arrays = {"start": i64_array(tuple(start)), "limit": i64_array(ends), "stride": i64_array(tuple(stride))}
    return apply(nd.SliceOp, [x], with_shape(x, shape), **arrays)


def _limit(size: Any, limit: Any) -> int:
    """The limit of a slice as `nd.slice` writes it: numbers below 0 count from the end."""
    if not isinstance(limit, Dim):
        return limit
    left_out = size - limit
    assert isinstance(left_out, int), f"a limit of {limit} in {size}"
    return TO_END - left_out


def flip(x: Any, axis: int | tuple[int, ...] | None = None) -> Array:
    """Reverse the order along dimensions"""
    x = as_array(x)
    return apply(nd.ReverseOp, [x], x.type, dims=i64_array(normalize_axes(x, axis)))


def pad(x: Any, widths: Any, value: Any = 0, *, constant_values: Any = None) -> Array:
    """Constant padding; `widths` is (low, high) per dimension, negative removes. `constant_values` is numpy's name for `value`"""
    x = as_array(x)
    value = value if constant_values is None else constant_values
    rows = pairs("pad", [widths] * x.ndim if isinstance(widths, int) else widths, x.ndim, "GR112")
    low, high = tuple(row[0] for row in rows), tuple(row[1] for row in rows)
    shape = tuple(n + lo + hi for n, lo, hi in zip(x.shape, low, high))
    fill = as_array(value, x.dtype) if is_scalar(value) else as_array(value)
    arrays = {"low": i64_array(low), "high": i64_array(high), "interior": i64_array((0,) * x.ndim)}
    return apply(nd.PadOp, [x, fill], with_shape(x, shape), **arrays)


OPERATORS.update(reshape=reshape, transpose=transpose, flatten=flatten)
