"""docs/numerics.md, "Derivatives": the conventions in forward mode, twice, and where a row has a second half; evaluated and compiled at every setting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import gradir as gd
from gradir.autodiff.differentiate import Differentiate
from gradir.ir.passes import PassContext
from gradir.ir.text import parse_module, print_module
from tests.autodiff.conventions import GROUPS, Row
from tests.autodiff.other_frameworks import array, here
from tests.autodiff.table.differences import directions
from tests.frontends.numerics_settings import SETTINGS, run_function

NAN = np.nan
ROWS = [row for group in GROUPS.values() for row in group.rows]
SLOW = [pytest.param(setting, marks=() if setting == "evaluated" else pytest.mark.full) for setting in SETTINGS]


@pytest.fixture(params=SETTINGS)
def setting(request: pytest.FixtureRequest) -> str:
    return request.param


def forward(row: Row, k: int, names: Any, xs: list[Any]) -> list[Any]:
    """The tangent of the sum of the results along each element of argument `k`."""
    f = lambda x: gd.real(gd.sum(row.call(names, *(x if n == k else other for n, other in enumerate(xs)))))
    return [gd.jvp(f, (xs[k],), (unit,))[1] for unit in directions(np.asarray(row.arguments(array)[k]))]


@pytest.mark.parametrize("setting", SLOW)
def test_numerics_forward_mode_has_the_same_weights(setting: str) -> None:
    """Ties, kinks and strong zeros: every convention of the manual, element by element."""
    names, inputs = here(), [row.arguments(array) for row in ROWS]

    def tangents(*flat: Any) -> Any:
        given = iter(flat)
        found: list[Any] = []
        for row in ROWS:
            xs = [next(given) for _ in row.at]
            found.append([forward(row, k, names, xs) for k in range(len(xs))])
        return found

    for row, found in zip(ROWS, run_function(setting, tangents, *(x for xs in inputs for x in xs))):
        for slopes, expected in zip(found, row.here, strict=True):
            wide = np.asarray(expected).reshape(-1)
            if wide.dtype.kind == "c":  # along 1 and i: Re(g) and -Im(g)
                wide = np.stack([wide.real, -wide.imag], axis=-1).reshape(-1)
            elif len(slopes) == 2 * wide.size:
                wide = np.stack([wide, 0 * wide], axis=-1).reshape(-1)
            np.testing.assert_allclose(np.array(slopes, np.float64), wide, rtol=1e-6, err_msg=f"{row.function} at {row.at}")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numerics_hessian_of_a_square_root(setting: str, dtype: Any) -> None:
    """(sqrt(x) - 1)**2 at 1: the strong zero does not break the second derivative, which is 1/2, in any order of the modes."""
    f = lambda x: (gd.sqrt(x) - 1) ** 2
    slope = lambda g: lambda x: gd.jvp(g, (x,), (np.ones((), dtype),))[1]
    orders = (gd.grad(gd.grad(f)), gd.grad(slope(f)), slope(gd.grad(f)), slope(slope(f)), lambda x: gd.hessian(f)(x))
    found = run_function(setting, lambda x: [g(x) for g in orders], np.ones((), dtype))
    assert [x.dtype for x in found] == [dtype] * 5
    np.testing.assert_allclose(found, [0.5] * 5, rtol=1e-6 if dtype == np.float32 else 1e-14)


def gradients(setting: str, f: Callable[..., Any], *arrays: Any) -> list[Any]:
    """d sum(f) by every argument."""
    return run_function(setting, gd.grad(lambda *xs: gd.sum(f(*xs)), tuple(range(len(arrays)))), *arrays)


def f32(*values: float) -> Any:
    return np.array(values, np.float32)


def test_numerics_a_nan_takes_the_cotangent(setting: str) -> None:
    """Of relu, clamp and pooling too."""
    np.testing.assert_array_equal(gradients(setting, gd.relu, f32(NAN, -1, 2))[0], [1, 0, 1])
    x, lo, hi = gradients(setting, lambda x, lo, hi: gd.clip(x, lo, hi), f32(NAN, 1, 1), f32(0, NAN, 0), f32(2, 2, NAN))
    np.testing.assert_array_equal([x, lo, hi], [[1, 0, 0], [0, 1, 0], [0, 0, 1]])
    pooled = gradients(setting, lambda x: gd.max_pool(x, 2), f32(1, NAN, 3, 2).reshape(1, 4, 1))[0]
    np.testing.assert_array_equal(pooled.ravel(), [0, 1, 1, 0])
    np.testing.assert_array_equal(gradients(setting, gd.max, f32(1, NAN, 3))[0], [0, 1, 0])


def test_numerics_reduce_precision_passes_the_cotangent(setting: str) -> None:
    np.testing.assert_array_equal(gradients(setting, lambda x: gd.reduce_precision(x, 5, 2), f32(1.1, -3e9))[0], [1, 1])


def test_numerics_equal_singular_values(setting: str) -> None:
    """Values have a derivative; vectors have none, unless nobody asks for it."""
    a = np.eye(2)
    np.testing.assert_allclose(gradients(setting, lambda a: gd.linalg.svd(a)[1], a)[0], np.eye(2), atol=1e-12)
    assert np.isnan(gradients(setting, lambda a: gd.linalg.svd(a)[0][0, 1] + gd.linalg.svd(a)[0][0, 0], a)[0]).any()
    both = gradients(setting, lambda a: gd.sum(gd.linalg.svd(a)[1]) + 0.0 * gd.sum(gd.linalg.svd(a)[0]), a)[0]
    np.testing.assert_allclose(both, np.eye(2), atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numerics_while_with_data_dependent_trips(setting: str, dtype: Any) -> None:
    """Newton's square root in f32 and f64; zero trips are the identity."""
    bound = dtype(1e-3)
    root = lambda a: gd.while_loop(lambda s: gd.abs(s * s - a) > bound, lambda s: (s + a / s) / 2, a)
    a = dtype(2.0)
    steps = [a]
    slopes = [dtype(1)]
    while abs(steps[-1] * steps[-1] - a) > bound:  # d((s + a/s) / 2) = ds/2 (1 - a/s**2) + 1/(2 s)
        s, ds = steps[-1], slopes[-1]
        steps.append((s + a / s) / 2)
        slopes.append((ds * (1 - a / (s * s)) + 1 / s) / 2)
    assert len(steps) > 3
    np.testing.assert_allclose(gradients(setting, root, a)[0], slopes[-1], rtol=1e-5 if dtype == np.float32 else 1e-13)
    assert gradients(setting, lambda x: gd.while_loop(lambda s: s > 5, lambda s: s * s, x), dtype(3))[0] == 1


def test_numerics_cotangents_of_a_loop_add_backwards(setting: str) -> None:
    """d/dw of sum over t of w x[t]: the last iteration first, in f32, one rounding at the end; the same bits as such a sum."""
    x = np.random.default_rng(3).standard_normal(100).astype(np.float32)

    def loss(w: Any) -> Any:
        return gd.fori_loop(0, 100, lambda t, s: s + w.astype(np.float32) * gd.asarray(x)[t], np.float32(0))

    total = np.float32(0)
    for value in x[::-1]:
        total = np.float32(total + value)
    assert gradients(setting, loss, np.float32(0.5))[0] == total
    assert gradients(setting, loss, np.asarray(0.5, ml_dtypes.bfloat16))[0] == total.astype(ml_dtypes.bfloat16)
    assert abs(float(total) - float(np.sum(x, dtype=np.float64))) <= 100 * 2.0**-24 * float(np.sum(np.abs(x)))


def test_numerics_a_contraction_keeps_its_infinities(setting: str) -> None:
    """The strong zero ends at dot_general and conv: 0 * inf is NaN there, as in JAX and torch."""
    b = np.array([[np.inf, 1.0], [2.0, 3.0]])
    found = gradients(setting, lambda a: 0.0 * (a @ gd.asarray(b)), np.ones((1, 2)))[0]
    np.testing.assert_array_equal(np.isnan(found), [[True, False]])
    kernel = np.array([np.inf, 1.0]).reshape(2, 1, 1)
    convolved = gradients(setting, lambda x: 0.0 * gd.conv(x, gd.asarray(kernel)), np.ones((1, 2, 1)))[0]
    assert np.isnan(convolved[0, 0, 0])


PRINTING = """
func.func private @f(%x: tensor<f64>) -> tensor<f64> {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %3 = arith.constant 3 : index
  %r = scf.for %i = %0 to %3 step %1 iter_args(%s = %x) -> (tensor<f64>) {
    nd.print "s = {}", %s : tensor<f64>
    %a = nd.sin %s : tensor<f64>
    scf.yield %a : tensor<f64>
  }
  return %r : tensor<f64>
}
func.func @g(%x: tensor<f64>) -> tensor<f64> {
  %0 = ad.grad @f(%x) wrt [0] : (tensor<f64>) -> tensor<f64>
  return %0 : tensor<f64>
}
"""


@pytest.mark.parametrize("policy", ["all", "none", "sqrt"])
def test_numerics_prints_of_a_differentiated_loop_happen_once(policy: str) -> None:
    """In its forward part, also where the body runs a second time."""
    module = parse_module(PRINTING)
    Differentiate(loop_policy=policy).apply(module, PassContext())
    assert print_module(module).partition("@f.grad_0")[2].count("nd.print") == 1
