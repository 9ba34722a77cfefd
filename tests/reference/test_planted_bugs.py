"""`--check-semantics`: at each level a pass with a planted bug is caught and named, and a correct pass is not."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr, ModuleOp, f32
from xdsl.ir import Operation

from gradir.errors import GradirError
from gradir.reference import SemanticsChecker, check_semantics
from tests.reference.programs import parse

LEVEL_1 = """
func.func private @norm(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %m = nd.reduce_max %x dims [1] : tensor<4x6xf32> -> tensor<4xf32>
  %b = nd.broadcast %m dims [0] : tensor<4xf32> -> tensor<4x6xf32>
  %d = nd.sub %x, %b : tensor<4x6xf32>
  return %d : tensor<4x6xf32>
}
func.func @f(%x: tensor<4x5xf32>, %w: tensor<5x6xf32>) -> tensor<4x6xf32> {
  %y = nd.dot_general %x, %w contract [1] x [0] : tensor<4x5xf32>, tensor<5x6xf32> -> tensor<4x6xf32>
  %d = call @norm(%y) : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %e = nd.exp %d : tensor<4x6xf32>
  return %e : tensor<4x6xf32>
}"""

LEVEL_2 = """
func.func @f(%x: tensor<4x5xf32>) -> tensor<4xf32> {
  %zero = arith.constant 0.0 : f32
  %scale = arith.constant 0.5 : f32
  %e = tensor.empty() : tensor<4xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x5xf32>) outs(%i : tensor<4xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %p = arith.mulf %a, %scale : f32
    %s = arith.addf %acc, %p : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}"""

LEVEL_3 = """
func.func private @double(%a: memref<6xf32> {gradir.access = "read"}, %b: memref<6xf32> {gradir.access = "write"}) {
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%a : memref<6xf32>) outs(%b : memref<6xf32>) {
  ^bb0(%x: f32, %o: f32):
    %s = arith.addf %x, %x : f32
    linalg.yield %s : f32
  }
  return
}
func.func private @add(%a: memref<6xf32> {gradir.access = "read"}, %b: memref<6xf32> {gradir.access = "read"}, %c: memref<6xf32> {gradir.access = "write"}) {
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%a, %b : memref<6xf32>, memref<6xf32>) outs(%c : memref<6xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %s = arith.addf %x, %y : f32
    linalg.yield %s : f32
  }
  return
}
func.func @f(%x: memref<6xf32>, %out: memref<6xf32>, %arena: memref<128xi8>)
    attributes {gradir.inputs = 1 : i64, gradir.results = 1 : i64, gradir.arena = 128 : i64} {
  %0 = arith.constant 0 : index
  %64 = arith.constant 64 : index
  %u = memref.view %arena[%0][] : memref<128xi8> to memref<6xf32>
  %v = memref.view %arena[%64][] : memref<128xi8> to memref<6xf32>
  call @double(%x, %u) : (memref<6xf32>, memref<6xf32>) -> ()
  call @double(%u, %v) : (memref<6xf32>, memref<6xf32>) -> ()
  call @add(%u, %v, %out) : (memref<6xf32>, memref<6xf32>, memref<6xf32>) -> ()
  return
}"""

LEVEL_4 = """
func.func @f(%x: memref<10x8xf32>, %out: memref<10xf32>) attributes {gradir.inputs = 1 : i64, gradir.results = 1 : i64} {
  %0 = arith.constant 0 : index
  %4 = arith.constant 4 : index
  %8 = arith.constant 8 : index
  %10 = arith.constant 10 : index
  %zero = arith.constant 0.0 : f32
  scf.for %i = %0 to %10 step %4 {
    %left = arith.subi %10, %i : index
    %rows = arith.minsi %left, %4 : index
    %mask = vector.create_mask %rows, %8 : vector<4x8xi1>
    %lanes = vector.create_mask %rows : vector<4xi1>
    %t = vector.transfer_read %x[%i, %0], %zero, %mask {in_bounds = [false, true]} : memref<10x8xf32>, vector<4x8xf32>
    %none = arith.constant dense<0.0> : vector<4xf32>
    %s = vector.multi_reduction <add>, %t, %none [1] : vector<4x8xf32> to vector<4xf32>
    vector.maskedstore %out[%i], %lanes, %s : memref<10xf32>, vector<4xi1>, vector<4xf32>
  }
  return
}"""


def first(module: ModuleOp, name: str, number: int = 0) -> Operation:
    return [op for op in module.walk() if op.name == name][number]


def swap_operands(module: ModuleOp) -> None:
    op = first(module, "nd.sub")
    op.operands = (op.operands[1], op.operands[0])


def drop_contraction(module: ModuleOp) -> None:
    """As a wrong fold would: the maximum of the wrong axis."""
    op = first(module, "nd.exp")
    op.operands = (first(module, "nd.dot_general").results[0],)


def change_scale(module: ModuleOp) -> None:
    op = first(module, "arith.constant", 1)
    op.properties["value"] = FloatAttr(0.5001, f32)


def forget_fill(module: ModuleOp) -> None:
    op = first(module, "linalg.generic")
    op.operands = (op.operands[0], first(module, "tensor.empty").results[0])


def overlap_places(module: ModuleOp) -> None:
    first(module, "arith.constant", 1).properties["value"] = IntegerAttr.from_index_int_value(8)


def share_a_place(module: ModuleOp) -> None:
    first(module, "memref.view", 1).operands = tuple(first(module, "memref.view").operands)


def swap_calls(module: ModuleOp) -> None:
    op = first(module, "func.call", 1)
    op.detach()
    parent = first(module, "func.call").parent
    assert parent is not None
    parent.insert_op_before(op, first(module, "func.call"))


def write_the_input(module: ModuleOp) -> None:
    op = first(module, "func.call", 1)
    op.operands = (op.operands[0], first(module, "func.func", 2).regions[0].block.args[0])


def drop_the_edge(module: ModuleOp) -> None:
    first(module, "arith.constant", 3).properties["value"] = IntegerAttr.from_index_int_value(8)
    first(module, "arith.subi").operands = (first(module, "arith.constant", 3).results[0],) * 2


def lose_the_mask(module: ModuleOp) -> None:
    op = first(module, "vector.create_mask", 1)
    op.operands = (first(module, "arith.constant", 1).results[0],)


def round_down_the_bound(module: ModuleOp) -> None:
    op = first(module, "scf.for")
    op.operands = (op.operands[0], first(module, "arith.constant", 2).results[0], op.operands[2])


def add_twice(module: ModuleOp) -> None:
    op = first(module, "arith.addf", 1)
    op.operands = (op.operands[0],) * 2


def start_from_one(module: ModuleOp) -> None:
    op = first(module, "arith.constant", 5)
    op.properties["value"] = DenseIntOrFPElementsAttr.from_list(op.results[0].type, [1.0])


@dataclass(frozen=True)
class Planted:
    level: str
    bug: Callable[[ModuleOp], None]
    code: str
    message: str


PLANTED = [
    Planted(LEVEL_1, swap_operands, "OP110", "result 0 of @f differs at element"),
    Planted(LEVEL_1, drop_contraction, "OP110", "result 0 of @f differs at element"),
    Planted(LEVEL_2, change_scale, "OP110", "result 0 of @f differs at element [0]"),
    Planted(LEVEL_2, forget_fill, "OP101", "never written"),
    Planted(LEVEL_3, overlap_places, "OP108", "overlap"),
    Planted(LEVEL_3, share_a_place, "OP108", "overlap"),
    Planted(LEVEL_3, swap_calls, "OP101", "never written"),
    Planted(LEVEL_3, write_the_input, "OP104", "writes to input 0"),
    Planted(LEVEL_4, round_down_the_bound, "OP101", "2 elements of output 0 that were never written"),
    Planted(LEVEL_4, lose_the_mask, "OP102", "out of bounds"),
]


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.bug.__name__)
def test_planted_bug_is_caught_and_named(planted: Planted) -> None:
    module = parse(planted.level)
    checker = SemanticsChecker(seed=0, samples=2)
    checker.start(module)
    assert checker.after("first-pass", module) is None
    planted.bug(module)
    error = checker.after("planted-pass", module)
    assert isinstance(error, GradirError)
    assert (error.code, error.part) == (planted.code, "operator"), str(error)
    assert error.message.startswith("pass planted-pass: ") and planted.message in error.message, error.message
    assert error.op and "@" in error.function


def test_the_error_shows_values_and_where() -> None:
    module = parse(LEVEL_1)
    checker = SemanticsChecker(seed=5, samples=1)
    checker.start(module)
    swap_operands(module)
    error = checker.after("swap", module)
    assert error is not None
    assert error.op == "nd.sub" and error.function == "@norm" and error.location.startswith("test.mlir:")
    assert "+-" in error.expected and "24 elements, sample 0, seed 5" in error.message
    found = re.fullmatch(
        r"(\S+); nd.sub gives (\S+) where (\S+) was computed before, at element \[0, 0\]; operands of nd.sub: #0 = (\S+), #1 = (\S+)",
        error.found,
    )
    assert found is not None, error.found
    result, given, before, a, b = map(float, found.groups())
    assert given == pytest.approx(-before) and given == pytest.approx(a - b) and result == pytest.approx(np.exp(given), rel=1e-5)


NAMED = [
    (LEVEL_1, swap_operands, "nd.sub", "#0 = "),
    (LEVEL_1, drop_contraction, "nd.exp", "operands of nd.exp: #0 = "),
    (LEVEL_2, change_scale, "arith.constant", "operands of arith.constant: none"),
    (LEVEL_3, add_twice, "arith.addf", " was computed before, at element ["),
    (LEVEL_4, start_from_one, "arith.constant", "arith.constant gives 1.0 where 0.0 was computed before, at element [0]"),
]


@pytest.mark.parametrize(("text", "bug", "op", "operands"), NAMED, ids=[bug.__name__ for _, bug, _, _ in NAMED])
def test_the_op_that_the_pass_got_wrong_is_named_with_its_operands(
    text: str, bug: Callable[[ModuleOp], None], op: str, operands: str
) -> None:
    """At each level; not the one that returns the result."""
    module = parse(text)
    checker = SemanticsChecker(seed=1, samples=1)
    checker.start(module)
    bug(module)
    error = checker.after("planted", module)
    assert error is not None
    assert (error.op, operands in error.found) == (op, True), error


CORRECT = {
    "inlining and another order of the sum": (
        LEVEL_2,
        LEVEL_2.replace("%s = arith.addf %acc, %p", "%s = arith.addf %p, %acc"),
    ),
    "scaling after the sum": (
        LEVEL_1,
        LEVEL_1.replace(
            "%e = nd.exp %d : tensor<4x6xf32>",
            "%h = nd.add %d, %d : tensor<4x6xf32>\n%t = nd.sub %h, %d : tensor<4x6xf32>\n%e = nd.exp %t : tensor<4x6xf32>",
        ),
    ),
    "a larger arena": (LEVEL_3, LEVEL_3.replace("%64 = arith.constant 64", "%64 = arith.constant 96")),
}


@pytest.mark.parametrize("name", CORRECT)
def test_correct_passes_are_left_alone(name: str) -> None:
    before, after = CORRECT[name]
    assert check_semantics(parse(before), parse(after)) is None


LOWERED = """
func.func @f(%x: memref<4x5xf32>, %out: memref<4xf32>) attributes {gradir.inputs = 1 : i64, gradir.results = 1 : i64} {
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %4 = arith.constant 4 : index
  %5 = arith.constant 5 : index
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f32
  scf.parallel (%i) = (%0) to (%4) step (%1) {
    %s = scf.for %j = %0 to %5 step %1 iter_args(%acc = %zero) -> (f32) {
      %v = memref.load %x[%i, %j] : memref<4x5xf32>
      %p = math.fma %v, %half, %acc : f32
      scf.yield %p : f32
    }
    memref.store %s, %out[%i] : memref<4xf32>
    scf.reduce
  }
  return
}"""


def test_level_2_against_level_4() -> None:
    assert check_semantics(parse(LEVEL_2), parse(LOWERED)) is None
    wrong = check_semantics(parse(LEVEL_2), parse(LOWERED.replace("constant 0.5", "constant 0.25")), pass_name="lower-kernels")
    assert wrong is not None and "pass lower-kernels" in wrong.message


DYNAMIC = """
func.func @f(%x: tensor<?x3xf32, ["b", ""]>) -> tensor<?xf32, ["b"]> {
  %r = nd.reduce_sum %x dims [1] : tensor<?x3xf32, ["b", ""]> -> tensor<?xf32, ["b"]>
  return %r : tensor<?xf32, ["b"]>
}"""


def test_run_time_sizes_include_zero_and_one() -> None:
    checker = SemanticsChecker(seed=0, samples=4)
    checker.start(parse(DYNAMIC))
    assert {case.inputs[0].shape[0] for case in checker.cases["f"]} >= {0, 1, 3}


def test_functions_come_and_go() -> None:
    checker = SemanticsChecker()
    checker.start(parse(LEVEL_1))
    error = checker.after("symbol-dce", parse(LEVEL_1.replace("@f(", "@g(")))
    assert error is not None and "@f is gone" in error.message


def test_functions_with_requests_join_when_they_are_resolved() -> None:
    body = "%r = ad.grad @l(%x) wrt [0] : (tensor<f32>) -> tensor<f32>"
    text = """
    func.func private @l(%x: tensor<f32>) -> tensor<f32> {{ %y = nd.mul %x, %x : tensor<f32> return %y : tensor<f32> }}
    func.func @f(%x: tensor<f32>) -> tensor<f32> {{ {0} return %r : tensor<f32> }}"""
    checker = SemanticsChecker(samples=1)
    checker.start(parse(text.format(body)))
    assert "f" in checker.skipped and not checker.cases
    assert checker.after("differentiate", parse(text.format("%r = nd.add %x, %x : tensor<f32>"))) is None
    assert not checker.skipped
    error = checker.after("simplify", parse(text.format("%r = nd.mul %x, %x : tensor<f32>")))
    assert error is not None and "pass simplify" in error.message


def test_a_program_without_meaning_is_refused_at_the_start() -> None:
    with pytest.raises(GradirError) as caught:
        SemanticsChecker().start(parse(LEVEL_2.replace("outs(%i : tensor<4xf32>)", "outs(%e : tensor<4xf32>)")))
    assert caught.value.code == "OP101"


def test_too_many_near_ties() -> None:
    v = "tensor<50xf32>"
    text = f"""func.func @f(%x: {v}) -> tensor<50xi1> {{
    %e = nd.exp %x : {v}
    %l = nd.log %e : {v}
    %r = nd.compare lt, %l, %x : {v}
    return %r : tensor<50xi1>
    }}"""
    with pytest.raises(GradirError, match="closer than their rounding error"):
        SemanticsChecker().start(parse(text))


def changed(count: int) -> Any:
    module = parse(
        LEVEL_2.replace(
            "(%x: tensor<4x5xf32>) -> tensor<4xf32>",
            "(%x: tensor<4x5xf32>) -> (tensor<4xf32>)" if count == 1 else "(%x: tensor<4x5xf32>) -> (tensor<4xf32>, tensor<4xf32>)",
        )
    )
    last = first(module, "func.return")
    last.operands = tuple(last.operands) * count
    return module


def test_number_of_results() -> None:
    error = check_semantics(changed(1), changed(2))
    assert error is not None and "2 results, before 1" in error.message


def test_a_program_that_starts_at_level_4_has_tolerances_too() -> None:
    checker = SemanticsChecker(samples=1)
    checker.start(parse(LOWERED))
    tolerance = checker.cases["f"][0].results[0].tolerance
    assert ((tolerance > 0) & (tolerance < 1e-4)).all()
    bare = parse(LOWERED.replace("attributes {gradir.inputs = 1 : i64, gradir.results = 1 : i64}", ""))
    assert check_semantics(bare, bare) is None
