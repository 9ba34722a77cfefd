"""`fma` of every type, and conversions of f64, against exact fractions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

from gradir.ptx.instructions.rounding import fma, narrowed
from gradir.ptx.launch import launch
from tests.ptx.kernels import kernel

FORMATS: dict[str, tuple[Any, int, int, int]] = {
    # dtype, bits of the significand, smallest and largest exponent of a normal number
    "f16": (np.float16, 11, -14, 15), "bf16": (ml_dtypes.bfloat16, 8, -126, 127), "f32": (np.float32, 24, -126, 127), "f64": (np.float64, 53, -1022, 1023),
}  # fmt: skip


def rounded(exact: Fraction, kind: str) -> float:
    """The nearest number of a format, ties to even, as a float; infinite beyond the largest."""
    _, bits, low, high = FORMATS[kind]
    if exact == 0:
        return 0.0
    size = abs(exact)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= size < Fraction(2) ** exponent
    step = Fraction(2) ** (max(exponent, low) - bits + 1)
    whole = round(size / step)  # Fraction rounds ties to even
    if whole * step >= Fraction(2) ** (high + 1):
        return float("inf") if exact > 0 else float("-inf")
    return float(whole * step) * (1 if exact > 0 else -1)


def numbers(kind: str) -> st.SearchStrategy[float]:
    """All numbers of the format: from random bits, so that every exponent is as likely."""
    dtype = np.dtype(FORMATS[kind][0])
    width = 8 * dtype.itemsize
    values = st.integers(0, 2**width - 1).map(lambda bits: float(np.array(bits, f"u{width // 8}").view(dtype)))
    return values.filter(np.isfinite)


def near(kind: str, value: float, away: int) -> float:
    """A number some steps from the nearest to `value`."""
    dtype = np.dtype(FORMATS[kind][0])
    bits = narrowed(np.array([value]), dtype).view(f"u{dtype.itemsize}")
    moved = (bits + np.array(away).astype(bits.dtype)).view(dtype)
    return float(moved[0]) if np.isfinite(float(moved[0])) else 0.0


def check_fma(kind: str, a: float, b: float, c: float) -> None:
    dtype = np.dtype(FORMATS[kind][0])
    found = float(fma(*(np.array([v], np.float64).astype(dtype) for v in (a, b, c)))[0])
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    expected = rounded(exact, kind)
    assert found == expected, (a, b, c)
    if expected == 0 and exact != 0:
        assert np.signbit(found) == (exact < 0)


@pytest.mark.parametrize("kind", FORMATS)
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_fma_is_the_nearest_number(kind: str, data: st.DataObject) -> None:
    check_fma(kind, *(data.draw(numbers(kind)) for _ in range(3)))


@pytest.mark.parametrize("kind", FORMATS)
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_fma_that_cancels(kind: str, data: st.DataObject) -> None:
    """c is near to -a * b: what is left is the product's error."""
    a, b = data.draw(numbers(kind)), data.draw(numbers(kind))
    with np.errstate(over="ignore"):
        check_fma(kind, a, b, near(kind, -a * b, data.draw(st.integers(-3, 3))))


@settings(max_examples=150, deadline=None)
@given(st.integers(2**52, 2**53 - 1), st.integers(2**52, 2**53 - 1), st.integers(-3, 3), st.integers(-170, 20))
@example(2**53 - 1, 2**53 - 1, 1, -120)
def test_fma_near_ties_of_f64(x: int, y: int, c: int, shift: int) -> None:
    """A product of full length and an addend far below it decide together."""
    check_fma("f64", float(x), float(y), float(c) * 2.0 ** (shift + 52))


@pytest.mark.parametrize(
    ("a", "b", "c"),
    [
        (2.0**-540, 2.0**-540, 2.0**-1074),
        (1.5 * 2.0**-540, 2.0**-534, -(2.0**-1074)),
        (2.0**1000, 2.0**30, -(2.0**1023)),
        (2.0**600, 2.0**-600, -1.0),
    ],
)
def test_fma_at_the_ends_of_the_range(a: float, b: float, c: float) -> None:
    check_fma("f64", a, b, c)


def test_signs_of_zeros_and_what_is_no_number() -> None:
    a = np.array([-0.0, 0.0, 1.0, np.inf, np.inf, np.nan, 1e-300, -1e-300])
    b = np.array([1.0, -1.0, -1.0, 0.0, 1.0, 1.0, 1e-300, 1e-300])
    c = np.array([-0.0, 0.0, 1.0, 1.0, -np.inf, 1.0, -0.0, 0.0])
    np.testing.assert_array_equal(fma(a, b, c), np.array([-0.0, 0.0, 0.0, np.nan, np.nan, np.nan, 0.0, 0.0]))
    assert np.signbit(fma(a, b, c)).tolist()[:3] == [True, False, False] and np.signbit(fma(a, b, c)).tolist()[6:] == [False, True]


@pytest.mark.parametrize("kind", ["f16", "bf16", "f32"])
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_f64_to_narrow_types(kind: str, data: st.DataObject) -> None:
    near_one = data.draw(numbers(kind))
    value = near_one * (
        1.0
        + data.draw(st.sampled_from([0.0, 2.0**-9, -(2.0**-9), 2.0**-12, 2.0**-25]))
        + data.draw(st.sampled_from([0.0, 2.0**-50, -(2.0**-52)]))
    )
    with np.errstate(over="ignore"):
        found = float(narrowed(np.array([value]), np.dtype(FORMATS[kind][0]))[0])
    assert found == rounded(Fraction(value), kind)


@pytest.mark.parametrize(("kind", "dtype"), [("e4m3x2", ml_dtypes.float8_e4m3fn), ("e5m2x2", ml_dtypes.float8_e5m2)])
def test_pairs_of_bytes_there_and_back(kind: str, dtype: Any) -> None:
    """Rounded to nearest, kept finite; every byte comes back as it was."""
    text = kernel(
        f"ld.global.f32 %f1, [%rd3]; ld.global.f32 %f2, [%rd4]; cvt.rn.satfinite.{kind}.f32 %h1, %f1, %f2; cvt.rn.f16x2.{kind} %r5, %h1;"
        f"cvt.rn.satfinite.{kind}.f16x2 %h2, %r5; xor.b16 %h3, %h1, %h2; cvt.u32.u16 %r6, %h3; or.b32 %r5, %r5, %r6; st.global.u32 [%rd4], %r5;"
    )
    x = np.random.default_rng(0).standard_normal(64).astype(np.float32) * np.float32(10) ** np.arange(-4, 4).repeat(8).astype(np.float32)
    y, low = np.full(64, 1.5, np.float32), float(ml_dtypes.finfo(dtype).max)
    launch(text, grid=1, block=64, args=[x, y])
    halves = y.view(np.float16).reshape(64, 2)
    assert halves[:, 0].tolist() == [1.5] * 64
    np.testing.assert_array_equal(halves[:, 1], np.clip(x, -low, low).astype(dtype).astype(np.float16))
