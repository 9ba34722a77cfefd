"""Functions of one and two numbers under numpy's names: what numpy says, for floats, integers and special values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradir as gd
from gradir.errors import GradirError

SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -7.25, 1e-30, 3e38, np.inf, -np.inf, np.nan], np.float32)
NAMES = (
    "rint", "round", "trunc", "cbrt", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "arcsinh", "arccosh", "arctanh",
    "log2", "log10", "exp2",
)  # fmt: skip


@pytest.fixture(autouse=True, params=["eager", "compiled"])
def mode(request: pytest.FixtureRequest) -> Any:
    """Every test runs op by op and compiled."""
    if request.param == "compiled":
        return gd.jit

    def run(function: Any) -> Any:
        def call(*arguments: Any) -> Any:
            with gd.eager():
                return gd.tree_map(np.asarray, function(*map(gd.asarray, arguments)))

        return call

    return run


def test_numpy_agrees(mode: Any) -> None:
    found = mode(lambda x: [getattr(gd, name)(x) for name in NAMES])(SPECIAL)
    with np.errstate(all="ignore"):
        for name, value in zip(NAMES, found, strict=True):
            expected = getattr(np, name)(SPECIAL.astype(np.float64)).astype(np.float32)
            np.testing.assert_allclose(value, expected, rtol=5e-7, err_msg=name)


def test_pairs(mode: Any) -> None:
    x, y = np.repeat(SPECIAL, SPECIAL.size), np.tile(SPECIAL, SPECIAL.size)
    hypot, logaddexp = mode(lambda x, y: [gd.hypot(x, y), gd.logaddexp(x, y)])(x, y)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(hypot, np.hypot(x, y), rtol=5e-7)
        np.testing.assert_allclose(logaddexp, np.logaddexp(x, y), rtol=5e-7)


def test_classes_and_whole_numbers(mode: Any) -> None:
    whole = np.array([0, 1, -1, 40], np.int32)
    f = lambda x, n: [gd.isnan(x), gd.isinf(x), gd.isnan(n), gd.isinf(n), gd.round(n), gd.tan(n)]
    found = mode(f)(SPECIAL, whole)
    for value, expected in zip(found[:5], [np.isnan(SPECIAL), np.isinf(SPECIAL), whole < -9, whole < -9, whole], strict=True):
        np.testing.assert_array_equal(value, expected)
    np.testing.assert_allclose(found[5], np.tan(whole).astype(np.float32), rtol=5e-7)
    bits = mode(lambda n: [gd.population_count(n), gd.clz(n)])(whole)
    np.testing.assert_array_equal(bits, [[0, 1, 32, 2], [32, 31, 0, 26]])


def test_bits_of_floats_are_refused(mode: Any) -> None:
    with pytest.raises(GradirError, match="population_count of float32"):
        mode(gd.population_count)(SPECIAL)


def test_cumulative_functions(mode: Any) -> None:
    x = np.array([[1, -2, 3], [0.5, 4, -1]], np.float32)
    f = lambda x: [gd.cumsum(x), gd.cumsum(x, -1), gd.cumprod(x, 0), gd.cummax(x, 1), gd.cummin(x, 1, reverse=True), gd.cumsum(x > 0, 1)]
    found = mode(f)(x)
    expected = [np.cumsum(x), np.cumsum(x, -1), np.cumprod(x, 0), np.maximum.accumulate(x, 1)]
    expected += [np.minimum.accumulate(x[:, ::-1], 1)[:, ::-1], np.cumsum(x > 0, 1)]
    for value, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-6)
