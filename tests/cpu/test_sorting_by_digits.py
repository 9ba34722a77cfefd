"""Sorts of long rows: every width of keys, both directions, NaN, infinities, zeros of two signs, stable, along any dimension."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import gradir as gd

RNG = np.random.default_rng(17)
TYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
INTEGERS = ("int16", "int32", "int64", "uint32", "uint64")


def sorted_by(x: np.ndarray, dim: int, descending: bool) -> tuple[np.ndarray, np.ndarray]:
    values = gd.jit(lambda x: gd.sort(x, dim, descending=descending), threads=2, cache=False)(x)
    places = gd.jit(lambda x: gd.argsort(x, dim, descending=descending), threads=1, cache=False)(x)
    return np.asarray(values), np.asarray(places)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("name", TYPES)
def test_floats(name: str, descending: bool) -> None:
    for shape, dim in (((3, 1000), 1), ((257, 4), 0)):
        x = np.round(RNG.standard_normal(shape) * 30).astype(TYPES[name])
        for place, value in ((5, np.nan), (17, -np.nan), (7, -0.0), (2, 0.0), (11, np.inf), (12, -np.inf), (40, 1e-7)):
            x.flat[place] = value
        wide = x.astype(np.float64)
        rank = np.where(np.isnan(wide), 2e300, np.nan_to_num(wide, posinf=1e300, neginf=-1e300))
        order = np.argsort(-rank if descending else rank, dim, kind="stable")
        values, places = sorted_by(x, dim, descending)
        np.testing.assert_array_equal(places, order)
        expected = np.take_along_axis(x, order, dim)
        np.testing.assert_array_equal(values.view(f"u{x.itemsize}"), expected.view(f"u{x.itemsize}"))


@pytest.mark.parametrize("name", INTEGERS)
def test_integers(name: str) -> None:
    limits = np.iinfo(name)
    x = RNG.integers(limits.min, limits.max, (2, 300), dtype=name, endpoint=True)
    x[0, 3], x[0, 4], x[0, 5], x[1] = limits.min, limits.max, limits.max, x[1] % 7
    for descending in (False, True):
        order = np.argsort(~x if descending else x, 1, kind="stable")
        values, places = sorted_by(x, 1, descending)
        np.testing.assert_array_equal(places, order)
        np.testing.assert_array_equal(values, np.take_along_axis(x, order, 1))


def test_zeros_keep_their_order_and_nan_comes_last() -> None:
    x = np.array([np.nan, -np.nan, 0.0, -0.0, np.inf, -np.inf, 1.0, -1.0] * 40, np.float32)[None]
    found = np.asarray(gd.jit(lambda x: gd.sort(x, 1), cache=False)(x))[0]
    assert np.isnan(found[-80:]).all() and not np.isnan(found[:-80]).any()
    assert list(np.signbit(found[80:160])) == [False, True] * 40  # zeros are equal: they keep their order
