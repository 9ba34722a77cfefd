"""The workloads, written once over a small set of ops `B` that each system supplies (see `systems/`). f32 throughout.

kind `forward`: outputs of fn(B, *inputs). `grad`: (loss, *gradients of the first `params` inputs). `train`: (loss, *updated
parameters), plain SGD. `step`: a state in, a state out (the digits steps with Adam; see examples/digits/models.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

F32 = np.float32


@dataclass(frozen=True)
class Workload:
    """One row of the table. `flops` and `bytes` are the useful work of one call; `tolerance` is max|a-b| / max|b| of each output."""

    name: str
    group: str
    kind: str
    fn: Callable[..., Any]
    inputs: Callable[[], list[np.ndarray]]
    params: int = 0
    flops: float = 0.0
    bytes: float = 0.0
    tolerance: float = 2e-3
    rate: float = 0.01


def normal(seed: int, *shape: int, scale: float = 1.0) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(F32)


# Models ------------------------------------------------------------------------------------------------------------


def mlp(B: Any, w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any, x: Any) -> Any:
    h = B.relu(x @ w1 + b1)
    h = B.relu(h @ w2 + b2)
    return h @ w3 + b3


def mlp_inputs() -> list[np.ndarray]:
    sizes = [784, 512, 512, 10]
    out: list[np.ndarray] = []
    for k, (m, n) in enumerate(pairwise(sizes)):
        out += [normal(10 + k, m, n, scale=(2 / m) ** 0.5), normal(20 + k, n, scale=0.1)]
    return [*out, normal(3, 128, 784)]


MLP_FLOPS = 2.0 * 128 * (784 * 512 + 512 * 512 + 512 * 10)
RESNET = [(32, 32, 1), (32, 32, 1), (32, 64, 2), (64, 64, 1), (64, 128, 2), (128, 128, 1)]
"""Stem 3 -> 32, then basic blocks (in, out, stride)."""


def resnet(B: Any, *inputs: Any, train: bool = False) -> Any:
    it = iter(inputs[:-1])
    x = inputs[-1]

    def norm(x: Any) -> Any:
        return B.batch_norm(x, next(it), next(it), *(() if train else (next(it), next(it))))

    x = B.relu(norm(B.conv(x, next(it), 1)))
    for _, _, stride in RESNET:
        y = B.relu(norm(B.conv(x, next(it), stride)))
        y = norm(B.conv(y, next(it), 1))
        if stride != 1:
            x = norm(B.conv(x, next(it), stride))
        x = B.relu(x + y)
    return B.mean(x, (2, 3)) @ next(it) + next(it)


def resnet_inputs(train: bool) -> list[np.ndarray]:
    out: list[np.ndarray] = []

    def conv(ci: int, co: int, k: int) -> None:
        seed = len(out)
        out.append(normal(seed, co, ci, k, k, scale=(2 / (ci * k * k)) ** 0.5))
        out.extend([1 + normal(seed + 1, co, scale=0.1), normal(seed + 2, co, scale=0.1)])
        if not train:
            out.extend([normal(seed + 3, co, scale=0.1), 1 + np.abs(normal(seed + 4, co, scale=0.2))])

    conv(3, 32, 3)
    for ci, co, stride in RESNET:
        conv(ci, co, 3)
        conv(co, co, 3)
        if stride != 1:
            conv(ci, co, 1)
    return [*out, normal(1, 128, 10, scale=0.1), normal(2, 10, scale=0.1), normal(5, 32, 3, 32, 32)]


def resnet_flops() -> float:
    total, area = 2.0 * 3 * 32 * 9 * 1024, 1024
    for ci, co, stride in RESNET:
        area //= stride * stride
        total += 2.0 * area * 9 * (ci * co + co * co) + (2.0 * area * ci * co if stride != 1 else 0)
    return 32 * total


def attention(B: Any, q: Any, k: Any, v: Any) -> Any:
    """Causal attention over [batch, head, position, feature]."""
    n = q.shape[-2]
    scores = B.matmul(q, B.transpose(k, (0, 1, 3, 2))) * F32(q.shape[-1] ** -0.5)
    return B.matmul(B.softmax(B.where(np.tril(np.ones((n, n), bool)), scores, F32(-1e30))), v)


def transformer_block(
    B: Any, g1: Any, b1: Any, wqkv: Any, bqkv: Any, wo: Any, bo: Any, g2: Any, b2: Any, wi: Any, bi: Any, wp: Any, bp: Any, x: Any
) -> Any:
    """One GPT-2-small block: width 768, 12 heads, batch 4, 128 positions."""
    batch, n, width, heads = 4, 128, 768, 12
    y = B.layer_norm(x, g1, b1) @ wqkv + bqkv
    y = B.transpose(B.reshape(y, (batch, n, 3, heads, width // heads)), (2, 0, 3, 1, 4))
    o = attention(B, y[0], y[1], y[2])
    x = x + B.reshape(B.transpose(o, (0, 2, 1, 3)), (batch, n, width)) @ wo + bo
    return x + B.gelu(B.layer_norm(x, g2, b2) @ wi + bi) @ wp + bp


def block_inputs() -> list[np.ndarray]:
    d = 768
    ones = lambda s: 1 + normal(s, d, scale=0.1)
    return [
        ones(0), normal(1, d, scale=0.1), normal(2, d, 3 * d, scale=0.03), normal(3, 3 * d, scale=0.1), normal(4, d, d, scale=0.03),
        normal(5, d, scale=0.1), ones(6), normal(7, d, scale=0.1), normal(8, d, 4 * d, scale=0.03), normal(9, 4 * d, scale=0.1),
        normal(10, 4 * d, d, scale=0.03), normal(11, d, scale=0.1), normal(12, 4, 128, d),
    ]  # fmt: skip


BLOCK_FLOPS = 2.0 * 512 * 768 * 768 * 12 + 4.0 * 4 * 12 * 128 * 128 * 64


def lstm_cell(B: Any, carry: Any, gates: Any, wh: Any) -> tuple[Any, Any]:
    h, c = carry
    n = wh.shape[0]
    g = gates + h @ wh
    i, f, z, o = (g[:, k * n : (k + 1) * n] for k in range(4))
    c = B.sigmoid(f) * c + B.sigmoid(i) * B.tanh(z)
    h = B.sigmoid(o) * B.tanh(c)
    return (h, c), h


def lstm(B: Any, wx: Any, wh: Any, b: Any, xs: Any) -> Any:
    zero = np.zeros((xs.shape[1], wh.shape[0]), F32)
    return B.scan(lambda carry, g: lstm_cell(B, carry, g, wh), (zero, zero), xs @ wx + b)


def lstm_inputs() -> list[np.ndarray]:
    n = 256
    return [normal(0, n, 4 * n, scale=0.06), normal(1, n, 4 * n, scale=0.06), normal(2, 4 * n, scale=0.1), normal(3, 64, 32, n)]


LSTM_FLOPS = 2.0 * 64 * 32 * 512 * 1024


def newton(B: Any, a: Any) -> Any:
    """x^3 = a on 65536 elements, until the largest residue is small."""

    def unfinished(state: Any) -> Any:
        x, i = state
        return B.both(B.max(B.abs(x * x * x - a)) > 1e-4, i < 60)

    def step(state: Any) -> Any:
        x, i = state
        return x - (x * x * x - a) / (3.0 * x * x), i + 1

    return B.while_loop(unfinished, step, (B.ones_like(a), np.int32(0)))[0]


def mandelbrot(B: Any, cx: Any, cy: Any) -> Any:
    """Escape counts, at most 200 iterations, until every point has escaped."""

    def unfinished(state: Any) -> Any:
        *_, live, i = state
        return B.both(i < 200, B.any(live))

    def step(state: Any) -> Any:
        x, y, n, live, i = state
        x, y = B.where(live, x * x - y * y + cx, x), B.where(live, 2.0 * x * y + cy, y)
        live = x * x + y * y <= 4.0
        return x, y, n + B.as_f32(live), live, i + 1

    zero = np.zeros(cx.shape, F32)
    return B.while_loop(unfinished, step, (zero, zero, zero, np.ones(cx.shape, bool), np.int32(0)))[2]


def mandelbrot_inputs() -> list[np.ndarray]:
    y, x = np.meshgrid(np.linspace(-1.25, 1.25, 512), np.linspace(-2, 0.5, 512), indexing="ij")
    return [x.astype(F32), y.astype(F32)]


# The digits steps: Adam on the models of examples/digits. ----------------------------------------------------------


def digits_mlp(B: Any, params: Sequence[Any], x: Any) -> Any:
    w0, b0, w1, b1, w2, b2 = params
    return B.relu(B.relu(x @ w0 + b0) @ w1 + b1) @ w2 + b2


def digits_cnn(B: Any, params: Sequence[Any], x: Any) -> Any:
    k0, b0, k1, b1, w0, c0, w1, c1 = params
    x = B.reshape(x, (64, 8, 8, 1))
    x = B.relu(B.conv_nhwc(x, k0) + b0)
    x = B.relu(B.conv_nhwc(x, k1) + b1)
    x = B.reshape(B.max_pool_nhwc(x), (64, 512))
    return B.relu(x @ w0 + c0) @ w1 + c1


def adam(B: Any, model: Callable[..., Any], count: int, *state: Any) -> tuple[Any, ...]:
    """(loss, params, m, v, t) after one step; `state` is params, m, v (each `count` arrays), t, x, labels."""
    params, m, v = (list(state[k * count : (k + 1) * count]) for k in range(3))
    t, x, labels = state[3 * count :]
    loss, gradients = B.value_and_grad(lambda *p: B.cross_entropy(model(B, p, x), labels), params)
    t = t + 1.0
    speed = 0.003 * B.sqrt(1.0 - 0.999**t) / (1.0 - 0.9**t)
    m = [0.9 * a + (1.0 - 0.9) * g for a, g in zip(m, gradients)]
    v = [0.999 * a + (1.0 - 0.999) * g * g for a, g in zip(v, gradients)]
    params = [p - speed * a / (B.sqrt(b) + 1e-8) for p, a, b in zip(params, m, v)]
    return (loss, *params, *m, *v, t)


def digits_inputs(shapes: Sequence[tuple[int, ...]]) -> list[np.ndarray]:
    params = [normal(k, *s, scale=(2 / max(1, int(np.prod(s[:-1])))) ** 0.5 if len(s) > 1 else 0.1) for k, s in enumerate(shapes)]
    zeros = [np.zeros_like(p) for p in params]
    labels = np.random.default_rng(0).integers(0, 10, 64).astype(np.int32)
    return [*params, *zeros, *(z.copy() for z in zeros), np.zeros((), F32), np.abs(normal(50, 64, 64, scale=0.5)), labels]


MLP_SHAPES = [(64, 128), (128,), (128, 64), (64,), (64, 10), (10,)]
CNN_SHAPES = [(3, 3, 1, 16), (16,), (3, 3, 16, 32), (32,), (512, 64), (64,), (64, 10), (10,)]
LABELS = np.random.default_rng(4).integers(0, 10, 128).astype(np.int32)


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


WORKLOADS: dict[str, Workload] = {
    w.name: w
    for w in (
        Workload("overhead_add8", "overhead", "forward", lambda B, a, b: B.add(a, b), lambda: [normal(0, 8), normal(1, 8)]),
        *(_gemm(n) for n in (128, 512, 1024, 2048)),
        Workload(
            "gemv_1x4096x4096", "gemm", "forward", lambda B, a, b: B.matmul(a, b),
            lambda: [normal(0, 1, 4096), normal(1, 4096, 4096)], flops=2.0 * 4096**2, bytes=4.0 * 4096**2,
        ),
        Workload(
            "gemm_bias_gelu", "gemm", "forward", lambda B, x, w, b: B.gelu(B.matmul(x, w) + b),
            lambda: [normal(0, 512, 1024), normal(1, 1024, 4096, scale=0.03), normal(2, 4096)], flops=2.0 * 512 * 1024 * 4096,
        ),
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
        Workload("mlp_infer", "model", "forward", mlp, mlp_inputs, params=6, flops=MLP_FLOPS),
        Workload(
            "mlp_train", "model", "train", lambda B, *a: B.cross_entropy(mlp(B, *a[:-1]), a[-1]),
            lambda: [*mlp_inputs(), LABELS], params=6, flops=3 * MLP_FLOPS - 2.0 * 128 * 784 * 512,
        ),
        Workload("digits_mlp_step", "model", "step", lambda B, *a: adam(B, digits_mlp, 6, *a), lambda: digits_inputs(MLP_SHAPES)),
        Workload("digits_cnn_step", "model", "step", lambda B, *a: adam(B, digits_cnn, 8, *a), lambda: digits_inputs(CNN_SHAPES)),
        _conv(1),
        _conv(8),
        Workload("resnet_infer", "model", "forward", resnet, lambda: resnet_inputs(False), flops=resnet_flops()),
        Workload(
            "resnet_train", "model", "train", lambda B, *a: B.cross_entropy(resnet(B, *a[:-1], train=True), a[-1]),
            lambda: [*resnet_inputs(True), LABELS[:32]], params=len(resnet_inputs(True)) - 1, flops=3 * resnet_flops(), tolerance=1e-2,
        ),
        Workload(
            "attention_12x512x64", "model", "forward", attention,
            lambda: [normal(k, 1, 12, 512, 64) for k in range(3)], flops=4.0 * 12 * 512 * 512 * 64,
        ),
        Workload("block_infer", "model", "forward", transformer_block, block_inputs, params=12, flops=BLOCK_FLOPS),
        Workload(
            "block_train", "model", "train", lambda B, *a: B.mean((transformer_block(B, *a[:-1]) - a[-1]) ** 2),
            lambda: [*block_inputs(), normal(8, 4, 128, 768)], params=12, flops=3 * BLOCK_FLOPS, rate=0.1,
        ),
        Workload("lstm_forward", "control", "forward", lstm, lstm_inputs, params=3, flops=LSTM_FLOPS),
        Workload("lstm_grad", "control", "grad", lambda B, *a: B.mean(lstm(B, *a) ** 2), lstm_inputs, params=3, flops=3 * LSTM_FLOPS),
        Workload("newton", "control", "forward", newton, lambda: [(0.5 + 3.5 * np.random.default_rng(9).random(65536)).astype(F32)]),
        Workload("mandelbrot_512", "control", "forward", mandelbrot, mandelbrot_inputs, tolerance=1.0),
    )
}  # fmt: skip
