"""Numba: loops as one writes them by hand (parallel, fastmath); matrix products through `np.dot`, which needs scipy. No derivatives."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from bench.systems import Cell, NotAvailable, as_tuple
from bench.systems.ops import MANDELBROT_STEPS
from bench.workloads import Workload

F32 = np.float32
HALF, ONE, TWO, THREE, FOUR, EPS = F32(0.5), F32(1), F32(2), F32(3), F32(4), F32(1e-5)
GELU_SCALE, GELU_CUBE = F32(0.7978845608028654), F32(0.044715)


def functions(numba: Any) -> dict[str, Callable[..., Any]]:
    """Workload -> function; each is compiled by its first call."""
    jit, rows = numba.njit(parallel=True, fastmath=True), numba.prange

    @numba.njit(fastmath=True)
    def gelu(t: Any) -> Any:
        return HALF * t * (ONE + math.tanh(GELU_SCALE * (t + GELU_CUBE * t * t * t)))

    @jit
    def chain(x: Any, y: Any, z: Any) -> Any:
        out = np.empty_like(x)
        for i in rows(x.size):
            out[i] = gelu(x[i] * y[i] + z[i])
        return out

    @jit
    def gemm_bias_gelu(x: Any, w: Any, b: Any) -> Any:
        out = x @ w
        for i in rows(out.shape[0]):
            for j in range(out.shape[1]):
                out[i, j] = gelu(out[i, j] + b[j])
        return out

    @jit
    def softmax(x: Any) -> Any:
        out = np.empty_like(x)
        for i in rows(x.shape[0]):
            top = x[i, 0]
            for j in range(x.shape[1]):
                top = max(top, x[i, j])
            total = F32(0)
            for j in range(x.shape[1]):
                e = math.exp(x[i, j] - top)
                out[i, j] = e
                total += e
            scale = ONE / total
            for j in range(x.shape[1]):
                out[i, j] *= scale
        return out

    @jit
    def layernorm(x: Any, g: Any, b: Any) -> Any:
        out, n = np.empty_like(x), F32(x.shape[1])
        for i in rows(x.shape[0]):
            mean, var = F32(0), F32(0)
            for j in range(x.shape[1]):
                mean += x[i, j]
            mean /= n
            for j in range(x.shape[1]):
                d = x[i, j] - mean
                var += d * d
            r = ONE / math.sqrt(var / n + EPS)
            for j in range(x.shape[1]):
                out[i, j] = (x[i, j] - mean) * r * g[j] + b[j]
        return out

    @jit
    def sum_axis1(x: Any) -> Any:
        out = np.empty(x.shape[0], x.dtype)
        for i in rows(x.shape[0]):
            total = F32(0)
            for j in range(x.shape[1]):
                total += x[i, j]
            out[i] = total
        return out

    @jit
    def sum_axis0(x: Any) -> Any:
        out, blocks = np.zeros(x.shape[1], x.dtype), 16
        width = x.shape[1] // blocks
        for q in rows(blocks):
            for i in range(x.shape[0]):
                for j in range(q * width, (q + 1) * width):
                    out[j] += x[i, j]
        return out

    @jit
    def newton(a: Any) -> Any:
        x, steps, worst = np.ones_like(a), 0, ONE
        while worst > F32(1e-4) and steps < 60:
            worst = F32(0)
            for i in rows(a.size):
                worst = max(worst, abs(x[i] * x[i] * x[i] - a[i]))
            if worst > F32(1e-4):
                for i in rows(a.size):
                    x[i] -= (x[i] * x[i] * x[i] - a[i]) / (THREE * x[i] * x[i])
            steps += 1
        return x

    @jit
    def mandelbrot(cx: Any, cy: Any) -> Any:
        out = np.empty_like(cx)
        for i in rows(cx.shape[0]):
            for j in range(cx.shape[1]):
                x, y, n = F32(0), F32(0), 0
                for _ in range(MANDELBROT_STEPS):
                    x, y = x * x - y * y + cx[i, j], TWO * x * y + cy[i, j]
                    if x * x + y * y > FOUR:
                        break
                    n += 1
                out[i, j] = n
        return out

    @jit
    def embedding(table: Any, ids: Any) -> Any:
        out = np.empty((ids.shape[0], ids.shape[1], table.shape[1]), table.dtype)
        for i in rows(ids.shape[0]):
            for j in range(ids.shape[1]):
                for k in range(table.shape[1]):
                    out[i, j, k] = table[ids[i, j], k]
        return out

    @jit
    def cumsum(x: Any) -> Any:
        out = np.empty_like(x)
        for i in rows(x.shape[0]):
            total = F32(0)
            for j in range(x.shape[1]):
                total += x[i, j]
                out[i, j] = total
        return out

    @jit
    def recurrence(a: Any, b: Any) -> Any:
        out, blocks = np.empty_like(b), 16
        width = b.shape[1] // blocks
        for q in rows(blocks):
            for j in range(q * width, (q + 1) * width):
                out[0, j] = b[0, j]
            for t in range(1, b.shape[0]):
                for j in range(q * width, (q + 1) * width):
                    out[t, j] = a[t, j] * out[t - 1, j] + b[t, j]
        return out

    @jit
    def depthwise(w: Any, x: Any) -> Any:
        n, c, h, q = x.shape
        out = np.zeros_like(x)
        for m in rows(n * c):
            b, k = m // c, m % c
            for i in range(h):
                for di in range(max(0, 1 - i), min(3, h + 1 - i)):
                    for dj in range(3):
                        f = w[k, 0, di, dj]
                        for j in range(max(0, 1 - dj), min(q, q + 1 - dj)):
                            out[b, k, i, j] += f * x[b, k, i + di - 1, j + dj - 1]
        return out

    product = numba.njit(lambda a, b: a @ b)
    return {
        "overhead_add8": numba.njit(lambda a, b: a + b),
        **dict.fromkeys(("gemm_128", "gemm_512", "gemm_1024", "gemm_2048", "gemv_1x4096x4096"), product),
        "gemm_bias_gelu": gemm_bias_gelu,
        "chain_1e6": chain,
        "chain_16e6": chain,
        "softmax_4096x1024": softmax,
        "layernorm_4096x1024": layernorm,
        "sum_axis0_4096": sum_axis0,
        "sum_axis1_4096": sum_axis1,
        "newton": newton,
        "mandelbrot_512": mandelbrot,
        "conv_depthwise": depthwise,
        "embedding": embedding,
        "cumsum_4096x1024": cumsum,
        "recurrence_1024x2048": recurrence,
    }


class NumbaSystem:
    """The loops above; what is missing would be a matrix or convolution library."""

    def __init__(self, threads: int) -> None:
        os.environ["NUMBA_NUM_THREADS"] = str(threads)
        import numba  # after the number of threads is set

        self.numba = numba

    def version(self) -> str:
        return self.numba.__version__

    def prepare(self, w: Workload, dtype: Any = np.float32) -> Cell:
        function = functions(self.numba).get(w.name)
        if function is None:
            raise NotAvailable("no derivatives" if w.training else "would be a library by hand")
        inputs = w.inputs()
        box: dict[str, Any] = {}

        def call() -> None:
            box["out"] = as_tuple(function(*inputs))

        return Cell(call, lambda: [np.asarray(x) for x in box["out"]])
