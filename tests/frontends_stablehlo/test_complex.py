"""Complex numbers and 8-bit floats in programs of StableHLO: constants in every spelling, parts, functions, and the way back to text."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from gradir.driver.compile import compile_module
from gradir.frontends.stablehlo import import_text
from gradir.frontends.stablehlo.export import export_text
from gradir.reference import run

Z = np.array([1 + 2j, -3 + 0.5j, complex(-1.0, -0.0)], np.complex64)
T = "tensor<3xcomplex<f32>>"


def results(text: str, *inputs: Any) -> list[Any]:
    """What `@main` gives: evaluated, compiled, and after a trip through the text that we write, which all agree."""
    module = import_text(text)
    found = run(module, "main", inputs)
    again = import_text(export_text(module))
    for other in (run(again, "main", inputs), _tuple(compile_module(module)["main"](*inputs))):
        for a, b in zip(found, other, strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_allclose(a.astype(complex), b.astype(complex), rtol=1e-6)
    return found


def _tuple(found: Any) -> Any:
    return found if isinstance(found, tuple) else (found,)


def test_parts():
    text = f"""
    func.func public @main(%z: {T}, %x: tensor<3xf32>) -> ({T}, tensor<3xf32>, {T}, tensor<3xf32>, tensor<3xf32>) {{
      %0 = stablehlo.real %z : ({T}) -> tensor<3xf32>
      %1 = stablehlo.imag %z : ({T}) -> tensor<3xf32>
      %2 = stablehlo.complex %1, %0 : {T}
      %3 = stablehlo.abs %z : ({T}) -> tensor<3xf32>
      %4 = chlo.conj %z : {T} -> {T}
      %5 = stablehlo.real %x : (tensor<3xf32>) -> tensor<3xf32>
      %6 = stablehlo.imag %x : (tensor<3xf32>) -> tensor<3xf32>
      return %2, %3, %4, %5, %6 : {T}, tensor<3xf32>, {T}, tensor<3xf32>, tensor<3xf32>
    }}"""
    x = np.array([1.0, np.nan, -2.0], np.float32)
    swapped, size, conj, real, imag = results(text, Z, x)
    np.testing.assert_allclose(swapped, Z.imag + 1j * Z.real)
    np.testing.assert_allclose(size, np.abs(Z), rtol=1e-6)
    np.testing.assert_array_equal(conj, Z.conj())
    np.testing.assert_array_equal(real, x)
    assert imag.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("spelled", "numbers"),
    [
        ("dense<(1.0, -2.5)>", [1 - 2.5j] * 3),
        ("dense<[(1.0, 2), (3, 4), (0x7F800000, -0.0)]>", [1 + 2j, 3 + 4j, complex(np.inf, -0.0)]),
        ('dense<"0x0000803F000000400000404000008040000080C00000A0C0">', [1 + 2j, 3 + 4j, -4 - 5j]),
        ('dense<"0x0000803F00000040">', [1 + 2j] * 3),
    ],
)
def test_constants(spelled: str, numbers: Any):
    text = f"func.func public @main() -> {T} {{\n%0 = stablehlo.constant {spelled} : {T}\nreturn %0 : {T}\n}}"
    np.testing.assert_array_equal(results(text)[0], np.array(numbers, np.complex64))


FUNCTIONS = {
    "stablehlo.exponential": np.exp,
    "stablehlo.log_plus_one": lambda z: np.log(1 + z),
    "stablehlo.sqrt": np.sqrt,
    "stablehlo.tanh": np.tanh,
    "stablehlo.sign": lambda z: z / np.abs(z),
    "stablehlo.logistic": lambda z: 1 / (1 + np.exp(-z)),
    "chlo.asin": np.arcsin,
    "chlo.acosh": np.arccosh,
    "chlo.square": lambda z: z * z,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str):
    kind = f"{T} -> {T}" if name.startswith("chlo") else T
    text = f"func.func public @main(%z: {T}) -> {T} {{\n%0 = {name} %z : {kind}\nreturn %0 : {T}\n}}"
    np.testing.assert_allclose(results(text, Z)[0], FUNCTIONS[name](Z.astype(complex)), rtol=1e-5, atol=1e-6)


def test_an_order_that_is_spelled_out():
    """JAX compares complex numbers by their real parts, then by their imaginary parts."""
    text = f"""
    func.func public @main(%z: {T}) -> tensor<complex<f32>> {{
      %init = stablehlo.constant dense<(0xFF800000, 0.0)> : tensor<complex<f32>>
      %0 = stablehlo.reduce(%z init: %init) across dimensions = [0] : ({T}, tensor<complex<f32>>) -> tensor<complex<f32>>
       reducer(%a: tensor<complex<f32>>, %b: tensor<complex<f32>>) {{
        %1 = stablehlo.real %a : (tensor<complex<f32>>) -> tensor<f32>
        %2 = stablehlo.real %b : (tensor<complex<f32>>) -> tensor<f32>
        %3 = stablehlo.compare GT, %1, %2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
        %4 = stablehlo.select %3, %a, %b : tensor<i1>, tensor<complex<f32>>
        stablehlo.return %4 : tensor<complex<f32>>
      }}
      return %0 : tensor<complex<f32>>
    }}"""
    assert results(text, Z)[0] == 1 + 2j


def test_sums_products_and_conversions():
    text = f"""
    func.func public @main(%z: {T}, %i: tensor<3xi32>) -> (tensor<complex<f32>>, tensor<complex<f64>>, tensor<3xi1>) {{
      %zero = stablehlo.constant dense<(0.0, 0.0)> : tensor<complex<f32>>
      %one = stablehlo.constant dense<(1.0, 0.0)> : tensor<complex<f64>>
      %0 = stablehlo.reduce(%z init: %zero) applies stablehlo.add across dimensions = [0] : ({T}, tensor<complex<f32>>) -> tensor<complex<f32>>
      %w = stablehlo.convert %i : (tensor<3xi32>) -> tensor<3xcomplex<f64>>
      %1 = stablehlo.reduce(%w init: %one) applies stablehlo.multiply across dimensions = [0] : (tensor<3xcomplex<f64>>, tensor<complex<f64>>) -> tensor<complex<f64>>
      %2 = stablehlo.convert %z : ({T}) -> tensor<3xi1>
      return %0, %1, %2 : tensor<complex<f32>>, tensor<complex<f64>>, tensor<3xi1>
    }}"""
    total, product, truth = results(text, Z, np.array([2, -3, 5], np.int32))
    np.testing.assert_allclose(total, Z.sum())
    assert product == -30 and truth.tolist() == [True, True, True]


@pytest.mark.parametrize("element", ["f8E4M3FN", "f8E5M2"])
def test_8_bit_floats(element: str):
    dtype = {"f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2}[element]
    kind = f"tensor<2x2x{element}>"
    text = f"""
    func.func public @main(%x: tensor<2x2xf32>) -> (tensor<2x2xf32>, {kind}) {{
      %0 = stablehlo.convert %x : (tensor<2x2xf32>) -> {kind}
      %1 = stablehlo.constant dense<[[1.5, -2.0], [0.0, 64.0]]> : {kind}
      %2 = stablehlo.dot_general %0, %1, contracting_dims = [1] x [0] : ({kind}, {kind}) -> tensor<2x2xf32>
      %3 = stablehlo.add %0, %1 : {kind}
      return %2, %3 : tensor<2x2xf32>, {kind}
    }}"""
    x = np.array([[1.1, 3.3], [-500.0, 0.01]], np.float32)
    small, weights = x.astype(dtype), np.array([[1.5, -2.0], [0.0, 64.0]], np.float32)
    product, total = results(text, x)
    np.testing.assert_allclose(product, small.astype(np.float32) @ weights, rtol=1e-6)
    np.testing.assert_array_equal(total.astype(float), (small.astype(np.float32) + weights).astype(dtype).astype(float))
