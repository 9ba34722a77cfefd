"""Convolutions and windows."""

from __future__ import annotations

from functools import reduce
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from tests.autodiff.jax_counterparts.registry import counterpart


def pairs(numbers: tuple[int, ...]) -> list[tuple[int, int]]:
    """(low, high) of each dimension."""
    return list(zip(numbers[0::2], numbers[1::2]))


@counterpart("conv_general")
def conv_general(run: Any, op: Any, lhs: Any, rhs: Any) -> Any:
    """lhs [N, spatial.., C], rhs [spatial.., C/g, O]"""
    spatial = "".join(chr(ord("a") + k) for k in range(lhs.ndim - 2))
    numbers = lax.conv_dimension_numbers(lhs.shape, rhs.shape, (f"N{spatial}C", f"{spatial}IO", f"N{spatial}C"))
    return lax.conv_general_dilated(
        lhs,
        rhs,
        op.numbers("strides"),
        pairs(op.numbers("padding")),
        op.numbers("lhs_dilation"),
        op.numbers("rhs_dilation"),
        numbers,
        op.number("feature_groups"),
        op.number("batch_groups"),
        precision="highest",
    )


def window_elements(padded: Any, window: Any, strides: Any, dilations: Any) -> list[Any]:
    """For each position of the window in row-major order, that element of all windows."""
    counts = [(n - (w - 1) * d - 1) // s + 1 for n, w, s, d in zip(padded.shape, window, strides, dilations)]
    found: list[Any] = []
    for at in product(*map(range, window)):
        start = [a * d for a, d in zip(at, dilations)]
        limit = [lo + (c - 1) * s + 1 for lo, c, s in zip(start, counts, strides)]
        found.append(lax.slice(padded, start, limit, strides))
    return found


@counterpart("reduce_window")
def reduce_window(run: Any, op: Any, x: Any) -> Any:
    """By lax; what JAX cannot differentiate, windows of products and dilated windows of extrema, by the elements of all windows."""
    kind = op.kind.data.value
    window, strides, dilations = (op.numbers(a) for a in ("window", "strides", "dilations"))
    padding = pairs(op.numbers("padding"))
    function, start = {"sum": (lax.add, 0.0), "prod": (lax.mul, 1.0), "max": (lax.max, -jnp.inf), "min": (lax.min, jnp.inf)}[kind]
    if kind == "prod" or (kind != "sum" and set(dilations) != {1}):
        padded = lax.pad(x, jnp.asarray(start, x.dtype), [(lo, hi, 0) for lo, hi in padding])
        return reduce(function, window_elements(padded, window, strides, dilations))
    return lax.reduce_window(x, start, function, window, strides, padding, window_dilation=dilations)


@counterpart("select_and_scatter")
def select_and_scatter(run: Any, op: Any, x: Any, source: Any) -> Any:
    """The transpose of max-pooling at x, which JAX calls select_and_scatter_add."""

    def pool(x: Any) -> Any:
        return lax.reduce_window(x, -jnp.inf, lax.max, op.numbers("window"), op.numbers("strides"), pairs(op.numbers("padding")))

    return jax.vjp(pool, lax.stop_gradient(x))[1](source)[0]
