"""Samples of the ops on the bits of numbers."""

from __future__ import annotations

import numpy as np

from gradir.dialects.nd.base import NdOp, Sample
from gradir.dialects.nd.bits import BitcastConvertOp, NextAfterOp
from gradir.dialects.nd.samples.case import BF16, INF, NAN, SPECIAL, Array, case, pairs, same, wave

_FLOATS = (*SPECIAL, 3.4e38, -1e-3)


def _quiet(bits: list[int], dtype: type[np.generic], view: type[np.generic]) -> Array:
    """Floats given by their bits."""
    return np.array(bits, dtype).view(view)


_BITCASTS: tuple[tuple[str, Array, str], ...] = (
    ("f32 as i32", np.array(_FLOATS, np.float32), "tensor<10xi32>"),
    ("f32 NaN payloads", _quiet([0x7FC12345, 0xFFC00001, 0x7FFFFFFF], np.uint32, np.float32), "tensor<3xui32>"),
    ("i32 as f32", np.array([0, 1, -1, 0x3F800000, -(1 << 31)], np.int32), "tensor<5xf32>"),
    ("f64 as i64", np.array(_FLOATS).reshape(2, 5), "tensor<2x5xi64>"),
    ("f16 as i16", np.array([*SPECIAL[:-1], 65504.0], np.float16), "tensor<8xi16>"),
    ("i16 as bf16", np.array([0, 1, -1, 0x3F80, 0x7FC1, -(1 << 15)], np.int16), "tensor<6xbf16>"),
    ("bf16 as f16", np.array([1.0, -2.5, 0.0], BF16), "tensor<3xf16>"),
    ("i8 as ui8", np.array([-1, 0, 127], np.int8), "tensor<3xui8>"),
    ("f32 as i8s", np.array(_FLOATS[2:8], np.float32).reshape(2, 3), "tensor<2x3x4xi8>"),
    ("f32 as f16s", np.array([1.5, -0.0, 2.0**-126], np.float32), "tensor<3x2xf16>"),
    ("f64 as i32s", np.array(_FLOATS[:6]), "tensor<6x2xi32>"),
    ("f64 scalar as ui8s", np.array(-1.1), "tensor<8xui8>"),
    ("i8s as f32", np.arange(-8, 8, dtype=np.int8).reshape(2, 2, 4), "tensor<2x2xf32>"),
    ("i32s as f64", np.array([[0, 1072693248], [1, -2147483648]], np.int32), "tensor<2xf64>"),
    ("bf16s as i64", np.array([[1.0, -2.0, 0.5, INF]], BF16), "tensor<1xi64>"),
    ("ui8s as i16 scalar", np.array([1, 255], np.uint8), "tensor<i16>"),
    ("empty", np.zeros((0, 2), np.float32), "tensor<0x2xi32>"),
    ("empty, narrower", np.zeros((0,), np.float64), "tensor<0x2xi32>"),
    ("empty, wider", np.zeros((0, 4), np.int8), "tensor<0xf32>"),
)

_PAIRS = (NAN, INF, -INF, 0.0, -0.0, 1.0, -2.5, 1e-7)


def _precisions() -> tuple[Sample, ...]:
    line = "nd.reduce_precision %0"
    edges = [
        NAN,
        INF,
        -INF,
        -0.0,
        0.0,
        1.0,
        65504.0,
        65519.0,
        65520.0,
        -70000.0,
        6.2e-5,
        -6.1e-5,
        6e-8,
        1.0 + 2.0**-11,
        1.0 + 3 * 2.0**-11,
        3.4e38,
    ]
    wide = np.array(edges, np.float32)
    return (
        same("f64", f"{line} exponent 8 mantissa 60", [wave(2, 3)], (0,)),
        same("f32 as f16", f"{line} exponent 5 mantissa 10", [wide]),
        same("f32 as bf16", f"{line} exponent 8 mantissa 7", [np.array([*edges, 3.3961776e38, 1e-40], np.float32)]),
        same("f32 as it is", f"{line} exponent 8 mantissa 23", [wide]),
        same("f32 without mantissa", f"{line} exponent 3 mantissa 0", [wide]),
        same("f64 as f32", f"{line} exponent 8 mantissa 23", [np.array([*edges, 1e39, 1e-39, 1 + 2.0**-24, NAN])]),
        same("f16", f"{line} exponent 4 mantissa 3", [np.array([*edges[:8], 0.1, 1e-3], np.float16)]),
        same("bf16", f"{line} exponent 5 mantissa 2", [np.array([*edges[:12], 0.1], BF16)]),
        same("f32 empty", f"{line} exponent 5 mantissa 10", [np.zeros((0, 3), np.float32)]),
        same("f32 scalar", f"{line} exponent 5 mantissa 10", [np.array(0.1, np.float32)]),
    )


def samples_of(cls: type[NdOp]) -> tuple[Sample, ...]:
    """The samples of one op of this family."""
    if cls is BitcastConvertOp:
        return tuple(case(name, f"{cls.name} %0 : {{0}} -> {{1}}", [x], result) for name, x, result in _BITCASTS)
    if cls is NextAfterOp:
        line = f"{cls.name} %0, %1"
        tiny = {np.float32: 1e-45, np.float64: 5e-324, np.float16: 6e-8, BF16: 9.2e-41}
        return (
            same("f64", line, [wave(2, 3), wave(2, 3, shift=1.0)], (0, 1)),
            *(same(np.dtype(kind).name, line, pairs([*_PAIRS, least, -least], kind)) for kind, least in tiny.items()),
            same("f32 empty", line, [np.zeros((0, 2), np.float32)] * 2),
            same("f32 scalar", line, [np.array(1.0, np.float32), np.array(2.0, np.float32)]),
        )
    return _precisions()
