"""Calls, branches and loops; `scf.parallel` in random order with its race check; named sizes; misuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gradir.errors import GradirError
from gradir.reference import run
from gradir.reference.machine import Machine
from tests.reference.programs import evaluate, one, parse, refused, refused_op

I64 = np.int64


def test_call_has_its_own_names() -> None:
    text = """
    func.func private @g(%x: f32) -> f32 { %y = arith.addf %x, %x : f32 return %y : f32 }
    func.func @f(%x: f32) -> f32 {
      %a = call @g(%x) : (f32) -> f32
      %b = call @g(%a) : (f32) -> f32
      return %b : f32
    }"""
    assert evaluate(text, [np.float32(1.5)]) == [6.0]


def test_if_switch_and_region() -> None:
    body = """
    %a = arith.constant 1.0 : f32
    %b = arith.constant 2.0 : f32
    %s = scf.if %c -> (f32) { scf.yield %a : f32 } else { scf.yield %b : f32 }
    %t = scf.index_switch %i -> f32
    case 3 { scf.yield %a : f32 }
    case 5 { scf.yield %s : f32 }
    default { scf.yield %b : f32 }
    %r = scf.execute_region -> f32 { scf.yield %t : f32 }"""
    assert one("%c: i1, %i: index", body, "f32", True, I64(5)) == 1
    assert one("%c: i1, %i: index", body, "f32", False, I64(5)) == 2
    assert one("%c: i1, %i: index", body, "f32", True, I64(4)) == 2
    assert one("%c: i1, %i: index", body, "f32", False, I64(3)) == 1


FOR = """
    %1 = arith.constant 1 : index
    %0 = arith.constant 0 : index
    %r = scf.for %i = %0 to %n step %1 iter_args(%a = %x) -> (tensor<2xf32>) {
      %s = nd.add %a, %a : tensor<2xf32>
      scf.yield %s : tensor<2xf32>
    }"""


@pytest.mark.parametrize("trips", [0, 1, 5])
def test_for_doubles(trips: int) -> None:
    x = np.array([1, 3], np.float32)
    np.testing.assert_array_equal(one("%x: tensor<2xf32>, %n: index", FOR, "tensor<2xf32>", x, I64(trips)), x * 2**trips)


def test_for_with_a_step_of_zero_is_an_error() -> None:
    refused_op("OP103", "%n: index", "scf.for %i = %n to %n step %n { }", I64(0))


WHILE = """
    %2 = arith.constant 2 : i32
    %r = scf.while (%a = %x) : (i32) -> i32 {
      %c = arith.cmpi slt, %a, %n : i32
      scf.condition(%c) %a : i32
    } do {
    ^bb0(%a: i32):
      %b = arith.muli %a, %2 : i32
      scf.yield %b : i32
    }"""


def test_while_and_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    assert one("%x: i32, %n: i32", WHILE, "i32", np.int32(3), np.int32(20)) == 24
    assert one("%x: i32, %n: i32", WHILE, "i32", np.int32(30), np.int32(20)) == 30
    monkeypatch.setattr(Machine, "MAX_ITERATIONS", 50)
    assert "no end after 50 iterations" in refused_op("OP112", "%x: i32, %n: i32", WHILE, np.int32(0), np.int32(1)).message


def test_assertion() -> None:
    assert "too small" in refused_op("OP113", "%c: i1", 'cf.assert %c, "too small"', False).message
    evaluate('func.func @f(%c: i1) {\ncf.assert %c, "fine"\nreturn\n}', [True])


PARALLEL = """
func.func @f(%x: memref<?xf32>, %out: memref<?xf32>) {{
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %n = memref.dim %x, %0 : memref<?xf32>
  scf.parallel (%i) = (%0) to (%n) step (%1) {{
    {body}
    scf.reduce
  }}
  return
}}"""


def parallel(body: str, n: int = 6) -> Any:
    module = parse(PARALLEL.format(body=body))
    x = np.arange(n, dtype=np.float32)
    return run(module, "f", [x, None], result_shapes=[[n]], seed=n)


def test_parallel_iterations_write_their_own_elements() -> None:
    (found,) = parallel("%v = memref.load %x[%i] : memref<?xf32>\nmemref.store %v, %out[%i] : memref<?xf32>")
    np.testing.assert_array_equal(found, np.arange(6))


CONFLICTS = {
    "two writers": "%v = memref.load %x[%i] : memref<?xf32>\nmemref.store %v, %out[%0] : memref<?xf32>",
    "a reader and a writer": "%v = memref.load %x[%i] : memref<?xf32>\nmemref.store %v, %x[%0] : memref<?xf32>",
    "a neighbour": """%v = memref.load %x[%i] : memref<?xf32>
        %j = arith.subi %n, %i : index
        %k = arith.subi %j, %1 : index
        %w = memref.load %x[%k] : memref<?xf32>
        memref.store %w, %x[%i] : memref<?xf32>""",
}


@pytest.mark.parametrize("name", CONFLICTS)
def test_parallel_conflict(name: str) -> None:
    with pytest.raises(GradirError) as caught:
        parallel(CONFLICTS[name])
    assert caught.value.code == "OP107", str(caught.value)


def test_parallel_reduction_and_order() -> None:
    text = """
    func.func @f(%n: index, %log: memref<8xindex>) -> index {
      %0 = arith.constant 0 : index
      %1 = arith.constant 1 : index
      %r = scf.parallel (%i) = (%0) to (%n) step (%1) init (%0) -> index {
        scf.reduce(%i : index) {
        ^bb0(%a: index, %b: index):
          %s = arith.addi %a, %b : index
          scf.reduce.return %s : index
        }
      }
      memref.store %r, %log[%0] : memref<8xindex>
      return %r : index
    }"""
    (found,) = run(parse(text), "f", [I64(8), np.zeros(8, np.int64)])
    assert found[0] == 28


def test_order_of_parallel_iterations_is_random() -> None:
    text = """
    func.func @f(%log: memref<8xindex>) {
      %0 = arith.constant 0 : index
      %1 = arith.constant 1 : index
      %8 = arith.constant 8 : index
      %r = scf.parallel (%i) = (%0) to (%8) step (%1) init (%8) -> index {
        scf.reduce(%i : index) {
        ^bb0(%a: index, %b: index):
          scf.reduce.return %b : index
        }
      }
      memref.store %r, %log[%0] : memref<8xindex>
      return
    }"""
    seen = {int(run(parse(text), "f", [np.zeros(8, np.int64)], seed=seed)[0][0]) for seed in range(8)}
    assert len(seen) > 1


SIZES = """
func.func @f(%x: tensor<?x2xf32, ["b", ""]>, %y: tensor<?xf32, ["b"]>) -> tensor<?x2xf32, ["b", ""]> {
  %r = nd.broadcast %y dims [0] : tensor<?xf32, ["b"]> -> tensor<?x2xf32, ["b", ""]>
  return %r : tensor<?x2xf32, ["b", ""]>
}"""


def test_named_sizes_must_agree() -> None:
    error = refused(
        "OP111", SIZES.replace("%r = nd.broadcast", "// %r = ").replace("return %r", "return %x"), [np.ones((3, 2), "f4"), np.ones(4, "f4")]
    )
    assert "'b' has two values" in error.message and (error.expected, error.found) == ("3", "4")


def test_symbol_is_the_size() -> None:
    text = 'func.func @f(%x: tensor<?xf32, ["b"]>) -> index {\n%r = nd.symbol "b"\nreturn %r : index\n}'
    assert evaluate(text, [np.ones(5, np.float32)]) == [5]


def test_a_called_function_has_sizes_of_its_own() -> None:
    half = 'func.func private @size(%x: tensor<?xf32, ["b"]>) -> index {\n%r = nd.symbol "b"\nreturn %r : index\n}\n'
    text = (
        half
        + """
func.func @f(%x: tensor<?xf32, ["b"]>, %y: tensor<?xf32, ["c"]>) -> (index, index) {
  %other = tensor.cast %y : tensor<?xf32, ["c"]> to tensor<?xf32, ["b"]>
  %r = func.call @size(%other) : (tensor<?xf32, ["b"]>) -> index
  %own = nd.symbol "b"
  return %r, %own : index, index
}"""
    )
    assert evaluate(text, [np.ones(5, np.float32), np.ones(3, np.float32)]) == [3, 5]


INPUTS = [
    ([], "wrong number of inputs"),
    ([np.ones(3, np.float64)], "another element type"),
    ([np.ones((3, 1), np.float32)], "another shape"),
    ([np.ones(4, np.float32)], "another shape"),
]


@pytest.mark.parametrize(("inputs", "message"), INPUTS)
def test_inputs_that_do_not_fit(inputs: list[Any], message: str) -> None:
    text = "func.func @f(%x: tensor<3xf32>) -> tensor<3xf32> { return %x : tensor<3xf32> }"
    assert message in refused("OP114", text, inputs).message


def test_missing_function_body_and_meaning() -> None:
    refused("OP114", "func.func private @g()", [], "g")
    refused("OP114", "module { }", [], "g")
    refused("OP100", "func.func private @g()\nfunc.func @f() { call @g() : () -> () return }")
    assert "no meaning" in refused_op("OP100", "%x: f32", '"vector.print"(%x) : (f32) -> ()', np.float32(0)).message
    text = """
    func.func @f(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
      %y = linalg.matmul ins(%x, %x : tensor<2x2xf32>, tensor<2x2xf32>) outs(%x : tensor<2x2xf32>) -> tensor<2x2xf32>
      return %y : tensor<2x2xf32>
    }"""
    assert "--linalg-generalize-named-ops" in refused("OP100", text, [np.ones((2, 2), np.float32)]).hint


def test_request_of_ad_is_refused() -> None:
    text = """
    func.func private @l(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }
    func.func @f(%x: tensor<f32>) -> tensor<f32> {
      %r = ad.grad @l(%x) wrt [0] : (tensor<f32>) -> tensor<f32>
      return %r : tensor<f32>
    }"""
    assert "differentiate" in refused("OP100", text, [np.float32(1)]).hint
