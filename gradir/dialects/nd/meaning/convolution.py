"""Meaning of convolution and windows: one step per position of the kernel or window, over all outputs at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradir.dialects.nd.convolution import window_count
from gradir.dialects.nd.meaning.contraction import product_dtypes
from gradir.dialects.nd.meaning.elementwise import max_, min_
from gradir.dialects.nd.meaning.rounding import Array, accumulator, from_f64, greatest, is_float, is_inexact, least
from gradir.dialects.nd.meaning.shape import padded


def taps(x: Array, at: Sequence[int], counts: Sequence[int], strides: Sequence[int], dilations: Sequence[int]) -> Array:
    """What position `at` of every window sees in the padded `x`: one element per window."""
    starts = [a * d for a, d in zip(at, dilations)]
    return x[tuple(slice(s, s + (n - 1) * stride + 1 if n else s, stride) for s, n, stride in zip(starts, counts, strides))]


def _number(size: int | str | None) -> int:
    assert isinstance(size, int), "values have static sizes"
    return size


def conv_general(op: Any, lhs: Array, rhs: Array) -> Array:
    wide, dtype = product_dtypes(op)
    strides, padding, dilations = op.numbers("strides"), op.numbers("padding"), op.numbers("rhs_dilation")
    groups, batches = op.number("feature_groups"), op.number("batch_groups")
    space = lhs.ndim - 2
    gaps = [d - 1 for d in op.numbers("lhs_dilation")]
    counts = [
        _number(window_count(lhs.shape[1 + d], rhs.shape[d], strides[d], padding[2 * d], padding[2 * d + 1], dilations[d], gaps[d] + 1))
        for d in range(space)
    ]
    reach = [
        max(0, -(lhs.shape[1 + d] + max(lhs.shape[1 + d] - 1, 0) * gaps[d] + padding[2 * d] + padding[2 * d + 1])) for d in range(space)
    ]
    x = padded(lhs.astype(wide), wide.type(0), (0, *padding[::2], 0), (0, *(p + r for p, r in zip(padding[1::2], reach)), 0), (0, *gaps, 0))
    w = rhs.astype(wide)
    parts = groups * batches
    outputs = rhs.shape[-1]
    images = lhs.shape[0] // batches
    result = np.zeros((images, *counts, outputs), wide)
    for at in np.ndindex(*rhs.shape[:space]):
        seen = taps(x, (0, *at, 0), (lhs.shape[0], *counts, lhs.shape[-1]), (1, *strides, 1), (1, *dilations, 1))
        for part in range(parts):
            channels = slice(None) if batches > 1 else slice(part * rhs.shape[-2], (part + 1) * rhs.shape[-2])
            rows = slice(part * images, (part + 1) * images) if batches > 1 else slice(None)
            columns = slice(part * (outputs // parts), (part + 1) * (outputs // parts))
            result[..., columns] += np.matmul(seen[rows][..., channels], w[at][:, columns])
    return from_f64(result, dtype) if is_inexact(dtype) else result


def _windows(op: Any, x: Array, dilations: Sequence[int]) -> tuple[Sequence[int], Sequence[int], Sequence[int], list[int]]:
    window, strides, padding = op.numbers("window"), op.numbers("strides"), op.numbers("padding")
    counts = [window_count(n, window[d], strides[d], padding[2 * d], padding[2 * d + 1], dilations[d]) for d, n in enumerate(x.shape)]
    return window, strides, padding, [_number(n) for n in counts]


def _plain_sum(op: Any, x: Array, y: Array) -> Array:
    return x + y


def _plain_product(op: Any, x: Array, y: Array) -> Array:
    return x * y


def _either(op: Any, x: Array, y: Array) -> Array:
    return x | y


def _both(op: Any, x: Array, y: Array) -> Array:
    return x & y


_WINDOWS: dict[str, tuple[Callable[[np.dtype[Any]], Any], Callable[..., Array]]] = {
    "sum": (lambda dtype: dtype.type(0), _plain_sum),
    "prod": (lambda dtype: dtype.type(1), _plain_product),
    "max": (least, max_),
    "min": (greatest, min_),
    "or": (lambda dtype: dtype.type(False), _either),
    "and": (lambda dtype: dtype.type(True), _both),
}
"""Kind of window -> what it starts from, how it goes on."""


def reduce_window(op: Any, x: Array) -> Array:
    kind, dilations = op.kind.data.value, op.numbers("dilations")
    window, strides, padding, counts = _windows(op, x, dilations)
    wide = accumulator(x.dtype) if kind in ("sum", "prod") else x.dtype
    identity, combine = _WINDOWS[kind]
    start = identity(wide)
    if 0 in counts:
        return np.zeros(counts, x.dtype)
    outside = padded(x.astype(wide), start, padding[::2], padding[1::2], (0,) * x.ndim)
    result = np.full(counts, start, wide)
    for at in np.ndindex(*window):
        result = np.asarray(combine(op, result, taps(outside, at, counts, strides, dilations)))
    return from_f64(result, x.dtype) if kind in ("sum", "prod") and is_inexact(x.dtype) else result


def select_and_scatter(op: Any, x: Array, source: Array) -> Array:
    ones = (1,) * x.ndim
    window, strides, padding, counts = _windows(op, x, ones)
    wide = accumulator(x.dtype)
    result = np.zeros(x.size, wide)
    if 0 in counts or x.size == 0:
        return result.reshape(x.shape).astype(x.dtype)
    low, high, gaps = padding[::2], padding[1::2], (0,) * x.ndim
    values = padded(x.astype(accumulator(x.dtype)), wide.type(0), low, high, gaps)
    positions = padded(np.arange(x.size).reshape(x.shape), -1, low, high, gaps)
    best = taps(values, (0,) * x.ndim, counts, strides, ones).copy()
    chosen = np.full(counts, -1)
    for at in np.ndindex(*window):
        value, position = taps(values, at, counts, strides, ones), taps(positions, at, counts, strides, ones)
        better = (position >= 0) & ((chosen < 0) | (value > best) | ((value != value) & (best == best)))
        best, chosen = np.where(better, value, best), np.where(better, position, chosen)
    seen = chosen >= 0
    np.add.at(result, chosen[seen], source.astype(wide)[seen])
    shaped = result.reshape(x.shape)
    return from_f64(shaped, x.dtype) if is_float(x.dtype) else shaped


EVALUATE: dict[str, Callable[..., Any]] = {
    "nd.conv_general": conv_general,
    "nd.reduce_window": reduce_window,
    "nd.select_and_scatter": select_and_scatter,
}
