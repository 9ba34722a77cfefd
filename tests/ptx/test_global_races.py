"""Races in global memory: between blocks, between warps, and what orders them: barriers, fences with atomics, acquires and releases."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gradir.ptx.launch import launch
from tests.ptx.kernels import SAXPY, kernel

Array = np.ndarray[Any, Any]
SEEDS = pytest.mark.parametrize("seed", [None, *range(3)])


def kinds(text: str, args: list[Any], seed: int | None, grid: int = 4, block: int = 64, **options: Any) -> set[str]:
    return {report.kind for report in launch(text, grid=grid, block=block, args=args, check=False, seed=seed, **options).mistakes}


def zeros(n: int = 512) -> Array:
    return np.zeros(n, np.uint32)


WRITES = {
    "own elements": ("st.global.u32 [%rd4], %r3;", False),
    "the same element in all blocks": ("st.global.u32 [%rd2], %r1;", True),
    "the same element, by one warp": ("setp.lt.u32 %p1, %r4, 32;\n @%p1 st.global.u32 [%rd2], %r1;", False),
    "a neighbour reads": ("st.global.u32 [%rd4], %r3; ld.global.u32 %r5, [%rd4+128]; st.global.u32 [%rd3], %r5;", True),
    "a neighbour behind a barrier": (
        "st.global.u32 [%rd4], %r3; bar.sync 0; xor.b32 %r6, %r3, 32; mul.wide.u32 %rd5, %r6, 4; mul.wide.u32 %rd6, %r1, 256;"
        "add.s64 %rd6, %rd6, %rd5; add.s64 %rd6, %rd6, %rd2; ld.global.u32 %r5, [%rd6]; st.global.u32 [%rd3], %r5;",
        False,
    ),
    "read by all and then written by one": (
        "ld.global.u32 %r5, [%rd2]; setp.eq.u32 %p1, %r4, 0;\n @%p1 st.global.u32 [%rd2], %r5;",
        True,
    ),
    "atomics by all": ("red.global.add.u32 [%rd2], 1; atom.global.max.u32 %r5, [%rd2], 3;", False),
    "atomics and a plain write": ("red.global.add.u32 [%rd2], 1; setp.eq.u32 %p1, %r4, 70;\n @%p1 st.global.u32 [%rd2], %r5;", True),
    "atomics and a strong read": ("red.global.add.u32 [%rd2], 1; ld.relaxed.gpu.global.u32 %r5, [%rd2];", False),
}


@SEEDS
@pytest.mark.parametrize("name", WRITES)
def test_which_accesses_race(name: str, seed: int | None) -> None:
    body, races = WRITES[name]
    found = kinds(kernel(body), [zeros(), zeros()], seed)
    assert found == ({"race"} if races else set())


def test_both_accesses_are_named() -> None:
    text = kernel("  st.global.u32 [%rd2], %r1;\n  ld.global.u32 %r5, [%rd2+0];")
    found = launch(text, grid=2, block=32, args=[zeros(), zeros()], check=False).mistakes
    pairs = {(r.instruction, r.other[1]) for r in found if r.other is not None}
    assert pairs == {("st.global.u32", "st.global.u32"), ("ld.global.u32", "st.global.u32")}
    assert all(r.other is not None and r.other[2].line > 0 for r in found)


@SEEDS
def test_blocks_that_are_not_resident_together_race_too(seed: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradir.ptx.launch.RESIDENT_BYTES", 1)
    body, _ = WRITES["the same element in all blocks"]
    assert kinds(kernel(body), [zeros(), zeros()], seed) == {"race"}
    assert not kinds(kernel(WRITES["atomics by all"][0]), [zeros(), zeros()], seed)


MESSAGE = kernel(
    """
  setp.ne.u32 %p1, %r3, 0;
  setp.ne.u32 %p2, %r1, 0;
  @%p2 bra TAKE;
  @%p1 bra WAIT;
  st.global.u32 [%rd1], 42;
  fence.acq_rel.gpu;
  st.relaxed.gpu.global.u32 [%rd2], 1;
  bra.uni WAIT;
TAKE:
  @%p1 bra WAIT;
AGAIN:
  ld.relaxed.gpu.global.u32 %r5, [%rd2];
  setp.eq.u32 %p3, %r5, 0;
  @%p3 bra AGAIN;
  membar.gl;
WAIT:
  bar.sync 0;
  @!%p2 bra DONE;
  ld.global.u32 %r6, [%rd1]; add.s64 %rd5, %rd4, 256; st.global.u32 [%rd5], %r6;
DONE:"""
)
"""Block 0 writes a message and raises a flag; block 1 waits for the flag, and all its threads read the message."""
RELEASES = (
    MESSAGE.replace("  fence.acq_rel.gpu;\n  st.relaxed", "  st.release").replace("ld.relaxed", "ld.acquire").replace("  membar.gl;\n", "")
)


@SEEDS
@pytest.mark.parametrize("text", [MESSAGE, RELEASES], ids=["fences", "acquire and release"])
def test_messages_between_blocks(text: str, seed: int | None) -> None:
    y = zeros()
    assert not kinds(text, [zeros(), y], seed, grid=2, together=True)
    assert y[128:192].tolist() == [42] * 64


@SEEDS
@pytest.mark.parametrize(
    ("text", "old", "new", "kind"),
    [
        (MESSAGE, "  fence.acq_rel.gpu;\n", "", "race"),
        (MESSAGE, "  membar.gl;\n", "", "race"),
        (MESSAGE, "  membar.gl;\n", "  membar.cta;\n", "race"),
        (MESSAGE, "fence.acq_rel.gpu", "fence.acq_rel.cta", "race"),
        (MESSAGE, "st.relaxed.gpu", "st", "race"),
        (MESSAGE, "  st.global.u32 [%rd1], 42;\n  fence.acq_rel.gpu;\n", "  fence.acq_rel.gpu;\n  st.global.u32 [%rd1], 42;\n", "race"),
        (MESSAGE, "[%rd2], 1;", "[%rd2], 0;", "deadlock"),
        (RELEASES, "st.release", "st.relaxed", "race"),
        (RELEASES, "ld.acquire", "ld.volatile", "race"),
        (RELEASES, "WAIT:\n  bar.sync 0;", "WAIT:", "race"),
    ],
)
def test_messages_that_are_not_ordered(text: str, old: str, new: str, kind: str, seed: int | None) -> None:
    assert text.count(old) == 1
    changed = text.replace(old, new).replace("ld.volatile.gpu", "ld.volatile")
    assert kind in kinds(changed, [zeros(), zeros()], seed, grid=2, together=True)


@SEEDS
def test_saxpy_in_place_is_no_race(seed: int | None) -> None:
    x, y = np.ones(1000, np.float32), np.ones(1000, np.float32)
    assert not kinds(SAXPY, [x, y, 2.0, 1000], seed, grid=16)
