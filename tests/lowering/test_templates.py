"""Templates at levels 3 and 4: no copy of a whole array in a loop, rows on threads, the same results upstream."""

from __future__ import annotations

import re

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

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


SCATTERS = {
    "scatter_general": "nd.scatter_general mul, {0}, %i, {1} inserted [0] map [0] : tensor<4xf32>, tensor<4x1xi32>, tensor<4xf32> -> tensor<4xf32>",
    "scatter_add": "nd.scatter_add {0}, %j, {1} dim 0 : tensor<4xf32>, tensor<4xi32>, tensor<4xf32> -> tensor<4xf32>",
}
IN_A_LOOP = """
func.func @f(%x: tensor<4xf32>, %i: tensor<4x1xi32>) -> tensor<4xf32> {{
  %j = nd.reshape %i : tensor<4x1xi32> -> tensor<4xi32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 5 : index
  %r = scf.for %k = %c0 to %n step %c1 iter_args(%s = %x) -> (tensor<4xf32>) {{
    %0 = {0}
    scf.yield %0 : tensor<4xf32>
  }}
  return %r : tensor<4xf32>
}}"""
ONCE = """
func.func @f(%x: tensor<4xf32>, %i: tensor<4x1xi32>) -> (tensor<4xf32>, tensor<4xf32>) {{
  %j = nd.reshape %i : tensor<4x1xi32> -> tensor<4xi32>
  %y = nd.exp %x : tensor<4xf32>
  %0 = {0}
  return %0, %y : tensor<4xf32>, tensor<4xf32>
}}"""


def copies(op: Operation) -> int:
    return sum(isinstance(inner, memref.CopyOp) for inner in op.walk())


@pytest.mark.parametrize("name", SCATTERS)
def test_a_scatter_in_a_loop_updates_in_place(name: str):
    module = lowered(IN_A_LOOP.format(SCATTERS[name].format("%s", "%x")), "to-buffers")
    (loop,) = [op for op in module.walk() if isinstance(op, scf.ForOp) and any(inner.name == "func.call" for inner in op.walk())]
    assert copies(loop) == 0
    assert copies(module) == 1  # the argument, before the loop


@pytest.mark.parametrize("name", SCATTERS)
@pytest.mark.parametrize("updates", ["%x", "%y"])
def test_what_is_read_again_is_not_scattered_into(name: str, updates: str):
    text = ONCE.format(SCATTERS[name].format("%y", updates))
    inputs = [np.array([0.5, 1, 1.5, 2], np.float32), np.array([[1], [3], [1], [7]], np.int32)]
    wanted = run(parse_module(text), "f", inputs)
    for found in (compile_module(parse_module(text), cache=False)["f"](*inputs), run(lowered(text, "to-buffers"), "f", inputs)):
        for got, want in zip(found, wanted, strict=True):
            np.testing.assert_allclose(np.asarray(got), want, rtol=1e-6)
