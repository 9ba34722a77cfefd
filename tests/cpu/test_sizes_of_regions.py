"""Ops with regions, gathers, scatters and order on run-time sizes: what the evaluator says, down to sizes of 1 and 0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gradir.driver.compile import compile_module
from gradir.ir.text import parse_module
from gradir.reference import run

T = 'tensor<?x?xf32, ["n","m"]>'
ROW = 'tensor<?xf32, ["n"]>'
SUBTRACT = "(%a: tensor<f32>, %b: tensor<f32>) { %c = nd.sub %a, %b : tensor<f32> nd.yield %c : tensor<f32> }"
ORDER = "(%a: tensor<f32>, %b: tensor<f32>) { %c = nd.compare ge, %a, %b : tensor<f32> nd.yield %c : tensor<i1> }"
INDICES, UPDATES = 'tensor<?x1xi32, ["k",""]>', 'tensor<?x?xf32, ["k","m"]>'
Inputs = Callable[[np.ndarray[Any, Any]], tuple[Any, ...]]

PROGRAMS: dict[str, tuple[str, str, str, Inputs]] = {
    "sort": (f"%x: {T}", T, f"nd.sort %x dim 0 descending : {T}", lambda x: (x,)),
    "variance": (f"%x: {T}", ROW, f"nd.variance %x dims [1] : {T} -> {ROW}", lambda x: (x,)),
    "norm": (f"%x: {T}", "tensor<f32>", f"nd.norm %x dims [0, 1] : {T} -> tensor<f32>", lambda x: (x,)),
    "reduce": (f"%x: {T}, %s: tensor<f32>", ROW, f"nd.reduce %x init %s dims [1] by {SUBTRACT} : {T}, tensor<f32> -> {ROW}", lambda x: (x, np.float32(2))),
    "window": (
        f"%x: {T}, %s: tensor<f32>", T,
        f"nd.reduce_window_general %x init %s window [1, 3] padding [0, 0, 1, 1] by {SUBTRACT} : {T}, tensor<f32> -> {T}",
        lambda x: (x, np.float32(2)),
    ),
    "select and scatter": (
        f"%x: {T}, %s: tensor<f32>", T,
        f"nd.select_and_scatter_general %x, %x, %s window [1, 3] padding [0, 0, 1, 1] select {ORDER} scatter {SUBTRACT} : {T}, {T}, tensor<f32>",
        lambda x: (x, np.float32(2)),
    ),
    "scatter": (
        f"%x: {T}, %i: {INDICES}, %u: {UPDATES}", T,
        f"nd.scatter_general max, %x, %i, %u window [1] inserted [0] map [0] : {T}, {INDICES}, {UPDATES} -> {T}",
        lambda x: (x, np.array([[0], [2], [0]], np.int32), np.ones((3, x.shape[1]), np.float32)),
    ),
    "one hot": ('%x: tensor<?xi32, ["n"]>', 'tensor<?x3xf32, ["n",""]>', 'nd.one_hot %x depth 3 : tensor<?xi32, ["n"]> -> tensor<?x3xf32, ["n",""]>', lambda x: (np.arange(len(x), dtype=np.int32),)),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_run_time_sizes(name: str):
    arguments, result, line, inputs = PROGRAMS[name]
    text = f"func.func @f({arguments}) -> {result} {{\n  %r = {line}\n  return %r : {result}\n}}"
    compiled = compile_module(parse_module(text), cache=False)["f"]
    for shape in [(3, 4), (1, 1), (5, 2), (0, 3), (2, 0)]:
        x = np.sin(np.arange(shape[0] * shape[1], dtype=np.float32)).reshape(shape)
        (want,) = run(parse_module(text), "f", list(inputs(x)))
        np.testing.assert_allclose(np.asarray(compiled(*inputs(x))), want, rtol=1e-6, atol=1e-6)
