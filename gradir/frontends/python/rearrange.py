"""Moving data by slices, joins and broadcasts; numpy's names. What is one op is in `shape`."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradir.frontends.python.arrays import OPERATORS, Array
from gradir.frontends.python.creation import iota, zeros_like
from gradir.frontends.python.elementwise import add, equal, greater_equal, multiply, where
from gradir.frontends.python.operands import as_array, astype, supported_dtype
from gradir.frontends.python.reduction import sum
from gradir.frontends.python.shape import broadcast, concatenate, flatten, flip, pad, reshape, slice_, transpose
from gradir.frontends.python.sizes import axis_of, sizes, whole
from gradir.frontends.python.trace import constant, user_error


def ravel(x: Any) -> Array:
    """One dimension"""
    return flatten(x)


def broadcast_to(x: Any, shape: int | Sequence[int]) -> Array:
    """Repeat along new and size-1 dimensions; the same as `broadcast`"""
    return broadcast(x, shape)


def moveaxis(x: Any, source: int | Sequence[int], destination: int | Sequence[int]) -> Array:
    """Dimensions moved to new places, the others in their order"""
    x = as_array(x)
    moved, places = (tuple(axis_of(a, x.ndim) for a in sizes("an axis", axes, None)) for axes in (source, destination))
    if len(moved) != len(places) or len(set(moved)) != len(moved) or len(set(places)) != len(places):
        raise user_error(
            "moveaxis: axes do not pair",
            code="GR104",
            op="nd.transpose",
            expected="as many distinct destinations as distinct sources",
            found=f"{source} and {destination}",
        )
    perm = [k for k in range(x.ndim) if k not in moved]
    for place, axis in sorted(zip(places, moved)):
        perm.insert(place, axis)
    return transpose(x, perm)


def hstack(arrays: Sequence[Any]) -> Array:
    """Join side by side: along dimension 1, of vectors along dimension 0"""
    made = [as_array(a) for a in arrays]
    made = [reshape(a, (1,)) if a.ndim == 0 else a for a in made]
    return concatenate(made, 0 if made and made[0].ndim == 1 else 1)


def vstack(arrays: Sequence[Any]) -> Array:
    """Join below each other: along dimension 0, vectors as rows"""
    made = [as_array(a) for a in arrays]
    return concatenate([reshape(a, (1, -1)) if a.ndim < 2 else a for a in made], 0)


def tile(x: Any, counts: int | Sequence[int]) -> Array:
    """The whole array repeated `counts` times along each dimension"""
    x, times = as_array(x), sizes("a count", counts)
    rank = max(x.ndim, len(times))
    shape, times = (1,) * (rank - x.ndim) + x.shape, (1,) * (rank - len(times)) + times
    split = tuple(size for n in shape for size in (1, n))
    spread = tuple(size for count, n in zip(times, shape) for size in (count, n))
    return reshape(broadcast(reshape(x, split), spread), tuple(count * n for count, n in zip(times, shape)))


def repeat(x: Any, count: int, axis: int | None = None) -> Array:
    """Each element (along `axis`) `count` times in a row"""
    x, count = as_array(x), whole("a count", count, 0)
    if axis is None:
        x, axis = flatten(x), 0
    dim = axis_of(axis, x.ndim)
    before, n, after = x.shape[:dim], x.shape[dim], x.shape[dim + 1 :]
    spread = broadcast(reshape(x, (*before, n, 1, *after)), (*before, n, count, *after))
    return reshape(spread, (*before, n * count, *after))


def roll(x: Any, shift: int | tuple[int, ...], axis: int | tuple[int, ...] | None = None) -> Array:
    """Elements moved on by `shift` places, the last ones to the front; along several axes by a shift for each"""
    x = as_array(x)
    if isinstance(axis, tuple):
        shifts = shift if isinstance(shift, tuple) else (shift,) * len(axis)
        for by, along in zip(shifts, axis, strict=True):
            x = roll(x, by, along)
        return x
    if isinstance(shift, tuple):
        return roll(x, builtins.sum(shift), axis)
    if axis is None:
        return reshape(roll(flatten(x), shift, 0), x.shape)
    dim = axis_of(axis, x.ndim)
    n = x.shape[dim]
    cut = -whole("a shift", shift) % n if n else 0
    if not cut:
        return x
    low, high = [0] * x.ndim, list(x.shape)
    low[dim] = high[dim] = cut
    ones = [1] * x.ndim
    return concatenate([slice_(x, low, x.shape, ones), slice_(x, [0] * x.ndim, high, ones)], dim)


def fliplr(x: Any) -> Array:
    """Columns in reverse order"""
    return flip(x, 1)


def flipud(x: Any) -> Array:
    """Rows in reverse order"""
    return flip(x, 0)


def _triangle(x: Any, k: int, lower: bool) -> Array:
    x = as_array(x)
    if x.ndim < 2:
        raise user_error("a triangle of fewer than two dimensions", code="GR104", expected="rank >= 2", found=f"shape {x.shape}")
    first, second = iota(x.shape, x.ndim - 2), iota(x.shape, x.ndim - 1)
    bound = add(first, whole("a diagonal", k))
    kept = greater_equal(bound, second) if lower else greater_equal(second, bound)
    return where(kept, x, zeros_like(x))


def tril(x: Any, k: int = 0) -> Array:
    """The lower triangle of the last two dimensions, up to diagonal `k`; 0 above"""
    return _triangle(x, k, True)


def triu(x: Any, k: int = 0) -> Array:
    """The upper triangle of the last two dimensions, from diagonal `k`; 0 below"""
    return _triangle(x, k, False)


def eye(n: int, m: int | None = None, k: int = 0, dtype: Any = np.float32) -> Array:
    """`[n, m]` (square by default) with 1 on diagonal `k`"""
    shape = (whole("a size", n, 0), whole("a size", n if m is None else m, 0))
    return astype(equal(add(iota(shape, 0), whole("a diagonal", k)), iota(shape, 1)), dtype)


def identity(n: int, dtype: Any = np.float32) -> Array:
    """`eye(n)`"""
    return eye(n, dtype=dtype)


def trace(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """Sum of the elements `x[.., i, .., i + offset, ..]` of two dimensions"""
    x = as_array(x)
    if x.ndim < 2:
        raise user_error("trace of fewer than two dimensions", code="GR104", expected="rank >= 2", found=f"shape {x.shape}")
    x = moveaxis(x, (axis1, axis2), (-2, -1))
    row = add(iota(x.shape, x.ndim - 2), whole("a diagonal", offset))
    return sum(where(equal(row, iota(x.shape, x.ndim - 1)), x, zeros_like(x)), (-2, -1))


def diagonal(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The elements `x[.., i, .., i + offset, ..]` of two dimensions, along a new last one"""
    x = as_array(x)
    if x.ndim < 2:
        raise user_error("diagonal of fewer than two dimensions", code="GR104", expected="rank >= 2", found=f"shape {x.shape}")
    x = moveaxis(x, (axis1, axis2), (-2, -1))
    offset = whole("a diagonal", offset)
    row, column = builtins.max(-offset, 0), builtins.max(offset, 0)
    n = builtins.max(builtins.min(int(x.shape[-2]) - row, int(x.shape[-1]) - column), 0)
    batch, ones = x.shape[:-2], [1] * (x.ndim - 2)
    zeros = [0] * len(batch)
    row, column = (row, column) if n else (0, 0)
    square = slice_(x, [*zeros, row, column], [*batch, row + n, column + n], [*ones, 1, 1])
    # element (i, i) of n rows of n is number i * (n + 1) of them all
    return slice_(reshape(square, (*batch, n * n)), [*zeros, 0], [*batch, n * n], [*ones, n + 1])


def diag(x: Any, k: int = 0) -> Array:
    """The matrix with the vector `x` on diagonal `k` and 0 elsewhere; of a matrix its diagonal `k`"""
    x = as_array(x)
    if x.ndim != 1:
        if x.ndim == 2:
            return diagonal(x, k)
        raise user_error("diag of neither a vector nor a matrix", code="GR104", expected="rank 1 or 2", found=f"shape {x.shape}")
    k = whole("a diagonal", k)
    rows = pad(x, [(builtins.max(-k, 0), builtins.max(k, 0))])
    n = int(rows.shape[0])
    column = broadcast(reshape(rows, (n, 1)), (n, n))
    return where(eye(n, k=k, dtype=np.bool_), column, zeros_like(column))


def outer(x: Any, y: Any) -> Array:
    """`x[i] * y[j]` for all elements of both"""
    return multiply(reshape(x, (-1, 1)), reshape(y, (1, -1)))


def linspace(start: float, stop: float, n: int = 50, dtype: Any = np.float32) -> Array:
    """`n` equal steps from `start` to `stop`, both included"""
    points = np.linspace(float(start), float(stop), whole("the length", n, 0))
    return constant(points.astype(supported_dtype(dtype)))


def meshgrid(x: Any, y: Any, indexing: str = "xy") -> tuple[Array, Array]:
    """Coordinates of a grid: x along columns and y along rows ("xy"), or x along rows ("ij")"""
    x, y = as_array(x), as_array(y)
    if x.ndim != 1 or y.ndim != 1 or indexing not in ("xy", "ij"):
        raise user_error(
            "meshgrid: not two vectors", code="GR001", expected='rank 1, indexing "xy" or "ij"', found=f"{x.shape}, {y.shape}, {indexing!r}"
        )
    if indexing == "ij":
        shape = (x.shape[0], y.shape[0])
        return broadcast(reshape(x, (-1, 1)), shape), broadcast(y, shape)
    shape = (y.shape[0], x.shape[0])
    return broadcast(x, shape), broadcast(reshape(y, (-1, 1)), shape)


OPERATORS.update(ravel=ravel, repeat=repeat, trace=trace, diagonal=diagonal)
