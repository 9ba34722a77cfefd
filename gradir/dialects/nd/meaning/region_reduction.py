"""Meaning of the folds whose combiner is a region: element after element, in index order, in the operands' own types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradir.dialects.nd.convolution import window_count
from gradir.dialects.nd.meaning import regions
from gradir.dialects.nd.meaning.convolution import taps
from gradir.dialects.nd.meaning.rounding import Array
from gradir.dialects.nd.meaning.shape import padded


def _filled(starts: tuple[Array, ...], shape: tuple[int, ...]) -> list[Array]:
    return [np.broadcast_to(start, shape) for start in starts]


def _results(state: list[Array], shape: tuple[int, ...], dtypes: list[Any]) -> Any:
    found = [np.broadcast_to(x, shape).astype(dtype) for x, dtype in zip(state, dtypes)]
    return tuple(found) if len(found) > 1 else found[0]


def reduce(op: Any, *operands: Array) -> Any:
    count, dims = len(op.results), sorted(op.numbers("dims"))
    inputs, starts = operands[:count], operands[count:]
    shape = inputs[0].shape
    kept = tuple(d for d in range(len(shape)) if d not in dims)
    moved = [x.transpose(*dims, *kept) for x in inputs]
    rest = tuple(shape[d] for d in kept)
    state = _filled(starts, rest)
    for at in np.ndindex(*(shape[d] for d in dims)):
        state = regions.run(op.combiner.block, [*state, *(x[at] for x in moved)])
    return _results(state, rest, [x.dtype for x in inputs])


def reduce_window_general(op: Any, *operands: Array) -> Any:
    count = len(op.results)
    inputs, starts = operands[:count], operands[count:]
    window, strides, edges = op.numbers("window"), op.numbers("strides"), op.numbers("padding")
    dilations, base = op.numbers("dilations"), op.numbers("base_dilations")
    counts = tuple(
        int(window_count(n, window[d], strides[d], edges[2 * d], edges[2 * d + 1], dilations[d], base[d]) or 0)
        for d, n in enumerate(inputs[0].shape)
    )
    if 0 in counts:
        return _results(_filled(starts, counts), counts, [x.dtype for x in inputs])
    outside = [padded(x, start[()], edges[0::2], edges[1::2], [n - 1 for n in base]) for x, start in zip(inputs, starts)]
    state = _filled(starts, counts)
    for at in np.ndindex(*window):
        state = regions.run(op.combiner.block, [*state, *(taps(x, at, counts, strides, dilations) for x in outside)])
    return _results(state, counts, [x.dtype for x in inputs])


def select_and_scatter_general(op: Any, x: Array, source: Array, start: Array) -> Array:
    window, strides, low = op.numbers("window"), op.numbers("strides"), op.numbers("padding")[0::2]
    result = np.full(x.shape, start, x.dtype)
    for w in np.ndindex(*source.shape):
        chosen: tuple[int, ...] | None = None
        for o in np.ndindex(*window):
            place = tuple(i * s + k - before for i, s, k, before in zip(w, strides, o, low))
            if any(not 0 <= p < n for p, n in zip(place, x.shape)):
                continue
            if chosen is None or not bool(regions.run(op.select.block, [np.asarray(x[chosen]), np.asarray(x[place])])[0]):
                chosen = place
        if chosen is not None:
            result[chosen] = regions.run(op.scatter.block, [np.asarray(result[chosen]), np.asarray(source[w])])[0]
    return result


EVALUATE: dict[str, Callable[..., Any]] = {
    "nd.reduce": reduce,
    "nd.reduce_window_general": reduce_window_general,
    "nd.select_and_scatter_general": select_and_scatter_general,
}
