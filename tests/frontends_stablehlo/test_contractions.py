"""Contractions whose result is wider than the factors keep both types: nothing is converted in memory first."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from gradir.driver.compile import compile_module
from gradir.frontends.stablehlo import import_text
from gradir.ir.text import print_module
from gradir.reference import run

RNG = np.random.default_rng(9)
DTYPES: dict[str, Any] = {"i8": np.int8, "ui8": np.uint8, "i32": np.int32, "bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32}


def draw(element: str, *shape: int) -> np.ndarray:
    dtype = DTYPES[element]
    if np.dtype(dtype).kind in "iu":
        return RNG.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype, endpoint=True)
    return RNG.normal(size=shape).astype(dtype)


def both(text: str, *inputs: np.ndarray) -> np.ndarray:
    module = import_text(text)
    assert "nd.convert" not in print_module(module)
    (value,) = run(module, "main", list(inputs))
    compiled = np.asarray(compile_module(module, cache=False)["main"](*inputs))
    assert compiled.dtype == value.dtype
    np.testing.assert_allclose(compiled, value, rtol=1e-5, atol=1e-5)
    return value


PAIRS = [("i8", "i8", "i32"), ("ui8", "i8", "i32"), ("bf16", "bf16", "f32"), ("f16", "f16", "f32")]


@pytest.mark.parametrize(("left", "right", "result"), PAIRS)
def test_dot_general(left: str, right: str, result: str) -> None:
    x, y = draw(left, 2, 3, 40), draw(right, 2, 40, 5)
    found = both(
        f"func.func public @main(%x: tensor<2x3x40x{left}>, %y: tensor<2x40x5x{right}>) -> tensor<2x3x5x{result}> {{\n"
        f"  %r = stablehlo.dot_general %x, %y, batching_dims = [0] x [0], contracting_dims = [2] x [1] : "
        f"(tensor<2x3x40x{left}>, tensor<2x40x5x{right}>) -> tensor<2x3x5x{result}>\n"
        f"  return %r : tensor<2x3x5x{result}>\n}}\n",
        x,
        y,
    )
    wide = np.int64 if result == "i32" else np.float64
    np.testing.assert_allclose(found, np.matmul(x.astype(wide), y.astype(wide)), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(("left", "right", "result"), PAIRS)
def test_convolution(left: str, right: str, result: str) -> None:
    x, w = draw(left, 1, 2, 5, 5), draw(right, 3, 2, 2, 2)
    found = both(
        f"func.func public @main(%x: tensor<1x2x5x5x{left}>, %w: tensor<3x2x2x2x{right}>) -> tensor<1x3x4x4x{result}> {{\n"
        f"  %r = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {{}} "
        f"{{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} : "
        f"(tensor<1x2x5x5x{left}>, tensor<3x2x2x2x{right}>) -> tensor<1x3x4x4x{result}>\n"
        f"  return %r : tensor<1x3x4x4x{result}>\n}}\n",
        x,
        w,
    )
    wide = np.int64 if result == "i32" else np.float64
    expected = np.zeros((1, 3, 4, 4), wide)
    for i in range(4):
        for j in range(4):
            expected[:, :, i, j] = np.einsum("bfhw,ofhw->bo", x[:, :, i : i + 2, j : j + 2].astype(wide), w.astype(wide))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-4)
