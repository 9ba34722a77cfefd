"""Two classifiers, their loss, and Adam: ordinary Python on arrays, traced by `gradir.jit`."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

import gradir as gd

Params = dict[str, Any]
State = dict[str, Any]


def he(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Weights with variance 2 / fan-in (He et al., 2015)."""
    return (rng.standard_normal(shape) * np.sqrt(2 / np.prod(shape[:-1]))).astype(np.float32)


def mlp_params(seed: int) -> Params:
    rng = np.random.default_rng(seed)
    sizes = (64, 128, 64, 10)
    layers = pairwise(sizes)
    return {f"layer{k}": {"w": he(rng, m, n), "b": np.zeros(n, np.float32)} for k, (m, n) in enumerate(layers)}


def mlp(params: Params, x: Any) -> Any:
    """Logits [n, 10] of images [n, 64]."""
    for k in range(2):
        layer = params[f"layer{k}"]
        x = gd.relu(x @ layer["w"] + layer["b"])
    return x @ params["layer2"]["w"] + params["layer2"]["b"]


def cnn_params(seed: int) -> Params:
    rng = np.random.default_rng(seed)
    zeros = lambda n: np.zeros(n, np.float32)
    return {
        "conv0": {"w": he(rng, 3, 3, 1, 16), "b": zeros(16)},
        "conv1": {"w": he(rng, 3, 3, 16, 32), "b": zeros(32)},
        "dense0": {"w": he(rng, 512, 64), "b": zeros(64)},
        "dense1": {"w": he(rng, 64, 10), "b": zeros(10)},
    }


def cnn(params: Params, x: Any) -> Any:
    """Logits [n, 10] of images [n, 64]: two convolutions, a pooling, two dense layers."""
    x = gd.reshape(x, (-1, 8, 8, 1))
    for name in ("conv0", "conv1"):
        x = gd.relu(gd.conv(x, params[name]["w"], padding="SAME") + params[name]["b"])
    x = gd.max_pool(x, 2)
    x = gd.reshape(x, (x.shape[0], -1))
    x = gd.relu(x @ params["dense0"]["w"] + params["dense0"]["b"])
    return x @ params["dense1"]["w"] + params["dense1"]["b"]


def adam_state(params: Params) -> State:
    """Parameters, both moments, and the number of steps taken."""
    zeros = gd.tree_map(np.zeros_like, params)
    return {"params": params, "m": zeros, "v": gd.tree_map(np.copy, zeros), "t": np.float32(0)}


def training_step(model: Callable[[Params, Any], Any], rate: float, steps: int) -> Callable[[State, Any, Any], tuple[State, Any]]:
    """step(state, x, y) -> (state, loss): Adam (Kingma and Ba, 2015) with the learning rate on a cosine from `rate` to 0."""
    beta1, beta2, eps = 0.9, 0.999, 1e-8

    def step(state: State, x: Any, y: Any) -> tuple[State, Any]:
        def loss(params: Params) -> Any:
            return gd.mean(gd.cross_entropy(model(params, x), y))

        value, gradients = gd.value_and_grad(loss)(state["params"])
        t = state["t"] + 1.0
        speed = 0.5 * rate * (1.0 + gd.cos(t * (float(np.pi) / steps)))
        speed = speed * gd.sqrt(1.0 - beta2**t) / (1.0 - beta1**t)
        m = gd.tree_map(lambda old, g: beta1 * old + (1.0 - beta1) * g, state["m"], gradients)
        v = gd.tree_map(lambda old, g: beta2 * old + (1.0 - beta2) * g * g, state["v"], gradients)
        params = gd.tree_map(lambda p, a, b: p - speed * a / (gd.sqrt(b) + eps), state["params"], m, v)
        return {"params": params, "m": m, "v": v, "t": t}, value

    return step
