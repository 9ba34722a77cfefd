"""How arguments reach a traced function: static ones by name and by position, keywords under a gradient."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import gradir as gd
from gradir.errors import GradirError

X = np.arange(4, dtype=np.float32)


@pytest.mark.parametrize("static", [("mode",), (1,), (-2,)], ids=str)
def test_static_by_name_is_static_by_position_too(static: tuple[int | str, ...]) -> None:
    @functools.partial(gd.jit, static=static, cache=False)
    def f(x: Any, mode: str = "same", y: Any = 1.0) -> Any:
        return x * y if mode == "same" else x * 2

    for call in (lambda: f(X, "twice"), lambda: f(X, mode="twice"), lambda: f(X, "twice", 3.0)):
        np.testing.assert_array_equal(call(), 2 * X)
    np.testing.assert_array_equal(f(X), X)
    np.testing.assert_array_equal(f(X, y=3.0), 3 * X)
    np.testing.assert_array_equal(gd.jit(lambda x: f(x, "twice") + f(x, mode="twice"), cache=False)(X), 4 * X)


def test_static_values_of_other_types_are_other_programs() -> None:
    f = gd.jit(lambda x, n: x * (2 if n is True else 3 if isinstance(n, int) else 4), static=("n",), cache=False)
    assert [float(f(np.float32(1), n)) for n in (True, 1, 1.0)] == [2, 3, 4]
    signed = gd.jit(lambda x, n: x * np.copysign(1, n), static=("n",), cache=False)
    assert [float(signed(np.float32(1), n)) for n in (0.0, -0.0)] == [1, -1]


def test_a_number_and_an_array_of_its_type_share_one_program() -> None:
    count = gd.jit(lambda t: t + 1, cache=False)
    for start in (0, np.int32(0), np.zeros((), np.int32)):
        assert count(count(start)) == 2
    assert len(count.programs) == 1
    assert count(0.0) == count(np.float32(0)) == 1 and len(count.programs) == 2
    assert count(np.float64(0)).dtype == np.float64 and len(count.programs) == 3


def test_a_method_with_a_static_self() -> None:
    class Model:
        def __init__(self, w: np.ndarray) -> None:
            self.w = w

        @functools.partial(gd.jit, static=("self",), cache=False)
        def __call__(self, x: Any) -> Any:
            return x * self.w

    np.testing.assert_array_equal(Model(X)(X), X * X)
    np.testing.assert_array_equal(Model(2 * X)(X), 2 * X * X)


def test_mistakes_with_static() -> None:
    with pytest.raises(GradirError, match="static names an argument that f lacks") as caught:

        @functools.partial(gd.jit, static=("mod",))
        def f(x: Any, mode: str) -> Any:
            return x

    assert caught.value.code == "GR104" and caught.value.expected == "one of x, mode" and caught.value.found == "mod"
    with pytest.raises(GradirError, match="static argument n has no hash") as caught:
        gd.jit(lambda x, n: x, static=("n",))(X, n=[1])
    assert caught.value.code == "GR103" and caught.value.found == "[1]"
    with pytest.raises(GradirError, match="a str is not an array") as caught:
        gd.jit(lambda x, mode: x)(X, "same")
    assert "static=" in caught.value.hint


def test_gradient_with_keywords() -> None:
    def loss(x: Any, *, scale: Any = 1.0) -> Any:
        return gd.sum(x * scale)

    expected = np.full(4, 3, np.float32)
    gradient = gd.grad(loss)
    np.testing.assert_array_equal(gradient(X, scale=3.0), expected)
    np.testing.assert_array_equal(gradient(X), expected / 3)
    np.testing.assert_array_equal(gd.jit(lambda x, s: gradient(x, scale=s), cache=False)(X, 3.0), expected)
    with gd.eager():
        np.testing.assert_array_equal(np.asarray(gd.value_and_grad(loss)(X, scale=3.0)[1]), expected)
