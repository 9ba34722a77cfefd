"""Meaning of the ops whose positions are values (docs/numerics.md, "Shape, indexing, order")."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gradir.dialects.nd.meaning.rounding import Array, accumulator, from_f64, is_inexact
from gradir.dialects.nd.meaning.shape import named_shape, named_sizes
from gradir.dialects.types import shape_of


def gather(op: Any, x: Array, indices: Array) -> Array:
    dim = op.number("dim")
    size = x.shape[dim]
    if size == 0 and indices.size:
        raise ValueError(f"nd.gather: dimension {dim} has size 0: no element to read for {indices.size} indices")
    wide = indices.astype(np.uint64 if indices.dtype.kind == "u" else np.int64)
    inside = np.clip(wide, wide.dtype.type(0), wide.dtype.type(max(size - 1, 0)))
    return np.asarray(np.take(x, inside.astype(np.int64), axis=dim))


def scatter_add(op: Any, x: Array, indices: Array, updates: Array) -> Array:
    dim = op.number("dim")
    wide = accumulator(x.dtype)
    result = np.moveaxis(x.astype(wide), dim, 0)
    middle = tuple(range(dim, dim + indices.ndim))
    rows = np.moveaxis(updates.astype(wide), middle, tuple(range(indices.ndim))).reshape(indices.size, *result.shape[1:])
    positions = [int(i) for i in indices.reshape(-1)]
    kept = [k for k, i in enumerate(positions) if 0 <= i < x.shape[dim]]
    np.add.at(result, [positions[k] for k in kept], rows[kept])
    moved = np.moveaxis(result, 0, dim)
    return from_f64(moved, x.dtype) if is_inexact(x.dtype) else np.ascontiguousarray(moved)


def _clamped(starts: Sequence[Array], shape: Sequence[int], sizes: Sequence[int]) -> tuple[slice, ...]:
    firsts = [min(max(int(start), 0), total - size) for start, total, size in zip(starts, shape, sizes)]
    return tuple(slice(first, first + size) for first, size in zip(firsts, sizes))


def dynamic_slice(op: Any, x: Array, *starts: Array, sizes: Mapping[str, int] | None = None) -> Array:
    taken = named_shape(op.result, {**named_sizes(op.operand, x.shape), **(sizes or {})})
    for d, (size, total) in enumerate(zip(taken, x.shape)):
        if not 0 <= size <= total:
            raise ValueError(f"nd.dynamic_slice: dim {d}: a slice of {shape_of(op.result)[d]} = {size} does not fit in {total}")
    return x[_clamped(starts, x.shape, taken)].copy()


def dynamic_update_slice(op: Any, x: Array, update: Array, *starts: Array) -> Array:
    result = x.copy()
    result[_clamped(starts, x.shape, update.shape)] = update
    return result


def _at(op: Any, x: Array, at: Any) -> tuple[Any, ...]:
    dim, position = op.number("dim"), int(at)
    if not 0 <= position < x.shape[dim]:
        raise IndexError(f"{op.name}: index {position} is outside dimension {dim} of size {x.shape[dim]}")
    return (slice(None),) * dim + (position,)


def index_at(op: Any, x: Array, at: Any) -> Array:
    return np.asarray(x[_at(op, x, at)]).copy()


def update_at(op: Any, value: Array, x: Array, at: Any) -> Array:
    result = x.copy()
    result[_at(op, x, at)] = value
    return result


EVALUATE: dict[str, Callable[..., Any]] = {
    "nd.gather": gather,
    "nd.scatter_add": scatter_add,
    "nd.dynamic_slice": dynamic_slice,
    "nd.dynamic_update_slice": dynamic_update_slice,
    "nd.index_at": index_at,
    "nd.update_at": update_at,
}
