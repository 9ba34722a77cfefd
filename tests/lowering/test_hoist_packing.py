"""Weights that are packed before a loop, compiled: plain and transposed, inner and outer loops, on one and two threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradir as gd


def arrays(*shapes: tuple[int, ...]) -> list[Any]:
    rng = np.random.default_rng(0)
    return [(rng.standard_normal(s) * 0.3).astype(np.float32) for s in shapes]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("rows", [9, pytest.param(96, marks=pytest.mark.full)])
def test_a_recurrent_cell_and_its_gradient(threads: int, rows: int) -> None:
    h, w, xs = arrays((rows, 64), (64, 256), (5, rows, 256))

    def last(w: Any, h: Any) -> Any:
        def step(h: Any, x: Any) -> Any:
            g = gd.tanh(h @ w + x)
            return g[:, :64] * g[:, 64:128] + g[:, 128:192] - g[:, 192:], 0.0

        return gd.scan(step, h, xs)[0]

    def expected(w: Any, h: Any) -> Any:
        for x in xs.astype(np.float64):
            g = np.tanh(h @ w + x)
            h = g[:, :64] * g[:, 64:128] + g[:, 128:192] - g[:, 192:]
        return h

    found = np.asarray(gd.jit(last, threads=threads, cache=False)(w, h))
    exact = expected(w.astype(np.float64), h.astype(np.float64))
    np.testing.assert_allclose(found, exact, atol=2e-5)

    loss = lambda w, h: gd.sum(last(w, h) ** 2)
    gradient = np.asarray(gd.jit(gd.grad(loss), threads=threads, cache=False)(w, h))
    rng = np.random.default_rng(1)
    direction = rng.standard_normal(w.shape)
    near = [np.sum(expected(w + s * 1e-6 * direction, h.astype(np.float64)) ** 2) for s in (1, -1)]
    slope = (near[0] - near[1]) / 2e-6
    assert abs(np.sum(gradient * direction) - slope) < 1e-3 * (1 + abs(slope))


def test_weights_of_an_outer_loop_stay_packed_over_the_inner_one() -> None:
    h, w = arrays((16, 128), (128, 128))

    def nested(h: Any, w: Any) -> Any:
        inner = lambda i, x: gd.tanh(x @ w.T)
        return gd.fori_loop(0, 3, lambda j, x: gd.fori_loop(0, 2, inner, x), h)

    x = h.astype(np.float64)
    for _ in range(6):
        x = np.tanh(x @ w.T.astype(np.float64))
    np.testing.assert_allclose(np.asarray(gd.jit(nested, cache=False)(h, w)), x, atol=1e-5)
