"""`differentiate{check}`: right derivatives pass their checks at every level, wrong ones are caught with the pass that made them so."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

import gradir as gd
from gradir.autodiff.differentiate import Differentiate
from gradir.autodiff.registry import VJP, load_rules
from gradir.autodiff.tensors import TensorBuilder
from gradir.dialects import nd
from gradir.driver.compile import compile_module
from gradir.driver.passes import PASSES, load_pass
from gradir.driver.pipelines import expand_pipeline
from gradir.errors import GradirError
from gradir.ir.checks import check_of, checks, drop_checks
from gradir.ir.options import configure
from gradir.ir.passes import Pass, PassContext
from gradir.ir.text import parse_module, print_module, verify_module
from gradir.reference import SemanticsChecker
from gradir.reference.check_derivatives import DerivativeChecks, Outcome
from gradir.tools import opt

PRIMAL = """
func.func private @f(%x: tensor<3xf64>, %w: tensor<3xf64>, %n: tensor<i32>) -> (tensor<f64>, tensor<3xf64>, tensor<i32>) {
  %t = nd.tanh %x : tensor<3xf64>
  %p = nd.mul %t, %w : tensor<3xf64>
  %l = nd.reduce_sum %p dims [0] : tensor<3xf64> -> tensor<f64>
  return %l, %p, %n : tensor<f64>, tensor<3xf64>, tensor<i32>
}
"""
ARGS, RESULTS = "tensor<3xf64>, tensor<3xf64>, tensor<i32>", "tensor<f64>, tensor<3xf64>, tensor<i32>"
REQUESTS = {
    "ad.grad": f"""func.func @g(%x: tensor<3xf64>, %w: tensor<3xf64>, %n: tensor<i32>) -> (tensor<3xf64>, tensor<3xf64>) {{
  %a, %b = ad.grad @f(%x, %w, %n) wrt [1, 0] : ({ARGS}) -> (tensor<3xf64>, tensor<3xf64>)
  return %a, %b : tensor<3xf64>, tensor<3xf64> }}""",
    "ad.value_and_grad": f"""func.func @g(%x: tensor<3xf64>, %w: tensor<3xf64>, %n: tensor<i32>) -> tensor<3xf64> {{
  %l, %p, %m, %a = ad.value_and_grad @f(%x, %w, %n) wrt [0] : ({ARGS}) -> ({RESULTS}, tensor<3xf64>)
  return %a : tensor<3xf64> }}""",
    "ad.vjp": f"""func.func @g(%x: tensor<3xf64>, %w: tensor<3xf64>, %n: tensor<i32>, %c: tensor<f64>) -> (tensor<3xf64>, tensor<3xf64>) {{
  %l, %p, %m, %b, %a = ad.vjp @f(%x, %w, %n, %c, %x, %n) wrt [1, 0] {{split}} :
    ({ARGS}, {RESULTS}) -> ({RESULTS}, tensor<3xf64>, tensor<3xf64>)
  return %a, %b : tensor<3xf64>, tensor<3xf64> }}""",
    "ad.jvp": f"""func.func @g(%x: tensor<3xf64>, %w: tensor<3xf64>, %n: tensor<i32>) -> (tensor<f64>, tensor<3xf64>) {{
  %l, %p, %m, %a, %b = ad.jvp @f(%x, %w, %n, %x, %w) wrt [1, 0] :
    ({ARGS}, tensor<3xf64>, tensor<3xf64>) -> ({RESULTS}, tensor<f64>, tensor<3xf64>)
  return %a, %b : tensor<f64>, tensor<3xf64> }}""",
}


def checked(text: str) -> ModuleOp:
    """The module, differentiated with checks."""
    module = parse_module(text)
    Differentiate(check=True).apply(module, PassContext())
    verify_module(module)
    return module


def outcomes(module: ModuleOp, samples: int = 3) -> dict[str, list[Outcome]]:
    """What the checks in the module give; they agree."""
    runs = DerivativeChecks(0, samples)
    error = runs.after("here", module)
    assert error is None, error
    return runs.outcomes


def kinds(module: ModuleOp) -> list[str]:
    return sorted(check.kind for function in checks(module) if (check := check_of(function)) is not None)


@pytest.mark.parametrize("request_name", REQUESTS)
def test_each_request_has_checks_that_decide(request_name: str) -> None:
    module = checked(PRIMAL + REQUESTS[request_name])
    found = outcomes(module)
    split = request_name == "ad.vjp"
    assert kinds(module) == ["dot", "fd"] if not split else ["dot", "dot", "fd", "fd"]
    for name, points in found.items():
        assert [point.decided for point in points] == [True] * 3, name
        assert any(abs(point.derivative) > 0.1 for point in points)
    for function in checks(module):
        check = check_of(function)
        assert check is not None and check.function == "f" and check.request.startswith(f"{request_name} @f wrt [")


@pytest.fixture
def wrong_tanh() -> Iterator[None]:
    """The rule of tanh without its square."""
    load_rules()
    right = VJP[nd.TanhOp]

    def rule(t: TensorBuilder, op: Any, ct: Any) -> Any:
        return (t.mul_strong(ct, t.sub(t.full_like(1.0, op.result), op.result)),)

    VJP[nd.TanhOp] = rule
    yield
    VJP[nd.TanhOp] = right


@pytest.mark.usefixtures("wrong_tanh")
@pytest.mark.parametrize("request_name", REQUESTS)
def test_a_wrong_rule_is_caught(request_name: str) -> None:
    """Forward mode is the transpose of the wrong rule, so the modes agree: differences tell."""
    module = parse_module(PRIMAL + REQUESTS[request_name])
    checker = SemanticsChecker(samples=2)
    checker.start(module)
    Differentiate(check=True).apply(module, PassContext())
    error = checker.after("differentiate", module)
    assert error is not None and error.code == "AD015"
    assert error.message.startswith(f"pass differentiate: {request_name} @f wrt [") and "is not the slope of @f" in error.message
    assert error.function == "@f" and float(error.found) != float(error.expected.split()[0])


@dataclass(frozen=True)
class Careless(Pass):
    """Takes the products of derivatives for sums."""

    NAME: ClassVar[str] = "test-careless"

    def apply(self, op: Operation, context: PassContext) -> None:
        assert isinstance(op, ModuleOp)
        for function in op.body.block.ops:
            if isinstance(function, FuncOp) and ".grad_" in function.sym_name.data:
                for inner in list(function.walk()):
                    if isinstance(inner, nd.MulStrongOp):
                        new = nd.AddOp.create(operands=list(inner.operands), result_types=[inner.result.type])
                        assert inner.parent is not None
                        inner.parent.insert_op_before(new, inner)
                        inner.result.replace_all_uses_with(new.results[0])
                        inner.detach()
                        inner.erase()


def test_a_later_pass_that_breaks_a_derivative_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setitem(PASSES, Careless.NAME, (Careless, "a fault for tests"))
    path = tmp_path / "f.mlir"
    path.write_text(PRIMAL + REQUESTS["ad.grad"])
    assert opt.run([str(path), "-p", "differentiate{check},cse,test-careless,canonicalize", "--check-semantics=0,2"]) == 1
    shown = capsys.readouterr().err
    assert "pass test-careless: ad.grad @f wrt [1, 0] has other numbers in forward than in reverse mode" in shown and "AD015" in shown
    assert opt.run([str(path), "-p", "differentiate{check},cse,canonicalize", "--check-semantics=0,2"]) == 0


def test_a_violation_in_the_input_and_a_lost_check_are_errors() -> None:
    module = checked(PRIMAL + REQUESTS["ad.grad"])
    checker = SemanticsChecker(samples=1)
    checker.start(module)
    broken = module.clone()
    Careless().apply(broken, PassContext())
    with pytest.raises(GradirError, match=r"AD015.* the input: ad\.grad @f"):
        SemanticsChecker(samples=1).start(broken)
    drop_checks(module)
    error = checker.after("nothing", module)
    assert error is not None and error.code == "AD015" and "pass nothing: the check @f.check_dot_0 is gone" in error.message


LEVELS = ["to-structured", "to-buffers", "to-loops"]


@pytest.mark.parametrize("element", ["f64", pytest.param("f32", marks=pytest.mark.full)])
def test_checks_decide_at_every_level(element: str) -> None:
    module = checked((PRIMAL + REQUESTS["ad.value_and_grad"]).replace("f64", element))
    runs = DerivativeChecks(0, 2)
    assert runs.after("differentiate", module) is None
    for level in LEVELS:
        for step in expand_pipeline(level, {"target": "cpu"} if level == "to-structured" else {}):
            configure(load_pass(step.name), dict(step.options), step.name).apply(module, PassContext())
        assert runs.after(level, module) is None
        assert all(point.decided for points in runs.outcomes.values() for point in points)
    verify_module(module)
    assert kinds(module) == ["dot", "fd"]


def test_nothing_is_compiled_for_checks() -> None:
    module = checked(PRIMAL + REQUESTS["ad.grad"])
    compiled = compile_module(module, cache=False)
    assert [spec.name for spec in compiled.manifest.functions] == ["g"]
    plain = parse_module(PRIMAL + REQUESTS["ad.grad"])
    Differentiate().apply(plain, PassContext())
    drop_checks(module)
    assert len(checks(module)) == 0 and "check_" not in print_module(module)
    x = np.array([0.1, 0.2, 0.3])
    for a, b in zip(compiled["g"].flat(x, x, np.int32(1)), compile_module(plain, cache=False)["g"].flat(x, x, np.int32(1))):
        np.testing.assert_array_equal(a, b)


def of(function: Any, *args: Any) -> dict[str, list[Outcome]]:
    """The checks of a traced function of derivatives."""
    module = gd.jit(function).lower(*args)
    Differentiate(check=True).apply(module, PassContext())
    return outcomes(module)


def test_complex_numbers_control_flow_and_second_order() -> None:
    z = np.array([1 + 2j, -1j])
    found = of(gd.grad(lambda z: gd.sum(gd.real(z * z * gd.conj(z)))), z)
    assert found and all(point.decided for points in found.values() for point in points)

    def loop(x: Any) -> Any:
        return gd.while_loop(lambda c: c[1] < 5, lambda c: (gd.sin(c[0]) * x, c[1] + 1), (x, gd.asarray(0)))[0]

    found = of(gd.grad(lambda x: gd.sum(gd.cond(gd.sum(x) > 0, loop, gd.cos, x))), np.ones(3))
    assert found and all(point.decided for points in found.values() for point in points)
    found = of(gd.grad(gd.grad(lambda x: x**3 * gd.tanh(x))), np.float64(0.3))
    assert len(found) == 4 and all(point.decided for points in found.values() for point in points)


def test_run_time_sizes() -> None:
    module = gd.jit(gd.grad(lambda x: gd.sum(gd.tanh(x) * x)), dynamic={"x": ("b",)}).lower(np.ones(3))
    Differentiate(check=True).apply(module, PassContext())
    found = outcomes(module)
    assert [len(points) for points in found.values()] == [3, 3]  # b = 3, 1, 0
    assert all(point.decided for points in found.values() for point in points)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: gd.sum(gd.relu(0 * x)),
        lambda x: gd.sum(gd.relu(x - x) + gd.clip(x * 0 + 1, -1, 1)),
        lambda x: gd.sum(gd.maximum(x, x + 0)),
        lambda x: gd.sum(gd.abs(x - x) * 3 - gd.sqrt(gd.abs(x * 0))),
        lambda x: gd.sum(gd.floor(x) * 2 + gd.round(0 * x + 0.5)),
        lambda x: gd.sum(gd.log(-gd.abs(x))),
        lambda x: gd.sum(gd.exp(x * 0 + 1000.0) * x),
    ],
)
def test_kinks_and_infinities_raise_no_alarm(function: Any) -> None:
    """Random points meet a kink only where the program has one everywhere; both sides then have other slopes, and nothing is decided."""
    of(gd.grad(function), np.ones(3))


def test_kinks_are_undecided() -> None:
    found = of(gd.grad(lambda x: gd.sum(gd.relu(0 * x))), np.ones(3))
    assert all(point.decided for points in found.values() for point in points)  # the slope is 0 on both sides
    found = of(gd.grad(lambda x: gd.sum(gd.relu(x - gd.stop_gradient(x)))), np.ones(3))
    assert list(found) == [name for name in found if "check_dot" in name]  # the derivative is not the slope, by request
    found = of(gd.grad(lambda x, y: gd.sum(gd.relu(x - y))), np.ones(3), np.ones(3))
    assert all(point.decided for points in found.values() for point in points)
    found = of(gd.grad(lambda x: gd.sum(gd.abs(gd.sort(gd.reduce_precision(x, 8, 7))))), np.ones(3))
    assert list(found) == [name for name in found if "check_dot" in name]


def test_a_kink_in_every_point_decides_nothing() -> None:
    text = """
func.func private @f(%x: tensor<f64>, %y: tensor<f64>) -> tensor<f64> {
  %d = nd.sub %x, %x : tensor<f64>
  %s = nd.add %d, %y : tensor<f64>
  %r = nd.relu %s : tensor<f64>
  return %r : tensor<f64>
}
func.func @g(%x: tensor<f64>, %y: tensor<f64>) -> tensor<f64> {
  %a = ad.grad @f(%x, %y) wrt [1] : (tensor<f64>, tensor<f64>) -> tensor<f64>
  return %a : tensor<f64>
}
"""
    module = checked(text)
    function = next(f for f in checks(module) if f.sym_name.data == "f.check_fd_0")
    from gradir.reference import run

    _, _, tolerance, ok = run(module, function.sym_name.data, [np.float64(1), np.float64(0), np.float64(1)])
    assert np.isinf(tolerance) and ok
    _, _, tolerance, ok = run(module, function.sym_name.data, [np.float64(1), np.float64(0.5), np.float64(1)])
    assert np.isfinite(tolerance) and ok


@pytest.mark.parametrize(("element", "expected"), [("bf16", ["dot", "fd"]), ("f16", ["dot", "fd"]), ("f8E5M2", [])])
def test_narrow_types(element: str, expected: list[str]) -> None:
    """The tolerance is that of the narrowest type in the function; 8 bits say nothing."""
    x, narrow = "tensor<4xf32>", f"tensor<4x{element}>"
    text = f"""
func.func private @f(%x: {x}) -> tensor<f32> {{
  %n = nd.convert %x : {x} -> {narrow}
  %w = nd.convert %n : {narrow} -> {x}
  %t = nd.tanh %w : {x}
  %l = nd.reduce_sum %t dims [0] : {x} -> tensor<f32>
  return %l : tensor<f32>
}}
func.func @g(%x: {x}) -> {x} {{
  %a = ad.grad @f(%x) wrt [0] : ({x}) -> {x}
  return %a : {x}
}}
"""
    module = checked(text)
    assert kinds(module) == expected
    outcomes(module)


def test_a_wrong_rule_of_ones_own_is_caught() -> None:
    @gd.custom_vjp
    def f(x: Any) -> Any:
        return gd.sin(x)

    f.defvjp(lambda x: (gd.sin(x), x), lambda x, ct: (ct * gd.sin(x),))
    module = gd.jit(gd.grad(lambda x: gd.sum(f(x)))).lower(np.ones(3))
    Differentiate(check=True).apply(module, PassContext())
    error = DerivativeChecks(0, 1).after("pass differentiate", module)
    assert error is not None and error.code == "AD015" and "is not the slope" in error.message
