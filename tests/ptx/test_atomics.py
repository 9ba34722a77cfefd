"""Atomics: every operation and type against one lane after the other, packed halves, vectors, what lanes find."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from gradir.ptx.launch import launch
from tests.ptx.kernels import kernel

Array = np.ndarray[Any, Any]
CASES: list[tuple[str, str, Callable[[int, int], int]]] = [
    ("add", "u32", lambda a, b: (a + b) & 0xFFFFFFFF), ("min", "s32", min), ("max", "u32", max), ("and", "b32", lambda a, b: a & b),
    ("or", "b32", lambda a, b: a | b), ("xor", "b32", lambda a, b: a ^ b), ("exch", "b32", lambda a, b: b),
    ("inc", "u32", lambda a, b: 0 if a >= b else a + 1), ("dec", "u32", lambda a, b: b if a == 0 or a > b else a - 1),
]  # fmt: skip


@pytest.mark.parametrize("space", ["global", "shared"])
@pytest.mark.parametrize(("name", "kind", "function"), CASES, ids=[case[0] for case in CASES])
def test_lanes_come_one_after_the_other(name: str, kind: str, function: Callable[[int, int], int], space: str) -> None:
    body = "ld.global.u32 %r5, [%rd3]; and.b32 %r6, %r5, 3; shl.b32 %r6, %r6, 2; cvt.u64.u32 %rd5, %r6; add.s64 %rd6, %rd2, %rd5;\n"
    if space == "global":
        body += f"atom.global.{name}.{kind} %r7, [%rd6], %r5;"
    else:
        body += f"""mov.u32 %r8, cells; add.u32 %r10, %r8, %r6; add.u32 %r11, %r8, %r9; setp.lt.u32 %p1, %r3, 4; mov.u32 %r12, 9;
        @%p1 st.shared.u32 [%r11], %r12;
        bar.sync 0; atom.shared.{name}.{kind} %r7, [%r10], %r5;"""
    text = kernel(body + "add.s64 %rd7, %rd4, 64; st.global.u32 [%rd7], %r7;", variables=".shared .align 4 .b8 cells[16];")
    x = np.random.default_rng(1).integers(0, 30, 64).astype(np.uint32)
    y = np.full(16 + 64, 9, np.uint32)
    launch(text, grid=1, block=64, args=[x, y])
    cells, found = [9] * 4, []
    for value in x.tolist():
        found.append(cells[value % 4])
        cells[value % 4] = function(cells[value % 4], value)
    assert y[16:].tolist() == found
    if space == "global":
        assert y[:4].tolist() == cells


@pytest.mark.parametrize(("kind", "dtype"), [("f16x2", np.float16), ("bf16x2", ml_dtypes.bfloat16)])
def test_two_halves_at_once(kind: str, dtype: Any) -> None:
    text = kernel(f"ld.global.b32 %r5, [%rd3]; atom.global.add.noftz.{kind} %r6, [%rd2], %r5; red.global.max.{kind} [%rd2+4], %r5;")
    x = np.random.default_rng(0).standard_normal((32, 2)).astype(dtype)
    y = np.zeros((2, 2), dtype)
    launch(text, grid=1, block=32, args=[x.view(np.uint32), y.view(np.uint32)])
    expected = np.zeros(2, dtype)
    for row in x:
        expected = (expected.astype(np.float32) + row.astype(np.float32)).astype(dtype)
    assert y[0].tolist() == expected.tolist() and y[1].tolist() == np.maximum(x, np.zeros((), dtype)).max(0).tolist()


@pytest.mark.parametrize(("kind", "register", "dtype"), [("f32", "f", np.float32), ("f64", "d", np.float64), ("u64", "rd", np.uint64)])
def test_sums_of_other_types(kind: str, register: str, dtype: Any) -> None:
    text = kernel(f"cvt.rn.{kind}.u32 %{register}5, %r3; red.global.add.{kind} [%rd2], %{register}5;".replace("cvt.rn.u64", "cvt.u64"))
    y = np.zeros(1, dtype)
    launch(text, grid=2, block=40, args=[np.zeros(80, np.uint32), y])
    assert y[0] == 2 * sum(range(40))


def test_vectors_and_exchange_of_halves() -> None:
    text = kernel(
        "cvt.rn.f32.u32 %f1, %r3; red.global.v2.f32.add [%rd2], {%f1, %f1}; mov.b16 %h1, 0; mov.b16 %h2, 7; atom.global.cas.b16 %h3, [%rd2+8], %h1, %h2;"
        "cvt.u32.u16 %r5, %h3; red.global.add.u32 [%rd2+12], %r5;"
    )
    y = np.zeros(16, np.uint8)
    launch(text, grid=1, block=32, args=[np.zeros(32, np.uint32), y])
    assert y[:8].view(np.float32).tolist() == [496.0, 496.0] and y[8:10].view(np.uint16)[0] == 7 and y[12:].view(np.uint32)[0] == 31 * 7


def test_atomics_on_what_nobody_wrote_or_may_write() -> None:
    text = kernel("atom.global.add.u32 %r5, [%rd4], 1;")
    x, y = np.zeros(32, np.uint32), np.zeros(32, np.uint32)
    (report,) = launch(text, grid=1, block=32, args=[x, y], undefined=[1], check=False).mistakes
    assert report.kind == "uninitialised read"
    y.flags.writeable = False
    (report,) = launch(text, grid=1, block=32, args=[x, y], check=False).mistakes
    assert report.kind == "out of bounds" and "y is read-only" in report.message
