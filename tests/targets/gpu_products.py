"""Functions and inputs of the families of products, convolutions and attention in `gpu_programs`."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradir as gd

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]

PRODUCTS = {
    "aligned": (64, 64, 64),
    "odd": (33, 31, 17),
    "tail": (70, 50, 130),
    "one": (1, 1, 1),
    "zero": (0, 5, 3),
    "skinny": (1, 300, 40),
}
"""Rows, depth, columns."""
HEADS = {"aligned": (64, 64, 32), "odd": (17, 37, 20), "tail": (70, 66, 16), "one": (1, 1, 1), "zero": (0, 5, 16)}
"""Queries, keys, elements of a head; two heads."""
PICTURES = {"aligned": (2, 8, 8, 16), "odd": (1, 5, 7, 3), "tail": (1, 6, 11, 20), "one": (1, 1, 1, 1), "zero": (0, 6, 6, 8)}


def _values(random: np.random.Generator, shape: Shape, dtype: np.dtype[Any]) -> Array:
    return random.integers(-7, 7, shape).astype(dtype) if dtype.kind == "i" else random.standard_normal(shape).astype(dtype)


def product(a: Any, b: Any) -> Any:
    return gd.matmul(a, b)


def product_inputs(random: np.random.Generator, shape: Shape, dtype: np.dtype[Any]) -> list[Array]:
    m, k, n = shape
    return [_values(random, (m, k), dtype), _values(random, (k, n), dtype)]


def turned_products(a: Any, b: Any) -> Any:
    """Both operands along the depth, both across it."""
    return gd.matmul(a, gd.transpose(b, (1, 0))), gd.matmul(gd.transpose(a, (1, 0)), gd.transpose(gd.transpose(a, (1, 0)), (1, 0)))


def turned_inputs(random: np.random.Generator, shape: Shape, dtype: np.dtype[Any]) -> list[Array]:
    m, k, n = shape
    return [_values(random, (m, k), dtype), _values(random, (n, k), dtype)]


def wide_product(a: Any, b: Any) -> Any:
    return gd.matmul(a.astype(np.int32), b.astype(np.int32))


def layer(x: Any, w: Any, b: Any, r: Any) -> Any:
    return gd.gelu(gd.matmul(x, w) + b) + r


def layer_inputs(random: np.random.Generator, shape: Shape, dtype: np.dtype[Any]) -> list[Array]:
    m, k, n = shape
    return [_values(random, s, dtype) for s in ((m, k), (k, n), (n,), (m, n))]


def batched(a: Any, b: Any) -> Any:
    return gd.matmul(a, b)


def batched_inputs(random: np.random.Generator, shape: Shape, dtype: np.dtype[Any]) -> list[Array]:
    m, k, n = shape
    return [_values(random, (3, m, k), dtype), _values(random, (3, k, n), dtype)]


def deep_product(a: Any, b: Any) -> Any:
    """So long a sum that blocks share it."""
    return gd.relu(gd.matmul(gd.transpose(a, (1, 0)), b))


def deep_inputs(random: np.random.Generator, shape: Shape, dtype: np.dtype[Any]) -> list[Array]:
    m, k, n = shape
    return [_values(random, (30 * k, m), dtype), _values(random, (30 * k, n), dtype)]


def convolution(x: Any, w: Any) -> Any:
    return gd.relu(gd.conv(x, w, padding="SAME")), gd.conv(x, w, 2, [(1, 1), (1, 1)])


def convolution_gradient(x: Any, w: Any) -> Any:
    return gd.grad(lambda x, w: gd.sum(gd.tanh(gd.conv(x, w, padding="SAME")).astype(np.float32)), (0, 1))(x, w)


def depthwise(x: Any, w: Any) -> Any:
    return gd.conv(x, w, padding="SAME", groups=x.shape[-1])


def convolution_inputs(random: np.random.Generator, shape: Shape, dtype: np.dtype[Any]) -> list[Array]:
    return [_values(random, shape, dtype), (_values(random, (3, 3, shape[-1], 8), dtype) * 0.3).astype(dtype)]


def depthwise_inputs(random: np.random.Generator, shape: Shape, dtype: np.dtype[Any]) -> list[Array]:
    return [_values(random, shape, dtype), (_values(random, (3, 3, 1, shape[-1]), dtype) * 0.3).astype(dtype)]


def attention(q: Any, k: Any, v: Any) -> Any:
    """Weights in the type of the values."""
    return gd.matmul(gd.softmax(gd.matmul(q, gd.transpose(k, (0, 2, 1))) * 0.25, -1), v)


def attention_inputs(random: np.random.Generator, shape: Shape, dtype: np.dtype[Any]) -> list[Array]:
    queries, keys, depth = shape
    return [_values(random, (2, n, depth), dtype) for n in (queries, keys, keys)]


def causal_attention(q: Any, k: Any, v: Any) -> Any:
    """The composite: weights in f32."""
    return gd.attention(q, k, v, causal=True)


def causal_inputs(random: np.random.Generator, shape: Shape, dtype: np.dtype[Any]) -> list[Array]:
    queries, keys, depth = shape
    return [_values(random, (1, n, 2, depth), dtype) for n in (queries, keys, keys)]
