"""`gd.switch`: one `scf.index_switch` at every level, clamped, differentiable, and nothing runs but the branch taken."""

from __future__ import annotations

import numpy as np
import pytest

import gradir as gd
from gradir.ir.text import print_module

X = np.array([0.5, -1.25, 2.0], np.float32)


def chosen(k, x):
    scale = gd.exp(x)
    return gd.switch(k, [lambda v: gd.sin(v) * scale, lambda v: v * v * v, lambda v: v], x)


BRANCHES = [lambda x: np.sin(x) * np.exp(x), lambda x: x**3, lambda x: x]
SLOPES = [lambda x: (np.cos(x) + np.sin(x)) * np.exp(x), lambda x: 3 * x**2, np.ones_like]


@pytest.mark.parametrize("dtype", [np.int32, np.int8, np.uint8, np.int64])
def test_the_branch_of_the_number_clamped(dtype: type) -> None:
    f = gd.jit(chosen)
    for k in (-7, 0, 1, 2, 3, 100, np.iinfo(dtype).max):
        if k < 0 and dtype is np.uint8:
            continue
        found = f(np.array(k, dtype), X)
        np.testing.assert_allclose(found, BRANCHES[min(max(k, 0), 2)](X), rtol=1e-6)


def test_it_is_one_index_switch() -> None:
    text = print_module(gd.jit(chosen).lower(np.int32(1), X))
    assert text.count("scf.index_switch") == 1
    assert "scf.if" not in text


def test_gradient_of_the_branch_taken() -> None:
    f = gd.jit(gd.grad(lambda x, k: gd.sum(chosen(k, x))))
    for k in range(3):
        np.testing.assert_allclose(f(X, np.int32(k)), SLOPES[k](X), rtol=1e-5)


def test_gradient_inside_a_loop() -> None:
    def f(x):
        def step(i, s):
            return gd.switch(i % 3, [lambda v: v * 2, lambda v: gd.sin(v), lambda v: v * v], s)

        return gd.sum(gd.fori_loop(0, 4, step, x))

    value, slope = gd.jit(gd.value_and_grad(f))(X)
    np.testing.assert_allclose(value, np.sum(2 * np.sin(2 * X) ** 2), rtol=1e-5)
    np.testing.assert_allclose(slope, 8 * np.sin(2 * X) * np.cos(2 * X), rtol=1e-5)


def test_second_derivative() -> None:
    def slope(x, k):
        return gd.sum(gd.grad(lambda v: gd.sum(chosen(k, v)))(x))

    np.testing.assert_allclose(gd.jit(gd.grad(slope))(X, np.int32(1)), 6 * X, rtol=1e-5)


def test_python_numbers_and_eager_values_choose_at_once() -> None:
    assert gd.switch(5, [lambda: 1, lambda: 2]) == 2
    with gd.eager():
        np.testing.assert_allclose(np.asarray(chosen(np.int32(1), gd.asarray(X))), X**3, rtol=1e-6)


def test_branches_agree_in_type() -> None:
    with pytest.raises(gd.GradirError, match="branch 1 changes a type"):
        gd.jit(lambda k, x: gd.switch(k, [lambda v: v, lambda v: v[:2]], x))(np.int32(0), X)
    with pytest.raises(gd.GradirError, match="next step: convert one of the branches with astype"):
        gd.jit(lambda k, x: gd.switch(k, [lambda v: v, lambda v: gd.sum(v) > 0], x))(np.int32(0), X[0])
    with pytest.raises(gd.GradirError, match="no branches"):
        gd.switch(0, [])
