"""The rows of the numeric rules that concern the functions of family `mathematics`, one test per row."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from gradir.dialects import nd
from tests.dialects.build import evaluate, f32
from tests.dialects.test_numerics import bits_equal

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
