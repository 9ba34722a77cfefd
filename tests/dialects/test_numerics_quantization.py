"""The row `quantize` of the numeric rules, and its functions in Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradir as gd
from gradir.dialects import nd
from gradir.errors import GradirError
from tests.dialects.build import evaluate, f32


def quantized(x: Any, scale: Any, zero: Any, **more: Any) -> list[int]:
    return evaluate(lambda *v: nd.QuantizeOp.make(*v, **more), x, np.asarray(scale), np.asarray(zero)).tolist()


def test_clamp_then_nearest_even() -> None:
    one, zero = np.float32(1), np.int8(1)
    assert quantized(f32(0.5), one, zero) == [2]  # 1.5 -> 2; ONNX rounds 0.5 first: 1
    assert quantized(f32(1.5, -0.5, 126.6, 1e9, -1e9, np.inf, -np.inf, np.nan), one, zero) == [2, 0, 127, 127, -128, 127, -128, 0]
    assert quantized(f32(100, -100, 0.3), np.float32(0.5), np.int8(0), range=(-127, 3)) == [3, -127, 1]
    assert quantized(f32(3e9, -1), one, np.uint8(0)) == [255, 0]
    assert quantized(f32(3e9, -3e9), one, np.int32(0)) == [2147483647, -2147483648]


def test_by_axis() -> None:
    x = f32(1, 1, 1).reshape(1, 3)
    assert quantized(x, f32(1, 0.5, 0.25), np.array([0, 1, -1], np.int8), axis=1) == [[1, 3, 3]]


def test_there_and_back_from_python() -> None:
    x = np.linspace(-2, 2, 12, dtype=np.float32).reshape(4, 3)
    scale, zero = f32(0.1, 0.02, 0.03), np.array([0, 5, -5], np.int8)
    stored, back = gd.jit(lambda x: [q := gd.quantize(x, scale, zero, axis=-1), gd.dequantize(q, scale, zero, axis=-1)])(x)
    assert stored.dtype == np.int8
    want = np.rint(np.clip(x / scale + zero, -128, 127))
    np.testing.assert_array_equal(stored, want)
    np.testing.assert_allclose(back, (want - zero) * scale, rtol=1e-6)
    gradient = gd.grad(lambda s: gd.sum(gd.dequantize(stored, s, zero, axis=1)))(scale)
    np.testing.assert_allclose(gradient, (want - zero).sum(0), rtol=1e-6)


def test_only_integers_are_stored() -> None:
    with pytest.raises(GradirError, match="quantize to float16") as caught:
        gd.jit(lambda x: gd.quantize(x, 0.5, 0, np.float16))(f32(1))
    assert caught.value.code == "GR002"
    with pytest.raises(GradirError, match="dequantize of float32"):
        gd.jit(lambda x: gd.dequantize(x, 0.5))(f32(1))
