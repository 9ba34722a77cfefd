"""docs/numerics.md, "Derivatives": rows about scatter, order and linear algebra, by the reference evaluator and compiled at every setting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

import gradir as gd
from gradir.driver.compile import compile_module
from gradir.reference import run
from tests.autodiff.gradients import with_vjp
from tests.frontends.numerics_settings import SETTINGS, run_function

Vjp = Callable[..., list[Any]]


@pytest.fixture(params=SETTINGS)
def vjp(request: pytest.FixtureRequest) -> Vjp:
    """vjp(text, wrt, cotangent, *inputs): the cotangents of the arguments in wrt"""

    def take(text: str, wrt: Sequence[int], ct: Any, *inputs: Any) -> list[Any]:
        module = with_vjp(text, wrt)
        if request.param == "evaluated":
            return run(module, "vjp", [*inputs, ct])[1:]
        return list(compile_module(module, optimize=int(request.param[-1]), cache=False)["vjp"].flat(*inputs, ct))[1:]

    return take


@pytest.fixture(params=SETTINGS)
def function(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """function(f, *arrays): a Python function in one of the settings"""
    return partial(run_function, request.param)


def scatter(kind: str, n: int, updates: int) -> str:
    return f"""
func.func @f(%x: tensor<{n}xf32>, %i: tensor<{updates}x1xi32>, %u: tensor<{updates}xf32>) -> tensor<{n}xf32> {{
  %r = nd.scatter_general {kind}, %x, %i, %u inserted [0] map [0] : tensor<{n}xf32>, tensor<{updates}x1xi32>, tensor<{updates}xf32> -> tensor<{n}xf32>
  return %r : tensor<{n}xf32>
}}"""


def f32(*values: float) -> np.ndarray[Any, Any]:
    return np.array(values, np.float32)


def at(*places: int) -> np.ndarray[Any, Any]:
    return np.array(places, np.int32).reshape(-1, 1)


def test_scatter_set_with_duplicates(vjp: Vjp) -> None:
    """To the update that won; nothing to losers, to what was overwritten, and to what fell outside."""
    dx, du = vjp(scatter("set", 3, 4), (0, 2), f32(1, 10, 100), f32(1, 2, 3), at(1, 1, 0, 7), f32(5, 6, 7, 8))
    np.testing.assert_array_equal(dx, [0, 0, 100])
    np.testing.assert_array_equal(du, [0, 10, 1, 0])


def test_scatter_extrema_share_ties(vjp: Vjp) -> None:
    """Split over all that equal the result, the operand's element included."""
    dx, du = vjp(scatter("max", 2, 3), (0, 2), f32(1, 6), f32(3, 2), at(1, 1, 0), f32(2, 2, 5))
    np.testing.assert_array_equal(dx, [0, 2])
    np.testing.assert_array_equal(du, [2, 2, 1])
    dx, du = vjp(scatter("min", 2, 3), (0, 2), f32(1, 6), f32(3, 2), at(1, 1, 0), f32(2, 2, 5))
    np.testing.assert_array_equal(dx, [1, 2])
    np.testing.assert_array_equal(du, [2, 2, 0])


def test_scatter_products_with_zeros(vjp: Vjp) -> None:
    """No division: each factor gets the product of the others."""
    dx, du = vjp(scatter("mul", 1, 3), (0, 2), f32(1), f32(2), at(0, 0, 0), f32(0, 3, 4))
    np.testing.assert_array_equal(dx, [0])
    np.testing.assert_array_equal(du, [24, 0, 0])


def test_scatter_apply(function: Callable[..., Any]) -> None:
    """sin at [1] of x = [1, 2]: the Jacobian is diag(1, cos 2)."""
    f = lambda x: gd.dynamic_update_slice(x, gd.sin(gd.dynamic_slice(x, [np.int32(1)], [1])), [np.int32(1)])
    x = np.array([1.0, 2.0])
    rows = [function(gd.grad(lambda x, k=k: f(x)[k]), x) for k in range(2)]
    np.testing.assert_allclose(rows, [[1, 0], [0, -0.41614684]], rtol=1e-7)


def test_sorted_cotangents_go_home(function: Callable[..., Any]) -> None:
    weights = np.array([1, 10, 100, 1000], np.float32)
    x = f32(3, 1, 3, 2)
    np.testing.assert_array_equal(function(gd.grad(lambda x: gd.sum(gd.sort(x) * weights)), x), [100, 1, 1000, 10])
    np.testing.assert_array_equal(function(gd.grad(lambda x: gd.sum(gd.top_k(x, 2)[0] * weights[:2])), x), [1, 0, 10, 0])


def test_norms_are_flat_at_zero(function: Callable[..., Any]) -> None:
    x = np.zeros(3, np.float32)
    np.testing.assert_array_equal(function(gd.grad(gd.linalg.norm), x), x)
    np.testing.assert_array_equal(function(gd.grad(lambda x: gd.linalg.norm(x) ** 2), x), x)
    np.testing.assert_array_equal(function(gd.grad(gd.std), np.ones(3, np.float32)), x)
    assert function(gd.grad(lambda z: gd.abs(z)), np.complex64(0)) == 0
    assert function(gd.grad(lambda z: gd.angle(z)), np.complex64(0)) == 0
    np.testing.assert_allclose(function(gd.grad(gd.linalg.norm), f32(3, 4)), [0.6, 0.8], rtol=1e-6)


def test_complex_derivatives(function: Callable[..., Any]) -> None:
    """The transpose without conjugation: z * c gives ct * c, abs at 3 + 4i gives 0.6 - 0.8i."""
    z, c = np.complex64(3 + 4j), np.complex64(2 - 1j)
    np.testing.assert_allclose(function(gd.grad(lambda z: gd.real(z * c)), z), c, rtol=1e-6)
    np.testing.assert_allclose(function(gd.grad(lambda z: gd.imag(z * c)), z), -1j * c, rtol=1e-6)
    np.testing.assert_allclose(function(gd.grad(gd.abs), z), 0.6 - 0.8j, rtol=1e-6)


CHOLESKY = """
func.func @f(%a: tensor<2x2xf64>) -> tensor<2x2xf64> {
  %l = nd.cholesky %a lower : tensor<2x2xf64> -> tensor<2x2xf64>
  return %l : tensor<2x2xf64>
}"""


def test_linear_algebra_conventions(vjp: Vjp, function: Callable[..., Any]) -> None:
    """Cholesky's cotangent lies in the triangle that was read; with equal eigenvalues the values have a derivative, vectors have none."""
    (da,) = vjp(CHOLESKY, (0,), np.ones((2, 2)), np.array([[4.0, 99.0], [2.0, 5.0]]))
    assert da[0, 1] == 0 and (da[[0, 1, 1], [0, 0, 1]] != 0).all()
    a = np.eye(2)
    np.testing.assert_allclose(function(gd.grad(lambda a: gd.sum(gd.linalg.eigh(a)[0])), a), np.eye(2), atol=1e-12)
    assert np.isnan(function(gd.grad(lambda a: gd.linalg.eigh(a)[1][0, 0] + gd.linalg.eigh(a)[1][0, 1]), a)).any()
