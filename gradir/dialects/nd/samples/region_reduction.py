"""Samples of the folds whose combiner is a region."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gradir.dialects.nd.base import NdOp, Sample
from gradir.dialects.nd.samples.case import BF16, INF, NAN, Array, type_text, wave
from gradir.dialects.nd.samples.sorting import several


def _fold(op: str, name: str, inputs: Sequence[Array], clauses: str, body: str, shape: Sequence[int], wrt: Sequence[int] = ()) -> Sample:
    count = len(inputs) // 2
    results = [type_text(np.zeros(shape, x.dtype)) for x in inputs[:count]]
    names = [f"%{k}" for k in range(2 * count)]
    kinds = ", ".join(type_text(x) for x in inputs)
    line = f"{op} {', '.join(names[:count])} init {', '.join(names[count:])} {clauses} by {body} : {kinds} -> {', '.join(results)}"
    return several(name, line, inputs, results, wrt)


def _binary(element: str, *ops: str) -> str:
    """`(%a, %b) { %v0 = nd.first %a, %b; %v1 = nd.second %v0, %b; .. }`"""
    lines = "".join(f"    %v{k} = nd.{op} {'%a' if k == 0 else f'%v{k - 1}'}, %b : tensor<{element}>\n" for k, op in enumerate(ops))
    return f"(%a: tensor<{element}>, %b: tensor<{element}>) {{\n{lines}    nd.yield %v{len(ops) - 1} : tensor<{element}>\n  }}"


_FIRST_MAX = (
    "(%a: tensor<f32>, %i: tensor<i32>, %b: tensor<f32>, %j: tensor<i32>) {\n"
    "    %g = nd.compare ge, %a, %b : tensor<f32>\n    %c = nd.select %g, %a, %b : tensor<f32>\n"
    "    %k = nd.select %g, %i, %j : tensor<i32>\n    nd.yield %c, %k : tensor<f32>, tensor<i32>\n  }"
)


def _one(value: float, dtype: type = np.float64) -> Array:
    return np.array(value, dtype)


def _reduce() -> list[Sample]:
    op = "nd.reduce"
    pair = [np.array([[1, 3, 3], [-INF, 0, -0.0]], np.float32), np.arange(6, dtype=np.int32).reshape(2, 3)]
    starts = [_one(-INF, np.float32), _one(-1, np.int32)]
    return [
        _fold(op, "f64 in order", [wave(3, 4), _one(0.5)], "dims [1]", _binary("f64", "mul", "add"), (3,), (0, 1)),
        _fold(op, "f64 two dimensions", [wave(2, 3, 2), _one(1.0)], "dims [0, 2]", _binary("f64", "sub", "mul"), (3,), (0, 1)),
        _fold(op, "f64 all", [wave(4), _one(0.0)], "dims [0]", _binary("f64", "sub"), (), (0, 1)),
        _fold(op, "f32 pairs", [*pair, *starts], "dims [1]", _FIRST_MAX, (2,)),
        _fold(op, "bf16 rounds each step", [np.array([1, -256], BF16), np.array(256, BF16)], "dims [0]", _binary("bf16", "add"), ()),
        _fold(op, "i32 xor", [np.array([5, 3, 9], np.int32), _one(1, np.int32)], "dims [0]", _binary("i32", "xor"), ()),
        _fold(op, "ui8 max", [np.array([[5, 200]], np.uint8), _one(7, np.uint8)], "dims [1]", _binary("ui8", "max"), (1,)),
        _fold(op, "f32 nothing to fold", [wave(0, 2, dtype=np.float32), _one(5, np.float32)], "dims [0]", _binary("f32", "sub"), (2,)),
        _fold(op, "f32 no dimension", [wave(2, dtype=np.float32), _one(5, np.float32)], "dims []", _binary("f32", "sub"), (2,)),
        _fold(op, "f32 no rows", [wave(0, 2, dtype=np.float32), _one(5, np.float32)], "dims [1]", _binary("f32", "sub"), (0,)),
        _fold(op, "f32 NaN", [np.array([1, NAN, 2], np.float32), _one(0, np.float32)], "dims [0]", _binary("f32", "max"), ()),
    ]


def _reduce_window() -> list[Sample]:
    op, sub, mul = "nd.reduce_window_general", _binary("f64", "mul", "add"), _binary("f64", "mul")
    all_ = "window [2, 2] strides [1, 2] padding [1, 0, 0, 1] dilations [2, 1] base_dilations [1, 2]"
    pair = [np.array([1, 3, 3, 0], np.float32), np.arange(4, dtype=np.int32), _one(-INF, np.float32), _one(-1, np.int32)]
    return [
        _fold(op, "f64 product", [wave(6), _one(1.0)], "window [3] strides [2]", mul, (2,), (0, 1)),
        _fold(op, "f64 everything", [wave(3, 3), _one(0.5)], all_, sub, (2, 3), (0, 1)),
        _fold(op, "f32 pairs", pair, "window [2] padding [1, 0]", _FIRST_MAX, (4,)),
        _fold(op, "i1 or", [np.array([True, False, False]), _one(0, np.bool_)], "window [2]", _binary("i1", "or"), (2,)),
        _fold(op, "f32 cut", [wave(5, dtype=np.float32), _one(0, np.float32)], "window [2] padding [-1, -1]", _binary("f32", "sub"), (2,)),
        _fold(op, "f32 none", [wave(2, dtype=np.float32), _one(0, np.float32)], "window [3]", _binary("f32", "sub"), (0,)),
        _fold(op, "bf16", [np.array([1, 256, 1], BF16), np.array(0, BF16)], "window [3]", _binary("bf16", "add"), (1,)),
    ]


def _select_and_scatter() -> list[Sample]:
    def put(name: str, x: Array, source: Array, start: Array, clauses: str, direction: str, joint: str, wrt: Sequence[int] = ()) -> Sample:
        element = type_text(start)
        select = (
            f"(%a: {element}, %b: {element}) {{\n    %c = nd.compare {direction}, %a, %b : {element}\n    nd.yield %c : tensor<i1>\n  }}"
        )
        kind = element.removeprefix("tensor<").removesuffix(">")
        line = f"nd.select_and_scatter_general %0, %1, %2 {clauses} select {select} scatter {_binary(kind, joint)} : "
        inputs = [x, source, start]
        return several(name, line + ", ".join(map(type_text, inputs)), inputs, [type_text(x)], wrt)

    x = np.array([[3, 1, 2], [2, 3, 0], [3, 3, 1]], np.float32)
    squares, beside = np.arange(1, 5, dtype=np.float32).reshape(2, 2), "window [1] strides [2] padding [2, 1]"
    overlap = "window [2, 2] strides [1, 2] padding [0, 0, 1, 0]"
    return [
        put("f64", wave(2, 5), wave(1, 3, shift=2.0), _one(0.5), overlap, "gt", "mul", (0, 1, 2)),
        put("f32 last of the greatest, products", x, squares, _one(2, np.float32), "window [2, 2]", "gt", "mul"),
        put("f32 least, padded", x[0], np.array([1, 2, 3, 4], np.float32), _one(0, np.float32), "window [2] padding [1, 1]", "le", "add"),
        put("f32 beside the operand", x[0], squares.reshape(4)[:3], _one(5, np.float32), beside, "ge", "sub"),
        put("i32", np.array([1, 5, 5, 2], np.int32), np.array([7, 8], np.int32), _one(1, np.int32), "window [2] strides [2]", "ge", "max"),
        put("i1", np.array([True, False, True]), np.array([True, True]), _one(0, np.bool_), "window [2]", "ge", "or"),
        put("f32 NaN", np.array([1, NAN, 2], np.float32), np.array([7.0], np.float32), _one(0, np.float32), "window [3]", "ge", "add"),
    ]  # fmt: skip


def samples_of(cls: type[NdOp]) -> tuple[Sample, ...]:
    """The samples of one op of this family."""
    kinds = {
        "nd.reduce": _reduce,
        "nd.reduce_window_general": _reduce_window,
        "nd.select_and_scatter_general": _select_and_scatter,
    }
    return tuple(kinds[cls.name]())
