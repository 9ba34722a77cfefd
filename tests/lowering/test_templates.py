"""Templates at levels 3 and 4: no copy of a whole array in a loop, rows on threads, the same results upstream."""

from __future__ import annotations

import re

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from gradir.dialects.upstream import memref, scf
from gradir.driver.compile import compile_module
from gradir.driver.lower import run_passes
from gradir.driver.pipelines import expand_pipeline
from gradir.driver.report import CompileReport
from gradir.ir.text import parse_module, print_module
from gradir.reference import run
from tests.upstream_runner import needs_upstream, run_upstream

SORT = """
func.func @f(%x: tensor<6x300xf32>, %i: tensor<6x300xi32>) -> (tensor<6x300xf32>, tensor<6x300xi32>) {
  %0:2 = nd.sort %x, %i dim 1 descending : tensor<6x300xf32>, tensor<6x300xi32>
  return %0#0, %0#1 : tensor<6x300xf32>, tensor<6x300xi32>
}"""
BY_COMPARATOR = """
func.func @f(%x: tensor<40xi32>) -> tensor<40xi32> {
  %0 = nd.sort %x dim 0 by (%a: tensor<i32>, %b: tensor<i32>) {
    %s = nd.constant splat(7 : i32) : tensor<i32>
    %p = nd.rem %a, %s : tensor<i32>
    %q = nd.rem %b, %s : tensor<i32>
    %c = nd.compare lt, %p, %q : tensor<i32>
    nd.yield %c : tensor<i1>
  } : tensor<40xi32>
  return %0 : tensor<40xi32>
}"""
SCATTER = """
func.func @f(%x: tensor<5x4xf32>, %i: tensor<3x1xi32>, %u: tensor<3x4xf32>) -> tensor<5x4xf32> {
  %0 = nd.scatter_general mul, %x, %i, %u window [1] inserted [0] map [0] : tensor<5x4xf32>, tensor<3x1xi32>, tensor<3x4xf32> -> tensor<5x4xf32>
  return %0 : tensor<5x4xf32>
}"""
REDUCE = """
func.func @f(%x: tensor<8x9xf32>, %s: tensor<f32>) -> tensor<8xf32> {
  %0 = nd.reduce %x init %s dims [1] by (%a: tensor<f32>, %b: tensor<f32>) {
    %c = nd.sub %b, %a : tensor<f32>
    nd.yield %c : tensor<f32>
  } : tensor<8x9xf32>, tensor<f32> -> tensor<8xf32>
  return %0 : tensor<8xf32>
}"""
PROGRAMS = {"sort": SORT, "by comparator": BY_COMPARATOR, "scatter": SCATTER, "reduce": REDUCE}
INPUTS = {
    "sort": lambda: (np.sin(np.arange(1800, dtype=np.float32)).reshape(6, 300), np.arange(1800, dtype=np.int32).reshape(6, 300)),
    "by comparator": lambda: (np.arange(40, dtype=np.int32) * 11 % 37,),
    "scatter": lambda: (np.ones((5, 4), np.float32), np.array([[1], [1], [9]], np.int32), np.arange(12, dtype=np.float32).reshape(3, 4)),
    "reduce": lambda: (np.arange(72, dtype=np.float32).reshape(8, 9), np.array(3, np.float32)),
}


def lowered(text: str, *stages: str) -> ModuleOp:
    """The module after to-structured for the CPU and these stages."""
    module = parse_module(text)
    requests = [
        r for stage in ("to-structured", *stages) for r in expand_pipeline(stage, {"target": "cpu"} if stage == "to-structured" else {})
    ]
    run_passes(module, requests, CompileReport())
    return module


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_step_copies_a_whole_array(name: str):
    module = lowered(PROGRAMS[name], "to-buffers")
    template = next(op for op in module.body.block.ops if "kernel.template" in str(op.attributes.get("gradir.kernel")))
    kinds = {type(op) for op in template.walk()}
    assert memref.StoreOp in kinds
    assert not kinds & {memref.CopyOp, memref.AllocOp, memref.AllocaOp}
    assert "linalg." not in print_module(template)


@pytest.mark.parametrize(("name", "parallel"), [("sort", True), ("reduce", True), ("scatter", False), ("by comparator", False)])
def test_rows_that_are_apart_go_to_threads(name: str, parallel: bool):
    module = lowered(PROGRAMS[name], "to-buffers", "to-loops")
    assert any(isinstance(op, scf.ParallelOp) for op in module.walk()) == parallel
    assert "gradir.parallel" not in print_module(module)
    for threads in (1, 2):
        compiled = compile_module(parse_module(PROGRAMS[name]), cache=False, threads=threads)["f"](*INPUTS[name]())
        wanted = run(parse_module(PROGRAMS[name]), "f", list(INPUTS[name]()))
        for got, want in zip(compiled if isinstance(compiled, tuple | list) else [compiled], wanted, strict=True):
            np.testing.assert_array_equal(got, want)


def test_equal_templates_are_one():
    body = re.sub(r"%0", "%1", SORT.split("{", 1)[1].split("return")[0])
    text = SORT.replace("  return", body.replace("%x, %i", "%0#0, %0#1") + "  return").replace(
        "%0#0, %0#1 : tensor<6x300xf32>, t", "%1#0, %1#1 : tensor<6x300xf32>, t"
    )
    functions = [op for op in lowered(text).body.block.ops if "kernel.template" in str(op.attributes.get("gradir.kernel"))]
    assert len(functions) == 1


@needs_upstream
@pytest.mark.parametrize("name", PROGRAMS)
def test_upstream_runs_them_too(name: str):
    inputs = INPUTS[name]()
    found = run_upstream(lowered(PROGRAMS[name], "to-buffers"), "f", list(inputs))
    for got, want in zip(found, run(parse_module(PROGRAMS[name]), "f", list(inputs)), strict=True):
        np.testing.assert_array_equal(got, want)
