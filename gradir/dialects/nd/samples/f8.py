"""Samples of 8-bit floats: storage in f8E4M3FN and f8E5M2, computed in f32 and rounded once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from gradir.dialects.nd.base import Sample
from gradir.dialects.nd.samples.case import Array, case, same, type_text, wave
from gradir.dialects.nd.samples.sorting import several

E4M3, E5M2 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
EVERY = np.arange(256, dtype=np.uint8)
"""The bits of every 8-bit float."""

_FORMATS: tuple[Any, ...] = (E4M3, E5M2)
_EDGES = (464.0, 465.0, 61440.0, 61439.0, 2.0**-10, 1.5 * 2.0**-10, 2.0**-17, -0.0, np.inf, np.nan, 17.0, 19.0, 1 + 2.0**-4 + 2.0**-40)


def _short(dtype: Any) -> str:
    return "e4m3" if dtype is E4M3 else "e5m2"


def _convert() -> list[Sample]:
    edges = np.array(_EDGES)
    found: list[Sample] = []
    for dtype in _FORMATS:
        every = EVERY.view(dtype)
        for source in (edges, edges.astype(np.float32), np.array([300, 464, 465, -7, 2**31 - 1], np.int32), np.array([True, False])):
            found.append(_to(f"{source.dtype} to {_short(dtype)}", source, source.astype(dtype)))
        for target in (np.float32, np.float64, ml_dtypes.bfloat16, np.int8, np.bool_, E5M2 if dtype is E4M3 else E4M3):
            found.append(_to(f"{_short(dtype)} to {np.dtype(target)}", every, np.zeros(every.shape, target)))
    return found


def _to(name: str, values: Array, like: Array) -> Sample:
    result = type_text(like)
    return case(name, f"nd.convert %0 : {{0}} -> {result}", [values], result)


def _unary(name: str) -> list[Sample]:
    return [same(_short(dtype), f"nd.{name} %0", [EVERY.view(dtype)]) for dtype in _FORMATS]


def _binary(name: str) -> list[Sample]:
    x, y = np.repeat(EVERY[::7], 37), np.tile(EVERY[::7], 37)
    return [same(_short(dtype), f"nd.{name} %0, %1", [x.view(dtype), y.view(dtype)]) for dtype in _FORMATS]


def _table() -> dict[str, Callable[[], list[Sample]]]:
    x, y = wave(3, 4).astype(E4M3), wave(4, 5, shift=0.5).astype(E4M3)
    row, at = wave(5, dtype=np.float32).astype(E5M2), np.array([[2], [0], [2], [7]], np.int32)
    updates = wave(4, shift=1.0).astype(E5M2)
    kinds = [type_text(v) for v in (row, at, updates)]

    def scatter(kind: str) -> Sample:
        line = f"nd.scatter_general {kind}, %0, %1, %2 inserted [0] map [0] : {', '.join(kinds)} -> {kinds[0]}"
        return several(f"e5m2 {kind}", line, [row, at, updates], kinds[:1])

    mixed = np.array([1, np.nan, -0.0, 3, -np.inf, 2], np.float32).astype(E5M2)
    every = EVERY.view(E4M3)
    kind, pair = type_text(mixed), "tensor<2xf8E4M3FN>"
    return {
        "nd.convert": _convert,
        **{f"nd.{name}": lambda name=name: _unary(name) for name in ("neg", "exp", "sqrt", "round_even")},
        **{f"nd.{name}": lambda name=name: _binary(name) for name in ("add", "mul", "div", "max")},
        "nd.compare": lambda: [case("lt e4m3", "nd.compare lt, %0, %1 : {0}", [every, every[::-1].copy()], "tensor<256xi1>")],
        "nd.select": lambda: [case("e4m3", "nd.select %0, %1, %2 : {1}", [np.array([True, False]), x[0, :2], x[1, :2]], pair)],
        "nd.reduce_sum": lambda: [case("e4m3", "nd.reduce_sum %0 dims [1] : {0} -> {1}", [x], "tensor<3xf8E4M3FN>")],
        "nd.dot_general": lambda: [
            case(f"e4m3 to {e}", "nd.dot_general %0, %1 contract [1] x [0] : {0}, {1} -> {2}", [x, y], f"tensor<3x5x{e}>")
            for e in ("f32", "f8E4M3FN")
        ],
        "nd.softmax": lambda: [same("e4m3", "nd.softmax %0 dim 1", [x])],
        "nd.gather": lambda: [case("e5m2", "nd.gather %0, %1 dim 0 : {0}, {1} -> {2}", [row, at[:, 0].copy()], "tensor<4xf8E5M2>")],
        "nd.scatter_general": lambda: [scatter(kind) for kind in ("set", "add", "mul")],
        "nd.sort": lambda: [several("e5m2", f"nd.sort %0 dim 0 : {kind}", [mixed], [kind])],
        "nd.iota": lambda: [case("e4m3", "nd.iota dim 0 : {0}", [], "tensor<20xf8E4M3FN>")],
        "nd.constant": lambda: [
            case("e4m3 splat", "nd.constant splat(1.5 : f8E4M3FN) : {0}", [], pair),
            case("e4m3 dense", "nd.constant dense<[0.5, -448.0]> : {0}", [], pair),
        ],
        "nd.bitcast_convert": lambda: [
            case("e4m3 to i8", "nd.bitcast_convert %0 : {0} -> {1}", [EVERY.view(E4M3)], "tensor<256xi8>"),
            case("ui16 to e5m2", "nd.bitcast_convert %0 : {0} -> {1}", [np.array([0x3C40, 0x7F01], np.uint16)], "tensor<2x2xf8E5M2>"),
        ],
    }


def f8_samples(name: str) -> list[Sample]:
    """Samples in 8-bit floats of an op; none of most ops."""
    rows = _table()
    return rows[name]() if name in rows else []
