"""What level 2 has no derivative for is an error with code, op and place; a zero is never guessed."""

from __future__ import annotations

import pytest

from gradir.autodiff.differentiate import Differentiate
from gradir.errors import GradirError
from gradir.ir.passes import PassContext
from gradir.ir.text import parse_module

COMPLEX = """
#id = affine_map<(i) -> (i)>
func.func private @f(%x: tensor<4xcomplex<f64>>) -> tensor<4xcomplex<f64>> {
  %e = tensor.empty() : tensor<4xcomplex<f64>>
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<4xcomplex<f64>>)
    outs(%e : tensor<4xcomplex<f64>>) {
  ^bb0(%a: complex<f64>, %o: complex<f64>):
    linalg.yield %a : complex<f64>
  } -> tensor<4xcomplex<f64>>
  return %r : tensor<4xcomplex<f64>>
}
"""
PADDING = """
func.func private @f(%x: tensor<4xf64>, %s: tensor<f64>) -> tensor<6xf64> {
  %v = tensor.extract %s[] : tensor<f64>
  %r = tensor.pad %x low[1] high[1] {
  ^bb0(%i: index):
    %w = arith.mulf %v, %v : f64
    tensor.yield %w : f64
  } : tensor<4xf64> to tensor<6xf64>
  return %r : tensor<6xf64>
}
"""
RESHAPE = """
func.func private @f(%x: tensor<4xf64>) -> tensor<2x2xf64> {
  %n = arith.constant dense<2> : tensor<2xindex>
  %r = tensor.reshape %x(%n) : (tensor<4xf64>, tensor<2xindex>) -> tensor<2x2xf64>
  return %r : tensor<2x2xf64>
}
"""
TRANSPOSE = """
func.func private @f(%x: tensor<2x3xf64>) -> tensor<3x2xf64> {
  %e = tensor.empty() : tensor<3x2xf64>
  %r = linalg.transpose ins(%x : tensor<2x3xf64>) outs(%e : tensor<3x2xf64>) permutation = [1, 0]
  return %r : tensor<3x2xf64>
}
"""


def with_request(text: str, kinds: list[str], result: str, mode: str) -> str:
    """`@g` asks for the derivative of `@f` by all arguments."""
    names = [f"%a{k}" for k in range(len(kinds))]
    if mode == "vjp":
        given, results = [*names, "%c"], [result, *kinds]
        types = [*kinds, result]
    else:
        given, results = [*names, *(f"%t{k}" for k in range(len(kinds)))], [result, result]
        types = [*kinds, *kinds]
    signature = ", ".join(f"{n}: {t}" for n, t in zip(given, types))
    found = ", ".join(f"%r{k}" for k in range(len(results)))
    wrt = ", ".join(str(k) for k in range(len(kinds)))
    return f"""{text}
func.func @g({signature}) -> ({", ".join(results)}) {{
  {found} = ad.{mode} @f({", ".join(given)}) wrt [{wrt}] : ({", ".join(types)}) -> ({", ".join(results)})
  return {found} : {", ".join(results)}
}}
"""


@pytest.mark.parametrize("mode", ["vjp", "jvp"])
@pytest.mark.parametrize(
    ("text", "kinds", "result", "op", "line", "says"),
    [
        (COMPLEX, ["tensor<4xcomplex<f64>>"], "tensor<4xcomplex<f64>>", "linalg.generic", 5, "complex numbers"),
        (PADDING, ["tensor<4xf64>", "tensor<f64>"], "tensor<6xf64>", "tensor.pad", 4, "compute the value before tensor.pad"),
        (RESHAPE, ["tensor<4xf64>"], "tensor<2x2xf64>", "tensor.reshape", 4, "no derivative rule"),
        (TRANSPOSE, ["tensor<2x3xf64>"], "tensor<3x2xf64>", "linalg.transpose", 4, "mlir-opt --linalg-generalize-named-ops"),
    ],
    ids=["complex", "padding", "reshape", "named"],
)
def test_refused(text: str, kinds: list[str], result: str, op: str, line: int, says: str, mode: str) -> None:
    module = parse_module(with_request(text, kinds, result, mode), "kernel.mlir")
    with pytest.raises(GradirError, match="AD001") as caught:
        Differentiate().apply(module, PassContext())
    message = str(caught.value)
    assert op in message and says in message and f"kernel.mlir:{line}:" in message
    assert f"ad.{mode} @f" in message or "complex" in message


def test_a_batch_of_a_nest_that_asks_for_the_size_of_what_differs() -> None:
    text = """
#id = affine_map<(i) -> (i)>
func.func private @f(%x: tensor<4xf64>, %w: tensor<3xf64>) -> tensor<3xindex> {
  %e = tensor.empty() : tensor<3xindex>
  %zero = arith.constant 0 : index
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%w : tensor<3xf64>) outs(%e : tensor<3xindex>) {
  ^bb0(%a: f64, %o: index):
    %n = tensor.dim %x, %zero : tensor<4xf64>
    linalg.yield %n : index
  } -> tensor<3xindex>
  return %r : tensor<3xindex>
}
func.func @g(%x: tensor<2x4xf64>, %w: tensor<3xf64>) -> tensor<2x3xindex> {
  %r = ad.batch @f(%x, %w) over [0] : (tensor<2x4xf64>, tensor<3xf64>) -> tensor<2x3xindex>
  return %r : tensor<2x3xindex>
}
"""
    with pytest.raises(GradirError, match=r"AD013.*tensor.dim") as caught:
        Differentiate().apply(parse_module(text, "kernel.mlir"), PassContext())
    assert "kernel.mlir:8:" in str(caught.value)
