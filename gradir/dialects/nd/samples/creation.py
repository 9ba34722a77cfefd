"""Samples of the ops without tensor operands."""

from __future__ import annotations

from base64 import b64encode

import numpy as np

from gradir.dialects.nd.base import NdOp, Sample
from gradir.dialects.nd.resource import content_hash
from gradir.dialects.nd.samples.case import case, wave


def _resource() -> Sample:
    array = wave(3, 7, dtype=np.float32)
    key = f"table_{content_hash(array)}"
    data = f"{array.dtype.name} 3 7 {b64encode(array.tobytes()).decode()}"
    made = case("resource", f"nd.constant resource({key}) : {{0}}", [], "tensor<3x7xf32>")
    blob = f'\n{{-#\n  dialect_resources: {{\n    nd: {{\n      {key}: "{data}"\n    }}\n  }}\n#-}}\n'
    return Sample(made.name, made.text + blob, made.inputs)


def _constant() -> list[Sample]:
    def constant(name: str, value: str, kind: str) -> Sample:
        return case(name, f"nd.constant {value} : {kind}", [], kind)

    return [
        constant("splat", "splat(1.5 : f32)", "tensor<2x3xf32>"),
        constant("splat nan", "splat(0x7FC00000 : f32)", "tensor<2xf32>"),
        constant("splat -inf", "splat(0xFF800000 : f32)", "tensor<2xf32>"),
        constant("splat -0", "splat(-0.0 : f32)", "tensor<2xf32>"),
        constant("splat f64", "splat(0.1 : f64)", "tensor<f64>"),
        constant("splat bf16", "splat(3.0 : bf16)", "tensor<2xbf16>"),
        constant("splat i32", "splat(-7 : i32)", "tensor<2xi32>"),
        constant("splat ui8", "splat(200 : ui8)", "tensor<2xui8>"),
        constant("splat i1", "splat(true)", "tensor<3xi1>"),
        constant("splat of nothing", "splat(1.0 : f32)", "tensor<0x3xf32>"),
        constant("dense", "dense<[1.5, -2.0, 0.0]>", "tensor<3xf32>"),
        constant("dense matrix", "dense<[[1, 2], [3, -4]]>", "tensor<2x2xi32>"),
        constant("dense i1", "dense<[true, false]>", "tensor<2xi1>"),
        constant("dense splat", "dense<2.5>", "tensor<2x2xf64>"),
        _resource(),
    ]


def _iota() -> list[Sample]:
    def iota(name: str, dim: int, kind: str) -> Sample:
        return case(name, f"nd.iota dim {dim} : {kind}", [], kind)

    return [
        iota("i32", 0, "tensor<5xi32>"),
        iota("i32 rows", 0, "tensor<2x3xi32>"),
        iota("f32 columns", 1, "tensor<2x3xf32>"),
        iota("f64", 0, "tensor<4xf64>"),
        iota("bf16 rounds", 0, "tensor<300xbf16>"),
        iota("i8 wraps", 0, "tensor<130xi8>"),
        iota("ui8", 0, "tensor<3xui8>"),
        iota("empty", 1, "tensor<2x0xi32>"),
        case("run-time", "nd.iota dim 0 sizes (%0) : {1}", [3], 'tensor<?xi32, ["n"]>', before=('nd.bind %0 as "n"',)),
    ]


def _empty() -> list[Sample]:
    fill = "nd.dynamic_update_slice %e, %0, %1 : {0}, {0}, {1} -> {2}"
    return [case("written whole", fill, [wave(3), np.array(0, np.int32)], "tensor<3xf64>", before=("%e = nd.empty : {0}",))]


def _symbol() -> list[Sample]:
    before = ('%n = nd.symbol "n"', "%i = arith.index_cast %n : index to i64")
    return [
        case("size of an argument", "tensor.from_elements %i : tensor<i64>", [wave(4)], "tensor<i64>", names={0: ("n",)}, before=before),
    ]


def _bind() -> list[Sample]:
    before = ('nd.bind %1 as "n"',)
    line = "nd.broadcast %0 dims [] sizes (%1) : {0} -> {2}"
    return [case("size of a broadcast", line, [np.array(2.0), size], 'tensor<?xf64, ["n"]>', before=before) for size in (3,)]


def samples_of(cls: type[NdOp]) -> tuple[Sample, ...]:
    """The samples of one op of this family."""
    kinds = {"nd.constant": _constant, "nd.iota": _iota, "nd.empty": _empty, "nd.symbol": _symbol, "nd.bind": _bind}
    return tuple(kinds[cls.name]())
