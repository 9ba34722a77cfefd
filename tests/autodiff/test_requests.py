"""Requests: what they produce, in which order they are resolved, and how bad ones are refused."""

import numpy as np
import pytest

from gradir.autodiff.differentiate import Differentiate
from gradir.errors import GradirError
from gradir.ir.passes import PassContext
from gradir.ir.text import parse_module, print_module, verify_module
from gradir.reference import run

CUBE = """
func.func private @cube(%x: tensor<f32>) -> tensor<f32> {
  %0 = nd.mul %x, %x : tensor<f32>
  %1 = nd.mul %0, %x : tensor<f32>
  return %1 : tensor<f32>
}
"""


def differentiate(text: str):
    module = parse_module(text, "f.mlir")
    Differentiate().apply(module, PassContext())
    verify_module(module)
    return module


def test_second_order_through_nested_requests() -> None:
    module = differentiate(
        CUBE
        + """
func.func private @slope(%x: tensor<f32>) -> tensor<f32> {
  %0 = ad.grad @cube(%x) wrt [0] : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
func.func @curvature(%x: tensor<f32>) -> tensor<f32> {
  %0 = ad.grad @slope(%x) wrt [0] : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}"""
    )
    (out,) = run(module, "curvature", [np.float32(2)])
    assert out == 12


def test_equal_requests_share_one_function() -> None:
    module = differentiate(
        CUBE
        + """
func.func @twice(%x: tensor<f32>, %y: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  %0 = ad.grad @cube(%x) wrt [0] : (tensor<f32>) -> tensor<f32>
  %1 = ad.grad @cube(%y) wrt [0] : (tensor<f32>) -> tensor<f32>
  return %0, %1 : tensor<f32>, tensor<f32>
}"""
    )
    assert print_module(module).count("@cube.grad") == 3  # one definition, two calls
    assert [float(v) for v in run(module, "twice", [np.float32(2), np.float32(3)])] == [12, 27]


def test_calls_are_differentiated_once_per_activity() -> None:
    calls = "\n".join(f"  %{k} = func.call @cube(%{k - 1 if k else 'x'}) : (tensor<f32>) -> tensor<f32>" for k in range(4))
    module = differentiate(
        CUBE
        + f"""
func.func private @chain(%x: tensor<f32>) -> tensor<f32> {{
{calls}
  return %3 : tensor<f32>
}}
func.func @g(%x: tensor<f32>) -> tensor<f32> {{
  %0 = ad.grad @chain(%x) wrt [0] : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}}"""
    )
    text = print_module(module)
    assert text.count("func.func private @cube.fwd(") == 1
    assert text.count("func.func private @cube.bwd(") == 1
    (out,) = run(module, "g", [np.float32(1.01)])
    np.testing.assert_allclose(out, 81 * 1.01**80, rtol=1e-5)


def test_split_gives_a_public_pair() -> None:
    module = differentiate(
        CUBE
        + """
func.func @g(%x: tensor<f32>, %ct: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  %0, %1 = ad.vjp @cube(%x, %ct) wrt [0] split : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
  return %0, %1 : tensor<f32>, tensor<f32>
}"""
    )
    value, *residuals = run(module, "cube.fwd", [np.float32(2)])
    (ct,) = run(module, "cube.bwd", [*residuals, np.float32(1)])
    assert (value, ct) == (8, 12)
    assert [float(v) for v in run(module, "g", [np.float32(2), np.float32(1)])] == [8, 12]


def test_strong_zero_can_be_switched_off() -> None:
    text = """
func.func private @f(%x: tensor<f32>) -> tensor<f32> {
  %z = nd.constant splat(0.0 : f32) : tensor<f32>
  %0 = nd.sqrt %x : tensor<f32>
  %1 = nd.mul %z, %0 : tensor<f32>
  return %1 : tensor<f32>
}
func.func @g(%x: tensor<f32>) -> tensor<f32> {
  %0 = ad.grad @f(%x) wrt [0] : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}"""
    assert run(differentiate(text), "g", [np.float32(0)])[0] == 0
    module = parse_module(text)
    Differentiate(strong_zero=False).apply(module, PassContext())
    assert np.isnan(run(module, "g", [np.float32(0)])[0])


def request(body: str, callee: str = "f") -> str:
    return (
        body
        + f"""
func.func @g(%x: tensor<f32>) -> tensor<f32> {{
  %0 = ad.grad @{callee}(%x) wrt [0] : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}}"""
    )


def test_missing_rule_names_op_place_and_request(monkeypatch: pytest.MonkeyPatch) -> None:
    from gradir.autodiff import registry
    from gradir.dialects import nd

    registry.load_rules()
    monkeypatch.delitem(registry.VJP, nd.MulOp)
    with pytest.raises(GradirError) as caught:
        differentiate(request(CUBE, "cube"))
    error = caught.value
    assert (error.part, error.code, error.op, error.function, error.location) == ("autodiff", "AD001", "nd.mul", "@cube", "f.mlir:3:8")
    assert "ad.grad @cube wrt [0]" in error.found


def test_recursion_is_refused() -> None:
    text = """
func.func private @f(%x: tensor<f32>) -> tensor<f32> {
  %0 = func.call @f(%x) : (tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}
"""
    with pytest.raises(GradirError) as caught:
        differentiate(request(text))
    assert caught.value.code == "AD006"


@pytest.mark.parametrize(
    ("request_", "kinds"),
    [("ad.grad @f{}(%x) wrt [0]", "(tensor<f32>) -> tensor<f32>"), ("ad.batch @f{}(%v) over [0]", "(tensor<2xf32>) -> tensor<2xf32>")],
)
def test_calls_may_be_nested_deeper_than_python_likes(request_: str, kinds: str) -> None:
    """Callees come first, level by level: a thousand frames of Python were not enough."""
    levels = 200
    functions = ["func.func private @f0(%x: tensor<f32>) -> tensor<f32> {\n  return %x : tensor<f32>\n}\n"]
    for k in range(1, levels):
        body = f"  %0 = func.call @f{k - 1}(%x) : (tensor<f32>) -> tensor<f32>\n  %1 = nd.mul %0, %x : tensor<f32>\n"
        functions.append(f"func.func private @f{k}(%x: tensor<f32>) -> tensor<f32> {{\n{body}  return %1 : tensor<f32>\n}}\n")
    asked = f"  %0 = {request_.format(levels - 1)} : {kinds}\n"
    module = parse_module("".join(functions) + f"func.func @g(%x: tensor<f32>, %v: tensor<2xf32>) {{\n{asked}  return\n}}")
    Differentiate().apply(module, PassContext())
    assert not any(op.name.startswith("ad.") for op in module.walk())
