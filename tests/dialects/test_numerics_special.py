"""The rows of the numeric rules that concern special functions: poles, limits, accuracy, one rounding of fma."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gradir.dialects import nd
from tests.dialects.build import evaluate, f32
from tests.dialects.test_numerics import bits_equal

INF, NAN = np.inf, np.nan


def within(ulp: int, found: Any, expected: Any) -> None:
    np.testing.assert_array_max_ulp(found, np.asarray(expected, found.dtype), ulp)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_poles_and_limits_of_gamma_functions(dtype: Any) -> None:
    x = np.array([0, -0.0, -1, -2, -1e6, INF, -INF, NAN], dtype)
    bits_equal(evaluate(nd.LgammaOp.make, x), [INF, INF, INF, INF, INF, INF, INF, NAN])
    bits_equal(evaluate(nd.DigammaOp.make, x), [NAN, NAN, NAN, NAN, NAN, INF, NAN, NAN])
    bits_equal(evaluate(nd.TrigammaOp.make, x), [INF, INF, INF, INF, INF, 0, NAN, NAN])


def test_lgamma_is_accurate_next_to_its_zeros() -> None:
    assert evaluate(nd.LgammaOp.make, np.array([1.0, 2.0])).tolist() == [0, 0]
    h = 2.0**-40
    within(2, evaluate(nd.LgammaOp.make, np.array([1 + h, 2 + h, 2 - h])), [
        -0.5772156649015329 * h + np.pi**2 / 12 * h * h,
        0.42278433509846713 * h + (np.pi**2 / 6 - 1) / 2 * h * h,
        -0.42278433509846713 * h + (np.pi**2 / 6 - 1) / 2 * h * h,
    ])  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_known_values(dtype: Any) -> None:
    x = np.array([0.5, 3, 10, -0.5, 1e-3, 100], dtype)
    known = [0.5723649429247001, 0.6931471805599453, 12.801827480081469, 1.2655121234846454]
    within(4, evaluate(nd.LgammaOp.make, x[:4]), known)
    within(4, evaluate(nd.DigammaOp.make, x[:3]), [-1.9635100260214235, 0.9227843350984671, 2.251752589066721])
    within(4, evaluate(nd.TrigammaOp.make, x[:4]), [4.934802200544679, 0.3949340668482264, 0.10516633568168575, 8.934802200544679])
    within(4, evaluate(nd.BesselI0eOp.make, x[:3]), [0.6450352704491501, 0.2430003541618254, 0.1278333371634286])
    within(4, evaluate(nd.BesselI1eOp.make, x[:3]), [0.1564208031848717, 0.19682671329730086, 0.12126268138445552])


def test_bessel_functions_at_zero_and_infinity() -> None:
    x = f32(0, -0.0, INF, -INF, NAN, 1e-45)
    bits_equal(evaluate(nd.BesselI0eOp.make, x), [1, 1, 0, 0, NAN, 1])
    bits_equal(evaluate(nd.BesselI1eOp.make, x[:5]), [0, -0.0, 0, -0.0, NAN])


def test_zeta_and_polygamma() -> None:
    s, q = np.array([2.0, 4.0, 1.0, 0.5, 2.0, 3.0, 2.5, 2.0]), np.array([1.0, 1.0, 2.0, 2.0, -1.0, -1.0, -0.5, -1.5])
    found = evaluate(nd.ZetaOp.make, s, q)
    within(4, found[:2], [np.pi**2 / 6, np.pi**4 / 90])
    bits_equal(found[2:7], [INF, NAN, INF, NAN, NAN])
    within(4, found[7:], [1 / 1.5**2 + 1 / 0.5**2 + 4.934802200544679])
    n, x = np.array([0.0, 1.0, 2.0, 3.0, -1.0, 1.5]), np.array([1.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    found = evaluate(nd.PolygammaOp.make, n, x)
    within(8, found[:4], [-0.5772156649015329, np.pi**2 / 6, -2.4041138063191886, np.pi**4 / 15])
    bits_equal(found[4:], [NAN, NAN])


def test_fma_rounds_once() -> None:
    a = f32(1 + 2.0**-12, 1e38, 3, INF, 0)
    b, c = f32(1 + 2.0**-12, 10, 4, 0, INF), f32(-(1 + 2.0**-11), -INF, 5, 1, 2)
    bits_equal(evaluate(nd.FmaOp.make, a, b, c), [2.0**-24, -INF, 17, NAN, NAN])
    x = np.array([1 + 2.0**-30])
    assert evaluate(nd.FmaOp.make, x, x, np.array([-1 - 2.0**-29]))[0] == 2.0**-60
