"""Samples of the ops that move elements."""

from __future__ import annotations

import numpy as np

from gradir.dialects.nd.base import NdOp, Sample
from gradir.dialects.nd.samples.case import BF16, NAN, Array, case, same, type_text, wave

_BOOL = np.array([[True, False, True], [False, False, True]])


def _to(op: str, name: str, x: Array, clause: str, shape: tuple[int, ...], wrt: tuple[int, ...] = ()) -> Sample:
    return case(name, f"{op} %0 {clause} : {{0}} -> {{1}}", [x], type_text(np.zeros(shape, x.dtype)), wrt)


def _reshape() -> list[Sample]:
    op = "nd.reshape"
    return [
        _to(op, "f64 flatten", wave(2, 3), "", (6,), (0,)),
        _to(op, "f64 split", wave(2, 6), "", (2, 3, 2), (0,)),
        _to(op, "f64 add ones", wave(3), "", (1, 3, 1), (0,)),
        _to(op, "f64 scalar", wave(1, 1), "", (), (0,)),
        _to(op, "i1", _BOOL, "", (3, 2)),
        _to(op, "empty", np.zeros((0, 3), np.float32), "", (5, 0)),
        case("run-time", "nd.reshape %0 : {0} -> {1}", [wave(2, 3, 4)], 'tensor<?x12xf64, ["b", ""]>', (0,), names={0: ("b", "", "")}),
        *(_reshape_run_time(f"run-time joined, of {n}", wave(n, 4), ("b", ""), "tensor<?xf64", ("4*b",)) for n in (3, 1, 0)),
        *(_reshape_run_time(f"run-time split, of {n}", wave(4 * n), ("4*b",), "tensor<?x4xf64", ("b", "")) for n in (3, 1, 0)),
        *(_reshape_run_time(f"run-time product, of {n}", wave(n, 3), ("b", "t"), "tensor<?xf64", ("b*t",)) for n in (2, 1, 0)),
        _reshape_run_time("run-time regrouped", wave(6, 2), ("2*b", ""), "tensor<?x4xf64", ("b", "")),
        _reshape_run_time("run-time divided", wave(8, 3), ("b", ""), "tensor<2x?x3xf64", ("", "floordiv(b,2)", "")),
    ]


def _reshape_run_time(name: str, x: Array, names: tuple[str, ...], result: str, sizes: tuple[str, ...]) -> Sample:
    texts = ", ".join(f'"{size}"' for size in sizes)
    return case(name, "nd.reshape %0 : {0} -> {1}", [x], f"{result}, [{texts}]>", (0,), names={0: names})


def _transpose() -> list[Sample]:
    op = "nd.transpose"
    return [
        _to(op, "f64", wave(2, 3), "perm [1, 0]", (3, 2), (0,)),
        _to(op, "f64 cycle", wave(2, 3, 4), "perm [2, 0, 1]", (4, 2, 3), (0,)),
        _to(op, "f64 identity", wave(2, 3), "perm [0, 1]", (2, 3), (0,)),
        _to(op, "f64 scalar", np.array(2.0), "perm []", (), (0,)),
        _to(op, "bf16", np.array([[NAN, -0.0]], BF16), "perm [1, 0]", (2, 1)),
        _to(op, "i1", _BOOL, "perm [1, 0]", (3, 2)),
        _to(op, "empty", np.zeros((0, 3), np.float32), "perm [1, 0]", (3, 0)),
    ]


def _broadcast() -> list[Sample]:
    op = "nd.broadcast"
    return [
        _to(op, "f64 rows", wave(3), "dims [1]", (2, 3), (0,)),
        _to(op, "f64 columns", wave(3), "dims [0]", (3, 2), (0,)),
        _to(op, "f64 scalar", np.array(1.5), "dims []", (2, 3), (0,)),
        _to(op, "f64 outer two", wave(2, 3), "dims [0, 2]", (2, 4, 3), (0,)),
        _to(op, "f64 crossed", wave(2, 3), "dims [2, 0]", (3, 4, 2), (0,)),
        _to(op, "f64 same", wave(2, 3), "dims [0, 1]", (2, 3), (0,)),
        _to(op, "i1", _BOOL, "dims [1, 2]", (2, 2, 3)),
        _to(op, "empty", np.zeros(3, np.float32), "dims [1]", (0, 3)),
        case(
            "run-time",
            "nd.broadcast %0 dims [1] sizes (%1) : {0} -> {2}",
            [wave(3), 2],
            'tensor<?x3xf64, ["b", ""]>',
            (0,),
            before=('nd.bind %1 as "b"',),
        ),
    ]


def _slice() -> list[Sample]:
    op = "nd.slice"
    return [
        _to(op, "f64", wave(4, 5), "start [1, 0] limit [3, 4]", (2, 4), (0,)),
        _to(op, "f64 strided", wave(4, 7), "start [0, 1] limit [4, 7] stride [2, 3]", (2, 2), (0,)),
        _to(op, "f64 whole", wave(2, 3), "start [0, 0] limit [2, 3]", (2, 3), (0,)),
        _to(op, "f64 scalar", np.array(2.0), "start [] limit []", (), (0,)),
        _to(op, "i32 empty", np.arange(4, dtype=np.int32), "start [2] limit [2]", (0,)),
        _to(op, "i1", _BOOL, "start [0, 1] limit [2, 3]", (2, 2)),
        case(
            "run-time",
            "nd.slice %0 start [0, 1] limit [-1, 3] : {0} -> {1}",
            [wave(2, 4)],
            'tensor<?x2xf64, ["b", ""]>',
            (0,),
            names={0: ("b", "")},
        ),
        *(_slice_of(f"run-time of {n}", n, "start [1] limit [-1]", "max(b-1,0)") for n in (3, 1, 0)),
        *(_slice_of(f"run-time less two, of {n}", n, "start [0] limit [-3]", "max(b-2,0)") for n in (5, 1, 0)),
        *(_slice_of(f"run-time strided, of {n}", n, "start [1] limit [-1] stride [2]", "floordiv(b,2)") for n in (6, 1, 0)),
    ]


def _slice_of(name: str, n: int, clause: str, result: str) -> Sample:
    return case(name, f"nd.slice %0 {clause} : {{0}} -> {{1}}", [wave(n)], f'tensor<?xf64, ["{result}"]>', (0,), names={0: ("b",)})


def _dim() -> list[Sample]:
    def dim(name: str, x: Array, d: int, names: tuple[str, ...] = (), kind: str = "") -> Sample:
        before = (f"%n = nd.dim %0 dim {d} : {{0}}", "%i = arith.index_cast %n : index to i64")
        return case(
            name, "tensor.from_elements %i : {1}", [x], "tensor<i64>", before=before, names={0: names}, types={0: kind} if kind else None
        )

    return [
        dim("static", wave(2, 3), 1),
        dim("named", wave(2, 3), 0, ("b", "")),
        dim("named empty", wave(0, 3), 0, ("b", "")),
        dim("anonymous", wave(4, 3), 0, (), "tensor<?x3xf64>"),
    ]


def _pad_run_time() -> list[Sample]:
    """Padding of run-time dimensions: sizes 0, 1 and more."""

    def pad(name: str, n: int, clause: str, result: str) -> Sample:
        line = f"nd.pad %0, %1 {clause} : {{0}}, {{1}} -> {{2}}"
        return case(name, line, [wave(n, 2), np.array(0.5)], f'tensor<?x2xf64, ["{result}", ""]>', (0, 1), names={0: ("b", "")})

    return [
        pad("run-time", 3, "low [1, 0] high [2, 0]", "b+3"),
        pad("run-time empty", 0, "low [1, 0] high [2, 0]", "b+3"),
        pad("run-time interior", 3, "low [0, 0] high [1, 0] interior [2, 0]", "b+2*max(b-1,0)+1"),
        pad("run-time interior of one", 1, "low [0, 0] high [1, 0] interior [2, 0]", "b+2*max(b-1,0)+1"),
        pad("run-time interior of none", 0, "low [0, 0] high [1, 0] interior [2, 0]", "b+2*max(b-1,0)+1"),
        pad("run-time negative", 3, "low [-2, 0] high [1, 0]", "b-1"),
        pad("run-time all removed", 1, "low [1, 0] high [-2, 0]", "b-1"),
    ]


def _pad() -> list[Sample]:
    def pad(name: str, x: Array, value: Array, clause: str, shape: tuple[int, ...], wrt: tuple[int, ...] = ()) -> Sample:
        return case(name, f"nd.pad %0, %1 {clause} : {{0}}, {{1}} -> {{2}}", [x, value], type_text(np.zeros(shape, x.dtype)), wrt)

    both = (0, 1)
    half = np.array(0.5)
    integers = np.array([1, 2, 3], np.int32)
    return [
        pad("f64", wave(2, 3), half, "low [1, 0] high [0, 2]", (3, 5), both),
        pad("f64 interior", wave(2, 3), half, "low [0, 1] high [0, 0] interior [1, 2]", (3, 8), both),
        pad("f64 negative", wave(4, 5), half, "low [-1, 1] high [0, -2]", (3, 4), both),
        pad("f64 nothing", wave(2), half, "low [0] high [0]", (2,), both),
        pad("i32 all three", integers, np.array(9, np.int32), "low [-1] high [2] interior [1]", (6,)),
        pad("i32 all removed", integers, np.array(9, np.int32), "low [-4] high [2]", (1,)),
        pad("f32 empty", np.zeros(0, np.float32), np.array(-0.0, np.float32), "low [1] high [1] interior [3]", (2,)),
        pad("i1", _BOOL, np.array(True), "low [0, 1] high [1, 0]", (3, 4)),
        *_pad_run_time(),
    ]


def _concatenate() -> list[Sample]:
    def join(name: str, inputs: list[Array], dim: int, wrt: tuple[int, ...] = ()) -> Sample:
        names = ", ".join(f"%{k}" for k in range(len(inputs)))
        kinds = ", ".join(f"{{{k}}}" for k in range(len(inputs)))
        result = type_text(np.concatenate(inputs, dim))
        return case(name, f"nd.concatenate {names} dim {dim} : {kinds} -> {{{len(inputs)}}}", inputs, result, wrt)

    return [
        join("f64 first", [wave(2, 3), wave(1, 3, shift=1.0)], 0, (0, 1)),
        join("f64 last", [wave(2, 3), wave(2, 1), wave(2, 2)], 1, (0, 1, 2)),
        join("f64 one", [wave(2, 3)], 0, (0,)),
        join("i32 with empty", [np.arange(3, dtype=np.int32), np.zeros(0, np.int32), np.arange(2, dtype=np.int32)], 0),
        join("i1", [_BOOL, _BOOL], 1),
        join("empty", [np.zeros((0, 2), np.float32), np.zeros((0, 2), np.float32)], 0),
        *(_join_run_time(n) for n in (2, 1, 0)),
    ]


def _join_run_time(n: int) -> Sample:
    line = "nd.concatenate %0, %1, %0 dim 0 : {0}, {1}, {0} -> {2}"
    result = 'tensor<?x2xf64, ["2*b+3", ""]>'
    return case(f"run-time of {n}", line, [wave(n, 2), wave(3, 2, shift=1.0)], result, (0, 1), names={0: ("b", "")})


def _reverse() -> list[Sample]:
    return [
        same("f64", "nd.reverse %0 dims [1]", [wave(2, 3)], (0,)),
        same("f64 both", "nd.reverse %0 dims [0, 1]", [wave(2, 3)], (0,)),
        same("f64 none", "nd.reverse %0 dims []", [wave(2, 3)], (0,)),
        same("i1", "nd.reverse %0 dims [0]", [_BOOL]),
        same("empty", "nd.reverse %0 dims [0]", [np.zeros((0, 2), np.float32)]),
    ]


def samples_of(cls: type[NdOp]) -> tuple[Sample, ...]:
    """The samples of one op of this family."""
    kinds = {
        "nd.reshape": _reshape,
        "nd.transpose": _transpose,
        "nd.broadcast": _broadcast,
        "nd.slice": _slice,
        "nd.pad": _pad,
        "nd.concatenate": _concatenate,
        "nd.reverse": _reverse,
        "nd.dim": _dim,
    }
    return tuple(kinds[cls.name]())
