"""Loop-invariant code motion: the same results, and gradients that keep nothing per iteration of what moved."""

from typing import Any

import numpy as np
import pytest

import gradir as gd

RNG = np.random.default_rng(5)
W, X = RNG.standard_normal((16, 16)) * 0.2, RNG.standard_normal((4, 16))


def loss(w: Any, x: Any, trips: Any = 40) -> Any:
    """Each iteration asks anew for the same product and functions of the weights."""

    def step(i: Any, h: Any) -> Any:
        mixed = gd.tanh(w @ w.T) * gd.exp(gd.sum(w) * 0.01)
        return gd.sin(h @ mixed + i * 0.1)

    return gd.sum(gd.fori_loop(0, trips, step, x) ** 2)


def test_results_and_gradients_are_the_same() -> None:
    for function in (loss, gd.grad(loss), gd.grad(loss, argnums=1)):
        expected = np.asarray(gd.jit(function, cache=False, optimize=0)(W, X))
        np.testing.assert_allclose(np.asarray(gd.jit(function, cache=False)(W, X)), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("trips", [0, 1, 7])
def test_loops_whose_trips_are_known_at_run_time(trips: int) -> None:
    function = gd.jit(gd.grad(loss), cache=False)
    expected = gd.jit(gd.grad(lambda w, x: loss(w, x, trips)), cache=False, optimize=0)(W, X)
    np.testing.assert_allclose(np.asarray(function(W, X, np.int32(trips))), np.asarray(expected), rtol=1e-10, atol=1e-12)


def test_the_gradient_saves_what_moved_once() -> None:
    """Per iteration: the state, 4 x 16 numbers. Not the mixed weights, 16 x 16 numbers, nor what they are made of."""

    def arena(trips: int) -> int:
        compiled = gd.jit(gd.grad(lambda w, x: loss(w, x, trips)), cache=False).compile(W, X)
        return sum(compiled.report.arena_bytes.values())

    per_iteration = (arena(400) - arena(200)) / 200
    assert per_iteration <= 3 * X.nbytes
