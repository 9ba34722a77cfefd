"""Every sample of every op: its text round-trips in both forms, and the meaning agrees with the declared result type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.ir import Operation

from gradir.dialects import nd
from gradir.dialects.nd.base import Sample
from gradir.dialects.types import element_of, numpy_dtype, shape_of
from gradir.ir.text import parse_module, print_module

CASES = [pytest.param(op, sample, id=f"{op.name}: {sample.name}") for op in nd.Nd.operations for sample in op.samples()]


def run(module: Operation, inputs: tuple[np.ndarray[Any, Any], ...]) -> list[np.ndarray[Any, Any]] | None:
    """The results of a straight line of nd ops on tensors; None when another dialect or an index takes part."""
    function = next(op for op in module.walk() if op.name == "func.func")
    values = dict(zip(function.body.block.args, inputs, strict=True))
    for op in function.body.block.ops:
        if op.name == "func.return":
            return [values[v] for v in op.operands]
        if op.name.startswith("nd.") and not op.results:
            continue
        if not op.name.startswith("nd.") or op.name in ("nd.symbol", "nd.dim"):
            return None
        found = op.evaluate(*(values[v] for v in op.operands))
        values.update(zip(op.results, found if isinstance(found, tuple) else (found,), strict=True))
    return None


@pytest.mark.parametrize(("op", "sample"), CASES)
def test_text_round_trips(op: type[Operation], sample: Sample):
    module = parse_module(sample.text)
    assert any(isinstance(inner, op) for inner in module.walk())
    text = print_module(module)
    generic = print_module(module, generic=True)
    assert print_module(parse_module(text)) == text
    assert print_module(parse_module(generic)) == text
    assert print_module(parse_module(text), generic=True) == generic


@pytest.mark.parametrize(("op", "sample"), CASES)
def test_meaning_agrees_with_the_result_type(op: type[Operation], sample: Sample):
    module = parse_module(sample.text)
    inputs = sample.inputs()
    results = run(module, inputs)
    if results is None:
        return
    for value, result in zip(next(o for o in module.walk() if o.name == "func.return").operands, results, strict=True):
        assert result.dtype == numpy_dtype(element_of(value))
        shape = shape_of(value)
        assert len(shape) == result.ndim
        assert all(n == m for n, m in zip(shape, result.shape) if isinstance(n, int))
    for before, after in zip(sample.inputs(), inputs):
        assert before.tobytes() == after.tobytes()


def test_names_are_unique_per_op():
    for op in nd.Nd.operations:
        names = [sample.name for sample in op.samples()]
        assert len(set(names)) == len(names), op.name


def test_differentiable_samples_are_f64():
    for op in nd.Nd.operations:
        for sample in op.samples():
            for position in sample.wrt:
                assert sample.inputs()[position].dtype == np.float64, f"{op.name}: {sample.name}"
