"""Meaning of the reductions (docs/numerics.md, "Reductions and composites")."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradir.dialects.nd.meaning.rounding import F64, Array, accumulator, from_f64, greatest, is_float, is_inexact, least
from gradir.dialects.types import element_of, numpy_dtype


def reduced_last(x: Array, dims: tuple[int, ...]) -> Array:
    """[kept.., all reduced elements]: numpy sums pairwise only along a contiguous last axis."""
    kept = [d for d in range(x.ndim) if d not in dims]
    moved = x.transpose(*kept, *dims)
    count = int(np.prod([x.shape[d] for d in dims], dtype=np.int64))
    return np.ascontiguousarray(moved.reshape([*(x.shape[d] for d in kept), count]))


def sum_over(x: Array, dims: tuple[int, ...]) -> Array:
    """Sums from +0: in f64 and rounded once for floats, wrapping in their type for integers."""
    if not is_inexact(x.dtype):
        return np.add.reduce(x, axis=dims, dtype=x.dtype)
    return from_f64(np.add.reduce(reduced_last(x, dims).astype(accumulator(x.dtype)), axis=-1) + 0.0, x.dtype)


def reduce_sum(op: Any, x: Array) -> Array:
    return sum_over(x, op.numbers("dims"))


def reduce_prod(op: Any, x: Array) -> Array:
    wide = accumulator(x.dtype)
    result = np.multiply.reduce(x.astype(wide), axis=op.numbers("dims"), dtype=wide)
    return from_f64(result, x.dtype) if is_inexact(x.dtype) else result


def max_over(x: Array, dims: tuple[int, ...]) -> Array:
    """Maximum from the identity; NaN wins, +0 is greater than -0."""
    if not is_float(x.dtype):
        return np.maximum.reduce(x, axis=dims, initial=least(x.dtype))
    wide = x.astype(F64)
    result = np.asarray(np.maximum.reduce(wide, axis=dims, initial=-np.inf))
    positive_zero = np.any((wide == 0) & ~np.signbit(wide), axis=dims)
    return np.where(result == 0, np.where(positive_zero, 0.0, -0.0), result).astype(x.dtype)


def min_over(x: Array, dims: tuple[int, ...]) -> Array:
    """Minimum from the identity; NaN wins, -0 is less than +0."""
    if not is_float(x.dtype):
        return np.minimum.reduce(x, axis=dims, initial=greatest(x.dtype))
    return -max_over(-x, dims)


def reduce_max(op: Any, x: Array) -> Array:
    return max_over(x, op.numbers("dims"))


def reduce_min(op: Any, x: Array) -> Array:
    return min_over(x, op.numbers("dims"))


def reduce_any(op: Any, x: Array) -> Array:
    return np.logical_or.reduce(x, axis=op.numbers("dims"))


def reduce_all(op: Any, x: Array) -> Array:
    return np.logical_and.reduce(x, axis=op.numbers("dims"))


def _positions(find: Callable[..., Any]) -> Callable[..., Array]:
    """numpy's argmax and argmin already give the first NaN, else the first of equals."""

    def positions(op: Any, x: Array) -> Array:
        if x.shape[op.number("dim")] == 0:
            raise ValueError(f"{op.name}: dimension {op.number('dim')} has size 0: no element has a position")
        values = x.astype(F64) if is_float(x.dtype) else x
        return np.asarray(find(values, axis=op.number("dim"))).astype(numpy_dtype(element_of(op.result)))

    return positions


EVALUATE: dict[str, Callable[..., Any]] = {
    "nd.reduce_sum": reduce_sum,
    "nd.reduce_prod": reduce_prod,
    "nd.reduce_max": reduce_max,
    "nd.reduce_min": reduce_min,
    "nd.reduce_any": reduce_any,
    "nd.reduce_all": reduce_all,
    "nd.argmax": _positions(np.argmax),
    "nd.argmin": _positions(np.argmin),
}
