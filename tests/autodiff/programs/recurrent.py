"""Recurrent networks: LSTM and GRU by scan, a masked RNN with a branch in a data-dependent loop."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.autodiff.programs.toolkit import Program, Toolkit


def lstm(k: Toolkit) -> Any:
    """Mean squared error of an LSTM over 64 steps, all gates in one product."""
    xp, nn = k.xp, k.nn

    def loss(params: Any, xs: Any, targets: Any) -> Any:
        hidden = params["u"].shape[0]

        def step(state: Any, x: Any) -> Any:
            h, c = state
            gates = x @ params["w"] + h @ params["u"] + params["b"]
            i, f, g, o = xp.split(gates, 4, axis=-1)
            c = nn.sigmoid(f + 1.0) * c + nn.sigmoid(i) * xp.tanh(g)
            h = nn.sigmoid(o) * xp.tanh(c)
            return (h, c), h

        zeros = xp.zeros((xs.shape[1], hidden), xs.dtype)
        _, hs = k.lax.scan(step, (zeros, zeros), xs)
        return xp.mean((hs @ params["out"] - targets) ** 2)

    return loss


def lstm_arguments(rng: np.random.RandomState) -> tuple[Any, ...]:
    t, b, n, h, o = 64, 3, 4, 5, 2
    params = {"w": 0.4 * rng.randn(n, 4 * h), "u": 0.4 * rng.randn(h, 4 * h), "b": 0.1 * rng.randn(4 * h), "out": rng.randn(h, o)}
    return params, rng.randn(t, b, n), rng.randn(t, b, o)


def gru(k: Toolkit) -> Any:
    """A GRU that reads a sequence backwards as well as forwards, the loss on the last states."""
    xp, nn = k.xp, k.nn

    def cell(p: Any, h: Any, x: Any) -> Any:
        r, z = xp.split(nn.sigmoid(xp.concatenate([x, h], axis=-1) @ p["gates"]), 2, axis=-1)
        n = xp.tanh(x @ p["in"] + r * (h @ p["hidden"]))
        return (1 - z) * n + z * h

    def loss(params: Any, xs: Any, labels: Any) -> Any:
        start = xp.zeros((xs.shape[1], params["forward"]["hidden"].shape[0]), xs.dtype)
        last, _ = k.lax.scan(lambda h, x: (cell(params["forward"], h, x), None), start, xs)
        first, _ = k.lax.scan(lambda h, x: (cell(params["backward"], h, x), None), start, xs, reverse=True)
        logits = xp.concatenate([last, first], axis=1) @ params["out"]
        return -xp.mean(xp.take_along_axis(nn.log_softmax(logits, axis=-1), labels[:, None], axis=1))

    return loss


def gru_arguments(rng: np.random.RandomState) -> tuple[Any, ...]:
    t, b, n, h, classes = 12, 4, 3, 5, 3
    cell = lambda: {"gates": 0.5 * rng.randn(n + h, 2 * h), "in": 0.5 * rng.randn(n, h), "hidden": 0.5 * rng.randn(h, h)}
    params = {"forward": cell(), "backward": cell(), "out": rng.randn(2 * h, classes)}
    return params, rng.randn(t, b, n), rng.randint(0, classes, b).astype(np.int32)


def masked_rnn(k: Toolkit) -> Any:
    """A recurrent network that runs while there are tokens; padding (a branch) leaves the state as it is, and ends nothing."""
    xp = k.xp

    def loss(params: Any, xs: Any, valid: Any, length: Any) -> Any:
        def more(state: Any) -> Any:
            t, h = state
            return (t < length) & (xp.sum(h * h) < 100.0)

        def step(state: Any) -> Any:
            t, h = state
            new = lambda h: xp.tanh(xs[t] @ params["w"] + h @ params["u"] + params["b"])
            return t + 1, k.lax.cond(valid[t], new, lambda h: h, h)

        start = xp.zeros(params["b"].shape, xs.dtype)
        _, h = k.while_loop(more, step, (xp.asarray(0, xp.int32), start), xs.shape[0])
        return xp.sum((h @ params["out"]) ** 2)

    return loss


def masked_rnn_arguments(rng: np.random.RandomState) -> tuple[Any, ...]:
    t, n, h = 20, 3, 6
    params = {"w": rng.randn(n, h), "u": 0.6 * rng.randn(h, h), "b": 0.1 * rng.randn(h), "out": rng.randn(h, 2)}
    return params, rng.randn(t, n), rng.rand(t) < 0.7, np.int32(17)


PROGRAMS = (
    Program("lstm", lstm, lstm_arguments),
    Program("gru", gru, gru_arguments),
    Program("masked_rnn", masked_rnn, masked_rnn_arguments, trips=17),
)
