"""The rows of the numeric rules that concern cumulative ops, one test per row."""

from __future__ import annotations

from functools import partial

import ml_dtypes
import numpy as np

from gradir.dialects import nd
from tests.dialects.build import evaluate, f32
from tests.dialects.test_numerics import bits_equal

INF, NAN = np.inf, np.nan


def test_prefixes_and_suffixes() -> None:
    x = f32(1, 2, 3, 4)
    bits_equal(evaluate(partial(nd.CumsumOp.make, dim=0), x), [1, 3, 6, 10])
    bits_equal(evaluate(partial(nd.CumsumOp.make, dim=0, reverse=True), x), [10, 9, 7, 4])
    bits_equal(evaluate(partial(nd.CumsumOp.make, dim=0, exclusive=True), x), [0, 1, 3, 6])
    bits_equal(evaluate(partial(nd.CumprodOp.make, dim=0, reverse=True, exclusive=True), x), [24, 12, 4, 1])
    table = np.arange(6, dtype=np.int32).reshape(2, 3)
    assert evaluate(partial(nd.CumsumOp.make, dim=0), table).tolist() == [[0, 1, 2], [3, 5, 7]]
    assert evaluate(partial(nd.CummaxOp.make, dim=1, reverse=True), table).tolist() == [[2, 2, 2], [5, 5, 5]]


def test_sums_start_at_plus_zero_and_extrema_at_their_identity() -> None:
    bits_equal(evaluate(partial(nd.CumsumOp.make, dim=0), f32(-0.0, -0.0)), [0.0, 0.0])
    bits_equal(evaluate(partial(nd.CummaxOp.make, dim=0, exclusive=True), f32(-0.0, 0.0, 1)), [-INF, -0.0, 0.0])
    bits_equal(evaluate(partial(nd.CumminOp.make, dim=0, exclusive=True), f32(0.0, -0.0, 1)), [INF, 0.0, -0.0])
    assert evaluate(partial(nd.CummaxOp.make, dim=0, exclusive=True), np.array([3, 1], np.int8)).tolist() == [-128, 3]
    assert evaluate(partial(nd.CumminOp.make, dim=0, exclusive=True), np.array([3, 1], np.uint8)).tolist() == [255, 3]


def test_nan_stays_in_cumulative_extrema() -> None:
    bits_equal(evaluate(partial(nd.CummaxOp.make, dim=0), f32(1, NAN, INF, 2)), [1, NAN, NAN, NAN])
    bits_equal(evaluate(partial(nd.CumminOp.make, dim=0, reverse=True), f32(1, NAN, -INF, 2)), [NAN, NAN, -INF, 2])


def test_cumulative_sums_are_accurate() -> None:
    bits_equal(evaluate(partial(nd.CumsumOp.make, dim=0), np.ones(512, ml_dtypes.bfloat16))[-1], 512)
    x = np.full(100_000, 0.1, np.float32)
    found = evaluate(partial(nd.CumsumOp.make, dim=0), x)
    np.testing.assert_array_max_ulp(found, np.cumsum(x.astype(np.float64)).astype(np.float32), 0)


def test_integers_wrap_in_cumulative_sums() -> None:
    assert evaluate(partial(nd.CumsumOp.make, dim=0), np.array([100, 100, -3], np.int8)).tolist() == [100, -56, -59]
    assert evaluate(partial(nd.CumprodOp.make, dim=0), np.array([200, 2, 3], np.uint8)).tolist() == [200, 144, 176]
