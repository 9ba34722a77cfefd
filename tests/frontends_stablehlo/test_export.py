"""Level 1 written as StableHLO: what is read back computes the same, jaxlib accepts it, XLA gives the same numbers."""

from __future__ import annotations

import numpy as np
import pytest

from gradir.dialects import nd
from gradir.dialects.nd.base import Sample
from gradir.errors import GradirError
from gradir.frontends.stablehlo import import_text
from gradir.frontends.stablehlo.export import EXPORT_RULES, export_text
from gradir.ir.text import parse_module, print_module
from gradir.reference import run
from gradir.tools.counterparts import COUNTERPARTS
from tests.frontends_stablehlo.jax_reference import needs_jax, run_with_jax

STATIC = [
    pytest.param(op, sample, id=f"{op.name}: {sample.name}")
    for ops in nd.FAMILIES.values()
    for op in ops
    if op.name in EXPORT_RULES
    for sample in op.samples()
    if "?" not in sample.text
]
LOOSE = {"nd.cumsum", "nd.cumprod"}
"""Their decompositions, which XLA runs, do not sum in f64."""

RECOGNISED = {
    "nd.reduce: bf16 rounds each step": "a sum, which may regroup",
    "nd.reduce_window_general: bf16": "a sum, which may regroup",
    "nd.select_and_scatter_general: f32 NaN": "GE and add, where a NaN counts as maximal",
}
"""Samples whose region the importer reads as one of the known folds, whose rules for rounding and NaN then hold."""

CORNERS = ("sqrt", "cbrt", "asin", "acos", "sinh", "cosh", "asinh", "acosh")

XLA_DIFFERS = {
    "nd.pow: int32": "negative exponents of integers",
    "nd.pow: uint8": "negative exponents of integers",
    "nd.reduce_window: sum bf16": "XLA sums in bf16",
    "nd.select_and_scatter: bf16 many": "XLA sums in bf16",
    "nd.scatter_add: bf16 many": "XLA sums in bf16",
    "nd.select_and_scatter: f32 ties and nan": "GE of a NaN is false",
    "nd.scatter_general: f64 windows over the edge, set": "XLA drops the whole window",
    "nd.scatter_general: f64 windows over the edge, add": "XLA drops the whole window",
    "nd.scatter_general: f32 window over the edge": "XLA drops the whole window",
    "nd.scatter_general: bf16 add many": "XLA sums in bf16",
    "nd.reduce: f32 no dimension": "the order of the two is open",
    "nd.reduce_window_general: f64 everything": "the order of the elements is open",
    "nd.rms_norm: f32 large": "subnormal numbers on the way",
    "nd.rms_norm: f32 zeros": "subnormal numbers on the way",
    **{f"nd.{name}: c64 {k}": "corners of complex functions" for name in CORNERS for k in ("grid", "large", "scalar")},
    **{f"nd.cbrt: c128{k}": "no complex cbrt" for k in ("", " tiny")},
    "nd.reduce_precision: f32 without mantissa": "NaN without a mantissa",
    **{
        f"nd.{name}: {kind} special": "corners of special functions"
        for name in ("zeta", "polygamma", "trigamma")
        for kind in ("f32", "f64")
    },
    **{f"nd.trigamma: {kind}": "corners of special functions" for kind in ("bf16", "f16")},
    "nd.fma: f16": "two roundings",
    "nd.cholesky: f32 special": "which elements are NaN where there is no factor",
    "nd.triangular_solve: f32 special": "a zero on the diagonal",
    "nd.abs: complex64 12": "corners of complex functions",
}
"""Samples where StableHLO leaves the result to the implementation, and XLA chose otherwise than docs/numerics.md."""


def exported(text: str) -> str:
    return export_text(parse_module(text))


def alike(found: np.ndarray, wanted: np.ndarray, tolerance: float) -> None:
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    if wanted.dtype.kind in "biu" and wanted.dtype.name != "bfloat16":
        np.testing.assert_array_equal(found, wanted)
    elif not tolerance:
        assert found.tobytes() == wanted.tobytes() or np.array_equal(found, wanted, equal_nan=True)
    else:
        wide = np.complex128 if wanted.dtype.kind == "c" else np.float64
        np.testing.assert_allclose(found.astype(wide), wanted.astype(wide), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("op", "sample"), STATIC)
def test_what_is_read_back_computes_the_same(op: type[nd.NdOp], sample: Sample) -> None:
    text = exported(sample.text)
    inputs = list(sample.inputs())
    if f"{op.name}: {sample.name}" in RECOGNISED:
        assert f"{op.name} " not in print_module(import_text(text))
        return
    for found, wanted in zip(run(import_text(text), "f", inputs), run(parse_module(sample.text), "f", inputs), strict=True):
        alike(found, wanted, 0.0)


def test_every_op_is_written_or_says_why_not() -> None:
    for ops in nd.FAMILIES.values():
        for op in ops:
            row = COUNTERPARTS[op.name]
            assert (op.name in EXPORT_RULES) == bool(row.stablehlo), op.name
            assert row.stablehlo or row.none, f"{op.name}: neither a counterpart nor a reason"


def test_composites_come_back_as_the_op_they_are() -> None:
    text = "func.func @f(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {\n  %y = nd.softmax %x dim 1 : tensor<2x3xf32>\n"
    text += "  %z = nd.softmax %y dim 1 : tensor<2x3xf32>\n  return %z : tensor<2x3xf32>\n}\n"
    written = exported(text)
    assert written.count('stablehlo.composite "gradir.softmax"') == 2
    assert written.count("func.func private @gradir.softmax") == 1  # equal ones share it
    back = print_module(import_text(written))
    assert back.count("nd.softmax") == 2
    assert "private" not in back
    foreign = print_module(import_text(written.replace('"gradir.softmax"', '"other.softmax"')))
    assert "nd.softmax" not in foreign
    assert "nd.exp" in foreign


def test_everything_that_is_missing_is_named_at_once() -> None:
    text = 'func.func @f(%x: tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]> {\n  %n = nd.symbol "n"\n'
    text += '  %y = nd.exp %x : tensor<?xf32, ["n"]>\n  return %y : tensor<?xf32, ["n"]>\n}\n'
    with pytest.raises(GradirError) as caught:
        exported(text)
    assert caught.value.code == "GR121"
    assert "nd.symbol" in caught.value.found
    assert "nd.exp: sizes that are known only when the program runs" in caught.value.found


# -- with jaxlib

OURS_ALONE = {"nd.custom_call"}
"""Ops whose meaning is not known there."""


def flushed(array: np.ndarray) -> np.ndarray:
    """Without subnormal numbers: XLA reads and writes them as 0."""
    if array.dtype.kind in "biu" or array.dtype.name == "bool":
        return array
    if array.dtype.kind == "c":
        parts = np.ascontiguousarray(array).view(np.float32 if array.dtype == np.complex64 else np.float64)
        return flushed(parts).view(array.dtype).reshape(array.shape)
    tiny = 2.0 ** {8: -1022, 4: -126}.get(array.dtype.itemsize, -14 if array.dtype == np.float16 else -126)
    return np.where(np.abs(array) < tiny, np.copysign(np.zeros_like(array), array), array).astype(array.dtype)


@needs_jax
@pytest.mark.parametrize(("op", "sample"), [case for case in STATIC if case.values[0].name not in OURS_ALONE])
def test_xla_gives_the_same(op: type[nd.NdOp], sample: Sample) -> None:
    text = exported(sample.text).replace("@f(", "@main(")
    inputs = [flushed(np.asarray(x)) for x in sample.inputs()]
    wanted = [flushed(value) for value in run(parse_module(sample.text), "f", inputs)]
    if f"{op.name}: {sample.name}" in XLA_DIFFERS:
        pytest.skip(XLA_DIFFERS[f"{op.name}: {sample.name}"])
    for found, value in zip(run_with_jax(text, inputs), wanted, strict=True):
        tolerance = {1: 0.25, 2: 3e-2, 4: 1e-4}.get(value.dtype.itemsize, 1e-4 if op.name in LOOSE else 1e-6)
        alike(found, value, tolerance)
