"""The whole road: tensor-level programs compiled, run and compared with the reference evaluator; the same from a saved artefact."""

from __future__ import annotations

import numpy as np
import pytest

from gradir.driver.compile import compile_module
from gradir.driver.evaluate import evaluate_level1
from gradir.driver.report import LEVELS, CompileReport
from gradir.ir.text import parse_module
from gradir.runtime import load

LAYER = """
func.func @layer(%x: tensor<16x24xf32>, %w: tensor<24x40xf32>, %b: tensor<40xf32>) -> tensor<16x40xf32> {
  %xw = nd.dot_general %x, %w contract [1] x [0] : tensor<16x24xf32>, tensor<24x40xf32> -> tensor<16x40xf32>
  %bias = nd.broadcast %b dims [1] : tensor<40xf32> -> tensor<16x40xf32>
  %y = nd.add %xw, %bias : tensor<16x40xf32>
  %r = nd.relu %y : tensor<16x40xf32>
  return %r : tensor<16x40xf32>
}
"""

MLP = """
func.func @mlp(%x: tensor<16x24xf32>, %w1: tensor<24x40xf32>, %b1: tensor<40xf32>, %w2: tensor<40x10xf32>, %b2: tensor<10xf32>)
    -> (tensor<16x10xf32>, tensor<16x40xf32>) {
  %0 = nd.dot_general %x, %w1 contract [1] x [0] : tensor<16x24xf32>, tensor<24x40xf32> -> tensor<16x40xf32>
  %1 = nd.broadcast %b1 dims [1] : tensor<40xf32> -> tensor<16x40xf32>
  %2 = nd.add %0, %1 : tensor<16x40xf32>
  %h = nd.tanh %2 : tensor<16x40xf32>
  %3 = nd.dot_general %h, %w2 contract [1] x [0] : tensor<16x40xf32>, tensor<40x10xf32> -> tensor<16x10xf32>
  %4 = nd.broadcast %b2 dims [1] : tensor<10xf32> -> tensor<16x10xf32>
  %5 = nd.add %3, %4 : tensor<16x10xf32>
  %p = nd.softmax %5 dim 1 : tensor<16x10xf32>
  return %p, %h : tensor<16x10xf32>, tensor<16x40xf32>
}
"""

LOSS = """
func.func private @loss(%w: tensor<24x10xf32>, %x: tensor<16x24xf32>, %y: tensor<16xi32>) -> tensor<f32> {
  %0 = nd.dot_general %x, %w contract [1] x [0] : tensor<16x24xf32>, tensor<24x10xf32> -> tensor<16x10xf32>
  %1 = nd.cross_entropy %0, %y : tensor<16x10xf32>, tensor<16xi32> -> tensor<16xf32>
  %2 = nd.reduce_sum %1 dims [0] : tensor<16xf32> -> tensor<f32>
  return %2 : tensor<f32>
}
func.func @step(%w: tensor<24x10xf32>, %x: tensor<16x24xf32>, %y: tensor<16xi32>) -> (tensor<f32>, tensor<24x10xf32>) {
  %l, %dw = ad.value_and_grad @loss(%w, %x, %y) wrt [0] : (tensor<24x10xf32>, tensor<16x24xf32>, tensor<16xi32>) -> (tensor<f32>, tensor<24x10xf32>)
  %rate = nd.constant splat(0.1 : f32) : tensor<24x10xf32>
  %d = nd.mul %rate, %dw : tensor<24x10xf32>
  %new = nd.sub %w, %d : tensor<24x10xf32>
  return %l, %new : tensor<f32>, tensor<24x10xf32>
}
"""

LOOP = """
func.func @power(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %r = scf.for %i = %c0 to %c5 step %c1 iter_args(%h = %x) -> (tensor<8x8xf32>) {
    %0 = nd.dot_general %h, %w contract [1] x [0] : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
    %1 = nd.tanh %0 : tensor<8x8xf32>
    scf.yield %1 : tensor<8x8xf32>
  }
  return %r : tensor<8x8xf32>
}
"""

IDENTITY = """
func.func @same(%x: tensor<3x5xf32>) -> (tensor<3x5xf32>, tensor<3x5xf32>) {
  return %x, %x : tensor<3x5xf32>, tensor<3x5xf32>
}
"""

CONSTANT = """
func.func @zeros(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<3xi32>) {
  %0 = nd.constant splat(0.0 : f32) : tensor<2xf32>
  %1 = nd.constant dense<[3, 1, 2]> : tensor<3xi32>
  return %0, %1 : tensor<2xf32>, tensor<3xi32>
}
"""

PROGRAMS = {"layer": LAYER, "mlp": MLP, "step": LOSS, "power": LOOP, "same": IDENTITY, "zeros": CONSTANT}


def inputs_of(spec) -> list[np.ndarray]:
    random = np.random.default_rng(0)
    return [
        random.integers(0, 10, t.shape).astype(np.int32) if t.dtype == "i32" else random.standard_normal(t.shape).astype(np.float32)
        for t in spec.inputs
    ]


def close(results, wanted) -> None:
    assert len(results) == len(wanted)
    for result, want in zip(results, wanted, strict=True):
        assert result.dtype == want.dtype and result.shape == want.shape
        np.testing.assert_allclose(result, want, rtol=2e-5, atol=2e-5)


DYNAMIC = """
func.func @rows(%x: tensor<?x8xf32, ["b", ""]>, %n: index) -> (tensor<?xf32, ["b"]>, tensor<?xf32, ["n"]>) {
  nd.bind %n as "n"
  %0 = nd.exp %x : tensor<?x8xf32, ["b", ""]>
  %1 = nd.reduce_sum %0 dims [1] : tensor<?x8xf32, ["b", ""]> -> tensor<?xf32, ["b"]>
  %2 = nd.constant splat(1.5 : f32) : tensor<f32>
  %3 = nd.broadcast %2 dims [] sizes (%n) : tensor<f32> -> tensor<?xf32, ["n"]>
  return %1, %3 : tensor<?xf32, ["b"]>, tensor<?xf32, ["n"]>
}
"""


@pytest.mark.parametrize("rows", [0, 1, 5])
def test_sizes_of_the_call(rows):
    function = compile_module(DYNAMIC, cache=False)["rows"]
    x = np.random.default_rng(rows).random((rows, 8), np.float32)
    sums, ones = function(x, rows + 2)
    np.testing.assert_allclose(sums, np.exp(x).sum(1), rtol=1e-5)
    assert ones.shape == (rows + 2,) and (ones == 1.5).all()


@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled_code_computes_what_the_reference_says(name, tmp_path):
    for options in ({"cache": False}, {"cache": tmp_path / "cache", "threads": 1}, {"cache": tmp_path / "cache", "threads": 2}):
        module = compile_module(PROGRAMS[name], **options)
        inputs = inputs_of(module[name].spec)
        wanted = evaluate_level1(parse_module(PROGRAMS[name]), name, inputs)
        kept = [value.copy() for value in inputs]
        close(module[name].flat(*inputs), wanted)
        close(module[name].flat(*inputs), wanted)
        assert all(np.array_equal(value, copy) for value, copy in zip(inputs, kept, strict=True))
    module.save(tmp_path / "saved.gradir")
    close(load(tmp_path / "saved.gradir")[name].flat(*inputs), wanted)


def test_results_do_not_share_memory_with_inputs_or_each_other():
    same = compile_module(IDENTITY, cache=False)["same"]
    x = np.ones((3, 5), np.float32)
    first, second = same(x)
    assert not np.shares_memory(first, x) and not np.shares_memory(first, second)


def test_text_of_every_level():
    report = CompileReport(keep_ir=True)
    compile_module(LOSS, report=report)
    assert set(report.ir) == set(LEVELS)
    marks = ("ad.value_and_grad", "nd.", "linalg.generic", "memref.", "vector.", "define")
    assert all(mark in report.ir[level] for level, mark in zip(LEVELS, marks, strict=True))
    assert "ad." not in report.ir[LEVELS[1]] and "tensor<" not in report.ir[LEVELS[3]] and "linalg." not in report.ir[LEVELS[4]]
    assert report.kernels > 0 and set(report.arena_bytes) == {"step"}
