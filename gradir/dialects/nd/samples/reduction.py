"""Samples of the reductions."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradir.dialects.nd.base import NdOp, Sample
from gradir.dialects.nd.samples.case import BF16, INF, NAN, Array, case, type_text, wave


def _fold(op: str, name: str, x: Array, dims: list[int], wrt: tuple[int, ...] = ()) -> Sample:
    kept = np.zeros([n for d, n in enumerate(x.shape) if d not in dims], x.dtype)
    return case(name, f"{op} %0 dims {dims} : {{0}} -> {{1}}", [x], type_text(kept), wrt)


def _numbers(op: str) -> list[Sample]:
    special = np.array([[NAN, 1, 2], [INF, -INF, 0], [-0.0, 0.0, -0.0], [-0.0, -0.0, -0.0], [3, 1, 3]], np.float32)
    return [
        _fold(op, "f64 last", wave(2, 5, shift=0.3), [1], (0,)),
        _fold(op, "f64 middle", wave(2, 3, 4, shift=0.3), [1], (0,)),
        _fold(op, "f64 outer and inner", wave(2, 3, 4, shift=0.3), [0, 2], (0,)),
        _fold(op, "f64 all", wave(3, 4, shift=0.3), [0, 1], (0,)),
        _fold(op, "f64 none", wave(3, shift=0.3), [], (0,)),
        _fold(op, "f32 special", special, [1]),
        _fold(op, "f32 first", wave(7, 33, dtype=np.float32), [0]),
        _fold(op, "f32 empty axis", np.zeros((2, 0), np.float32), [1]),
        _fold(op, "f32 empty result", np.zeros((0, 3), np.float32), [1]),
        _fold(op, "f32 one", np.ones((1, 1), np.float32), [0]),
        _fold(op, "bf16", np.array([[256, 1, 1, 1], [3, NAN, 2, 1]], BF16), [1]),
        _fold(op, "i32", np.array([[1, -7, 5], [2**31 - 1, 1, 2]], np.int32), [1]),
        _fold(op, "i8", np.array([[100, 100, -3]], np.int8), [1]),
        _fold(op, "ui8", np.array([[200, 100, 3]], np.uint8), [1]),
        _fold(op, "i32 empty axis", np.zeros((2, 0), np.int32), [1]),
    ]


def _booleans(op: str) -> list[Sample]:
    table = np.array([[True, False, True], [False, False, False], [True, True, True]])
    return [
        _fold(op, "rows", table, [1]),
        _fold(op, "all", table, [0, 1]),
        _fold(op, "empty axis", np.zeros((2, 0), np.bool_), [1]),
    ]


def _position(op: str, name: str, x: Array, dim: int, dtype: Any = np.int32) -> Sample:
    kept = np.zeros([n for d, n in enumerate(x.shape) if d != dim], dtype)
    return case(name, f"{op} %0 dim {dim} : {{0}} -> {{1}}", [x], type_text(kept))


def _positions(op: str) -> list[Sample]:
    special = np.array([[1, NAN, INF, NAN], [-0.0, 0.0, -0.0, 0.0], [2, 2, 1, 1], [-INF, INF, INF, -INF]], np.float32)
    return [
        _position(op, "f64", wave(2, 5), 1),
        _position(op, "f32 special", special, 1),
        _position(op, "f32 first", wave(7, 3, dtype=np.float32), 0, np.int64),
        _position(op, "bf16", np.array([[1, NAN, 3]], BF16), 1),
        _position(op, "i32", np.array([[3, -7, 3, -7]], np.int32), 1),
        _position(op, "ui8", np.array([[0, 255, 128]], np.uint8), 1, np.int8),
        _position(op, "i1", np.array([[False, True, False]]), 1),
        _position(op, "empty result", np.zeros((0, 3), np.float32), 1),
    ]


def samples_of(cls: type[NdOp]) -> tuple[Sample, ...]:
    """The samples of one op of this family."""
    kinds = {"nd.reduce_any": _booleans, "nd.reduce_all": _booleans, "nd.argmax": _positions, "nd.argmin": _positions}
    return tuple(kinds.get(cls.name, _numbers)(cls.name))
