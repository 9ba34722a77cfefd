"""Single operations: matrix products in three element types, chains and reductions, convolutions, indexing, running sums."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from bench.workloads.spec import Workload, normal


def _gemm(n: int) -> Workload:
    make = lambda: [normal(0, n, n), normal(1, n, n)]
    return Workload(f"gemm_{n}", "gemm", "forward", lambda B, a, b: B.matmul(a, b), make, flops=2.0 * n**3, bytes=12.0 * n * n)


def _chain(n: int, name: str) -> Workload:
    make = lambda: [normal(k, n) for k in range(3)]
    return Workload(f"chain_{name}", "elementwise", "forward", lambda B, x, y, z: B.gelu(x * y + z), make, bytes=16.0 * n)


def _sum(axis: int) -> Workload:
    make = lambda: [normal(0, 4096, 4096)]
    return Workload(f"sum_axis{axis}_4096", "elementwise", "forward", lambda B, x: B.sum(x, axis), make, bytes=4.0 * 4096**2)


def _conv(batch: int) -> Workload:
    make = lambda: [normal(0, 64, 64, 3, 3, scale=0.05), normal(1, batch, 64, 56, 56)]
    flops = 2.0 * batch * 64 * 64 * 9 * 56 * 56
    return Workload(f"conv3x3_b{batch}", "conv", "forward", lambda B, w, x: B.conv(x, w, 1), make, params=1, flops=flops)


def integers(seed: int, low: int, high: int, *shape: int, dtype: Any = np.int32) -> np.ndarray:
    return np.random.default_rng(seed).integers(low, high, shape).astype(dtype)


def bf16(x: np.ndarray) -> np.ndarray:
    return x.astype(ml_dtypes.bfloat16)


def recurrence(B: Any, a: Any, b: Any) -> Any:
    """h[t] = a[t] h[t-1] + b[t] from zero, every h."""
    return B.recurrence(a, b)


GEMM = (
    *(_gemm(n) for n in (128, 512, 1024, 2048)),
    Workload(
        "gemv_1x4096x4096", "gemm", "forward", lambda B, a, b: B.matmul(a, b),
        lambda: [normal(0, 1, 4096), normal(1, 4096, 4096)], flops=2.0 * 4096**2, bytes=4.0 * 4096**2,
    ),
    Workload(
        "gemm_bias_gelu", "gemm", "forward", lambda B, x, w, b: B.gelu(B.linear(x, w, b)),
        lambda: [normal(0, 512, 1024), normal(1, 1024, 4096, scale=0.03), normal(2, 4096)], flops=2.0 * 512 * 1024 * 4096,
    ),
)  # fmt: skip

ELEMENTWISE = (
    _chain(1_000_000, "1e6"),
    _chain(16_000_000, "16e6"),
    Workload(
        "softmax_4096x1024", "elementwise", "forward", lambda B, x: B.softmax(x),
        lambda: [normal(0, 4096, 1024)], bytes=8.0 * 4096 * 1024,
    ),
    Workload(
        "layernorm_4096x1024", "elementwise", "forward", lambda B, x, g, b: B.layer_norm(x, g, b),
        lambda: [normal(0, 4096, 1024), normal(1, 1024), normal(2, 1024)], bytes=8.0 * 4096 * 1024,
    ),
    _sum(0),
    _sum(1),
)  # fmt: skip

CONVOLUTIONS = (_conv(1), _conv(8))

EXTRA = (
    Workload(
        "gemm_i8_1024", "extra", "forward", lambda B, a, b: B.matmul_i8(a, b),
        lambda: [integers(k, -128, 128, 1024, 1024, dtype=np.int8) for k in range(2)], flops=2.0 * 1024**3, tolerance=0.0,
    ),
    Workload(
        "gemm_bf16_1024", "extra", "forward", lambda B, a, b: B.matmul_bf16(a, b),
        lambda: [bf16(normal(k, 1024, 1024)) for k in range(2)], flops=2.0 * 1024**3, tolerance=6e-3,
    ),
    Workload(
        "conv_depthwise", "extra", "forward", lambda B, w, x: B.depthwise(x, w),
        lambda: [normal(0, 128, 1, 3, 3, scale=0.3), normal(1, 8, 128, 56, 56)], params=1,
        flops=2.0 * 9 * 8 * 128 * 56 * 56, bytes=8.0 * 8 * 128 * 56 * 56,
    ),
    Workload(
        "embedding", "extra", "forward", lambda B, table, ids: B.take(table, ids),
        lambda: [normal(0, 50257, 256), integers(1, 0, 50257, 16, 512)], bytes=8.0 * 16 * 512 * 256,
    ),
    Workload(
        "top_k_512x8192", "extra", "forward", lambda B, x: B.top_k(x, 8), lambda: [normal(0, 512, 8192)], bytes=4.0 * 512 * 8192,
    ),
    Workload(
        "cumsum_4096x1024", "extra", "forward", lambda B, x: B.cumsum(x), lambda: [normal(0, 4096, 1024)], bytes=8.0 * 4096 * 1024,
    ),
    Workload(
        "recurrence_1024x2048", "extra", "forward", recurrence,
        lambda: [np.abs(normal(0, 1024, 2048, scale=0.2)).clip(0, 1), normal(1, 1024, 2048)], bytes=12.0 * 1024 * 2048,
    ),
)  # fmt: skip
"""Beyond the 27: products of narrow types (int8 sums in i32, bf16 in f32), depthwise convolution, embedding, top k, two scans."""
