"""Samples of the ops that order elements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gradir.dialects.nd.base import NdOp, Sample
from gradir.dialects.nd.samples.case import BF16, INF, NAN, SPECIAL, Array, type_text, wave


def several(name: str, line: str, inputs: Sequence[Array], results: Sequence[str], wrt: Sequence[int] = ()) -> Sample:
    """A sample of an op of several results: `line` is its text, in which `%0` .. are the arguments."""
    kinds = ", ".join(results)
    arguments = ", ".join(f"%{k}: {type_text(x)}" for k, x in enumerate(inputs))
    pack = f":{len(results)}" if len(results) > 1 else ""
    names = ", ".join(f"%result#{k}" for k in range(len(results))) if pack else "%result"
    text = f"func.func @f({arguments}) -> ({kinds}) {{\n  %result{pack} = {line}\n  return {names} : {kinds}\n}}\n"
    return Sample(name, text, lambda: tuple(x.copy() for x in inputs), tuple(wrt))


def _sort() -> list[Sample]:
    def sort(name: str, clauses: str, *inputs: Array, wrt: Sequence[int] = ()) -> Sample:
        kinds = [type_text(x) for x in inputs]
        operands = ", ".join(f"%{k}" for k in range(len(inputs)))
        return several(name, f"nd.sort {operands} {clauses} : {', '.join(kinds)}", inputs, kinds, wrt)

    mixed = np.array([*SPECIAL, 3.0, NAN, -0.0, 1.0, 0.0], np.float32)
    signed = np.array([0x7FC00000, 0xFFC00000, 0x7FC00001, 0x80000000, 0, 0x7F800000, 0xFF800000], np.uint32).view(np.float32)
    positions = np.arange(13, dtype=np.int32)
    by_size = (
        "dim 0 by (%a: tensor<f64>, %b: tensor<f64>) {\n"
        "    %c = nd.abs %a : tensor<f64>\n    %d = nd.abs %b : tensor<f64>\n"
        "    %e = nd.compare gt, %c, %d : tensor<f64>\n    nd.yield %e : tensor<i1>\n  }"
    )
    by_second = (
        "dim 1 by (%a: tensor<f32>, %b: tensor<f32>, %c: tensor<ui8>, %d: tensor<ui8>) {\n"
        "    %e = nd.compare lt, %c, %d : tensor<ui8>\n    nd.yield %e : tensor<i1>\n  }"
    )
    by_bf16 = (
        "dim 0 by (%a: tensor<bf16>, %b: tensor<bf16>) {\n    %one = nd.constant splat(1.0 : bf16) : tensor<bf16>\n"
        "    %c = nd.add %a, %one : tensor<bf16>\n    %d = nd.add %b, %one : tensor<bf16>\n"
        "    %e = nd.compare lt, %c, %d : tensor<bf16>\n    nd.yield %e : tensor<i1>\n  }"
    )
    bytes_ = np.array([[3, 1, 200, 1, 3]], np.uint8)
    return [
        sort("f64", "dim 1", wave(3, 5), wrt=(0,)),
        sort("f64 first dimension", "dim 0 descending", wave(5, 3), wrt=(0,)),
        sort("f64 with values", "dim 1", wave(2, 6), wave(2, 6, shift=2.0, scale=0.3), wrt=(0, 1)),
        sort("f64 by comparator", by_size, wave(7), wrt=(0,)),
        sort("f32 ties and NaN", "dim 0", mixed, positions),
        sort("f32 ties and NaN, descending", "dim 0 descending", mixed, positions),
        sort("f32 total order", "dim 0 total_order", signed, np.arange(7, dtype=np.int32)),
        sort("two keys", "dim 0 keys 2", np.array([2, 1, 2, 1, 1], np.int32), np.array([1, NAN, -0.0, 1, 0], np.float32), positions[:5]),
        sort("f32 by ui8", by_second, wave(1, 5, dtype=np.float32), bytes_),
        sort("bf16 by comparator with ties", by_bf16, np.array([256, 257, 1, 258, 256], BF16)),
        sort("ui8 descending", "dim 1 descending", bytes_, np.arange(5, dtype=np.int64)[None]),
        sort("i1", "dim 0", np.array([True, False, True, False])),
        sort("bf16", "dim 0", np.array([3, NAN, -INF, -0.0, 0.0, 1], BF16)),
        sort("f16 total order, descending", "dim 0 descending total_order", np.array([0.0, -0.0, INF, -1], np.float16)),
        sort("i64 many", "dim 0", (np.arange(100) * 37 % 50).astype(np.int64), np.arange(100, dtype=np.int32)),
        sort("i8 middle dimension", "dim 1", (np.arange(24) * 7 % 11).astype(np.int8).reshape(2, 4, 3)),
        sort("one", "dim 1", wave(3, 1, dtype=np.float32)),
        sort("empty", "dim 0", np.zeros((0, 2), np.float32)),
        sort("no rows", "dim 1", np.zeros((0, 2), np.float32)),
    ]


def _top_k() -> list[Sample]:
    def top(name: str, x: Array, k: int, dim: int, element: str = "i32", wrt: Sequence[int] = ()) -> Sample:
        shape = (*x.shape[:dim], k, *x.shape[dim + 1 :])
        values = type_text(np.zeros(shape, x.dtype))
        indices = "tensor<" + "".join(f"{n}x" for n in shape) + f"{element}>"
        return several(name, f"nd.top_k %0 k {k} dim {dim} : {type_text(x)} -> {values}, {indices}", [x], [values, indices], wrt)

    return [
        top("f64", wave(3, 6), 2, 1, wrt=(0,)),
        top("f64 first dimension", wave(5, 2), 3, 0, wrt=(0,)),
        top("f32 special", np.array([*SPECIAL, NAN, INF], np.float32), 6, 0),
        top("i32 ties", np.array([[3, 1, 3, 3]], np.int32), 2, 1, "i64"),
        top("i1", np.array([False, True, True]), 2, 0),
        top("all", wave(4, dtype=np.float32), 4, 0),
        top("none", wave(4, dtype=np.float32), 0, 0),
        top("empty", np.zeros((0, 3), np.float32), 1, 1),
    ]


def samples_of(cls: type[NdOp]) -> tuple[Sample, ...]:
    """The samples of one op of this family."""
    return tuple({"nd.sort": _sort, "nd.top_k": _top_k}[cls.name]())
