"""Every sample of every op of `nd` means the same at level 1, as loop nests, and as kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from gradir.dialects import nd
from gradir.dialects.nd.base import Sample
from gradir.ir.passes import PassContext
from gradir.ir.text import parse_module
from gradir.lowering.convert_nd_to_linalg import ConvertNdToLinalg
from gradir.lowering.f8_to_bits import F8ToBits
from gradir.lowering.fuse import Fuse
from gradir.lowering.nd_expand import NdExpand
from gradir.lowering.order_kernels import OrderKernels
from gradir.lowering.outline_kernels import OutlineKernels
from gradir.lowering.split_complex import SplitComplex
from gradir.reference import run

SLOW = {"nd.select_and_scatter: bf16 many"}
"""Large samples whose level 2 the evaluator walks element by element: a minute and more."""


def case(op: type[nd.NdOp], sample: Sample) -> Any:
    name = f"{op.name}: {sample.name}"
    return pytest.param(op, sample, id=name, marks=pytest.mark.full if name in SLOW else ())


CASES = [case(op, sample) for op in nd.Nd.operations for sample in op.samples()]


def apply(module: ModuleOp, *passes: Any) -> ModuleOp:
    for each in passes:
        each.apply(module, PassContext())
    return module


EPSILON = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "float8_e5m2": 2.0**-2, "float8_e4m3fn": 2.0**-3}


def agree(found: np.ndarray[Any, Any], expected: np.ndarray[Any, Any], family: str, *, complex_parts: bool = False) -> None:
    """Same type, NaN where NaN, integers exactly; elementwise floats within 4 ulp, sums relative to the largest element.

    Zeros of real numbers have their sign too; those of `complex_parts` depend on the formula.
    """
    if found.dtype.kind == "i" and expected.dtype.kind == "u":  # from level 2 on the manifest alone knows the sign
        found = found.view(expected.dtype)
    if found.dtype == np.int8 and expected.dtype.name.startswith("float8"):
        found = found.view(expected.dtype)
    assert found.shape == expected.shape and found.dtype == expected.dtype
    if found.dtype.kind in "bui":
        np.testing.assert_array_equal(found, expected)
        return
    a, b = found.astype(np.float64), expected.astype(np.float64)
    np.testing.assert_array_equal(np.isnan(a), np.isnan(b))
    finite = np.isfinite(b)
    np.testing.assert_array_equal(a[~finite & ~np.isnan(b)], b[~finite & ~np.isnan(b)])
    eps = EPSILON.get(found.dtype.name, 2.0**-7)
    size = np.abs(b[finite])
    if complex_parts and family not in EXACT:  # a part is as accurate as the number is large
        norm = np.hypot(b[..., :1], b[..., 1:])
        close = np.abs(a - b) <= 16 * eps * norm + TINY[found.dtype.name]
        assert (close | ~np.isfinite(norm) | ~finite).all()
    elif family in EXACT:
        np.testing.assert_array_equal(a, b)
    elif family in ("elementwise", "mathematics"):
        assert (np.abs(a[finite] - b[finite]) <= 4 * eps * size + TINY[found.dtype.name]).all()
        zero = b == 0
        np.testing.assert_array_equal(np.signbit(a[zero]), np.signbit(b[zero]))
    elif size.size:
        assert (np.abs(a[finite] - b[finite]) <= 16 * eps * size.max()).all()


def split(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Complex numbers as pairs, as level 2 has them."""
    return np.stack([array.real, array.imag], -1) if array.dtype.kind == "c" else array


def in_memory(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What a program at level 2 is given: pairs for complex numbers, bits for 8-bit floats."""
    return array.view(np.int8) if array.dtype.name.startswith("float8") else split(array)


EXACT = ("shape", "indexing", "creation")
TINY = {"float64": 5e-324, "float32": 1e-45, "float16": 6e-8, "bfloat16": 1e-40, "float8_e5m2": 2.0**-16, "float8_e4m3fn": 2.0**-9}


@pytest.mark.parametrize(("op", "sample"), CASES)
def test_levels_agree(op: type[nd.NdOp], sample: Sample) -> None:
    inputs = sample.inputs()
    expected = run(parse_module(sample.text), "f", inputs)
    module = apply(parse_module(sample.text), NdExpand(), SplitComplex(), F8ToBits(), ConvertNdToLinalg())
    family = getattr(op, "FAMILY", "creation")
    parts = [np.asarray(x).dtype.kind == "c" for x in expected]
    pairs, expected = [in_memory(x) for x in inputs], [split(np.asarray(x)) for x in expected]
    for found, value, part in zip(run(module, "f", pairs), expected, parts, strict=True):
        agree(found, value, family, complex_parts=part)
    apply(module, Fuse(), OutlineKernels(), OrderKernels())
    for found, value, part in zip(run(module, "f", pairs), expected, parts, strict=True):
        agree(found, value, family, complex_parts=part)
