"""What programs for `jax.numpy` are full of: masks, `where=`, `ddof`, steps and index arrays in `x.at`, dots in einsum. numpy's results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradir as gd
from gradir.errors import GradirError

X = np.arange(12.0).reshape(3, 4) - 3
I = np.array([0, 2])
M = X > 1


def changed(index: Any, change: Callable[[Any], Any]) -> Any:
    y = X.copy()
    y[index] = change(y[index])
    return y


CASES: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "at with a step": (lambda x: x.at[::2].set(7.0), changed(np.s_[::2], lambda _: 7)),
    "at with a step behind": (lambda x: x.at[:, 1::2].add(1.0), changed(np.s_[:, 1::2], lambda v: v + 1)),
    "at backwards": (lambda x: x.at[::-1].set(np.arange(12.0).reshape(3, 4)), np.arange(12.0).reshape(3, 4)[::-1]),
    "at an index array behind": (lambda x: x.at[:, I].multiply(2.0), changed(np.s_[:, I], lambda v: v * 2)),
    "at rows of its own": (lambda x: x.at[:, I].set(np.arange(6.0).reshape(3, 2)), changed(np.s_[:, I], lambda _: np.arange(6.0).reshape(3, 2))),
    "at a mask": (lambda x: x.at[M].set(0.0), np.where(M, 0, X)),
    "at a mask, add": (lambda x: x.at[x > 1].add(10.0), np.where(M, X + 10, X)),
    "at divide": (lambda x: x.at[1].divide(4.0), changed(1, lambda v: v / 4)),
    "at get": (lambda x: x.at[I, 1].get(), X[I, 1]),
    "sum where": (lambda x: gd.sum(x, axis=0, where=M), np.sum(X, axis=0, where=M)),
    "mean where": (lambda x: gd.mean(x, where=M), np.mean(X, where=M)),
    "var ddof": (lambda x: gd.var(x, axis=1, ddof=1), np.var(X, axis=1, ddof=1)),
    "std method": (lambda x: x.std(axis=0, ddof=1), np.std(X, axis=0, ddof=1)),
    "average": (lambda x: gd.average(x, axis=0, weights=M + 1.0), np.average(X, axis=0, weights=M + 1.0)),
    "average along an axis": (lambda x: gd.average(x, axis=0, weights=X[:, 0]), np.average(X, axis=0, weights=X[:, 0])),
    "average without weights": (lambda x: gd.average(x), np.average(X)),
    "count": (lambda x: gd.count_nonzero(x, axis=1), np.count_nonzero(X, axis=1)),
    "zeros of another type": (lambda x: gd.zeros_like(x, dtype=gd.int32), np.zeros_like(X, np.int32)),
    "ones of another type": (lambda x: gd.ones_like(x, gd.float32), np.ones_like(X, np.float32)),
    "empty": (lambda x: gd.empty((2,)), np.zeros(2, np.float32)),
    "full": (lambda x: gd.full((2,), fill_value=3), np.full((2,), 3, np.int32)),
    "identity": (lambda x: gd.identity(3), np.identity(3, np.float32)),
    "arange of floats": (lambda x: gd.arange(0.0, 1.0, 0.25), np.arange(0.0, 1.0, 0.25, np.float32)),
    "arange to a float": (lambda x: gd.arange(3.0, dtype=gd.float64), np.arange(3.0)),
    "einsum dots": (lambda x: gd.einsum("...j,...j->...", x, x), np.einsum("...j,...j->...", X, X)),
    "einsum dots of other ranks": (lambda x: gd.einsum("...ij,jk", x[None], x.T), np.einsum("...ij,jk", X[None], X.T)),
    "clip below": (lambda x: gd.clip(x, 0.0), np.clip(X, 0, None)),
    "clip above": (lambda x: x.clip(hi=0.0), np.clip(X, None, 0)),
    "split at": (lambda x: gd.split(x, [1, -1], axis=1)[1], np.split(X, [1, -1], axis=1)[1]),
    "roll": (lambda x: gd.roll(x, (1, 2), (0, 1)), np.roll(X, (1, 2), (0, 1))),
    "expand": (lambda x: gd.expand_dims(x, (0, -1)), np.expand_dims(X, (0, -1))),
    "pad": (lambda x: gd.pad(x, ((1, 0), (0, 2)), constant_values=5.0), np.pad(X, ((1, 0), (0, 2)), constant_values=5)),
    "reciprocal": (lambda x: gd.reciprocal(x - 0.5), 1 / (X - 0.5)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_as_numpy(name: str) -> None:
    function, expected = CASES[name]
    with gd.eager():
        found = np.asarray(function(gd.asarray(X)))
    np.testing.assert_allclose(found, expected, rtol=1e-6 if found.dtype == np.float32 else 1e-14)
    assert found.shape == np.shape(expected)
    assert found.dtype == np.asarray(expected).dtype or name == "count"


def test_compiled_and_differentiated() -> None:
    def f(x: Any) -> Any:
        y = x.at[:, I].multiply(2.0).at[::2].add(1.0)
        y = y.at[M].set(0.0)
        return gd.sum(gd.einsum("...j,...j->...", y, y)) + gd.mean(y**2, where=~M) + gd.sum(gd.split(y, [1], axis=1)[1], where=M[:, 1:])

    found = gd.jit(gd.grad(f), cache=False)(X)
    with gd.eager():
        at = lambda x: float(f(gd.asarray(x)))
        slope = np.zeros_like(X)
        for place in np.ndindex(X.shape):
            up, down = X.copy(), X.copy()
            up[place] += 1e-6
            down[place] -= 1e-6
            slope[place] = (at(up) - at(down)) / 2e-6
    np.testing.assert_allclose(found, slope, rtol=1e-7, atol=1e-7)


def test_an_axis_twice() -> None:
    with pytest.raises(GradirError, match="an axis twice") as error, gd.eager():
        gd.expand_dims(X, (0, -4))
    assert error.value.code == "GR104"
