"""Special functions and functions of bits from Python, op by op and compiled, and their derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradir as gd
from gradir.errors import GradirError

special = pytest.importorskip("scipy.special")
X = np.array([0.1, 0.7, 1.0, 2.5, 7.0, 30.0, -0.3, -2.6], np.float64)


def eager(function: Any) -> Any:
    def call(*arguments: Any) -> Any:
        with gd.eager():
            return gd.tree_map(np.asarray, function(*map(gd.asarray, arguments)))

    return call


@pytest.mark.parametrize("mode", [eager, gd.jit])
def test_functions_agree_with_scipy(mode: Any) -> None:
    found = mode(lambda x: [gd.lgamma(x), gd.digamma(x), gd.trigamma(x), gd.i0e(x), gd.i1e(x)])(X)
    wanted = [special.gammaln(X), special.digamma(X), np.array([special.polygamma(1, v) for v in X]), special.i0e(X), special.i1e(X)]
    for value, expected in zip(found, wanted, strict=True):
        np.testing.assert_allclose(value, expected, rtol=2e-14)
    zeta, polygamma = mode(lambda x: [gd.zeta(3.0, gd.abs(x)), gd.polygamma(2.0, gd.abs(x))])(X)
    np.testing.assert_allclose(zeta, special.zeta(3.0, np.abs(X)), rtol=2e-14)
    np.testing.assert_allclose(polygamma, special.polygamma(2, np.abs(X)), rtol=2e-14)


@pytest.mark.parametrize("mode", [eager, gd.jit])
def test_bits(mode: Any) -> None:
    x = np.float32([[1.0, -0.0], [3.14, np.inf]])
    parts, back, after, narrow = mode(
        lambda x: [
            gd.bitcast_convert(x, np.uint8),
            gd.bitcast_convert(gd.bitcast_convert(x, np.uint8), np.float32),
            gd.nextafter(x, 0),
            gd.reduce_precision(x, 5, 10),
        ]
    )(x)
    np.testing.assert_array_equal(parts, x.view(np.uint8).reshape(2, 2, 4))
    np.testing.assert_array_equal(back, x)
    np.testing.assert_array_equal(after, np.nextafter(x, np.float32(0)))
    np.testing.assert_array_equal(narrow, x.astype(np.float16).astype(np.float32))
    a = np.float32([1 + 2.0**-12])
    assert mode(lambda a: gd.fma(a, a, -1.0))(a)[0] == np.float32(float(a[0]) ** 2 - 1)


def test_bits_of_booleans_are_refused() -> None:
    with pytest.raises(GradirError, match="bits of booleans") as caught:
        gd.jit(lambda x: gd.bitcast_convert(x, np.int8))(np.array([True]))
    assert (caught.value.code, caught.value.found) == ("GR002", "bool")


def test_derivatives_chain_from_lgamma_on() -> None:
    def total(x: Any) -> Any:
        return gd.sum(gd.lgamma(x))

    first = gd.grad(total)
    second = gd.grad(lambda x: gd.sum(first(x)))
    third = gd.grad(lambda x: gd.sum(second(x)))
    np.testing.assert_allclose(gd.jit(first)(X), special.digamma(X), rtol=1e-13)
    np.testing.assert_allclose(gd.jit(second)(X), [special.polygamma(1, v) for v in X], rtol=1e-13)
    y = X[X > 0]
    np.testing.assert_allclose(gd.jit(third)(y), special.polygamma(2, y), rtol=1e-13)


def test_no_derivative_by_the_order() -> None:
    with pytest.raises(GradirError, match=r"nd\.polygamma: no derivative by the order") as caught:
        gd.grad(lambda n: gd.sum(gd.polygamma(n, 2.0)))(np.array([2.0]))
    assert caught.value.code == "AD001"
    with pytest.raises(GradirError, match=r"nd\.zeta: no derivative by the exponent"):
        gd.grad(lambda s: gd.sum(gd.zeta(s, 2.0)))(np.array([2.0]))
