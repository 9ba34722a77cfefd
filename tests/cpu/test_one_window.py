"""A window that is taken once: its rows are shorter than those of the memory that it lies in."""

import numpy as np
import pytest

from gradir.driver.compile import compile_module
from gradir.ir.text import parse_module
from gradir.reference import run


@pytest.mark.parametrize(("channels", "kernel", "features"), [(1, 3, 1), (3, 3, 8), (3, 7, 64)])
def test_convolution_with_one_result_per_filter(channels: int, kernel: int, features: int) -> None:
    p = kernel // 2
    result = f"tensor<1x1x1x{features}xf32>"
    operands = f"tensor<1x2x2x{channels}xf32>, tensor<{kernel}x{kernel}x{channels}x{features}xf32>"
    image, filters = operands.split(", ")
    text = f"""func.func @f(%x: {image}, %w: {filters}) -> {result} {{
  %0 = nd.conv_general %x, %w strides [2, 2] padding [{p}, {p}, {p}, {p}] : {operands} -> {result}
  return %0 : {result}
}}"""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1, 2, 2, channels)).astype(np.float32)
    w = rng.normal(size=(kernel, kernel, channels, features)).astype(np.float32)
    module = parse_module(text)
    (expected,) = run(module, "f", [x, w])
    np.testing.assert_allclose(np.asarray(compile_module(module, cache=False)["f"](x, w)), expected, rtol=1e-5, atol=1e-5)
