"""Samples of gather and scatter of windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradir.dialects.nd.base import NdOp, Sample
from gradir.dialects.nd.samples.case import BF16, INF, NAN, Array, case, type_text, wave
from gradir.dialects.nd.samples.sorting import several

_EMBED = "offset [1] collapsed [0] map [0]"
_BATCHED = "offset [2] collapsed [1] operand_batch [0] indices_batch [0] map [1]"


def _i32(values: Any) -> Array:
    return np.array(values, np.int32)


def _gather() -> list[Sample]:
    def take(name: str, x: Array, indices: Array, numbers: str, shape: Sequence[int], wrt: Sequence[int] = ()) -> Sample:
        result = type_text(np.zeros(shape, x.dtype))
        return case(name, f"nd.gather_general %0, %1 {numbers} : {{0}}, {{1}} -> {{2}}", [x, indices], result, wrt)

    far, element = np.array([[2**64 - 1], [0]], np.uint64), "collapsed [0] map [0] sizes [1]"
    return [
        take("f64 rows", wave(4, 3), _i32([[2], [0], [2]]), f"{_EMBED} sizes [1, 3]", (3, 3), (0,)),
        take("f64 windows, clamped", wave(4, 5), _i32([[1, 2], [3, 4], [-7, 1]]), "offset [0, 2] map [0, 1] sizes [2, 3]", (2, 3, 3), (0,)),
        take("f64 components swapped", wave(3, 4), _i32([[1, 2], [3, 0]]), "collapsed [0, 1] map [1, 0] sizes [1, 1]", (2,), (0,)),
        take("f64 batches", wave(2, 5, 3), _i32([[[4], [0]], [[1], [9]]]), f"{_BATCHED} sizes [1, 1, 3]", (2, 2, 3), (0,)),
        take("f64 one window", wave(5), _i32([9]), "offset [0] map [0] sizes [2]", (2,), (0,)),
        take("f64 no vector", wave(2, 2), np.zeros((3, 0), np.int32), "offset [1, 2] sizes [2, 1]", (3, 2, 1), (0,)),
        take("f32 ui64 far outside", np.array([NAN, -0.0, INF], np.float32), far, element, (2,)),
        take("i1 by ui8", np.array([True, False]), np.array([[1], [255], [0]], np.uint8), element, (3,)),
        take("no vectors", np.ones((2, 3), np.float32), np.zeros((0, 1), np.int32), f"{_EMBED} sizes [1, 3]", (0, 3)),
        take("empty windows", np.ones((2, 3), np.float32), _i32([[1]]), f"{_EMBED} sizes [1, 0]", (1, 0)),
    ]  # fmt: skip


def _scatter() -> list[Sample]:
    def put(name: str, kind: str, x: Array, indices: Array, u: Array, numbers: str, wrt: Sequence[int] = (), body: str = "") -> Sample:
        kinds = f"{type_text(x)}, {type_text(indices)}, {type_text(u)} -> {type_text(x)}"
        return several(name, f"nd.scatter_general {kind}, %0, %1, %2 {numbers}{body} : {kinds}", [x, indices, u], [type_text(x)], wrt)

    one = "inserted [0] map [0]"
    rows = "window [1] inserted [0] map [0]"
    dup = _i32([[2], [0], [2], [2]])
    edge = _i32([[1, 2], [3, 3], [-1, 0]])
    squares = wave(3, 2, 2, shift=3.0)
    windows = "window [1, 2] map [0, 1]"
    zeros = np.array([-0.0, 1, NAN], np.float32)
    minus = (
        " by (%a: tensor<f32>, %b: tensor<f32>) {\n    %c = nd.sub %a, %b : tensor<f32>\n    %d = nd.mul %c, %c : tensor<f32>\n"
        "    nd.yield %d : tensor<f32>\n  }"
    )
    pair = (
        "nd.scatter_general region, %0, %1, %2, %3, %4 inserted [0] map [0] by"
        " (%a: tensor<f32>, %b: tensor<i32>, %c: tensor<f32>, %d: tensor<i32>) {\n"
        "    %g = nd.compare gt, %c, %a : tensor<f32>\n    %e = nd.select %g, %c, %a : tensor<f32>\n"
        "    %f = nd.select %g, %d, %b : tensor<i32>\n    nd.yield %e, %f : tensor<f32>, tensor<i32>\n  }"
    )
    values, places = np.array([0, 5, 0], np.float32), _i32([-1, -2, -3])
    news, numbers = np.array([3, 4, 1, 3], np.float32), _i32([0, 1, 2, 3])
    operands = [values, places, dup, news, numbers]
    types = [type_text(x) for x in operands]
    return [
        put("f64 set with duplicates", "set", wave(4), dup, wave(4, shift=2.0), one, (0, 2)),
        put("f64 add with duplicates", "add", wave(4), dup, wave(4, shift=2.0), one, (0, 2)),
        put("f64 mul with duplicates", "mul", wave(4), dup, wave(4, shift=2.0), one, (0, 2)),
        put("f64 mul with zeros", "mul", np.array([2.0, 0.0, 3.0]), dup[[0, 2, 1]], np.array([0.0, 4.0, 0.0]), one, (0, 2)),
        put("f64 max with duplicates", "max", wave(4), dup, wave(4, shift=0.1), one, (0, 2)),
        put("f64 min with duplicates", "min", wave(4), dup, wave(4, shift=0.1), one, (0, 2)),
        put("f64 rows, one outside", "add", wave(4, 3), _i32([[3], [4], [-1]]), wave(3, 3), rows, (0, 2)),
        put("f64 windows over the edge, set", "set", wave(4, 4), edge, squares, windows, (0, 2)),
        put("f64 windows over the edge, add", "add", wave(4, 4), edge, squares, windows, (0, 2)),
        put("f64 batches", "add", wave(2, 3, 2), _i32([[[2], [0]], [[1], [1]]]), wave(2, 2, 2), _SCATTER_BATCHED, (0, 2)),
        put("f64 region", "region", wave(3), dup, wave(4, shift=2.0), one, (0, 2), minus.replace("f32", "f64")),
        put("f32 region", "region", np.array([1, 2, 3], np.float32), dup, np.array([5, 1, 2, 7], np.float32), one, (), minus),
        several("two operands", f"{pair} : {', '.join(types)} -> {types[0]}, {types[1]}", operands, types[:2]),
        put("bf16 add many", "add", np.zeros(2, BF16), np.zeros((512, 1), np.int32), np.ones(512, BF16), one),
        put("f16 mul", "mul", np.array([3, 0.1], np.float16), _i32([[1], [1]]), np.array([3, 0.1], np.float16), one),
        put("f32 max with NaN and zeros", "max", zeros, dup[[1, 0, 1]], np.array([0, 3, -0.0], np.float32), one),
        put("f32 min with NaN", "min", np.array([0.0, 1, 2], np.float32), dup[[1, 0, 0]], np.array([-0.0, NAN, 3], np.float32), one),
        put("ui8 max", "max", np.array([100, 200], np.uint8), np.array([[0], [1], [7]], np.uint8), np.array([200, 100, 9], np.uint8), one),
        put("i8 add wraps", "add", np.array([100, 0], np.int8), _i32([[0], [0]]), np.array([100, 1], np.int8), one),
        put("i1 set", "set", np.array([True, False, True]), _i32([[0], [1]]), np.array([False, True]), one),
        put("f32 window over the edge", "set", np.zeros(3, np.float32), _i32([2]), np.array([10, 20], np.float32), "window [0] map [0]"),
        put("nothing", "set", wave(3, dtype=np.float32), np.zeros((0, 1), np.int32), np.zeros(0, np.float32), one),
    ]  # fmt: skip


_SCATTER_BATCHED = "window [2] inserted [1] operand_batch [0] indices_batch [0] map [1]"


def _take_along_axis() -> list[Sample]:
    def take(name: str, x: Array, indices: Array, dim: int, wrt: Sequence[int] = ()) -> Sample:
        result = type_text(np.zeros(indices.shape, x.dtype))
        return case(name, f"nd.take_along_axis %0, %1 dim {dim} : {{0}}, {{1}} -> {{2}}", [x, indices], result, wrt)

    return [
        take("f64 last", wave(2, 4), _i32([[3, 0, 0], [1, 9, -1]]), 1, (0,)),
        take("f64 first", wave(3, 2), _i32([[2, 0]]), 0, (0,)),
        take("f64 vector", wave(3), _i32([1, 1]), 0, (0,)),
        take("i1", np.array([[True, False]]), np.array([[1, 0, 1]], np.int64), 1),
        take("empty", np.ones((2, 3), np.float32), np.zeros((2, 0), np.int32), 1),
    ]


def samples_of(cls: type[NdOp]) -> tuple[Sample, ...]:
    """The samples of one op of this family."""
    kinds = {"nd.gather_general": _gather, "nd.scatter_general": _scatter, "nd.take_along_axis": _take_along_axis}
    return tuple(kinds[cls.name]())
