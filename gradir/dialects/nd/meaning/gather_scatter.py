"""Meaning of gather and scatter of windows (docs/numerics.md, "Shape, indexing, order")."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradir.dialects.nd.meaning import regions
from gradir.dialects.nd.meaning.elementwise import max_, min_
from gradir.dialects.nd.meaning.rounding import F32, NARROW, Array, accumulator, from_f64, is_inexact


def _starts(n: Any, indices: Array, shape: tuple[int, ...]) -> dict[int, Array]:
    """For each operand dimension that a vector or a batch starts: where, as Python integers over the result's (updates') shape."""
    grid = np.indices(shape, sparse=True)
    batch = tuple(np.broadcast_to(grid[d], shape) for d in n.batch)
    starts = {d: np.broadcast_to(np.asarray(indices[(*batch, k)]).astype(object), shape) for k, d in enumerate(n.map)}
    starts |= {d: np.broadcast_to(grid[n.batch_of(k)], shape).astype(object) for k, d in enumerate(n.operand_batch)}
    return starts


def _offsets(n: Any, shape: tuple[int, ...]) -> dict[int, Array]:
    """For each operand dimension that the window walks: the place in the window."""
    grid = np.indices(shape, sparse=True)
    return {d: np.broadcast_to(grid[place], shape) for place, d in zip(n.window, n.walked)}


def _result_shape(op: Any, indices: Array) -> tuple[int, ...]:
    n, sizes = op.dimensions, op.numbers("sizes")
    window = dict(zip(n.window, (sizes[d] for d in n.walked)))
    batch = dict(zip(n.batch, indices.shape[:-1]))
    return tuple(window[d] if d in window else batch[d] for d in range(len(window) + len(batch)))


def gather_general(op: Any, x: Array, indices: Array) -> Array:
    n, sizes = op.dimensions, op.numbers("sizes")
    shape = _result_shape(op, indices)
    if 0 in shape:
        return np.zeros(shape, x.dtype)
    starts, offsets = _starts(n, indices, shape), _offsets(n, shape)
    zero = np.zeros(shape, np.int64)
    places: list[Array] = []
    for d in range(x.ndim):
        start = np.asarray(np.clip(starts[d], 0, x.shape[d] - sizes[d])).astype(np.int64) if d in starts else zero
        places.append(start + offsets.get(d, zero))
    return np.asarray(x[tuple(places)])


_JOINS: dict[str, Callable[[Any, Array, Array], Array]] = {
    "set": lambda _op, _old, new: new,
    "add": lambda _op, old, new: np.asarray(old + new),
    "mul": lambda _op, old, new: np.asarray(old * new),
    "min": min_,
    "max": max_,
}


def scatter_general(op: Any, *operands: Array) -> Any:
    count = len(op.results)
    inputs, indices, updates = operands[:count], operands[count], operands[count + 1 :]
    n, kind = op.dimensions, op.combine
    shape = updates[0].shape
    results = [x.copy() if kind != "add" else x.astype(accumulator(x.dtype)) for x in inputs]
    starts, offsets = _starts(n, indices, shape), _offsets(n, shape)
    for at in np.ndindex(*shape):
        place = tuple(int(starts[d][at] if d in starts else 0) + int(offsets[d][at] if d in offsets else 0) for d in range(n.rank))
        if any(not 0 <= p < size for p, size in zip(place, inputs[0].shape)):
            continue
        olds, news = [x[place] for x in results], [u[at] for u in updates]
        if kind == "region":
            joined = regions.run(op.combiner.block, [np.asarray(v) for v in (*olds, *news)])
        else:
            joined = [_join(op, kind, old, new) for old, new in zip(olds, news)]
        for x, value in zip(results, joined):
            x[place] = value
    if kind == "add":
        results = [from_f64(r, x.dtype) if is_inexact(x.dtype) else r for r, x in zip(results, inputs)]
    return tuple(results) if count > 1 else results[0]


def _join(op: Any, kind: str, old: Any, new: Any) -> Array:
    """One element joined with another; products of f16 and bf16 are rounded from f32."""
    old, new = np.asarray(old), np.asarray(new)
    if kind == "mul" and old.dtype in NARROW:
        return np.asarray(old.astype(F32) * new.astype(F32)).astype(old.dtype)
    return _JOINS[kind](op, old, new.astype(old.dtype))


def take_along_axis(op: Any, x: Array, indices: Array) -> Array:
    dim = op.number("dim")
    if not indices.size:
        return np.zeros(indices.shape, x.dtype)
    inside = np.clip(indices.astype(object), 0, x.shape[dim] - 1).astype(np.int64)
    return np.take_along_axis(x, inside, dim)


EVALUATE: dict[str, Callable[..., Any]] = {
    "nd.gather_general": gather_general,
    "nd.scatter_general": scatter_general,
    "nd.take_along_axis": take_along_axis,
}
