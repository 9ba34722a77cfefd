"""A transformation of a function that already ran is of the function: programs compiled for the one are not found by the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradir as gd

X = np.array([0.5, 2.0])
CUBES: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "vmap": (gd.vmap(lambda x: x**3), X**3),
    "jit": (gd.jit(lambda x: x**3, cache=False), X**3),
    "jacfwd": (gd.jacfwd(lambda x: x**3), np.diag(3 * X**2)),
    "jacrev": (gd.jacrev(lambda x: x**3), np.diag(3 * X**2)),
    "grad": (gd.grad(lambda x: gd.sum(x**3)), 3 * X**2),
    "checkpoint": (gd.checkpoint(lambda x: x**3), X**3),
    "hessian": (gd.hessian(lambda x: gd.sum(x**3)), np.diag(6 * X)),
}


@pytest.mark.parametrize("name", CUBES)
def test_a_function_that_ran_is_transformed_as_one_that_did_not(name: str) -> None:
    f, values = CUBES[name]
    np.testing.assert_allclose(f(X), values)
    total = gd.value_and_grad(lambda x: gd.sum(f(x)))
    value, slope = total(X)
    np.testing.assert_allclose(value, np.sum(values))
    jacobian = np.asarray(gd.jacfwd(f)(X))
    assert jacobian.shape == (*np.shape(values), 2)
    np.testing.assert_allclose(np.sum(jacobian.reshape(-1, 2), 0), slope)
    np.testing.assert_allclose(gd.jacrev(f)(X), jacobian)
    many = np.stack([X, X, X])
    np.testing.assert_allclose(gd.vmap(f)(many), np.stack([values] * 3))
    np.testing.assert_allclose(gd.vmap(total)(many)[1], np.stack([slope] * 3))
    np.testing.assert_allclose(gd.grad(lambda x: gd.vmap(total)(x)[0][1])(many)[1], slope)
