"""Every sample of every op with names in place of its sizes: the same program compiled for sizes that only a call knows.

All dimensions of size n >= 2 of a sample become `?` with the name `sn`. Samples whose types then do not fit (a slice to a number, a window) are left
out by the verifier; the others must give the same numbers, compiled and in the evaluator, and so must their derivatives.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from gradir.autodiff.registry import SKIPPED, load_rules
from gradir.dialects import nd
from gradir.dialects.nd.base import NdOp, Sample
from gradir.errors import GradirError
from gradir.ir.text import parse_module, verify_module
from tests.cpu.batches import backward, differences, forward

load_rules()

OPS = [op for ops in nd.FAMILIES.values() for op in ops]
USUAL = (nd.AddOp, nd.SelectOp, nd.ReduceSumOp, nd.DotGeneralOp, nd.TransposeOp, nd.SoftmaxOp)


def named(text: str) -> str:
    """The text with a name for every size of 2 or more in types without names."""

    def replace(match: re.Match[str]) -> str:
        *sizes, element = match[1].split("x")
        dims = "x".join("?" if int(n) >= 2 else n for n in sizes)
        names = ", ".join(f'"s{n}"' if int(n) >= 2 else '""' for n in sizes)
        return f"tensor<{dims}x{element}, [{names}]>" if "?" in dims else match[0]

    return re.sub(r"tensor<((?:\d+x)+[a-z]\w*)>", replace, text)


def samples_of(op: type[NdOp]) -> list[Sample]:
    """The samples of an op that are programs with names too."""
    found: list[Sample] = []
    for sample in op.samples():
        text = named(sample.text)
        if text == sample.text or "complex" in text or ', ["' in sample.text:
            continue
        try:
            verify_module(parse_module(text))
        except GradirError:
            continue
        found.append(Sample(sample.name, text, sample.inputs, sample.wrt))
    return found


def check(op: type[NdOp]) -> int:
    samples = samples_of(op)
    for sample in samples:
        try:
            batch = forward([sample])
            assert differences(batch, batch.compiled()) == [], sample.name
            if sample.wrt and op not in SKIPPED:
                batch = backward([sample])
                assert differences(batch, batch.compiled()) == [], sample.name
        except GradirError as error:
            assert error.code in REFUSED, f"{sample.name}: {error}"
    return len(samples)


REFUSED = ("AD008", "GR020")
"""A derivative that needs numbers says so; a `?` that nothing tells (a name that only a result has) too."""


@pytest.mark.parametrize("op", USUAL, ids=lambda op: op.name)
def test_names_in_place_of_sizes(op: Any) -> None:
    assert check(op)


@pytest.mark.full
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_names_in_place_of_sizes_of_every_op(op: Any) -> None:
    check(op)
