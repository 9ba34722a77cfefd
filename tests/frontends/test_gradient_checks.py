"""`check_grads` accepts right derivatives of any order and in all modes, and names wrong ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradir as gd
from gradir import GradirError


def test_right_derivatives() -> None:
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((3, 4)), rng.standard_normal((4, 2))
    gd.check_grads(lambda p: gd.tanh(p["x"] @ p["w"]), ({"x": x, "w": w},), order=2)
    gd.check_grads(lambda x, k: (gd.sin(x) * k.astype(np.float64), k), (x, np.int32(3)), order=1)
    gd.check_grads(lambda x: gd.sum(x * x), (x.astype(np.float32),), order=2)
    gd.check_grads(lambda z: gd.abs(z) * z, (np.array([3 + 4j, 1 - 1j]),))
    with gd.eager():
        gd.check_grads(lambda x: gd.exp(x), (x,), modes=("rev",))


def test_wrong_rules_are_named() -> None:
    @gd.custom_vjp
    def f(x: Any) -> Any:
        return gd.sin(x)

    f.defvjp(lambda x: (gd.sin(x), x), lambda x, ct: (ct * gd.sin(x),))
    with pytest.raises(GradirError, match=r"AD014.*\(rev\)") as caught:
        gd.check_grads(f, (np.array([0.3, 0.4]),), modes=("rev",))
    assert caught.value.part == "autodiff" and "central differences" in caught.value.expected
    f.defvjp(lambda x: (gd.sin(x), x), lambda x, ct: (ct * gd.stop_gradient(gd.cos(x)),))
    gd.check_grads(f, (np.array([0.3, 0.4]),))
    with pytest.raises(GradirError, match=r"AD014.*of fwd|AD014.*of rev"):
        gd.check_grads(f, (np.array([0.3, 0.4]),), order=2)


def test_no_such_mode() -> None:
    with pytest.raises(GradirError, match=r"GR104.*\n(.|\n)*sideways"):
        gd.check_grads(gd.sin, (np.ones(2),), modes=("sideways",))


def refused(*words: str, **options: Any) -> GradirError:
    """`check_grads` with these arguments is error AD014 with these words."""
    with pytest.raises(GradirError) as caught:
        gd.check_grads(**options)
    assert caught.value.code == "AD014"
    for word in words:
        assert word in str(caught.value), str(caught.value)
    return caught.value


def test_the_argument_of_a_wrong_rule_is_named() -> None:
    @gd.custom_vjp
    def scaled(p: Any) -> Any:
        return p["x"] * p["w"]

    scaled.defvjp(lambda p: (p["x"] * p["w"], p), lambda p, ct: ({"x": ct * p["w"], "w": ct * p["w"]},))
    args = ({"x": np.array([0.3, 0.4]), "w": np.array([1.5, -2.0])},)
    refused("the derivative of scaled (fwd) by argument 0['w'] is not its slope", function=scaled, args=args)


def test_other_results_beside_a_derivative_are_named() -> None:
    @gd.custom_vjp
    def f(x: Any) -> Any:
        return gd.sin(x)

    f.defvjp(lambda x: (gd.sin(x) + 1, x), lambda x, ct: (ct * gd.cos(x),))
    refused("the results that come with the derivative of f (rev) are others", function=f, args=(np.array([0.3]),), modes=("rev",))


def test_numbers_that_are_not_finite_are_errors() -> None:
    refused("<lambda> (fwd) has no finite slope", "nan", function=lambda x: gd.log(x), args=(np.array([1.0, -1.0]),))

    @gd.custom_vjp
    def f(x: Any) -> Any:
        return x * 2

    f.defvjp(lambda x: (x * 2, x), lambda x, ct: (ct * np.nan,))
    refused("the derivative of f (rev) is not finite, the slope is", function=f, args=(np.array([0.3]),), modes=("rev",))


def test_a_kink_is_called_a_kink() -> None:
    refused("has a kink at this point", function=lambda x: gd.sum(gd.relu(x)), args=(np.array([0.0, 1.0]),))
    gd.check_grads(lambda x: gd.sum(gd.relu(x)), (np.array([0.1, -1.0]),), order=2)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_narrow_types(dtype: str) -> None:
    x = np.asarray([0.5, -0.25, 1.0], getattr(gd, dtype))
    gd.check_grads(lambda x: gd.sum(gd.sin(x) * x), (x,))
    refused("is not its slope", function=lambda x: gd.sum(gd.stop_gradient(x) * x * 8), args=(x,))


@pytest.mark.full
def test_third_order_and_mixed_types() -> None:
    x = np.array([0.3, -0.4])
    gd.check_grads(lambda p, k: (gd.exp(p["a"] * p["z"]) * k, k), ({"a": x, "z": x + 1j}, np.int32(2)), order=2)
    gd.check_grads(lambda x: gd.sum(gd.tanh(x) ** 3), (x,), order=3)
    gd.check_grads(lambda x: gd.sum(x.astype(np.float64) ** 2), (x.astype(np.float32),))
