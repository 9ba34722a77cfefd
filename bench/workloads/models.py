"""Whole models, forward and training: MLP, ResNet, transformer block, and the digits steps with Adam (examples/digits/models.py)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from bench.workloads.spec import F32, Workload, normal


def mlp(B: Any, w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any, x: Any) -> Any:
    h = B.relu(B.linear(x, w1, b1))
    h = B.relu(B.linear(h, w2, b2))
    return B.linear(h, w3, b3)


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
    return B.linear(B.mean(x, (2, 3)), next(it), next(it))


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


def transformer_block(
    B: Any, g1: Any, b1: Any, wqkv: Any, bqkv: Any, wo: Any, bo: Any, g2: Any, b2: Any, wi: Any, bi: Any, wp: Any, bp: Any, x: Any
) -> Any:
    """One GPT-2-small block: width 768, 12 heads, batch 4, 128 positions."""
    batch, n, width, heads = 4, 128, 768, 12
    y = B.linear(B.layer_norm(x, g1, b1), wqkv, bqkv)
    y = B.transpose(B.reshape(y, (batch, n, 3, heads, width // heads)), (2, 0, 3, 1, 4))
    o = B.attention(y[0], y[1], y[2])
    x = x + B.linear(B.reshape(B.transpose(o, (0, 2, 1, 3)), (batch, n, width)), wo, bo)
    return x + B.linear(B.gelu(B.linear(B.layer_norm(x, g2, b2), wi, bi)), wp, bp)


def block_inputs() -> list[np.ndarray]:
    d = 768
    ones = lambda s: 1 + normal(s, d, scale=0.1)
    return [
        ones(0), normal(1, d, scale=0.1), normal(2, d, 3 * d, scale=0.03), normal(3, 3 * d, scale=0.1), normal(4, d, d, scale=0.03),
        normal(5, d, scale=0.1), ones(6), normal(7, d, scale=0.1), normal(8, d, 4 * d, scale=0.03), normal(9, 4 * d, scale=0.1),
        normal(10, 4 * d, d, scale=0.03), normal(11, d, scale=0.1), normal(12, 4, 128, d),
    ]  # fmt: skip


BLOCK_FLOPS = 2.0 * 512 * 768 * 768 * 12 + 4.0 * 4 * 12 * 128 * 128 * 64


def digits_mlp(B: Any, params: Sequence[Any], x: Any) -> Any:
    w0, b0, w1, b1, w2, b2 = params
    return B.linear(B.relu(B.linear(B.relu(B.linear(x, w0, b0)), w1, b1)), w2, b2)


def digits_cnn(B: Any, params: Sequence[Any], x: Any) -> Any:
    k0, b0, k1, b1, w0, c0, w1, c1 = params
    x = B.reshape(x, (64, 8, 8, 1))
    x = B.relu(B.conv_nhwc(x, k0) + b0)
    x = B.relu(B.conv_nhwc(x, k1) + b1)
    x = B.reshape(B.max_pool_nhwc(x), (64, 512))
    return B.linear(B.relu(B.linear(x, w0, c0)), w1, c1)


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
    """Parameters, and moments of a run that is under way: those of a first step are zero, and make of every rounding a sign."""
    params = [normal(k, *s, scale=(2 / max(1, int(np.prod(s[:-1])))) ** 0.5 if len(s) > 1 else 0.1) for k, s in enumerate(shapes)]
    m = [normal(20 + k, *s, scale=1e-3) for k, s in enumerate(shapes)]
    v = [np.abs(normal(30 + k, *s, scale=1e-5)) + F32(1e-6) for k, s in enumerate(shapes)]
    labels = np.random.default_rng(0).integers(0, 10, 64).astype(np.int32)
    return [*params, *m, *v, np.full((), 9, F32), np.abs(normal(50, 64, 64, scale=0.5)), labels]


MLP_SHAPES = [(64, 128), (128,), (128, 64), (64,), (64, 10), (10,)]
CNN_SHAPES = [(3, 3, 1, 16), (16,), (3, 3, 16, 32), (32,), (512, 64), (64,), (64, 10), (10,)]
LABELS = np.random.default_rng(4).integers(0, 10, 128).astype(np.int32)

MLPS = (
    Workload("mlp_infer", "model", "forward", mlp, mlp_inputs, params=6, flops=MLP_FLOPS),
    Workload(
        "mlp_train", "model", "train", lambda B, *a: B.cross_entropy(mlp(B, *a[:-1]), a[-1]),
        lambda: [*mlp_inputs(), LABELS], params=6, flops=3 * MLP_FLOPS - 2.0 * 128 * 784 * 512, compare="update",
    ),
    Workload(
        "digits_mlp_step", "model", "step", lambda B, *a: adam(B, digits_mlp, 6, *a), lambda: digits_inputs(MLP_SHAPES),
        params=6, compare="update",
    ),
    Workload(
        "digits_cnn_step", "model", "step", lambda B, *a: adam(B, digits_cnn, 8, *a), lambda: digits_inputs(CNN_SHAPES),
        params=8, compare="update",
    ),
)  # fmt: skip

RESNETS = (
    Workload(
        "resnet_infer", "model", "forward", resnet, lambda: resnet_inputs(False), params=len(resnet_inputs(False)) - 1,
        flops=resnet_flops(),
    ),
    Workload(
        "resnet_train", "model", "train", lambda B, *a: B.cross_entropy(resnet(B, *a[:-1], train=True), a[-1]),
        lambda: [*resnet_inputs(True), LABELS[:32]], params=len(resnet_inputs(True)) - 1, flops=3 * resnet_flops(), tolerance=1e-2,
        compare="update",
    ),
)  # fmt: skip

TRANSFORMERS = (
    Workload(
        "attention_12x512x64", "model", "forward", lambda B, q, k, v: B.attention(q, k, v),
        lambda: [normal(k, 1, 12, 512, 64) for k in range(3)], flops=4.0 * 12 * 512 * 512 * 64,
    ),
    Workload("block_infer", "model", "forward", transformer_block, block_inputs, params=12, flops=BLOCK_FLOPS),
    Workload(
        "block_train", "model", "train", lambda B, *a: B.mean((transformer_block(B, *a[:-1]) - a[-1]) ** 2),
        lambda: [*block_inputs(), normal(8, 4, 128, 768)], params=12, flops=3 * BLOCK_FLOPS, rate=0.1, compare="update",
    ),
)  # fmt: skip
