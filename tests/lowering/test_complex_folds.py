"""Identities of real numbers that complex ones and 8-bit floats do not have, and constants that fold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from gradir.driver.lower import run_passes
from gradir.driver.pipelines import Request
from gradir.driver.report import CompileReport
from gradir.ir.text import parse_module
from gradir.reference import run

T = "tensor<3xcomplex<f32>>"
SPECIAL = np.array([complex(np.nan, 1), complex(1, np.inf), complex(-0.0, -0.0)], np.complex64)


def folded(text: str) -> tuple[ModuleOp, ModuleOp]:
    module = parse_module(text)
    after = module.clone()
    run_passes(after, [Request("canonicalize"), Request("nd-simplify"), Request("canonicalize")], CompileReport())
    return module, after


def keeps_its_bits(text: str, inputs: Sequence[Any]) -> ModuleOp:
    before, after = folded(text)
    for a, b in zip(run(before, "f", inputs), run(after, "f", inputs)):
        np.testing.assert_array_equal(a, b)
        assert a.dtype == b.dtype
    return after


@pytest.mark.parametrize(
    "line",
    [
        f"%r = nd.sub %z, %z : {T}",
        f"%s = nd.sign %z : {T}\n%r = nd.sign %s : {T}",
        f"%c = nd.constant splat((0.0, 0.0) : complex<f32>) : {T}\n%r = nd.mul %z, %c : {T}",
        f"%c = nd.constant splat((0.0, 0.0) : complex<f32>) : {T}\n%r = nd.add %z, %c : {T}",
        f"%c = nd.constant splat((1.0, 0.0) : complex<f32>) : {T}\n%r = nd.mul_strong %z, %c : {T}",
        f"%c = nd.constant splat((0.0, 0.0) : complex<f32>) : {T}\n%r = nd.mul_strong %z, %c : {T}",
        f"%c = nd.constant splat((1.0, 2.0) : complex<f32>) : {T}\n%r = nd.mul_strong %c, %z : {T}",
        f"%n = nd.neg %z : {T}\n%r = nd.add %z, %n : {T}",
    ],
)
def test_infinities_and_nan_stay(line: str):
    keeps_its_bits(f"func.func @f(%z: {T}) -> {T} {{\n{line}\nreturn %r : {T}\n}}", [SPECIAL])


@pytest.mark.parametrize("direction", ["eq", "ne"])
def test_nan_is_not_itself(direction: str):
    text = f"func.func @f(%z: {T}) -> tensor<3xi1> {{\n%r = nd.compare {direction}, %z, %z : {T}\nreturn %r : tensor<3xi1>\n}}"
    keeps_its_bits(text, [SPECIAL])


def test_sum_of_one_element_is_not_a_reshape():
    kind, result = "tensor<1xcomplex<f32>>", "tensor<complex<f32>>"
    text = f"func.func @f(%z: {kind}) -> {result} {{\n%r = nd.reduce_sum %z dims [0] : {kind} -> {result}\nreturn %r : {result}\n}}"
    after = keeps_its_bits(text, [SPECIAL[2:]])
    assert any(op.name == "nd.reduce_sum" for op in after.walk())


def test_sum_of_repeated_infinities():
    text = (
        f"func.func @f(%z: {T}) -> {T} {{\n%b = nd.broadcast %z dims [1] : {T} -> tensor<4x3xcomplex<f32>>\n"
        f"%r = nd.reduce_sum %b dims [0] : tensor<4x3xcomplex<f32>> -> {T}\nreturn %r : {T}\n}}"
    )
    keeps_its_bits(text, [SPECIAL])


@pytest.mark.parametrize("constant", ["splat((-2.0, -0.0) : complex<f32>)", "dense<[(1.0, 2.0), (-0.0, 0.0), (3.0, -1.0)]>"])
@pytest.mark.parametrize("name", ["neg", "sign", "exp", "log", "sqrt", "tanh", "abs", "real", "imag", "conj"])
def test_constants_fold_to_what_the_op_means(name: str, constant: str):
    result = "tensor<3xf32>" if name in ("abs", "real", "imag") else T
    text = f"func.func @f() -> {result} {{\n%c = nd.constant {constant} : {T}\n%r = nd.{name} %c : {T}\nreturn %r : {result}\n}}"
    after = keeps_its_bits(text, [])
    assert not any(op.name == f"nd.{name}" for op in after.walk()) or name in ("real", "imag", "conj")


def test_division_of_8_bit_floats_by_a_power_of_two():
    kind = "tensor<256xf8E4M3FN>"
    text = f"func.func @f(%x: {kind}) -> {kind} {{\n%c = nd.constant splat(64.0 : f8E4M3FN) : {kind}\n%r = nd.div %x, %c : {kind}\nreturn %r : {kind}\n}}"
    before, after = folded(text)
    values = np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn)
    a, b = (run(m, "f", [values])[0].astype(float) for m in (before, after))
    np.testing.assert_array_equal(a, b)
