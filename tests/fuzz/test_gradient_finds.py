"""What random programs found in derivatives, reduced: every question about each of them has its right answer."""

from __future__ import annotations

import pytest

from gradir.tools.fuzz.gradients.questions import QUESTIONS
from gradir.tools.fuzz.oracles import ask

SIZE_ONLY_IN_THE_BACKWARD_HALF = """
func.func private @part(%x: tensor<?xf64, ["n"]>) -> tensor<f64> {
  %0 = nd.reduce_sum %x dims [0] : tensor<?xf64, ["n"]> -> tensor<f64>
  %1 = nd.sin %0 : tensor<f64>
  return %1 : tensor<f64>
}
func.func @main(%x: tensor<?xf64, ["n"]>) -> tensor<f64> {
  %0 = func.call @part(%x) : (tensor<?xf64, ["n"]>) -> tensor<f64>
  return %0 : tensor<f64>
}
"""
"""`@part.bwd` gets the cosine and a cotangent, from which nobody learns what `n` is."""

LENGTHS_OF_A_DERIVATIVE = """
func.func private @part(%x: tensor<2xf64>, %y: tensor<f64>) -> tensor<f64> {
  return %y : tensor<f64>
}
func.func @main(%x: tensor<f64>) -> tensor<f64> {
  %m = nd.broadcast %x dims [] : tensor<f64> -> tensor<4x2xf64>
  %c0 = arith.constant 0 : index
  %i, %y, %z = scf.while (%k = %c0, %s = %x, %a = %m) : (index, tensor<f64>, tensor<4x2xf64>) -> (index, tensor<f64>, tensor<4x2xf64>) {
    %c3 = arith.constant 3 : index
    %more = arith.cmpi slt, %k, %c3 : index
    scf.condition(%more) %k, %s, %a : index, tensor<f64>, tensor<4x2xf64>
  } do {
  ^bb0(%k: index, %s: tensor<f64>, %a: tensor<4x2xf64>):
    %v = nd.reduce_sum %a dims [0] : tensor<4x2xf64> -> tensor<2xf64>
    %c = nd.constant splat(3.000000e-01 : f64) : tensor<f64>
    %p = ad.checkpoint @part(%v, %c) : (tensor<2xf64>, tensor<f64>) -> tensor<f64>
    %w = nd.constant splat(3.000000e-01 : f64) : tensor<2xf64>
    %q = func.call @part(%w, %p) : (tensor<2xf64>, tensor<f64>) -> tensor<f64>
    %at = nd.constant dense<[4, 0, 2, 4]> : tensor<4xi64>
    %b = nd.gather %a, %at dim 0 : tensor<4x2xf64>, tensor<4xi64> -> tensor<4x2xf64>
    %c1 = arith.constant 1 : index
    %n = arith.addi %k, %c1 : index
    scf.yield %n, %q, %b : index, tensor<f64>, tensor<4x2xf64>
  }
  return %y : tensor<f64>
}
"""
"""The first derivative binds the length of a stack inside of a region; the second one has to know that it does."""

LENGTH_OF_A_BRANCH = """
func.func @main(%x: tensor<f64>, %k: tensor<i64>, %n: tensor<i64>) -> tensor<f64> {
  %0 = tensor.extract %k[] : tensor<i64>
  %at = arith.index_cast %0 : i64 to index
  %1 = tensor.extract %n[] : tensor<i64>
  %end = arith.index_cast %1 : i64 to index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.index_switch %at -> tensor<f64>
  case 1 {
    %2 = scf.for %i = %c0 to %end step %c1 iter_args(%s = %x) -> (tensor<f64>) {
      %3 = nd.sin %s : tensor<f64>
      scf.yield %3 : tensor<f64>
    }
    scf.yield %2 : tensor<f64>
  }
  default {
    %4 = nd.exp %x : tensor<f64>
    scf.yield %4 : tensor<f64>
  }
  return %r : tensor<f64>
}
"""
"""The stack leaves the switch, and the branch without a loop made an empty one first: its size is known in front of the switch."""

SEGMENTS_WITHOUT_A_TRIP = """
func.func @main(%x: tensor<f64>, %y: tensor<f64>, %n: tensor<i64>) -> tensor<f64> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %0 = tensor.extract %n[] : tensor<i64>
  %1 = arith.index_cast %0 : i64 to index
  %2 = arith.maxsi %1, %c1 : index
  %e = arith.minsi %2, %c9 : index
  %r = scf.for %i = %c0 to %e step %c1 iter_args(%s = %x) -> (tensor<f64>) {
    %t = nd.sin %y : tensor<f64>
    scf.yield %t : tensor<f64>
  }
  return %r : tensor<f64>
}
"""
"""At most 9 trips are known to come, so `sqrt` makes 3 segments; behind the last trip they hand on a value that the body never reads."""

PROGRAMS = {
    "size only in the backward half": SIZE_ONLY_IN_THE_BACKWARD_HALF,
    "lengths of a derivative": LENGTHS_OF_A_DERIVATIVE,
    "length of a branch": LENGTH_OF_A_BRANCH,
    "segments without a trip": SEGMENTS_WITHOUT_A_TRIP,
}


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_finds(name: str, question: str) -> None:
    assert ask(question, PROGRAMS[name], 0) is None
