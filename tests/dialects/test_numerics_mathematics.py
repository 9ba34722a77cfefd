"""The rows of the numeric rules that concern the functions of family `mathematics`, one test per row."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from gradir.dialects import nd
from tests.dialects.build import evaluate, f32
from tests.dialects.test_numerics import bits_equal, nearly

BF16 = ml_dtypes.bfloat16
INF, NAN = np.inf, np.nan


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, BF16])
def test_rounding_of_halves(dtype: Any) -> None:
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, -0.25, -0.0, NAN, INF, -INF], dtype)
    bits_equal(evaluate(nd.RoundEvenOp.make, x), [0, 2, 2, -0.0, -2, -0.0, -0.0, NAN, INF, -INF])
    bits_equal(evaluate(nd.RoundAwayOp.make, x), [1, 2, 3, -1, -2, -0.0, -0.0, NAN, INF, -INF])
    bits_equal(evaluate(nd.TruncOp.make, x), [0, 1, 2, -0.0, -1, -0.0, -0.0, NAN, INF, -INF])


def test_rounding_next_to_a_half_and_of_large_numbers() -> None:
    x = f32(0.49999997, -0.49999997, 8388607.5, 8388609, -3e38)
    bits_equal(evaluate(nd.RoundAwayOp.make, x), [0, -0.0, 8388608, 8388609, np.float32(-3e38)])
    bits_equal(evaluate(nd.RoundEvenOp.make, x), [0, -0.0, 8388608, 8388609, np.float32(-3e38)])
    y = np.array([0.49999999999999994, 2.0**52 - 0.5, 2.0**52 + 1])
    bits_equal(evaluate(nd.RoundAwayOp.make, y), [0, 2.0**52, 2.0**52 + 1])


def test_roots_and_odd_functions_keep_the_sign_of_zero() -> None:
    zeros = f32(-0.0, 0.0)
    for make in (nd.CbrtOp, nd.TanOp, nd.AsinOp, nd.AtanOp, nd.SinhOp, nd.AsinhOp, nd.AtanhOp):
        bits_equal(evaluate(make.make, zeros), zeros)
    bits_equal(evaluate(nd.CbrtOp.make, f32(-8, INF, -INF, NAN, 1e-45)), [-2, INF, -INF, NAN, np.float32(1.1190347e-15)])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_domains_of_inverse_functions(dtype: Any) -> None:
    x = np.array([1, -1, 1.0000002, -2, INF, -INF, NAN], dtype)
    half = dtype(np.pi / 2)
    nearly(evaluate(nd.AsinOp.make, x), np.array([half, -half, NAN, NAN, NAN, NAN, NAN], dtype))
    nearly(evaluate(nd.AcosOp.make, x), np.array([0, np.pi, NAN, NAN, NAN, NAN, NAN], dtype))
    bits_equal(evaluate(nd.AtanhOp.make, x), [INF, -INF, NAN, NAN, NAN, NAN, NAN])
    bits_equal(evaluate(nd.AcoshOp.make, np.array([1, 0.99, -1, -2, -1e30, INF, -INF, NAN], dtype)), [0, NAN, NAN, NAN, NAN, INF, NAN, NAN])
    bits_equal(evaluate(nd.AsinhOp.make, np.array([INF, -INF, NAN], dtype)), [INF, -INF, NAN])
    nearly(evaluate(nd.AtanOp.make, np.array([INF, -INF, NAN], dtype)), np.array([half, -half, NAN], dtype))
    bits_equal(evaluate(nd.TanOp.make, np.array([INF, -INF, NAN], dtype)), [NAN, NAN, NAN])
    bits_equal(evaluate(nd.SinhOp.make, np.array([INF, -INF, NAN, 1e4], dtype)), [INF, -INF, NAN, INF])
    bits_equal(evaluate(nd.CoshOp.make, np.array([INF, -INF, NAN, 0, -1e4], dtype)), [INF, INF, NAN, 1, INF])


def test_tiny_and_large_arguments_stay_accurate() -> None:
    for make in (nd.TanOp, nd.AsinOp, nd.AtanOp, nd.SinhOp, nd.AsinhOp, nd.AtanhOp):
        assert evaluate(make.make, f32(1e-10))[0] == np.float32(1e-10)
        assert evaluate(make.make, f32(1e-45))[0] == np.float32(1e-45)
    x = f32(3e38, 1.0000001)
    nearly(evaluate(nd.AsinhOp.make, x), np.arcsinh(x.astype(np.float64)).astype(np.float32))
    nearly(evaluate(nd.AcoshOp.make, x), np.arccosh(x.astype(np.float64)).astype(np.float32))
    nearly(evaluate(nd.SinhOp.make, f32(89, -89)), np.sinh(np.array([89.0, -89.0])).astype(np.float32))


def test_erfc_is_accurate_where_it_is_small() -> None:
    bits_equal(evaluate(nd.ErfcOp.make, f32(INF, -INF, NAN, 0, -0.0)), [0, 2, NAN, 1, 1])
    nearly(evaluate(nd.ErfcOp.make, f32(4, 10, 1e-10)), f32(1.5417258e-08, 2.088e-45, 1))


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, BF16])
def test_classes_of_floats(dtype: Any) -> None:
    x = np.array([NAN, INF, -INF, 0, 1], dtype)
    assert evaluate(nd.IsNanOp.make, x).tolist() == [True, False, False, False, False]
    assert evaluate(nd.IsInfOp.make, x).tolist() == [False, True, True, False, False]


def test_bit_counts() -> None:
    assert evaluate(nd.PopcntOp.make, np.array([0, 1, -1, -128, 85], np.int8)).tolist() == [0, 1, 8, 1, 4]
    assert evaluate(nd.ClzOp.make, np.array([0, 1, -1, 64, 32], np.int8)).tolist() == [8, 7, 0, 1, 2]
    assert evaluate(nd.PopcntOp.make, np.array([255, 128], np.uint8)).tolist() == [8, 1]
    assert evaluate(nd.ClzOp.make, np.array([0, 2**63, 1], np.uint64)).tolist() == [64, 0, 63]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_erf_inv(dtype: Any) -> None:
    x = np.array([1, -1, 0, -0.0, 1.5, -INF, NAN], dtype)
    bits_equal(evaluate(nd.ErfInvOp.make, x), [INF, -INF, 0, -0.0, NAN, NAN, NAN])
    known = {0.5: 0.4769362762044699, -0.9375: -1.3171503349861307, 2.0**-20: 8.451718573121729e-07, 1 - 2.0**-20: 3.4655050258033307}
    assert_within(4, evaluate(nd.ErfInvOp.make, np.array(list(known), dtype)), np.array(list(known.values())).astype(dtype))


def assert_within(ulp: int, found: Any, expected: Any) -> None:
    """Row "accuracy", functions that are not listed by name."""
    np.testing.assert_array_max_ulp(found, expected, ulp)
