"""Forward mode through control flow, its nesting with reverse mode, and conventions by name. Every op on every sample: test_table.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradir as gd
from gradir.autodiff.differentiate import Differentiate
from gradir.ir.passes import PassContext
from gradir.ir.text import parse_module
from gradir.reference import run
from tests.autodiff.test_data_dependent_loops import PROGRAMS, M, N, X


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_control_flow(f: Callable[..., Any]) -> None:
    """Loops, branches and calls: the slope is the gradient; forward over reverse and reverse over forward are the second derivative."""
    slope = lambda x: gd.jvp(lambda x: f(x, N, M), (x,), (np.float64(1),))[1]
    gradient = gd.grad(f)
    np.testing.assert_allclose(gd.jit(slope, cache=False)(X), gd.jit(gradient, cache=False)(X, N, M), rtol=1e-12)
    second = gd.jit(gd.grad(gradient), cache=False)(X, N, M)
    forward_over_reverse = lambda x: gd.jvp(lambda x: gradient(x, N, M), (x,), (np.float64(1),))[1]
    np.testing.assert_allclose(gd.jit(forward_over_reverse, cache=False)(X), second, rtol=1e-9)
    np.testing.assert_allclose(gd.jit(gd.grad(slope), cache=False)(X), second, rtol=1e-9)
    np.testing.assert_allclose(gd.jit(lambda x: gd.jvp(slope, (x,), (np.float64(1),))[1], cache=False)(X), second, rtol=1e-9)


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_eagerly(f: Callable[..., Any]) -> None:
    slope = lambda x: gd.jvp(lambda x: f(x, N, M), (x,), (np.float64(1),))[1]
    with gd.eager():
        np.testing.assert_allclose(np.asarray(slope(X)), np.asarray(gd.grad(f)(X, N, M)), rtol=1e-12)
        second = gd.jvp(slope, (X,), (np.float64(1),))[1]
        np.testing.assert_allclose(np.asarray(second), np.asarray(gd.grad(gd.grad(f))(X, N, M)), rtol=1e-9)


def test_containers_integers_and_captures() -> None:
    shift = np.float32(10)

    def f(parameters: dict[str, Any], k: Any) -> Any:
        return {"y": parameters["w"] * k.astype(np.float32) + shift, "k": k + 1}

    primals = ({"w": np.array([1, 2], np.float32)}, np.int32(3))
    tangents = ({"w": np.array([1, 10], np.float32)}, np.int32(0))
    for run_ in (lambda: gd.jvp(f, primals, tangents), lambda: gd.jit(lambda p, t: gd.jvp(f, p, t))(primals, tangents)):
        value, slope = run_()
        np.testing.assert_array_equal(value["y"], [13, 16])
        np.testing.assert_array_equal(slope["y"], [3, 30])
        assert value["k"] == 4 and slope["k"] == 0


def test_hessian_vector_product() -> None:
    """Forward over reverse: H v of x -> sum(x^3) / 6 + prod(x)."""
    f = lambda x: gd.sum(x * x * x) / 6 + gd.prod(x)
    x, v = np.array([1.0, 2.0, 4.0]), np.array([1.0, -1.0, 0.5])
    hessian = np.diag(x) + np.array([[0, 4, 2], [4, 0, 1], [2, 1, 0]])
    np.testing.assert_allclose(gd.jvp(gd.grad(f), (x,), (v,))[1], hessian @ v)


def test_numerics_strong_zero_holds_forward_too() -> None:
    one = np.float32(1)
    f = lambda x: gd.where(x < 1, x, gd.sqrt(x))
    assert gd.jvp(f, (np.float32(0),), (one,))[1] == 1
    assert gd.jvp(f, (np.float32(-4),), (one,))[1] == 1
    assert gd.jvp(lambda x: 0.0 * gd.sqrt(x), (np.float32(0),), (one,))[1] == 0
    assert gd.jvp(lambda x: gd.sqrt(x * x), (np.float32(0),), (one,))[1] == 0
    half = gd.jvp(gd.maximum, (np.float32(2), np.float32(2)), (one, np.float32(0)))[1]
    assert half == 0.5


def test_second_order_of_a_square_root() -> None:
    """The Hessian of (sqrt(x) - 1)^2 at 1 is 1/2 in all four orders of the modes."""
    f = lambda x: (gd.sqrt(x) - 1) ** 2
    slope = lambda g: lambda x: gd.jvp(g, (x,), (np.float64(1),))[1]
    for second in (gd.grad(gd.grad(f)), gd.grad(slope(f)), slope(gd.grad(f)), slope(slope(f))):
        np.testing.assert_allclose(gd.jit(second)(np.float64(1)), 0.5)


@pytest.mark.parametrize(
    ("tangents", "found"),
    [((np.ones(3, np.float32),), r"shape \(3,\)"), ((np.ones(2, np.float64),), "float64"), ((), r"structure")],
)
def test_tangents_must_fit(tangents: tuple[Any, ...], found: str) -> None:
    with pytest.raises(gd.GradirError, match=r"GR107") as caught:
        gd.jvp(gd.sin, (np.ones(2, np.float32),), tangents)
    assert found.replace("\\", "") in str(caught.value)


def test_recursion_is_refused() -> None:
    text = """
func.func private @f(%x: tensor<f32>) -> tensor<f32> {
  %0 = func.call @f(%x) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
func.func @main(%x: tensor<f32>, %t: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  %v, %d = ad.jvp @f(%x, %t) wrt [0] : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
  return %v, %d : tensor<f32>, tensor<f32>
}
"""
    with pytest.raises(gd.GradirError, match=r"AD006.*forward mode"):
        Differentiate().apply(parse_module(text), PassContext())


def test_tangents_follow_the_order_of_wrt() -> None:
    text = """
func.func private @f(%x: tensor<f32>, %y: tensor<f32>) -> tensor<f32> {
  %0 = nd.sub %x, %y : tensor<f32>
  return %0 : tensor<f32>
}
func.func @main(%x: tensor<f32>, %t: tensor<f32>) -> tensor<f32> {
  %v, %d = ad.jvp @f(%x, %x, %t, %x) wrt [1, 0] : (tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
  return %d : tensor<f32>
}
"""
    module = parse_module(text)
    Differentiate().apply(module, PassContext())
    assert run(module, "main", [np.float32(5), np.float32(1)])[0] == 4  # the first tangent is y's: 5 - 1


def test_complex_tangents() -> None:
    """d(z * c) = c dz; d abs(z) = Re(conj(z) dz) / abs(z)."""
    z, dz, c = np.complex128(3 + 4j), np.complex128(1 - 2j), np.complex128(2 + 1j)
    np.testing.assert_allclose(gd.jvp(lambda z: z * c, (z,), (dz,))[1], c * dz)
    np.testing.assert_allclose(gd.jvp(gd.abs, (z,), (dz,))[1], (z.conjugate() * dz).real / 5)
    np.testing.assert_allclose(gd.jvp(gd.exp, (z,), (dz,))[1], np.exp(z) * dz)
