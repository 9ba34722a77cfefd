"""What the fuzzers found, reduced: each was a crash, a wrong number or text that did not read back."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from gradir.driver.compile import compile_module
from gradir.errors import GradirError
from gradir.ir.text import parse_module
from gradir.reference import run
from gradir.tools.fuzz.oracles import ask

SORT_WITH_LOCATIONS = """func.func @main(%x: tensor<2x1xf32>, %y: tensor<2x1xi1>) -> tensor<2x1xf32> {
  %0, %1 = nd.sort %x, %y dim 0 by (%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i1>, %d: tensor<i1>) {
    nd.yield %c : tensor<i1>
  } : tensor<2x1xf32>, tensor<2x1xi1>
  return %0 : tensor<2x1xf32>
}
"""
PAD_OF_NOTHING_IN_A_LOOP = """func.func @main(%x: tensor<1xf32>) -> tensor<1xf32> {
  %r = scf.while (%s = %x) : (tensor<1xf32>) -> (tensor<1xf32>) {
    %i = nd.iota dim 0 : tensor<0xi32>
    %b = nd.convert %i : tensor<0xi32> -> tensor<0xi1>
    %no = nd.constant splat(false) : tensor<i1>
    %p = nd.pad %b, %no low [0] high [1] : tensor<0xi1>, tensor<i1> -> tensor<1xi1>
    %q = nd.reshape %p : tensor<1xi1> -> tensor<i1>
    %more = tensor.extract %q[] : tensor<i1>
    scf.condition(%more) %s : tensor<1xf32>
  } do {
  ^bb0(%s: tensor<1xf32>):
    scf.yield %x : tensor<1xf32>
  }
  return %r : tensor<1xf32>
}
"""
ONE_NAME_BOUND_BY_TWO_CALLEES = """func.func private @part(%k: tensor<i64>, %x: tensor<f32>) -> tensor<f32> {
  %i = tensor.extract %k[] : tensor<i64>
  %n = arith.index_cast %i : i64 to index
  nd.bind %n as "n"
  %b = nd.broadcast %x dims [] sizes (%n) : tensor<f32> -> tensor<?xf32, ["n"]>
  %s = nd.symbol "n"
  %b2 = nd.broadcast %x dims [] sizes (%s) : tensor<f32> -> tensor<?xf32, ["n"]>
  %c = nd.add %b, %b2 : tensor<?xf32, ["n"]>
  %r = nd.reduce_sum %c dims [0] : tensor<?xf32, ["n"]> -> tensor<f32>
  return %r : tensor<f32>
}
func.func @main(%x: tensor<f32>, %k: tensor<i64>, %y: tensor<?xf32, ["n"]>) -> (tensor<f32>, tensor<f32>) {
  %one = nd.constant splat(3 : i64) : tensor<i64>
  %a = call @part(%k, %x) : (tensor<i64>, tensor<f32>) -> tensor<f32>
  %b = call @part(%one, %x) : (tensor<i64>, tensor<f32>) -> tensor<f32>
  return %a, %b : tensor<f32>, tensor<f32>
}
"""
SCATTER_INTO_NOTHING = """func.func @main(%at: tensor<1xi32>, %u: tensor<1xf64>) -> tensor<4xf64> {
  %x = nd.constant splat(0.0 : f64) : tensor<0xf64>
  %s = nd.scatter_add %x, %at, %u dim 0 : tensor<0xf64>, tensor<1xi32>, tensor<1xf64> -> tensor<0xf64>
  %zero = nd.constant splat(0.0 : f64) : tensor<f64>
  %p = nd.pad %s, %zero low [0] high [4] : tensor<0xf64>, tensor<f64> -> tensor<4xf64>
  return %p : tensor<4xf64>
}
"""


@pytest.mark.parametrize(
    ("oracle", "text"),
    [
        pytest.param("gradient", SCATTER_INTO_NOTHING, id="the derivative of an update that is dropped read a row of none"),
        pytest.param("semantics", ONE_NAME_BOUND_BY_TWO_CALLEES, id="inlined bodies that bind one name met in their caller"),
        pytest.param("round-trip", SORT_WITH_LOCATIONS, id="locations of the arguments of a comparator"),
        pytest.param("semantics", PAD_OF_NOTHING_IN_A_LOOP, id="a group of loop nests without a user became a kernel without results"),
    ],
)
def test_right_now(oracle: str, text: str) -> None:
    for seed in range(3, 7):  # the whole road among them
        assert ask(oracle, text, seed) is None


def test_a_callee_whose_name_is_no_text() -> None:
    text = """"builtin.module"() ({
  "func.func"() <{sym_name = 1 : i64, function_type = () -> ()}> ({ "func.return"() : () -> () }) : () -> ()
  "func.func"() <{sym_name = "f", function_type = 3 : i64}> ({ "func.return"() : () -> () }) : () -> ()
  "func.func"() <{sym_name = "main", function_type = () -> ()}> ({
    "func.call"() <{callee = @f}> : () -> ()
    "func.return"() : () -> ()
  }) : () -> ()
}) : () -> ()
"""
    with pytest.raises(GradirError) as caught:
        parse_module(text)
    assert caught.value.code == "GR011"


@pytest.mark.parametrize("kind", ["3 : i64", '"f"', "array<i64: 1>"])
def test_a_return_in_a_function_whose_type_is_none(kind: str) -> None:
    text = f""""builtin.module"() ({{
  "func.func"() <{{sym_name = "f", function_type = {kind}}}> ({{ "func.return"() : () -> () }}) : () -> ()
}}) : () -> ()
"""
    with pytest.raises(GradirError, match=r"whose type is|function_type") as caught:
        parse_module(text)
    assert "crashed" not in caught.value.message + caught.value.hint


@pytest.mark.parametrize(
    ("text", "inputs", "code"),
    [
        (
            """func.func @f(%v: tensor<f32>, %x: tensor<?xf32, ["n"]>, %at: index) -> tensor<?xf32, ["n"]> {
  %0 = nd.update_at %v into %x[%at] dim 0 : tensor<f32> -> tensor<?xf32, ["n"]>
  return %0 : tensor<?xf32, ["n"]>
}""",
            [np.float32(1), np.zeros(0, np.float32), np.int64(2)],
            "OP102",
        ),
        (
            """func.func @f(%x: tensor<?xf32, ["n"]>) -> tensor<3xf32> {
  %0 = nd.slice %x start [0] limit [3] : tensor<?xf32, ["n"]> -> tensor<3xf32>
  return %0 : tensor<3xf32>
}""",
            [np.zeros(1, np.float32)],
            "OP111",
        ),
    ],
)
def test_sizes_of_a_run_that_do_not_fit_are_errors(text: str, inputs: list[np.ndarray], code: str) -> None:
    """They were exceptions of numpy."""
    with pytest.raises(GradirError) as caught:
        run(parse_module(text), "f", [np.asarray(x) for x in inputs])
    assert caught.value.code == code and caught.value.op.startswith("nd.")


def test_infinities_in_a_transform_are_no_warning() -> None:
    """numpy warned in the middle of compiled code."""
    text = """func.func @f(%x: tensor<3xcomplex<f32>>) -> tensor<3xcomplex<f32>> {
  %0 = nd.fft %x dims 1 : tensor<3xcomplex<f32>> -> tensor<3xcomplex<f32>>
  return %0 : tensor<3xcomplex<f32>>
}
"""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (result,) = compile_module(text, cache=False)["f"].flat(np.array([np.inf, 1, np.nan], np.complex64))
    assert np.isnan(result).all()
