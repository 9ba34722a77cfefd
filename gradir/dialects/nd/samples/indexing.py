"""Samples of the ops whose positions are values."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradir.dialects.nd.base import NdOp, Sample
from gradir.dialects.nd.samples.case import BF16, INF, NAN, Array, case, type_text, wave


def _i32(*values: Any) -> Array:
    return np.array(values[0] if len(values) == 1 else values, np.int32)


def _gather() -> list[Sample]:
    def take(name: str, x: Array, indices: Array, dim: int, wrt: tuple[int, ...] = ()) -> Sample:
        shape = (*x.shape[:dim], *indices.shape, *x.shape[dim + 1 :])
        return case(name, f"nd.gather %0, %1 dim {dim} : {{0}}, {{1}} -> {{2}}", [x, indices], type_text(np.zeros(shape, x.dtype)), wrt)

    return [
        take("f64 rows", wave(4, 3), _i32(2, 0, 2), 0, (0,)),
        take("f64 columns", wave(2, 5), _i32(4, 1), 1, (0,)),
        take("f64 table of indices", wave(4, 2), _i32([[0, 3], [3, 1]]), 0, (0,)),
        take("f64 one", wave(4, 2), np.array(1, np.int32), 0, (0,)),
        take("f64 outside", wave(3), _i32(-1, 7, 1, -(2**31)), 0, (0,)),
        take("f32 ui8 indices", np.array([NAN, -0.0, INF], np.float32), np.array([2, 255, 0], np.uint8), 0),
        take("i1", np.array([True, False]), np.array([1, 1, 0], np.int64), 0),
        take("no indices", np.ones((2, 3), np.float32), np.zeros(0, np.int32), 0),
        take("empty rows", np.zeros((2, 0), np.float32), _i32(1, 0, 1), 0),
    ]


def _scatter_add() -> list[Sample]:
    def add(name: str, x: Array, indices: Array, updates: Array, dim: int, wrt: tuple[int, ...] = ()) -> Sample:
        line = f"nd.scatter_add %0, %1, %2 dim {dim} : {{0}}, {{1}}, {{2}} -> {{3}}"
        return case(name, line, [x, indices, updates], type_text(x), wrt)

    return [
        add("f64 rows", wave(4, 3), _i32(2, 0, 2), wave(3, 3), 0, (0, 2)),
        add("f64 columns", wave(2, 5), _i32(4, 1), wave(2, 2), 1, (0, 2)),
        add("f64 table of indices", wave(4, 2), _i32([[0, 3], [3, 1]]), wave(2, 2, 2), 0, (0, 2)),
        add("f64 outside", wave(3), _i32(-1, 3, 1, 1), wave(4), 0, (0, 2)),
        add("bf16 many", np.zeros(2, BF16), np.zeros(512, np.int32), np.ones(512, BF16), 0),
        add("i8 wraps", np.array([100, 0], np.int8), _i32(0, 0), np.array([100, 1], np.int8), 0),
        add("nothing", wave(3, dtype=np.float32), np.zeros(0, np.int32), np.zeros(0, np.float32), 0),
        add("f32 nan", np.zeros(3, np.float32), _i32(2, 5), np.array([NAN, INF], np.float32), 0),
    ]


def _scalars(*values: int) -> list[Array]:
    return [np.array(v, np.int32) for v in values]


def _dynamic_slice() -> list[Sample]:
    def take(name: str, x: Array, starts: list[Array], sizes: list[int], wrt: tuple[int, ...] = ()) -> Sample:
        names = "".join(f", %{k + 1}" for k in range(len(starts)))
        kinds = "".join(f", {{{k + 1}}}" for k in range(len(starts)))
        line = f"nd.dynamic_slice %0{names} sizes {sizes} : {{0}}{kinds} -> {{{len(starts) + 1}}}"
        return case(name, line, [x, *starts], type_text(np.zeros(sizes, x.dtype)), wrt)

    return [
        take("f64", wave(4, 5), _scalars(1, 2), [2, 3], (0,)),
        take("f64 clamped", wave(4, 5), _scalars(7, -3), [2, 3], (0,)),
        take("f64 whole", wave(2, 2), _scalars(1, 1), [2, 2], (0,)),
        take("i1 by ui8", np.array([True, False, True]), [np.array(200, np.uint8)], [2]),
        take("i32 by i64", np.arange(6, dtype=np.int32), [np.array(-(2**63), np.int64)], [3]),
        take("empty", np.arange(3, dtype=np.float32), _scalars(1), [0]),
        *(_take_run_time(f"run-time of {n}", n, at) for n, at in ((3, 1), (1, 5), (0, -1))),
    ]


def _take_run_time(name: str, n: int, at: int) -> Sample:
    """`n` of `n + 2` elements."""
    line, result = "nd.dynamic_slice %0, %1 sizes [-1] : {0}, {1} -> {2}", 'tensor<?xf64, ["b"]>'
    return case(name, line, [wave(n + 2), np.array(at, np.int32)], result, (0,), names={0: ("b+2",)})


def _dynamic_update_slice() -> list[Sample]:
    def put(name: str, x: Array, update: Array, starts: list[int], wrt: tuple[int, ...] = ()) -> Sample:
        names = "".join(f", %{k + 2}" for k in range(len(starts)))
        kinds = "".join(f", {{{k + 2}}}" for k in range(len(starts)))
        line = f"nd.dynamic_update_slice %0, %1{names} : {{0}}, {{1}}{kinds} -> {{{len(starts) + 2}}}"
        return case(name, line, [x, update, *(np.array(s, np.int32) for s in starts)], type_text(x), wrt)

    return [
        put("f64", wave(4, 5), wave(2, 3, shift=2.0), [1, 2], (0, 1)),
        put("f64 clamped", wave(4, 5), wave(2, 3, shift=2.0), [7, -3], (0, 1)),
        put("f64 whole", wave(2, 2), wave(2, 2, shift=2.0), [1, 1], (0, 1)),
        put("f64 scalar", np.array(1.0), np.array(2.0), [], (0, 1)),
        put("i32", np.arange(6, dtype=np.int32), np.array([-1, -2], np.int32), [4]),
        put("empty update", np.arange(3, dtype=np.float32), np.zeros(0, np.float32), [1]),
    ]


def _place_text(dim: int, middle: str = "[%1]") -> str:
    return f"{middle} dim {dim}"


def _index_at() -> list[Sample]:
    def take(name: str, x: Array, at: int, dim: int, wrt: tuple[int, ...] = ()) -> Sample:
        result = type_text(np.take(x, at, dim))
        return case(name, f"nd.index_at %0{_place_text(dim)} : {{0}} -> {{2}}", [x, at], result, wrt)

    return [
        take("f64 first", wave(4, 3), 2, 0, (0,)),
        take("f64 last", wave(4, 3), 0, 1, (0,)),
        take("f64 vector", wave(4), 3, 0, (0,)),
        take("i1", np.array([True, False]), 1, 0),
        take("empty rows", np.zeros((2, 0), np.float32), 1, 0),
    ]


def _update_at() -> list[Sample]:
    def put(name: str, value: Array, x: Array, at: int, dim: int, wrt: tuple[int, ...] = ()) -> Sample:
        line = f"nd.update_at %0 into %1{_place_text(dim, '[%2]')} : {{0}} -> {{1}}"
        return case(name, line, [value, x, at], type_text(x), wrt)

    return [
        put("f64 first", wave(3, shift=2.0), wave(4, 3), 2, 0, (0, 1)),
        put("f64 last", wave(4, shift=2.0), wave(4, 3), 0, 1, (0, 1)),
        put("f64 vector", np.array(5.0), wave(4), 3, 0, (0, 1)),
        put("i32", np.array([7, 8], np.int32), np.zeros((3, 2), np.int32), 1, 0),
    ]


def samples_of(cls: type[NdOp]) -> tuple[Sample, ...]:
    """The samples of one op of this family."""
    kinds = {
        "nd.gather": _gather,
        "nd.scatter_add": _scatter_add,
        "nd.dynamic_slice": _dynamic_slice,
        "nd.dynamic_update_slice": _dynamic_update_slice,
        "nd.index_at": _index_at,
        "nd.update_at": _update_at,
    }
    return tuple(kinds[cls.name]())
