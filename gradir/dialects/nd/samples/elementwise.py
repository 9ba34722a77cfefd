"""Samples of the elementwise ops."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from gradir.dialects.nd.base import NdOp, Sample
from gradir.dialects.nd.comparison import DIRECTIONS
from gradir.dialects.nd.elementwise import BINARY, UNARY, Binary, Unary
from gradir.dialects.nd.samples.case import BF16, INF, NAN, SPECIAL, Array, case, limits, pairs, same, type_text, wave

_POSITIVE = ("nd.log", "nd.sqrt", "nd.rsqrt", "nd.pow")
_INTEGER = ("nd.and", "nd.or", "nd.xor", "nd.shl", "nd.shr_s", "nd.shr_u")


def _smooth(name: str) -> Array:
    if name in _POSITIVE:
        return wave(2, 3, scale=0.9, shift=1.3)
    if name == "nd.log1p":
        return wave(2, 3, scale=0.8)
    return wave(2, 3, scale=2.0, shift=0.2)


def _unary(op: type[Unary]) -> list[Sample]:
    line = f"{op.name} %0"
    if op.name == "nd.not":
        return [
            same("i1", line, [np.array([True, False])]),
            same("i8", line, [np.array(limits(np.int8), np.int8)]),
            same("ui8", line, [np.array(limits(np.uint8), np.uint8)]),
            same("i32 empty", line, [np.zeros((0, 2), np.int32)]),
        ]
    found = [
        same("f64", line, [_smooth(op.name)], (0,)),
        same("f32 special", line, [np.array([*SPECIAL, 0.5, -0.5, 100, -100, 3e38], np.float32)]),
        same("bf16", line, [np.array([*SPECIAL[:-1], 0.5, 3.0], BF16)]),
        same("f16", line, [np.array([*SPECIAL[:-1], 0.5, 11.09], np.float16)]),
        same("f32 empty", line, [np.zeros((3, 0), np.float32)]),
        same("f32 scalar", line, [np.array(0.75, np.float32)]),
    ]
    if not op.ELEMENTS.startswith("float"):
        found += [same("i32", line, [np.array(limits(np.int32), np.int32)]), same("i8", line, [np.array(limits(np.int8), np.int8)])]
    if op.name == "nd.neg":
        found.append(same("ui8", line, [np.array(limits(np.uint8), np.uint8)]))
    return found


def _integers(op: type[Binary], line: str) -> list[Sample]:
    found = [same(str(np.dtype(dtype)), line, pairs(limits(dtype), dtype)) for dtype in (np.int32, np.int8, np.uint8)]
    if "sh" in op.name:
        counts = np.array([0, 1, 7, 8, 31, 32, -1, 100], np.int32)
        found.append(same("counts", line, [np.full(8, -5, np.int32), counts]))
    return found


def _binary(op: type[Binary]) -> list[Sample]:
    line = f"{op.name} %0, %1"
    found: list[Sample] = []
    if op.name not in _INTEGER:
        second = wave(2, 3, scale=0.5, shift=1.4)[::-1].copy()
        found += [
            same("f64", line, [_smooth(op.name), second], (0, 1)),
            same("f32 special", line, pairs([*SPECIAL, 3.0, -1.0], np.float32)),
            same("bf16", line, pairs([*SPECIAL[:-1], 3.0, 256.0], BF16)),
            same("f32 empty", line, [np.zeros((0, 2), np.float32), np.zeros((0, 2), np.float32)]),
        ]
    if op.name != "nd.atan2":
        found += _integers(op, line)
    if op.ELEMENTS in ("any", "bits"):
        found.append(same("i1", line, pairs([False, True], np.bool_)))
    return found


def _convert() -> list[Sample]:
    def to(name: str, values: Array, element: str, wrt: tuple[int, ...] = (), how: str = "") -> Sample:
        result = f"tensor<{'x'.join([*map(str, values.shape), element])}>"
        return case(name, f"nd.convert %0{how} : {{0}} -> {result}", [values], result, wrt)

    floats = np.array([*SPECIAL, 0.5, 300, -300, 1.9, 3e38, -1.9], np.float32)
    return [
        to("f64 to f32", wave(2, 3), "f32"),
        to("f32 to f64", wave(2, 3, dtype=np.float32), "f64"),
        to("f64 to f64", wave(2, 3), "f64", (0,)),
        to("f32 to bf16", floats, "bf16"),
        to("f64 to bf16", np.array([1 + 2**-8 + 2**-40, 1e39, NAN, -0.0]), "bf16"),
        to("f32 to f16", floats, "f16"),
        to("f32 to f16, saturating", floats, "f16", how=" saturate"),
        to("i32 to f16, saturating", np.array([70000, -70000, 3], np.int32), "f16", how=" saturate"),
        to("bf16 to f32", floats.astype(BF16), "f32"),
        *(to(f"f32 to {element}", floats, element) for element in ("i8", "i32", "i64", "ui8", "i1")),
        to("f64 to i64", np.array([2.0**63, -(2.0**63), 2.0**62, NAN, INF, -INF]), "i64"),
        to("i32 to i8", np.array([300, -129, 5], np.int32), "i8"),
        to("i8 to i32", np.array([-128, 127, 0], np.int8), "i32"),
        to("ui8 to i32", np.array([0, 200, 255], np.uint8), "i32"),
        to("i8 to ui8", np.array([-1, 127], np.int8), "ui8"),
        to("i32 to f32", np.array([2**24 + 1, -7, 2**31 - 1], np.int32), "f32"),
        to("i32 to bf16", np.array([257, 259], np.int32), "bf16"),
        to("i64 to bf16", np.array([(1 << 62) + (1 << 54) + 1, -3], np.int64), "bf16"),
        to("i32 to i1", np.array([256, 0, -1], np.int32), "i1"),
        to("i1 to f32", np.array([True, False]), "f32"),
        to("i1 to i32", np.array([True, False]), "i32"),
        to("empty", np.zeros((0, 3), np.float32), "i32"),
    ]


def _is_finite() -> list[Sample]:
    values = [np.array(SPECIAL, np.float32), np.array(SPECIAL[:-1], BF16), np.array(SPECIAL, np.float64), np.zeros((0, 2), np.float32)]
    return [
        case(f"{value.dtype} {value.size}", "nd.is_finite %0 : {0} -> {1}", [value], type_text(value.astype(np.bool_))) for value in values
    ]


def _compare() -> list[Sample]:
    found: list[Sample] = []
    for direction in DIRECTIONS:
        rows: list[tuple[str, tuple[Array, Array]]] = [
            ("f32", pairs(SPECIAL, np.float32)),
            ("i32", pairs(limits(np.int32), np.int32)),
            ("ui8", pairs([0, 1, 127, 128, 255], np.uint8)),
        ]
        for name, (x, y) in rows:
            found.append(case(f"{direction} {name}", f"nd.compare {direction}, %0, %1 : {{0}}", [x, y], type_text(x.astype(np.bool_))))
    booleans = pairs([False, True], np.bool_)
    found.append(case("eq i1", "nd.compare eq, %0, %1 : {0}", booleans, "tensor<2x2xi1>"))
    found.append(case("lt bf16", "nd.compare lt, %0, %1 : {0}", pairs(SPECIAL[:-1], BF16), "tensor<7x7xi1>"))
    return found


def _select() -> list[Sample]:
    def choose(name: str, pred: Any, x: Array, y: Array, wrt: tuple[int, ...] = ()) -> Sample:
        return case(name, "nd.select %0, %1, %2 : {1}", [np.array(pred), x, y], type_text(x), wrt)

    return [
        choose("f64", [[True, False, True], [False, False, True]], wave(2, 3), wave(2, 3, shift=1.0), (1, 2)),
        choose("f32 special", [True, False, True], np.array([NAN, NAN, -0.0], np.float32), np.array([1, INF, 2], np.float32)),
        choose("i32", [True, False], np.array([1, 2], np.int32), np.array([3, 4], np.int32)),
        choose("i1", [True, False], np.array([True, True]), np.array([False, False])),
        choose("empty", np.zeros((0,), np.bool_), np.zeros(0, np.float32), np.zeros(0, np.float32)),
    ]


def _clamp() -> list[Sample]:
    line = "nd.clamp %0, %1, %2"
    special = np.array([NAN, 1, 2, -0.0, 5, -INF], np.float32)
    return [
        same("f64", line, [np.full(6, -0.8), wave(6, scale=1.5), np.full(6, 0.9)], (0, 1, 2)),
        same("f64 crossed", line, [np.full(2, 5.0), np.array([1.0, 7.0]), np.full(2, 2.0)], (0, 1, 2)),
        same("f32 special", line, [np.roll(special, 1), special, np.roll(special, 2)]),
        same("i32", line, [np.full(4, -2, np.int32), np.array([-7, 0, 7, 2], np.int32), np.full(4, 2, np.int32)]),
        same("empty", line, [np.zeros(0, np.float32)] * 3),
    ]


@cache
def _table() -> dict[str, list[Sample]]:
    return {
        **{op.name: _unary(op) for op in UNARY},
        **{op.name: _binary(op) for op in BINARY},
        "nd.convert": _convert(),
        "nd.is_finite": _is_finite(),
        "nd.compare": _compare(),
        "nd.select": _select(),
        "nd.clamp": _clamp(),
    }


def samples_of(cls: type[NdOp]) -> tuple[Sample, ...]:
    """The samples of one op of this family."""
    return tuple(_table()[cls.name])
