"""Training steps: forward, backward and update of a perceptron, a convolutional network, a transformer block and an LSTM, of any size.

`STEPS[name](scale)` gives the function and its arguments; the result is the loss and the new parameters. `scale` 1 is what the emulator
runs in a second, larger ones are for a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

import gradir as gd

Array = np.ndarray[Any, np.dtype[Any]]
Step = tuple[Callable[..., Any], tuple[Any, ...]]
RATE = 0.1


def _normal(seed: int, *shape: int, scale: float = 1.0) -> Array:
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)


def _weights(*shapes: Sequence[int]) -> list[Array]:
    return [_normal(k, *shape, scale=1.0 if len(shape) < 2 else float(np.prod(shape[:-1])) ** -0.5) for k, shape in enumerate(shapes)]


def _step(loss: Callable[..., Any], params: Any, *data: Any) -> Any:
    """One step of gradient descent."""
    value, slopes = gd.value_and_grad(loss)(params, *data)
    return value, [p - RATE * slope for p, slope in zip(params, slopes, strict=True)]


def _named(name: str, loss: Callable[..., Any]) -> Callable[..., Any]:
    step = partial(_step, loss)
    step.__name__ = name  # pyright: ignore[reportAttributeAccessIssue]  (what the compiled function is called)
    return step


def mlp_loss(params: Any, x: Any, y: Any) -> Any:
    """Cross entropy of three layers: `x` (n, d), `y` (n,) classes."""
    w1, b1, w2, b2, w3, b3 = params
    h = gd.relu(gd.matmul(x, w1) + b1)
    h = gd.tanh(gd.matmul(h, w2) + b2)
    return gd.mean(gd.cross_entropy(gd.matmul(h, w3) + b3, y))


def mlp(scale: int = 1) -> Step:
    """A step of the perceptron: 7 rows of 12 features at scale 1."""
    n, d, h = 7 * scale, 12 * scale, 20 * scale
    params = _weights((d, h), (h,), (h, h), (h,), (h, 10), (10,))
    y = np.random.default_rng(1).integers(0, 10, n).astype(np.int32)
    return _named("mlp_step", mlp_loss), (params, _normal(9, n, d), y)


def cnn_loss(params: Any, x: Any, y: Any) -> Any:
    """Cross entropy of two convolutions, a normalised mean over positions and a layer: `x` (n, height, width, 3), `y` (n,) classes."""
    k1, k2, scale, bias, w = params
    h = gd.max_pool(gd.relu(gd.conv(x, k1, padding="SAME")), 2)
    h = gd.relu(gd.conv(h, k2, strides=2, padding="SAME"))
    h = gd.layer_norm(gd.mean(h, axis=(1, 2)), scale, bias)
    return gd.mean(gd.cross_entropy(gd.matmul(h, w), y))


def cnn(scale: int = 1) -> Step:
    """A step of the convolutional network: pictures of 8 x 8, more of them and more channels with the scale."""
    n, size, c = 2 * scale, 8, 4 * scale
    params = [*_weights((3, 3, 3, c), (3, 3, c, 2 * c)), np.ones(2 * c, np.float32), *_weights((2 * c,), (2 * c, 5))]
    y = np.random.default_rng(1).integers(0, 5, n).astype(np.int32)
    return _named("cnn_step", cnn_loss), (params, _normal(9, n, size, size, 3), y)


def transformer_loss(params: Any, x: Any, y: Any, heads: int) -> Any:
    """Mean square of a block (causal attention, GELU layers, both behind layer norms) less `y`; `x` and `y` are (n, steps, d)."""
    qkv, out, g1, b1, g2, b2, up, down = params
    n, t, d = x.shape
    h = gd.layer_norm(x, g1, b1)
    parts = gd.matmul(h, qkv)
    q, k, v = (gd.reshape(parts[..., j * d : (j + 1) * d], (n, t, heads, d // heads)) for j in range(3))
    a = gd.reshape(gd.attention(q, k, v, causal=True), (n, t, d))
    x = x + gd.matmul(a, out)
    h = gd.layer_norm(x, g2, b2)
    x = x + gd.matmul(gd.gelu(gd.matmul(h, up)), down)
    return gd.mean((x - y) ** 2)


def transformer(scale: int = 1) -> Step:
    """A step of the transformer block: 2 sequences of 6 steps and 8 features at scale 1, two heads."""
    n, t, d = 2, 6 * scale, 8 * scale
    ones = np.ones(d, np.float32)
    qkv, out, up, down = _weights((d, 3 * d), (d, d), (d, 4 * d), (4 * d, d))
    params = [qkv, out, ones, 0 * ones, ones, 0 * ones, up, down]
    return _named("transformer_step", partial(transformer_loss, heads=2)), (params, _normal(8, n, t, d), _normal(9, n, t, d))


def lstm_loss(params: Any, xs: Any, y: Any) -> Any:
    """Mean square of a layer on the last state of an LSTM less `y`: `xs` (steps, n, d), `y` (n, 2)."""
    wx, wh, b, out = params
    n, hidden = xs.shape[1], wh.shape[0]

    def cell(carry: Any, x: Any) -> Any:
        h, c = carry
        z = gd.matmul(x, wx) + gd.matmul(h, wh) + b
        i, f, g, o = (z[:, k * hidden : (k + 1) * hidden] for k in range(4))
        c = gd.sigmoid(f) * c + gd.sigmoid(i) * gd.tanh(g)
        h = gd.sigmoid(o) * gd.tanh(c)
        return (h, c), None

    zero = gd.zeros((n, hidden))
    (h, _), _ = gd.scan(cell, (zero, zero), xs)
    return gd.mean((gd.matmul(h, out) - y) ** 2)


def lstm(scale: int = 1) -> Step:
    """A step of the LSTM: 5 steps of 3 rows at scale 1."""
    t, n, d, h = 5 * scale, 3 * scale, 4 * scale, 6 * scale
    params = _weights((d, 4 * h), (h, 4 * h), (4 * h,), (h, 2))
    return _named("lstm_step", lstm_loss), (params, _normal(8, t, n, d), _normal(9, n, 2))


STEPS: dict[str, Callable[[int], Step]] = {"mlp": mlp, "cnn": cnn, "transformer": transformer, "lstm": lstm}
