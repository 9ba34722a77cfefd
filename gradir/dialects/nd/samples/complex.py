"""Samples of complex numbers: of the ops that make and part them, and further ones of the ops that take real numbers too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradir.dialects.nd.base import NdOp, Sample
from gradir.dialects.nd.samples.case import INF, NAN, Array, case, same, type_text, wave
from gradir.dialects.nd.samples.sorting import several

_CORNERS = (0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.0)


def _make(re: Array, im: Array, dtype: Any) -> Array:
    """`re + im * i`, part by part."""
    result = np.empty(re.shape, dtype)
    result.real, result.imag = re, im
    return result


def spiral(*shape: int, dtype: Any = np.complex128, scale: float = 1.5) -> Array:
    """Distinct, repeatable complex numbers around 0."""
    return _make(wave(*shape, scale=scale, shift=0.1), np.cos(wave(*shape, scale=9.0)) * scale, dtype)


def grid(values: Sequence[float], dtype: Any = np.complex64) -> Array:
    """Every pair of the values as real and imaginary part: all quadrants, both sides of every branch cut."""
    parts = np.array(values)
    return _make(np.repeat(parts, len(parts)), np.tile(parts, len(parts)), dtype)


_UNARY = (
    *("neg", "sign", "exp", "expm1", "log", "log1p", "sqrt", "rsqrt", "tanh", "logistic", "sin", "cos"),
    *("cbrt", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh"),
)
_BINARY = ("add", "sub", "mul", "mul_strong", "div", "pow")
_POLES = ("rsqrt", "div", "pow", "mul")
"""Their infinities and NaNs are unspecified."""


def _unary(name: str) -> list[Sample]:
    line = f"nd.{name} %0"
    corners = grid(_CORNERS)
    if name in _POLES:
        corners = corners[corners != 0]
    return [
        same("c128", line, [spiral(2, 3)]),
        same("c128 tiny", line, [spiral(6, scale=1e-9)]),
        same("c64 grid", line, [corners]),
        same("c64 large", line, [grid([30.0, -70.0, 2.5])]),
        same("c64 empty", line, [np.zeros((0, 2), np.complex64)]),
        same("c64 scalar", line, [np.array(0.75 - 0.25j, np.complex64)]),
    ]


def _binary(name: str) -> list[Sample]:
    line = f"nd.{name} %0, %1"
    found = [
        same("c128", line, [spiral(2, 3), spiral(3, 2).reshape(2, 3) + 1]),
        same("c64", line, [spiral(2, 3, dtype=np.complex64), spiral(2, 3, dtype=np.complex64)[::-1].copy()]),
        same("c64 empty", line, [np.zeros((0, 2), np.complex64)] * 2),
    ]
    if name == "div":
        large = np.array([1e38 + 1e38j, 3e38 - 1e38j, 1e-38 + 2e-38j], np.complex64)
        found.append(same("c64 scaled", line, [large, large]))
    return found


def _abs() -> list[Sample]:
    values = [
        np.array([3e30 + 4e30j, 3 - 4j, 0, -1e-40j, 1e-30 + 1e-30j], np.complex64),
        grid([0.0, -1.0, INF, NAN])[:12],
        spiral(2, 3),
        np.zeros((0, 2), np.complex64),
    ]
    return [case(f"{x.dtype} {x.size}", "nd.abs %0 : {0}", [x], type_text(x.real)) for x in values]


def _convert() -> list[Sample]:
    def to(name: str, values: Array, element: str) -> Sample:
        result = f"tensor<{'x'.join([*map(str, values.shape), element])}>"
        return case(name, f"nd.convert %0 : {{0}} -> {result}", [values], result)

    z = np.array([1.5 + 2j, -300 - 1j, 0 + 1j, 1e20 + 0j], np.complex64)
    return [
        to("c64 to c128", z, "complex<f64>"),
        to("c128 to c64", spiral(4), "complex<f32>"),
        *(to(f"c64 to {element}", z, element) for element in ("f32", "f64", "bf16", "i32", "ui8", "i1")),
        to("f32 to c64", wave(3, dtype=np.float32), "complex<f32>"),
        to("f32 to c128", wave(3, dtype=np.float32), "complex<f64>"),
        to("i32 to c64", np.array([3, -4], np.int32), "complex<f32>"),
        to("i1 to c64", np.array([True, False]), "complex<f32>"),
    ]


def _parts(name: str) -> list[Sample]:
    values = [spiral(2, 3), grid([0.0, -0.0, INF, NAN, 1.0]), np.zeros((0, 2), np.complex64), np.array(1 - 2j, np.complex64)]
    return [case(f"{x.dtype} {x.size}", f"nd.{name} %0 : {{0}}", [x], type_text(x if name == "conj" else x.real)) for x in values]


def _complex() -> list[Sample]:
    special = np.array([0.0, -0.0, INF, NAN, 1.0], np.float32)
    pairs = [(wave(2, 3), wave(2, 3, shift=1.0)), (special, special[::-1].copy()), (np.zeros((0, 2), np.float32),) * 2]
    return [case(f"{x.dtype} {x.size}", "nd.complex %0, %1 : {0}", [x, y], type_text(x + 0j)) for x, y in pairs]


def _moves() -> dict[str, list[Sample]]:
    z, kind = spiral(2, 3), "tensor<2x3xcomplex<f64>>"
    row, at = spiral(3), np.array([2, 0, -1, 7], np.int32)
    starts = (np.array(1, np.int32), np.array(-5, np.int32))

    def one(line: str, inputs: Sequence[Any], result: str) -> list[Sample]:
        return [case("c128", line, inputs, result)]

    return {
        "nd.reshape": one("nd.reshape %0 : {0} -> {1}", [z], "tensor<3x2xcomplex<f64>>"),
        "nd.transpose": one("nd.transpose %0 perm [1, 0] : {0} -> {1}", [z], "tensor<3x2xcomplex<f64>>"),
        "nd.broadcast": one("nd.broadcast %0 dims [1] : {0} -> {1}", [row], kind),
        "nd.slice": one("nd.slice %0 start [0, 1] limit [2, 3] : {0} -> {1}", [z], "tensor<2x2xcomplex<f64>>"),
        "nd.pad": one("nd.pad %0, %1 low [1] high [-1] interior [1] : {0}, {1} -> {2}", [row, np.array(7 - 1j)], "tensor<5xcomplex<f64>>"),
        "nd.concatenate": one("nd.concatenate %0, %1 dim 0 : {0}, {1} -> {2}", [z, z + 1], "tensor<4x3xcomplex<f64>>"),
        "nd.reverse": [same("c128", "nd.reverse %0 dims [1]", [z])],
        "nd.gather": one("nd.gather %0, %1 dim 0 : {0}, {1} -> {2}", [row, at], "tensor<4xcomplex<f64>>"),
        "nd.scatter_add": one("nd.scatter_add %0, %1, %2 dim 0 : {0}, {1}, {2} -> {3}", [row, at, spiral(4)], "tensor<3xcomplex<f64>>"),
        "nd.dynamic_slice": one(
            "nd.dynamic_slice %0, %1, %2 sizes [1, 2] : {0}, {1}, {2} -> {3}", [z, *starts], "tensor<1x2xcomplex<f64>>"
        ),
        "nd.gather_general": one(
            "nd.gather_general %0, %1 offset [1] collapsed [0] map [0] sizes [1, 3] : {0}, {1} -> {2}",
            [z, np.array([[1], [-1], [1]], np.int32)],
            "tensor<3x3xcomplex<f64>>",
        ),
        "nd.select": one("nd.select %0, %1, %2 : {1}", [np.array([True, False, True]), row, -row], "tensor<3xcomplex<f64>>"),
        "nd.iota": one("nd.iota dim 1 : {0}", [], "tensor<2x3xcomplex<f32>>"),
    }


def _sums() -> dict[str, list[Sample]]:
    z, w = spiral(2, 3), spiral(3, 4)
    image, kernel = spiral(1, 5, 2), spiral(3, 2, 2)

    def over(name: str, dims: str, x: Array, shape: str) -> Sample:
        return case(f"{x.dtype} {dims}", f"nd.{name} %0 dims {dims} : {{0}} -> {{1}}", [x], f"tensor<{shape}>")

    single = z.astype(np.complex64)
    scans = [f"nd.{name} %0 dim 1{flags}" for name in ("cumsum", "cumprod") for flags in ("", " reverse exclusive")]
    return {
        "nd.reduce_sum": [over("reduce_sum", "[1]", z, "2xcomplex<f64>"), over("reduce_sum", "[0, 1]", single, "complex<f32>")],
        "nd.reduce_prod": [
            over("reduce_prod", "[1]", z, "2xcomplex<f64>"),
            over("reduce_prod", "[1, 0]", single, "complex<f32>"),
            over("reduce_prod", "[0]", np.zeros((0, 2), np.complex64), "2xcomplex<f32>"),
        ],
        **{f"nd.{name}": [same(f"c128{line[20:]}", line, [z]) for line in scans if name in line] for name in ("cumsum", "cumprod")},
        "nd.dot_general": [
            case("c128", "nd.dot_general %0, %1 contract [1] x [0] : {0}, {1} -> {2}", [z, w], "tensor<2x4xcomplex<f64>>"),
            case(
                "c64",
                "nd.dot_general %0, %1 contract [1] x [0] : {0}, {1} -> {2}",
                [single, w.astype(np.complex64)],
                "tensor<2x4xcomplex<f32>>",
            ),
        ],
        "nd.conv_general": [
            case("c128", "nd.conv_general %0, %1 padding [1, 0] : {0}, {1} -> {2}", [image, kernel], "tensor<1x4x2xcomplex<f64>>")
        ],
        "nd.reduce_window": [
            case("c128", "nd.reduce_window sum, %0 window [1, 2] : {0} -> {1}", [z], "tensor<2x2xcomplex<f64>>"),
        ],
    }


def _scatter() -> list[Sample]:
    inputs = [spiral(3), np.array([[2], [0], [2], [7]], np.int32), spiral(4)]
    kinds = [type_text(x) for x in inputs]
    body = (
        " by (%a: tensor<complex<f64>>, %b: tensor<complex<f64>>) {\n    %c = nd.sub %a, %b : tensor<complex<f64>>\n"
        "    nd.yield %c : tensor<complex<f64>>\n  }"
    )

    def put(kind: str, by: str = "") -> Sample:
        line = f"nd.scatter_general {kind}, %0, %1, %2 inserted [0] map [0]{by} : {', '.join(kinds)} -> {kinds[0]}"
        return several(f"c128 {kind}", line, inputs, kinds[:1])

    return [put("set"), put("add"), put("mul"), put("region", body)]


def _sort() -> list[Sample]:
    by_real = (
        "by (%a: tensor<complex<f32>>, %b: tensor<complex<f32>>) {\n    %x = nd.real %a : tensor<complex<f32>>\n"
        "    %y = nd.real %b : tensor<complex<f32>>\n    %r = nd.compare lt, %x, %y : tensor<f32>\n    nd.yield %r : tensor<i1>\n  }"
    )
    z, keys = spiral(2, 4, dtype=np.complex64), wave(2, 4, dtype=np.float32)
    kinds = [type_text(keys), type_text(z)]
    return [
        several("c64 by real", f"nd.sort %0 dim 1 {by_real} : {kinds[1]}", [z], kinds[1:]),
        several("c64 moved along", f"nd.sort %0, %1 dim 1 : {', '.join(kinds)}", [keys, z], kinds),
    ]


def _compare() -> list[Sample]:
    x, y = grid([0.0, -0.0, NAN, 1.0]), grid([0.0, 1.0, 1.0, -0.0])
    return [case(f"{d} c64", f"nd.compare {d}, %0, %1 : {{0}}", [x, y], "tensor<16xi1>") for d in ("eq", "ne")]


def _constant() -> list[Sample]:
    kind = "tensor<2xcomplex<f32>>"
    return [
        case("c64 splat", "nd.constant splat((1.5, -0.0) : complex<f32>) : {0}", [], kind),
        case("c64 dense", "nd.constant dense<[(1.0, -2.0), (0x7FC00000, 3)]> : {0}", [], kind),
    ]


_OF: dict[str, Callable[[], list[Sample]]] = {
    "nd.abs": _abs,
    "nd.convert": _convert,
    "nd.compare": _compare,
    "nd.constant": _constant,
    "nd.scatter_general": _scatter,
    "nd.sort": _sort,
}


def complex_samples(name: str) -> Sequence[Sample]:
    """Complex samples of an op that takes real numbers too; none of most ops."""
    short = name.removeprefix("nd.")
    if short in _UNARY:
        return _unary(short)
    if short in _BINARY:
        return _binary(short)
    if name in _OF:
        return _OF[name]()
    return {**_moves(), **_sums()}.get(name, ())


def samples_of(cls: type[NdOp]) -> tuple[Sample, ...]:
    """The samples of one op of this family."""
    return tuple(_complex() if cls.name == "nd.complex" else _parts(cls.name.removeprefix("nd.")))
