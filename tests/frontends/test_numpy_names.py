"""numpy's functions of samples, coefficients and special values: its results, and derivatives that are slopes or the convention."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradir as gd
from gradir.errors import GradirError

NAN, INF = float("nan"), float("inf")
X = np.array([0.5, -1.25, 3.0, 0.0, 2.0])
ODD = np.array([NAN, INF, -INF, -0.0, 1.5, -2.0])
XP, FP = np.array([-1.0, 0.5, 0.5, 2.0]), np.array([1.0, 3.0, -2.0, 4.0])
TABLE = np.array([-1.0, 0.5, 0.5, 2.0, NAN])

SAME_AS_NUMPY: dict[str, Callable[[Any, Any], Any]] = {
    "searchsorted": lambda g, x: g.searchsorted(XP, x),
    "searchsorted right": lambda g, x: g.searchsorted(XP, x, side="right"),
    "searchsorted with NaN": lambda g, x: g.searchsorted(TABLE, ODD) + g.searchsorted(TABLE, ODD, side="right"),
    "searchsorted of integers": lambda g, x: g.searchsorted(np.array([1, 2, 2, 5]), np.array([[0, 2], [5, 9]])),
    "searchsorted in nothing": lambda g, x: g.searchsorted(np.zeros(0), x),
    "interp": lambda g, x: g.interp(x, XP, FP),
    "interp with ends": lambda g, x: g.interp(x, XP, FP, left=-7.0, right=9.0),
    "interp of one point": lambda g, x: g.interp(x, np.array([0.5]), np.array([2.0]), left=-1.0),
    "interp of NaN": lambda g, x: g.interp(np.array([NAN, 0.0]), XP, FP),
    "diff": lambda g, x: g.diff(x),
    "diff twice along": lambda g, x: g.diff(np.outer(X, X), 2, 0),
    "diff of booleans": lambda g, x: g.diff(X > 0),
    "diff of one": lambda g, x: g.diff(x[:1]),
    "trapezoid": lambda g, x: g.trapezoid(x),
    "trapezoid of steps": lambda g, x: g.trapezoid(np.outer(X, X), dx=0.1, axis=0),
    "trapezoid of places": lambda g, x: g.trapezoid(np.outer(X, X), x=np.sort(X)),
    "trapezoid of places like it": lambda g, x: g.trapezoid(np.outer(X, X), x=np.cumsum(np.ones((5, 5)), 0), axis=0),
    "polyval": lambda g, x: g.polyval(np.array([2.0, -1.0, 0.5]), x),
    "polyval of nothing": lambda g, x: g.polyval(np.zeros(0), x),
    "vander": lambda g, x: g.vander(x),
    "vander increasing": lambda g, x: g.vander(x, 3, increasing=True),
    "vander of none": lambda g, x: g.vander(x, 0),
    "nan_to_num": lambda g, x: g.nan_to_num(ODD),
    "nan_to_num by numbers": lambda g, x: g.nan_to_num(ODD, nan=7.0, posinf=8.0, neginf=-9.0),
    "nan_to_num of f32": lambda g, x: g.nan_to_num(ODD.astype(np.float32)),
    "nan_to_num of complex": lambda g, x: g.nan_to_num(np.array([complex(a, b) for a, b in zip(ODD, ODD[::-1])])),
    "nan_to_num of integers": lambda g, x: g.nan_to_num(np.array([1, 2])),
    "isclose": lambda g, x: g.isclose(x, x * (1 + 1e-6)),
    "isclose of odd ones": lambda g, x: g.isclose(ODD[:, None], ODD),
    "isclose with NaN": lambda g, x: g.isclose(ODD[:, None], ODD, equal_nan=True),
    "allclose": lambda g, x: g.allclose(x, x + 1e-9),
    "allclose of others": lambda g, x: g.allclose(x, x + 1e-3),
    "heaviside": lambda g, x: g.heaviside(ODD, 0.25),
    "fmax": lambda g, x: g.fmax(ODD, ODD[::-1].copy()),
    "fmin": lambda g, x: g.fmin(ODD[:, None], ODD),
    "fmax of integers": lambda g, x: g.fmax(np.array([1, 5]), np.array([4, 2])),
    "nansum": lambda g, x: g.nansum(np.array([[1.0, NAN], [NAN, NAN]]), axis=1),
    "nanmean": lambda g, x: g.nanmean(np.array([[1.0, NAN, 3.0], [4.0, 5.0, 6.0]]), axis=1),
    "sinc": lambda g, x: g.sinc(x),
    "sinc of small ones": lambda g, x: g.sinc(np.array([1e-200, 1e-8, 0.1, 0.159, 0.16, 0.0])),
}


@pytest.mark.parametrize("name", SAME_AS_NUMPY)
def test_results_are_numpys(name: str) -> None:
    expected = np.asarray(SAME_AS_NUMPY[name](np, X))
    with gd.eager():
        found = SAME_AS_NUMPY[name](gd, X)
    found = np.asarray(found.concrete if isinstance(found, gd.Array) else found)
    assert found.shape == expected.shape
    assert found.dtype.kind == expected.dtype.kind and (found.dtype == expected.dtype or found.dtype.kind not in "fc")
    np.testing.assert_allclose(found, expected, rtol=1e-14, atol=0)


def test_compiled() -> None:
    """One program of all of them that take the argument."""
    names = ["interp with ends", "searchsorted", "trapezoid", "polyval", "vander", "isclose", "sinc", "diff"]
    found = gd.jit(lambda x: [SAME_AS_NUMPY[name](gd, x) for name in names])(X)
    for name, y in zip(names, found):
        np.testing.assert_allclose(y, SAME_AS_NUMPY[name](np, X), rtol=1e-13, atol=1e-15, err_msg=name)


def gradient(function: Callable[[Any], Any], *args: Any) -> Any:
    with gd.eager():
        found = gd.grad(lambda *a: gd.sum(function(*a)), tuple(range(len(args))))(*args)
    return [np.asarray(g.concrete) for g in found]


def test_derivatives() -> None:
    """Piecewise functions: the slope of the piece, 0 of what was replaced; `sinc` and `vander` at 0 are smooth."""
    np.testing.assert_array_equal(gradient(gd.nan_to_num, ODD)[0], [0, 0, 0, 1, 1, 1])
    np.testing.assert_array_equal(gradient(lambda x: gd.heaviside(x, 0.5), X)[0], np.zeros(5))
    np.testing.assert_array_equal(gradient(gd.nansum, np.array([1.0, NAN]))[0], [1, 0])
    np.testing.assert_array_equal(gradient(gd.fmax, np.array([1.0, NAN, 2.0]), np.array([3.0, 1.0, 2.0])), [[0, 0, 0.5], [1, 1, 0.5]])
    np.testing.assert_array_equal(gradient(lambda x: gd.interp(x, XP, FP), np.array([-5.0, 0.0, 1.0, 7.0]))[0], [0, 4 / 3, 4, 0])
    np.testing.assert_array_equal(gradient(lambda x: gd.vander(x, 3), np.array([0.0, 2.0]))[0], [1, 5])
    with gd.eager():
        second = gd.grad(gd.grad(gd.sinc))
        np.testing.assert_allclose([second(np.float64(x)) for x in (0.0, 1e-9)], -(np.pi**2) / 3, rtol=1e-12)


@pytest.mark.full
def test_slopes() -> None:
    x = np.array([0.3, -0.7, 1.9])
    gd.check_grads(lambda x, fp, xp: gd.interp(x, xp, fp), (x, FP, np.array([-1.0, 0.25, 0.5, 2.0])))
    gd.check_grads(lambda p, x: gd.polyval(p, x), (x, x), order=2)
    gd.check_grads(lambda y, x: gd.trapezoid(y, x), (x, np.sort(x)))
    gd.check_grads(gd.sinc, (x,), order=2)
    gd.check_grads(lambda x: gd.diff(x, 2) + gd.nanmean(x), (x,))


def test_mistakes() -> None:
    for code, call in (
        ("GR104", lambda: gd.searchsorted(XP, X, side="middle")),
        ("GR001", lambda: gd.searchsorted(np.ones((2, 2)), X)),
        ("GR001", lambda: gd.interp(X, XP, FP[:2])),
        ("GR001", lambda: gd.interp(X, XP[:0], FP[:0])),
        ("GR104", lambda: gd.diff(1.0)),
        ("GR112", lambda: gd.diff(X, -1)),
        ("GR001", lambda: gd.vander(np.ones((2, 2)))),
    ):
        with pytest.raises(GradirError) as caught:
            call()
        assert caught.value.code == code and caught.value.expected
