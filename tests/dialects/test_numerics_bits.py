"""The rows of the numeric rules that concern the bits of numbers."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from gradir.dialects import nd
from gradir.dialects.types import element_type
from gradir.driver.compile import compile_module
from gradir.ir.text import parse_module
from tests.dialects.build import evaluate, f32

BF16 = ml_dtypes.bfloat16


def compiled(text: str, *arrays: Any) -> Any:
    return np.asarray(compile_module(parse_module(text), cache=False)["f"](*arrays))


def cast(x: Any, dtype: Any) -> Any:
    return evaluate(lambda value: nd.BitcastConvertOp.make(value, element_type(dtype)), x)


def test_bits_stay_as_they_are_payloads_of_nan_too() -> None:
    bits = np.array([0x7FC12345, 0x7F800001, 0xFFFFFFFF, 0x80000000, 1], np.uint32)
    np.testing.assert_array_equal(cast(cast(bits, np.float32), np.uint32), bits)
    text = "func.func @f(%x: tensor<5xui32>) -> tensor<5xui32> {\n %a = nd.bitcast_convert %x : tensor<5xui32> -> tensor<5xf32>\n"
    text += " %b = nd.reshape %a : tensor<5xf32> -> tensor<5x1xf32>\n %c = nd.reshape %b : tensor<5x1xf32> -> tensor<5xf32>\n"
    text += " %d = nd.bitcast_convert %c : tensor<5xf32> -> tensor<5xui32>\n return %d : tensor<5xui32>\n}\n"
    np.testing.assert_array_equal(compiled(text, bits), bits)


@pytest.mark.parametrize("dtype", [np.float16, BF16])
def test_signalling_nan_of_sixteen_bits(dtype: Any) -> None:
    kind = "f16" if dtype is np.float16 else "bf16"
    bits = np.arange(0, 65536, 7, dtype=np.uint16)
    n = bits.size
    text = (
        f"func.func @f(%x: tensor<{n}xui16>) -> tensor<{n}xui16> {{\n %a = nd.bitcast_convert %x : tensor<{n}xui16> -> tensor<{n}x{kind}>\n"
    )
    text += f" %b = nd.bitcast_convert %a : tensor<{n}x{kind}> -> tensor<{n}xui16>\n return %b : tensor<{n}xui16>\n}}\n"
    np.testing.assert_array_equal(compiled(text, bits), bits)
    np.testing.assert_array_equal(cast(cast(bits, dtype), np.uint16), bits)


def test_narrow_parts_come_lowest_first() -> None:
    assert cast(f32(1.0), np.uint8).tolist() == [[0, 0, 0x80, 0x3F]]
    assert cast(np.array([[1, 2, 3, 4]], np.uint8), np.int32).tolist() == [0x04030201]
    assert cast(np.array([1.0]), np.int32).tolist() == [[0, 1072693248]]


def test_reduce_precision_rounds_to_even_and_flushes_denormals_of_the_narrow_format() -> None:
    x = f32(65504, 65519, 65520, 2.0**-14, 2.0**-14 - 2.0**-27, 2.0**-14 - 2.0**-25, 1 + 2.0**-11, 1 + 3 * 2.0**-11, -1e-30, np.nan)
    found = evaluate(lambda v: nd.ReducePrecisionOp.make(v, 5, 10), x)
    want = f32(65504, 65504, np.inf, 2.0**-14, 2.0**-14, 0, 1, 1 + 2.0**-9, -0.0, np.nan)
    np.testing.assert_array_equal(found, want)
    np.testing.assert_array_equal(np.signbit(found[:9]), np.signbit(want[:9]))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_reduce_precision_of_normal_numbers_is_a_cast_there_and_back(dtype: Any) -> None:
    x = (np.random.default_rng(3).standard_normal(1000) * 10).astype(dtype)
    found = evaluate(lambda v: nd.ReducePrecisionOp.make(v, 5, 10), x)
    np.testing.assert_array_equal(found, x.astype(np.float16).astype(dtype))
    half = evaluate(lambda v: nd.ReducePrecisionOp.make(v, 8, 7), x)
    np.testing.assert_array_equal(half, x.astype(np.float32).astype(BF16).astype(dtype))


def test_next_after() -> None:
    x, y = f32(0, 0, -0.0, 1, 1, np.inf, 3.4028235e38, np.nan, 2, 0), f32(1, -1, 0, 2, -2, 0, np.inf, 1, 2, -0.0)
    tiny = np.float32(1e-45)
    want = f32(tiny, -tiny, 0, 1 + 2.0**-23, 1 - 2.0**-24, 3.4028235e38, np.inf, np.nan, 2, -0.0)
    found = evaluate(nd.NextAfterOp.make, x, y)
    np.testing.assert_array_equal(found, want)
    assert np.signbit(found[2]) == np.signbit(np.float32(0)) and np.signbit(found[9])


def test_constants_beyond_the_range_of_i64_are_exact() -> None:
    text = "func.func @f() -> tensor<2xui64> {\n %c = nd.constant dense<[4613556956920182793, 13833341717198732246]> : tensor<2xui64>\n"
    (constant, *_) = parse_module(text + " return %c : tensor<2xui64>\n}\n").body.block.first_op.body.block.ops
    assert constant.evaluate().tolist() == [4613556956920182793, 13833341717198732246]
