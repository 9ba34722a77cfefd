"""Every op of `nd`, and every derivative, compiled for this machine: what the samples give is what the reference evaluator says.

The samples of one op are the functions of one module. Types that an op's samples lack, and several threads, are tests of `make test-full`.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from gradir.autodiff.registry import SKIPPED, load_rules
from gradir.dialects import nd
from gradir.dialects.nd.base import NdOp, Sample
from tests.cpu.batches import backward, differences, forward, retyped

load_rules()

OPS = [op for ops in nd.FAMILIES.values() for op in ops if op.samples()]
DIFFERENTIABLE = [op for op in OPS if op not in SKIPPED and op is not nd.BindOp]
ELEMENTS = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
WITHOUT_SUMS = ("elementwise", "mathematics", "shape", "indexing", "creation")
"""Families whose zeros have a sign that docs/numerics.md fixes."""


SINGLE_OR_DOUBLE = ("linalg", "fourier", "library")
"""Families without halves."""
WITHOUT_DERIVATIVE = {
    (nd.SelectAndScatterOp, "bf16 many"),  # max pooling has one for windows of at most 256 positions
    (nd.QrOp, "f32 full"),
    (nd.SvdOp, "f32 full"),
}


def name_of(op: type[NdOp]) -> str:
    return op.name


def samples_of(op: type[NdOp]) -> list[Sample]:
    """Those with a derivative: all but a few shapes (AD008, AD010)."""
    return [sample for sample in op.samples() if (op, sample.name) not in WITHOUT_DERIVATIVE]


@pytest.mark.parametrize("op", OPS, ids=name_of)
def test_compiled_samples(op: type[NdOp]) -> None:
    batch = forward(op.samples())
    assert differences(batch, batch.compiled(), signed_zeros=getattr(op, "FAMILY", "creation") in WITHOUT_SUMS) == []


@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=name_of)
def test_compiled_derivatives(op: type[NdOp]) -> None:
    batch = backward(samples_of(op))
    assert batch.cases
    assert differences(batch, batch.compiled()) == []


def takes(op: type[NdOp], element: str) -> bool:
    return element == "f32" or getattr(op, "FAMILY", "") not in SINGLE_OR_DOUBLE


@pytest.mark.full
@pytest.mark.parametrize(("op", "element"), [(op, element) for op in OPS for element in ELEMENTS if takes(op, element)])
def test_compiled_samples_in_other_types(op: type[NdOp], element: str) -> None:
    batch = forward(retyped(op.samples(), element, ELEMENTS[element]))
    assert not batch.cases or differences(batch, batch.compiled(threads=2)) == []


@pytest.mark.full
@pytest.mark.parametrize(("op", "element"), [(op, element) for op in DIFFERENTIABLE for element in ELEMENTS if takes(op, element)])
def test_compiled_derivatives_in_other_types(op: type[NdOp], element: str) -> None:
    batch = backward(retyped(samples_of(op), element, ELEMENTS[element]))
    assert not batch.cases or differences(batch, batch.compiled(threads=2)) == []


def test_a_wrong_program_is_noticed() -> None:
    """The comparison can fail: `x - y` compiled in place of `x + y` differs in every type."""
    samples: Any = [sample for sample in nd.AddOp.samples() if sample.name in ("f64", "int32", "bf16")]
    wrong = forward([type(sample)(sample.name, sample.text.replace("nd.add", "nd.sub"), sample.inputs) for sample in samples])
    found = differences(forward(samples), wrong.compiled())
    assert {problem.split()[0] for problem in found} == {"f64", "int32", "bf16"}
