"""The checks of `differentiate{check}` on every sample of every op: no false alarm, and a rule that is off by a tenth is caught."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block

from gradir.autodiff.differentiate import Differentiate
from gradir.autodiff.registry import VJP, load_rules
from gradir.dialects import ad, nd
from gradir.errors import GradirError
from gradir.ir.builder import Builder, new_function
from gradir.ir.checks import checks
from gradir.ir.passes import PassContext
from gradir.ir.text import parse_module
from gradir.reference import run
from gradir.reference.check_derivatives import DerivativeChecks
from gradir.reference.inputs import generate, has_run_time_sizes
from gradir.reference.run import input_types
from tests.autodiff.gradients import in_f64, promoted

pytestmark = pytest.mark.full

SAMPLES = {family: [s for op in ops for s in getattr(op, "samples", tuple)() if s.wrt] for family, ops in nd.FAMILIES.items()}


def with_request(text: str, wrt: tuple[int, ...]) -> tuple[ModuleOp, FuncOp]:
    """The module with a request of a vjp of `@f`, and `@f`."""
    module = parse_module(text)
    (f,) = [op for op in module.body.block.ops if isinstance(op, FuncOp) and op.sym_name.data == "f"]
    inputs, outputs = f.function_type.inputs.data, f.function_type.outputs.data
    block = Block(arg_types=[*inputs, *outputs])
    op = ad.VjpOp.make("f", list(block.args), wrt, outputs)
    block.add_op(op)
    Builder(block).op(ReturnOp, list(op.results))
    module.body.block.add_op(new_function("vjp", block, [r.type for r in op.results]))
    return module, f


@pytest.mark.parametrize("element", ["f64", "f32"])
@pytest.mark.parametrize("family", [family for family, samples in SAMPLES.items() if samples])
def test_no_false_alarm(family: str, element: str) -> None:
    """At random points, and at those of the sample itself: there are ties, zeros and kinks among them."""
    for sample in SAMPLES[family]:
        module, _ = with_request(in_f64(sample.text).replace("f64", element), sample.wrt)
        Differentiate(check=True).apply(module, PassContext())
        error = DerivativeChecks(0, 3).after("differentiate", module)
        assert error is None, error
        if element != "f64":
            continue
        own = promoted(sample.inputs())
        for check in checks(module):
            drawn = generate(input_types(check), 0, 0)
            if not has_run_time_sizes(check) and all(x.shape == y.shape for x, y in zip(drawn, own)):
                found, expected, tolerance, agrees = run(module, check.sym_name.data, [*own, *drawn[len(own) :]])
                assert agrees, (sample.name, check.sym_name.data, found, expected, tolerance)


def test_a_rule_that_is_off_by_a_tenth_is_caught() -> None:
    """All but a few: where the derivative is 0, or no random point lies in the domain."""
    load_rules()
    outcomes: Counter[str] = Counter()
    for sample in (s for samples in SAMPLES.values() for s in samples):
        module, f = with_request(in_f64(sample.text), sample.wrt)
        ruled = [op for op in f.body.block.ops if type(op) in VJP]
        if not ruled:
            continue
        right = VJP[type(ruled[-1])]

        def wrong(t: Any, op: Any, ct: Any, right: Any = right) -> Any:
            found = right(t, op, ct)
            return tuple(None if c is None else t.scale(c() if callable(c) else c, 1.1) for c in found)

        VJP[type(ruled[-1])] = wrong
        try:
            Differentiate(check=True).apply(module, PassContext())
            error = DerivativeChecks(0, 2).after("differentiate", module)
        except GradirError:
            continue
        finally:
            VJP[type(ruled[-1])] = right
        assert error is None or error.code == "AD015"
        outcomes["missed" if error is None else "caught"] += 1
    assert outcomes["caught"] > 250 and outcomes["missed"] < 0.1 * outcomes.total(), outcomes
