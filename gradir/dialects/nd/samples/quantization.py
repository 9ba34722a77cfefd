"""Samples of quantization."""

from __future__ import annotations

import numpy as np

from gradir.dialects.nd.base import NdOp, Sample
from gradir.dialects.nd.quantization import QuantizeOp
from gradir.dialects.nd.samples.case import BF16, INF, NAN, case, wave

_X = [0.5, -0.5, 1.5, 2.5, 0.0, -0.0, 1000.0, -1000.0, INF, -INF, NAN, 0.25]


def samples_of(cls: type[NdOp]) -> tuple[Sample, ...]:
    """The samples of one op of this family."""
    line = f"{cls.name} %0, %1, %2"
    types = " : {0}, {1}, {2} -> {3}"
    if cls is QuantizeOp:
        x, half = np.array(_X, np.float32), np.float32(0.5)
        return (
            case("f32 to i8", line + types, [x, np.float32(1), np.int8(1)], "tensor<12xi8>"),
            case("f32 to ui8", line + types, [x, half, np.uint8(128)], "tensor<12xui8>"),
            case("f32 to i32", line + types, [x * np.float32(1e8), half, np.int32(-7)], "tensor<12xi32>"),
            case("f64 to i16", line + types, [np.array(_X), np.array(0.1), np.int16(3)], "tensor<12xi16>"),
            case("bf16 to i8", line + types, [np.array(_X, BF16), np.array(0.5, BF16), np.int8(0)], "tensor<12xi8>"),
            case(
                "f16 in a range", f"{line} range [-7, 7]{types}",
                [np.array(_X, np.float16), np.array(0.5, np.float16), np.int8(0)], "tensor<12xi8>",
            ),
            case(
                "f32 by axis", f"{line} axis 1{types}",
                [wave(2, 3, dtype=np.float32), np.array([0.1, 0.5, 2.0], np.float32), np.array([0, 1, -1], np.int8)], "tensor<2x3xi8>",
            ),
            case("f32 empty", line + types, [np.zeros((0, 2), np.float32), half, np.int8(0)], "tensor<0x2xi8>"),
            case("f32 scalar", line + types, [np.float32(0.6), np.float32(0.25), np.int8(3)], "tensor<i8>"),
        )  # fmt: skip
    q = np.array([0, 1, -1, 127, -128, 5], np.int8)
    return (
        case("i8 to f32", line + types, [q, np.float32(0.1), np.int8(-3)], "tensor<6xf32>"),
        case("ui8 to f64", line + types, [q.view(np.uint8), np.array(0.3), np.uint8(200)], "tensor<6xf64>", (1,)),
        case("i32 to f32", line + types, [q.astype(np.int32) * 16777217, np.float32(0.1), np.int32(1 << 30)], "tensor<6xf32>"),
        case("i8 to bf16", line + types, [q, np.array(0.3, BF16), np.int8(1)], "tensor<6xbf16>"),
        case(
            "i8 by axis", f"{line} axis 0{types}",
            [q.reshape(2, 3), np.array([0.5, 0.125]), np.array([1, -2], np.int8)], "tensor<2x3xf64>", (1,),
        ),
        case("i8 empty", line + types, [np.zeros((2, 0), np.int8), np.float32(1), np.int8(0)], "tensor<2x0xf32>"),
        case("i8 scalar", line + types, [np.int8(7), np.float32(2), np.int8(5)], "tensor<f32>"),
    )  # fmt: skip
