"""uniform_quantize and uniform_dequantize; what else has quantized numbers is refused with its type."""

from __future__ import annotations

import numpy as np
import pytest

from gradir.driver.compile import compile_module
from gradir.errors import GradirError
from gradir.frontends.stablehlo import import_text
from gradir.reference import run

X = np.array([[0.3, 0.3], [-70.0, 70.0], [0.25, np.nan]], np.float32)


def there_and_back(kind: str) -> np.ndarray:
    text = f"""func.func public @main(%x: tensor<3x2xf32>) -> tensor<3x2xf32> {{
      %0 = stablehlo.uniform_quantize %x : (tensor<3x2xf32>) -> tensor<3x2x{kind}>
      %1 = stablehlo.uniform_dequantize %0 : (tensor<3x2x{kind}>) -> tensor<3x2xf32>
      return %1 : tensor<3x2xf32>
    }}"""
    module = import_text(text)
    (value,) = run(module, "main", [X])
    np.testing.assert_array_equal(np.asarray(compile_module(module, cache=False)["main"](X)), value)
    return value


def test_one_scale_or_one_per_index() -> None:
    whole = np.rint(np.clip(np.nan_to_num(X / 0.5 + 1, nan=0), -128, 127))
    np.testing.assert_array_equal(there_and_back("!quant.uniform<i8:f32, 0.5:1>"), (whole - 1) * np.float32(0.5))
    scale, zero = np.float32([0.5, 0.25]), np.float32([1, 0])
    narrow = np.rint(np.clip(np.nan_to_num(X / scale + zero, nan=0), -127, 127))
    np.testing.assert_array_equal(there_and_back("!quant.uniform<i8<-127:127>:f32:1, {0.5:1, 0.25}>"), (narrow - zero) * scale)


def test_quantized_numbers_in_another_scale() -> None:
    a, b = "tensor<2x!quant.uniform<u8:f32, 0.5:100>>", "tensor<2x!quant.uniform<i16:f32, 0.125>>"
    text = f"""func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> {{
      %0 = stablehlo.uniform_quantize %x : (tensor<2xf32>) -> {a}
      %1 = stablehlo.uniform_quantize %0 : ({a}) -> {b}
      %2 = stablehlo.uniform_dequantize %1 : ({b}) -> tensor<2xf32>
      return %2 : tensor<2xf32>
    }}"""
    (value,) = run(import_text(text), "main", [np.float32([1.1, -100])])
    assert value.tolist() == [1.0, -50.0]


@pytest.mark.parametrize(
    ("kind", "op"),
    [("!quant.uniform<i4:f32, 0.5:1>", "uniform_quantize"), ("!quant.uniform<i8:f32:{0:1}, {{0.5:1}}>", "uniform_quantize")],
)
def test_types_that_level_1_cannot_hold(kind: str, op: str) -> None:
    text = f"func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> {{\n %0 = stablehlo.{op} %x : (tensor<2xf32>) -> tensor<2x{kind}>\n"
    with pytest.raises(GradirError, match=r"quant\.uniform") as caught:
        import_text(text + " return %x : tensor<2xf32>\n}\n")
    assert caught.value.code == "GR120"


def test_arithmetic_on_quantized_numbers_is_refused() -> None:
    kind = "tensor<2x!quant.uniform<i8:f32, 0.5:1>>"
    text = f"""func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> {{
      %0 = stablehlo.uniform_quantize %x : (tensor<2xf32>) -> {kind}
      %1 = stablehlo.add %0, %0 : {kind}
      return %x : tensor<2xf32>
    }}"""
    with pytest.raises(GradirError, match=r"stablehlo\.add: element type !quant\.uniform<i8:f32, 0\.5:1>") as caught:
        import_text(text)
    assert caught.value.code == "GR120"
