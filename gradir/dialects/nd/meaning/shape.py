"""Meaning of the ops that move elements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gradir import size_algebra
from gradir.dialects.nd.meaning.rounding import Array
from gradir.dialects.types import is_static, shape_of, static_shape


def result_sizes(op: Any, sizes: Sequence[Any]) -> list[int]:
    """The result's shape, with the run-time sizes in place of its `?`."""
    given = iter(sizes)
    return [n if isinstance(n, int) else int(next(given)) for n in shape_of(op.result)]


def reshape(op: Any, x: Array, sizes: Mapping[str, int] | None = None) -> Array:
    shape = static_shape(op.result) if is_static(op.result) else _run_time_shape(op, x, sizes or {})
    return x.reshape(shape).copy()


def named_sizes(kind: Any, shape: Sequence[int]) -> dict[str, int]:
    """What a value of that shape says about the names in its type."""
    pairs = [(size, found) for size, found in zip(shape_of(kind), shape) if isinstance(size, str)]
    sizes: dict[str, int] = {}
    for name, k, rest, factor in size_algebra.solve([size for size, _ in pairs]):
        sizes[name] = (pairs[k][1] - size_algebra.evaluate(rest, sizes)) // factor
    return sizes


def named_shape(kind: Any, sizes: Mapping[str, int]) -> list[int]:
    """The sizes of a type where `sizes` gives its names; -1 where it does not."""
    shape: list[int] = []
    for size in shape_of(kind):
        known = size is not None and all(name in sizes for name in size_algebra.names_in(size))
        shape.append(size_algebra.evaluate(size, sizes) if known else -1)
    return shape


def _run_time_shape(op: Any, x: Array, sizes: Mapping[str, int]) -> list[int]:
    """Sizes of the result: as the names say, as the operand has them, at most one left to the count of elements."""
    whole = {name: size for name, size in zip(shape_of(op.operand), x.shape) if isinstance(name, str)}
    named = named_shape(op.result, {**named_sizes(op.operand, x.shape), **sizes})
    shape = [whole.get(name, size) if isinstance(name, str) else size for name, size in zip(shape_of(op.result), named)]
    if shape.count(-1) == 1 and x.size == 0:
        rest = int(np.prod([n for n in shape if n != -1]))
        shape[shape.index(-1)] = 0 if rest else 1
    return shape


def transpose(op: Any, x: Array) -> Array:
    return x.transpose(op.numbers("perm")).copy()


def broadcast(op: Any, x: Array, *sizes: Any) -> Array:
    dims, shape = op.numbers("dims"), result_sizes(op, sizes)
    for k, d in enumerate(dims):
        if x.shape[k] != shape[d]:
            raise ValueError(f"nd.broadcast: sizes differ: operand dim {k} has {x.shape[k]}, result dim {d} has {shape[d]}")
    ordered = x.transpose(np.argsort(dims)) if dims else x  # dims need not ascend
    where = dict(zip(dims, x.shape))
    return np.broadcast_to(ordered.reshape([where.get(d, 1) for d in range(len(shape))]), shape).copy()


def slice_(op: Any, x: Array) -> Array:
    bounds = zip(op.numbers("start"), op.numbers("limit"), op.numbers("stride"), x.shape)
    return x[tuple(slice(start, max(0, size + limit + 1) if limit < 0 else limit, stride) for start, limit, stride, size in bounds)].copy()


def padded(x: Array, value: Any, low: Sequence[int], high: Sequence[int], interior: Sequence[int]) -> Array:
    """`x` with `interior` values between neighbours, then `low` before and `high` after; negative edges remove elements."""
    spread_shape = [n + max(n - 1, 0) * gap for n, gap in zip(x.shape, interior)]
    spread = np.full(spread_shape, value, x.dtype)
    spread[tuple(slice(None, None, gap + 1) for gap in interior)] = x
    shape = [n + before + after for n, before, after in zip(spread_shape, low, high)]
    result = np.full(shape, value, x.dtype)
    target = tuple(slice(max(before, 0), max(before, 0) + _kept(n, before, after)) for n, before, after in zip(spread_shape, low, high))
    source = tuple(slice(max(-before, 0), max(-before, 0) + _kept(n, before, after)) for n, before, after in zip(spread_shape, low, high))
    result[target] = spread[source]
    return result


def _kept(size: int, before: int, after: int) -> int:
    return max(0, size - max(-before, 0) - max(-after, 0))


def pad(op: Any, x: Array, value: Array) -> Array:
    return padded(x, value, op.numbers("low"), op.numbers("high"), op.numbers("interior"))


def concatenate(op: Any, *inputs: Array) -> Array:
    return np.concatenate(inputs, axis=op.number("dim"))


def reverse(op: Any, x: Array) -> Array:
    return np.flip(x, op.numbers("dims")).copy()


EVALUATE: dict[str, Callable[..., Any]] = {
    "nd.reshape": reshape,
    "nd.transpose": transpose,
    "nd.broadcast": broadcast,
    "nd.slice": slice_,
    "nd.pad": pad,
    "nd.concatenate": concatenate,
    "nd.reverse": reverse,
}
