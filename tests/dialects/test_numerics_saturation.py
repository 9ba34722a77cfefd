"""The saturating cast, row "f8 overflow" of the numeric rules: by definition, compiled, and from Python."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import gradir as gd
from gradir.dialects import nd
from gradir.dialects.types import element_type
from gradir.errors import GradirError
from gradir.ir.text import parse_module, verify_module
from tests.dialects.build import evaluate

E4M3, E5M2, BF16 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.bfloat16
X = np.array([1e9, -1e9, np.inf, -np.inf, np.nan, 1.3, 449.0, 464.0, -0.0], np.float32)


@pytest.mark.parametrize(("dtype", "most"), [(E4M3, 448.0), (E5M2, 57344.0), (np.float16, 65504.0), (BF16, 3.3895313892515355e38)])
def test_overflow_gives_the_largest_number(dtype: Any, most: float) -> None:
    x = X if dtype is not BF16 else np.where(np.abs(X) == 1e9, np.copysign(np.float32(3.4e38), X), X)
    found = evaluate(lambda v: nd.ConvertOp.make(v, element_type(np.dtype(dtype)), saturate=True), x)
    np.testing.assert_array_equal(found[:4].astype(np.float64), [most, -most, most, -most])
    assert np.isnan(found[4].astype(np.float64))
    inside = np.clip(x[5:].astype(np.float64), -most, most).astype(np.float32).astype(dtype)
    np.testing.assert_array_equal(found[5:].astype(np.float64), inside.astype(np.float64))
    compiled = np.asarray(gd.jit(lambda v: gd.asarray(v).astype(dtype, saturate=True))(x))
    np.testing.assert_array_equal(compiled.astype(np.float64), found.astype(np.float64))


def test_without_it_overflow_is_infinite_or_nan() -> None:
    plain = evaluate(lambda v: nd.ConvertOp.make(v, element_type(np.dtype(E4M3))), X).astype(np.float64)
    assert np.isnan(plain[:5]).all() and plain[6] == 448


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.int32, np.int8, np.bool_])
def test_integers(dtype: Any) -> None:
    limits = [0, 1] if dtype is np.bool_ else [np.iinfo(dtype).min, np.iinfo(dtype).max, 7, 100]
    x = np.array(limits, dtype)
    found = evaluate(lambda v: nd.ConvertOp.make(v, element_type(np.dtype(np.float16)), saturate=True), x)
    want = np.clip(x.astype(np.float64), -65504, 65504).astype(np.float16)
    np.testing.assert_array_equal(found, want)
    np.testing.assert_array_equal(gd.jit(lambda v: gd.asarray(v).astype(np.float16, saturate=True))(x), want)


def test_same_type_still_saturates_and_the_derivative_is_that_of_a_cast() -> None:
    x = np.array([np.inf, -np.inf, 2.0], np.float32)
    found = gd.jit(lambda v: v.astype(np.float32, saturate=True))(x)
    np.testing.assert_array_equal(found, np.array([3.4028235e38, -3.4028235e38, 2.0], np.float32))
    gradient = gd.grad(lambda v: gd.sum(v.astype(np.float16, saturate=True).astype(np.float32)))(np.float32([1e9, 1.0]))
    np.testing.assert_array_equal(gradient, [1, 1])


def test_only_floats_have_a_largest_number() -> None:
    text = "func.func @f(%x: tensor<2xf32>) -> tensor<2xi8> {\n %0 = nd.convert %x saturate : tensor<2xf32> -> tensor<2xi8>\n return %0 : tensor<2xi8>\n}\n"
    with pytest.raises(GradirError, match=r"nd\.convert: a saturating result must have a float type .* found i8"):
        verify_module(parse_module(text))
