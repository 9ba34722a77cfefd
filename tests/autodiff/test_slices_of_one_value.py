"""Cotangents of several slices of one value are joined: no full-size sum per slice, whatever the slices are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradir as gd

X = np.arange(1.0, 25.0).reshape(4, 6) / 7


def side_by_side(x: Any) -> Any:
    a, b, c = gd.split(x, 3, axis=1)
    return gd.sum(gd.sin(a) * b + c * c)


def with_gaps(x: Any) -> Any:
    return gd.sum(gd.sin(x[:, 4:6])) + gd.sum(x[:, 1:2] ** 3)


def nested(x: Any) -> Any:
    """As a vector that is read whole, and then its coordinates."""
    return gd.sum(gd.sin(x[:, 1:4])) + gd.sum(x[:, 1] * x[:, 2] * x[:, 3]) + gd.sum(x[:, 5] ** 2)


def overlapping(x: Any) -> Any:
    return gd.sum(gd.exp(x[:, 1:] - x[:, :-1])) + gd.sum(x[:, 2:4] * x[:, 3:5])


def both_ways(x: Any) -> Any:
    return gd.sum(x[1:3] ** 2) + gd.sum(x[:, 2] * x[:, 3]) + gd.sum(gd.sin(x)) + gd.sum(x[0, 1] * x[2, 3:])


def in_a_loop(x: Any) -> Any:
    def step(_: Any, s: Any) -> Any:
        return gd.stack([s[1] * x[0, 0], s[2] - s[0] * x[0, 1], gd.sin(s[0]) * s[1]])

    return gd.sum(gd.fori_loop(0, 5, step, x[3, :3]))


PROGRAMS = [side_by_side, with_gaps, nested, overlapping, both_ways, in_a_loop]


def differences(f: Callable[..., Any]) -> Any:
    def at(x: Any) -> float:
        with gd.eager():
            return float(f(x))

    found = np.zeros_like(X)
    for place in np.ndindex(X.shape):
        up, down = X.copy(), X.copy()
        up[place] += 1e-6
        down[place] -= 1e-6
        found[place] = (at(up) - at(down)) / 2e-6
    return found


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_gradients(f: Callable[..., Any]) -> None:
    np.testing.assert_allclose(gd.jit(gd.grad(f), cache=False)(X), differences(f), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("f", PROGRAMS[:5], ids=lambda f: f.__name__)
def test_in_f16_sums_are_in_f32(f: Callable[..., Any]) -> None:
    x = (X / 3).astype(np.float16)
    with gd.eager():
        exact = np.asarray(gd.grad(f)(x.astype(np.float64)))
        found = np.asarray(gd.grad(f)(x)).astype(np.float64)
    np.testing.assert_allclose(found, exact, rtol=4e-3, atol=2e-3)


def test_slices_side_by_side_are_joined() -> None:
    """No padding and no sum in the gradient of a value that is read in pieces."""
    text = str(gd.compile(gd.grad(side_by_side), X, cache=False, keep_ir=True).report.ir["1 tensor, simplified"])
    assert "nd.concatenate" in text and "nd.pad" not in text


def test_a_branch_adds_nothing_to_zero() -> None:
    """What a branch contributes to a value that has no cotangent yet is its cotangent."""

    def f(x: Any) -> Any:
        return gd.cond(gd.sum(x) > 0, lambda: gd.sum(gd.sin(x)), lambda: gd.sum(x * x))

    text = str(gd.compile(gd.grad(f), X, cache=False, keep_ir=True).report.ir["1 tensor, simplified"])
    (branch,) = [part for part in text.split("scf.if")[1:] if "nd.cos" in part]
    assert "nd.add" not in branch.partition("scf.yield")[0]
    np.testing.assert_allclose(gd.jit(gd.grad(f), cache=False)(X), np.cos(X))
