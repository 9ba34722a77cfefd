"""The expansion of each composite computes what the composite means, on every sample; and through which parts derivatives run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gradir.dialects import nd
from gradir.dialects.nd.base import Sample
from gradir.ir.passes import PassContext
from gradir.ir.text import parse_module, print_module, verify_module
from gradir.lowering.nd_expand import NdExpand
from tests.dialects.test_samples import run

COMPOSITES = [op for op in nd.Nd.operations if issubclass(op, nd.Composite)]
CASES = [pytest.param(sample, id=f"{op.name}: {sample.name}") for op in COMPOSITES for sample in op.samples()]
EPS = {
    "float64": 2.0**-52,
    "float32": 2.0**-23,
    "bfloat16": 2.0**-7,
    "float16": 2.0**-10,
    "float8_e4m3fn": 2.0**-3,
    "float8_e5m2": 2.0**-2,
}


def close(found: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> None:
    """Within 16 ulp of the greatest finite number in the row (sums of rows round relative to it); integers exactly."""
    if expected.dtype.kind in "iub":
        np.testing.assert_array_equal(found, expected)
        return
    eps = EPS[expected.dtype.name]
    a, b = found.astype(np.float64), expected.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    scale = np.maximum(np.abs(np.where(np.isfinite(b), b, 0)), 1)
    with np.errstate(invalid="ignore"):
        assert np.all(same | (np.abs(a - b) <= 16 * eps * scale)), (a, b)


@pytest.mark.parametrize("sample", CASES)
def test_expansion_means_the_same(sample: Sample):
    module = parse_module(sample.text)
    expected = run(module, sample.inputs())
    NdExpand().apply(module, PassContext())
    verify_module(module)
    assert not any(isinstance(op, nd.Composite) for op in module.walk())
    assert "ad." not in print_module(module)
    found = run(module, sample.inputs())
    assert expected is not None and found is not None
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        close(a, b)


def test_expansion_of_a_run_time_batch_takes_sizes_from_the_symbol():
    text = """
    func.func @f(%x: tensor<?x3xf32, ["b", ""]>) -> tensor<?x3xf32, ["b", ""]> {
      %0 = nd.softmax %x dim 1 : tensor<?x3xf32, ["b", ""]>
      return %0 : tensor<?x3xf32, ["b", ""]>
    }
    """
    module = parse_module(text)
    NdExpand().apply(module, PassContext())
    verify_module(module)
    assert 'nd.symbol "b"' in print_module(module)


def test_kept_composites_stay():
    sample = nd.GeluOp.samples()[0]
    module = parse_module(sample.text)
    NdExpand(keep=("nd.gelu",)).apply(module, PassContext())
    assert "nd.gelu" in print_module(module)


def test_expansion_keeps_the_location():
    text = """
    func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = nd.gelu %x : tensor<2xf32> loc("model.py":3:12)
      return %0 : tensor<2xf32>
    }
    """
    module = parse_module(text)
    NdExpand().apply(module, PassContext())
    assert all("model.py" in str(op.location) for op in module.walk() if op.name.startswith("nd."))
