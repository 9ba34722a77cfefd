"""Small programs that between them take every strategy of kernels, at sizes with tails; what runs on processors other than this one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

import gradir as gd

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class KernelProgram:
    """A traced function and the shapes and types of its arguments."""

    name: str
    function: Callable[..., Any]
    arguments: tuple[tuple[tuple[int, ...], Any], ...]

    def inputs(self) -> list[Array]:
        """Arguments: floats around 0, small whole numbers."""
        random = np.random.default_rng(len(self.name))
        return [_values(random, shape, np.dtype(dtype)) for shape, dtype in self.arguments]


def _values(random: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    if dtype.kind == "b":
        return random.integers(0, 2, shape).astype(dtype)
    if dtype.kind in "iu":
        return random.integers(0, 7, shape).astype(dtype)
    return random.standard_normal(shape).astype(dtype)


def _program(name: str, function: Callable[..., Any], *shapes: Sequence[int], dtype: Any = np.float32) -> KernelProgram:
    return KernelProgram(name, function, tuple((tuple(shape), dtype) for shape in shapes))


def product(a: Any, b: Any) -> Any:
    return gd.matmul(a, b)


def product_of_transposed(a: Any, b: Any) -> Any:
    return gd.matmul(gd.transpose(a, (1, 0)), gd.transpose(b, (1, 0)))


def wide_product(a: Any, b: Any) -> Any:
    return gd.matmul(a.astype(np.int32), b.astype(np.int32))


def layer(x: Any, w: Any, b: Any) -> Any:
    return gd.gelu(gd.matmul(x, w) + b)


def attention(q: Any, k: Any, v: Any) -> Any:
    return gd.matmul(gd.softmax(gd.matmul(q, gd.transpose(k, (0, 2, 1))) / 4.0, -1), v)


def attention_gradient(q: Any, k: Any, v: Any) -> Any:
    return gd.grad(_attention_loss, (0, 1, 2))(q, k, v)


def _attention_loss(q: Any, k: Any, v: Any) -> Any:
    return gd.sum(gd.tanh(attention(q, k, v)))


def normalised(x: Any, g: Any, b: Any) -> Any:
    return gd.layer_norm(x, g, b, 1e-5), gd.softmax(x, -1)


def sums(x: Any) -> Any:
    return gd.sum(x, 0), gd.sum(x, 1), gd.max(x), gd.argmax(x, 1), gd.mean(x, 0)


def functions(x: Any) -> Any:
    y = gd.abs(x) + 0.5
    return gd.exp(x), gd.log(y), gd.sin(x), gd.tanh(x), gd.erf(x), gd.sqrt(y), gd.floor(x), gd.power(y, x)


def convolution(x: Any, w: Any) -> Any:
    return gd.conv(x, w, padding="SAME")


def strided_convolution(x: Any, w: Any) -> Any:
    return gd.relu(gd.conv(x, w, 2, [(1, 1), (1, 1)]))


def convolution_gradient(x: Any, w: Any) -> Any:
    return gd.grad(_convolution_loss, (0, 1))(x, w)


def _convolution_loss(x: Any, w: Any) -> Any:
    return gd.sum(gd.max_pool(gd.tanh(gd.conv(x, w, padding="SAME")), 2))


def moved(x: Any) -> Any:
    return gd.transpose(x, (1, 0)), gd.flip(x, 1), gd.concatenate([x, x * 2.0], 1), x[1:, ::2]


def looked_up(table: Any) -> Any:
    def squares(table: Any) -> Any:
        return gd.sum(gd.take(table, rows, 0) ** 2)

    rows = np.array([3, 0, 7, 3, 2, 5, 7], np.int32)
    return gd.take(table, rows, 0), gd.grad(squares)(table)


def ordered(x: Any) -> Any:
    return gd.sort(x, -1), gd.argsort(x, -1), gd.cumsum(x, -1), gd.cumsum(x, 0)


def newton(x: Any) -> Any:
    """Roots of elements, each for as long as it needs."""
    wanted = gd.abs(x) + 1.0

    def unsettled(y: Any) -> Any:
        return gd.any(gd.abs(y * y - wanted) > 1e-3 * wanted)

    def better(y: Any) -> Any:
        return 0.5 * (y + wanted / y)

    return gd.while_loop(unsettled, better, wanted)


def recurrent(xs: Any, w: Any, u: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        h = gd.tanh(gd.matmul(x, w) + gd.matmul(h, u))
        return h, h

    return gd.scan(step, gd.matmul(xs[0], w) * 0.0, xs)[1]


SIZES = [(1, 1, 1), (2, 3, 1), (7, 1, 15), (15, 16, 17), (31, 33, 32), (0, 5, 3), (4, 0, 3), (65, 63, 64), (1, 100, 127), (129, 40, 9)]
"""(M, K, N) of products."""

PROGRAMS = [
    *(_program(f"product {m}x{k}x{n}", product, (m, k), (k, n)) for m, k, n in SIZES),
    *(_program(f"product of transposed {m}x{k}x{n}", product_of_transposed, (k, m), (n, k)) for m, k, n in SIZES[3:5]),
    _program("product f64", product, (17, 31), (31, 33), dtype=np.float64),
    _program("product f16", product, (17, 31), (31, 33), dtype=np.float16),
    _program("product bf16", product, (17, 31), (31, 33), dtype=ml_dtypes.bfloat16),
    _program("product i8", wide_product, (17, 31), (31, 33), dtype=np.int8),
    _program("batched product", product, (3, 9, 17), (3, 17, 10)),
    _program("layer", layer, (9, 33), (33, 65), (65,)),
    _program("attention", attention, (3, 33, 16), (3, 40, 16), (3, 40, 16)),
    _program("attention gradient", attention_gradient, (2, 17, 16), (2, 19, 16), (2, 19, 16)),
    _program("normalised", normalised, (5, 127), (127,), (127,)),
    _program("sums", sums, (33, 65)),
    _program("sums f64", sums, (33, 65), dtype=np.float64),
    _program("functions", functions, (101,)),
    _program("functions f64", functions, (101,), dtype=np.float64),
    _program("functions bf16", functions, (101,), dtype=ml_dtypes.bfloat16),
    _program("convolution", convolution, (2, 9, 7, 5), (3, 3, 5, 11)),
    _program("convolution 32", convolution, (1, 8, 8, 32), (3, 3, 32, 32)),
    _program("strided convolution", strided_convolution, (2, 9, 9, 3), (3, 3, 3, 16)),
    _program("convolution gradient", convolution_gradient, (2, 8, 6, 3), (3, 3, 3, 9)),
    _program("moved", moved, (33, 18)),
    _program("moved i32", moved, (33, 18), dtype=np.int32),
    _program("looked up", looked_up, (9, 21)),
    _program("ordered", ordered, (5, 37)),
    _program("newton", newton, (3, 43)),
    _program("recurrent", recurrent, (4, 3, 8), (8, 12), (12, 12)),
]
