"""nd-simplify keeps the bits of every sample, as it stands and with its inputs made constants, and is linear in program size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import FunctionType, TensorType
from xdsl.ir import Operation

from gradir.dialects import nd
from gradir.dialects.nd.base import Sample
from gradir.dialects.types import shape_of
from gradir.ir.passes import PassContext
from gradir.ir.text import parse_module, print_module, verify_module
from gradir.lowering.canonicalize import canonicalize
from gradir.lowering.nd_simplify import NdSimplify
from tests.dialects.test_samples import CASES, run


def bits(values: list[np.ndarray[Any, Any]] | None) -> list[Any]:
    """Comparable bits; a NaN counts as any other."""
    assert values is not None
    return [(v.dtype, v.shape, np.where(v != v, np.zeros((), v.dtype), v).tobytes(), (v != v).tobytes()) for v in values]


def simplified(module: Operation) -> Operation:
    NdSimplify().apply(module, PassContext())
    verify_module(module)
    return module


@pytest.mark.parametrize(("op", "sample"), CASES)
def test_bits_are_kept(op: type[Operation], sample: Sample):
    module = parse_module(sample.text)
    expected = run(module, sample.inputs())
    if expected is not None:
        assert bits(run(simplified(module), sample.inputs())) == bits(expected)


@pytest.mark.parametrize(("op", "sample"), CASES)
def test_bits_are_kept_on_constants(op: type[Operation], sample: Sample):
    module = parse_module(sample.text)
    expected = run(module, sample.inputs())
    if expected is None:
        return
    function = next(o for o in module.walk() if o.name == "func.func")
    block = function.body.block
    inputs = list(sample.inputs())
    for argument, value in list(zip(block.args, inputs)):
        if isinstance(argument.type, TensorType) and all(isinstance(n, int) for n in shape_of(argument)):
            constant = nd.ConstantOp.make(value)
            block.insert_op_before(constant, block.first_op)
            argument.replace_all_uses_with(constant.result)
            block.erase_arg(argument)
            inputs = [other for other in inputs if other is not value]
    function.properties["function_type"] = FunctionType.from_lists([a.type for a in block.args], list(function.function_type.outputs))
    assert bits(run(simplified(module), tuple(inputs))) == bits(expected)


def test_work_on_chains_is_linear():
    def rules_applied(count: int) -> int:
        step = "  %{1} = nd.neg %{0} : tensor<4xf32>\n  %t{0} = nd.reshape %{0} : tensor<4xf32> -> tensor<2x2xf32>"
        lines = [step.format(k, k + 1) for k in range(count)]
        text = "func.func @f(%0: tensor<4xf32>) -> tensor<4xf32> {\n" + "\n".join(lines) + f"\n  return %{count} : tensor<4xf32>\n}}"
        module = parse_module(text, check=False)
        applied = canonicalize(module, ("nd",))
        assert "nd.neg" not in print_module(module)
        return applied

    assert rules_applied(800) <= 4 * rules_applied(200) + 8
