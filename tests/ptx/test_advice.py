"""What accesses move beside what they need: sectors of global memory, turns at the banks of shared memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradir.ptx.advice import Traffic, global_traffic, shared_traffic
from gradir.ptx.launch import launch
from tests.ptx.kernels import kernel

Array = np.ndarray[Any, Any]
LANES = np.arange(32)[None]
ALL = np.ones((1, 32), np.bool_)


@pytest.mark.parametrize(
    ("offsets", "size", "moved", "least"),
    [
        (LANES * 4, 4, 4, 4),
        (LANES * 4 + 16, 4, 5, 4),
        (LANES * 8, 4, 8, 4),
        (LANES * 128, 4, 32, 4),
        (LANES * 0, 4, 1, 1),
        (LANES * 16, 16, 16, 16),
        (LANES * 32, 16, 32, 16),
        (LANES, 1, 1, 1),
    ],
)
def test_sectors(offsets: Array, size: int, moved: int, least: int) -> None:
    assert global_traffic(offsets, ALL, size) == (1, moved, least)


@pytest.mark.parametrize(
    ("offsets", "size", "moved", "least"),
    [
        (LANES * 4, 4, 1, 1),
        (LANES * 8, 4, 2, 1),
        (LANES * 128, 4, 32, 1),
        (LANES * 132, 4, 1, 1),
        (LANES * 0, 4, 1, 1),
        (LANES * 8, 8, 2, 2),
        (LANES * 16, 16, 4, 4),
        (LANES * 64, 16, 16, 4),
        (LANES * 144, 16, 4, 4),
        (LANES * 2, 2, 1, 1),
    ],
)
def test_banks(offsets: Array, size: int, moved: int, least: int) -> None:
    assert shared_traffic(offsets, ALL, size) == (1, moved, least)


def test_lanes_that_do_not_take_part_cost_nothing() -> None:
    assert global_traffic(LANES * 128, LANES < 3, 4) == (1, 3, 1)
    assert shared_traffic(LANES * 128, LANES < 3, 4) == (1, 3, 1)
    assert global_traffic(np.repeat(LANES * 4, 2, 0), np.concatenate([ALL, ~ALL]), 4) == (1, 4, 4)


def traffic(text: str, **options: Any) -> list[Traffic]:
    return launch(text, advice=True, **options).advice


def test_instructions_that_waste_are_named_worst_first() -> None:
    text = kernel(
        "shl.b32 %r5, %r9, 5; mov.u32 %r6, buffer; add.u32 %r5, %r5, %r6; st.shared.u32 [%r5], %r3; mul.wide.u32 %rd5, %r3, 32;"
        "add.s64 %rd6, %rd1, %rd5; ld.global.u32 %r7, [%rd6]; st.global.u32 [%rd4], %r7;",
        variables=".shared .align 4 .b8 buffer[4096];",
    )
    found = traffic(text, grid=2, block=32, args=[np.zeros(256, np.uint32), np.zeros(64, np.uint32)])
    assert [(t.space, t.instruction, t.warps, t.moved, t.least) for t in found] == [
        ("shared", "st.shared.u32", 2, 64, 2),
        ("global", "ld.global.u32", 2, 64, 8),
    ]
    assert "64 turns at the banks in 2 accesses of warps, 32.0 times the least" in str(found[0])


def test_a_padded_tile_has_no_conflicts_and_one_that_is_not_has() -> None:
    text = (Path(__file__).parent / "foreign" / "transpose.ptx").read_text()
    x, y = np.zeros((64, 64), np.float32), np.zeros((64, 64), np.float32)
    options: dict[str, Any] = {"grid": (2, 2), "block": (32, 8), "args": [x, y, 64, 64]}
    assert not traffic(text, **options)
    assert text.count(", 132") >= 1
    found = traffic(text.replace(", 132", ", 128"), **options, check=False)
    assert {t.space for t in found} == {"shared"} and max(t.moved / t.least for t in found) == 32
