"""`nd.top_k` by selection: ties, NaN, zeros of both signs, types, more than one row, threads."""

from __future__ import annotations

import numpy as np
import pytest

import gradir as gd

RNG = np.random.default_rng(11)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "uint8"])
@pytest.mark.parametrize(("shape", "k"), [((1, 40), 1), ((3, 100), 8), ((2, 3, 500), 20)])
def test_the_greatest_in_order_of_a_stable_sort(shape: tuple[int, ...], k: int, dtype: str) -> None:
    x = np.round(RNG.standard_normal(shape) * 3).astype(dtype)
    if dtype == "float32":
        x[..., 5], x[..., 9], x[..., 7] = np.nan, np.nan, -0.0
    values, indices = gd.jit(lambda x: gd.top_k(x, k), threads=2, cache=False)(x)
    order = np.where(np.isnan(x.astype(np.float64)), np.inf, x.astype(np.float64))
    expected = np.argsort(-order, -1, kind="stable")[..., :k]
    np.testing.assert_array_equal(np.asarray(indices), expected)
    np.testing.assert_array_equal(np.asarray(values), np.take_along_axis(x, expected, -1))


def test_the_least_of_a_sort_with_two_operands() -> None:
    x, y = RNG.integers(0, 9, (5, 60)).astype(np.int32), RNG.standard_normal((5, 60)).astype(np.float32)
    first, second = gd.jit(lambda x, y: tuple(v[:, :4] for v in gd.sort_together((x, y), 1)), cache=False)(x, y)
    order = np.argsort(x, 1, kind="stable")[:, :4]
    np.testing.assert_array_equal(np.asarray(first), np.take_along_axis(x, order, 1))
    np.testing.assert_array_equal(np.asarray(second), np.take_along_axis(y, order, 1))
