"""`cp.async`: what lands when, and what is reported of kernels that do not wait for it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gradir.ptx.launch import launch
from tests.ptx.kernels import kernel

COPY = kernel(
    """
  mov.u32 %r10, tile; shl.b32 %r11, %r3, 4; add.u32 %r12, %r10, %r11; xor.b32 %r13, %r11, 1008; add.u32 %r14, %r10, %r13;
  mul.wide.u32 %rd9, %r3, 16; add.s64 %rd3, %rd1, %rd9; add.s64 %rd4, %rd2, %rd9;
  setp.lt.u32 %p1, %r3, 50; selp.u32 %r15, 16, 0, %p1; setp.ge.u32 %p2, %r3, 50;
  cp.async.cg.shared.global [%r12], [%rd3], 16, %r15;
  cp.async.commit_group;
  cp.async.ca.shared.global [%r12+1024], [%rd3], 4;
  cp.async.ca.shared.global [%r12+1028], [%rd3+8], 8, %p2;
  cp.async.commit_group;
  cp.async.wait_group 1;
  bar.sync 0;
  ld.shared.v4.u32 {%r5, %r6, %r7, %r8}, [%r14];
  cp.async.wait_group 0;
  ld.shared.u32 %r16, [%r12+1024]; ld.shared.v2.u32 {%r17, %r18}, [%r12+1028];
  add.u32 %r5, %r5, %r16; add.u32 %r6, %r6, %r17; add.u32 %r7, %r7, %r18; st.global.v4.u32 [%rd4], {%r5, %r6, %r7, %r8};""",
    variables=".shared .align 16 .b8 tile[2048];",
).replace("[%r12+1028]", "[%r12+1032]")
"""64 threads: the first 50 copy their 16 bytes, others zeros; each reads what its mirror image copied, and words of its own copies."""
INPUT = np.random.default_rng(0).integers(0, 1000, (64, 4)).astype(np.uint32)


def run(text: str, **options: Any) -> np.ndarray[Any, Any]:
    y = np.zeros((64, 4), np.uint32)
    launch(text, grid=1, block=64, args=[INPUT.copy(), y], **options)
    return y


def kinds(text: str, seed: int | None = None) -> set[str]:
    y = np.zeros((64, 4), np.uint32)
    return {r.kind for r in launch(text, grid=1, block=64, args=[INPUT.copy(), y], check=False, seed=seed).mistakes}


@pytest.mark.parametrize("seed", [None, *range(4)])
def test_copies_of_all_sizes(seed: int | None) -> None:
    mirrored = np.where(np.arange(64)[:, None] < 50, INPUT, 0)[::-1]
    own = np.stack([INPUT[:, 0], *np.where(np.arange(64) < 50, INPUT[:, 2:4].T, 0), np.zeros(64, np.uint32)], 1)
    np.testing.assert_array_equal(run(COPY, seed=seed), mirrored + own)


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ("cp.async.wait_group 1;", "cp.async.wait_group 2;", "unwaited copy"),
        ("cp.async.wait_group 0;", "", "unwaited copy"),
        ("cp.async.commit_group;\n  cp.async.ca.shared.global [%r12+1024]", "cp.async.ca.shared.global [%r12+1024]", "unwaited copy"),
        ("8, %p2;\n  cp.async.commit_group;", "8, %p2;", "unwaited copy"),
        ("  bar.sync 0;\n", "", "race"),
        ("[%r12+1024], [%rd3], 4", "[%r12], [%rd3], 4", "race"),
        ("cp.async.wait_group 1;", "st.shared.u32 [%r12], %r3; cp.async.wait_group 1;", "race"),
        ("cp.async.wait_group 1;", "st.global.u32 [%rd3], %r3; cp.async.wait_group 1;", "race"),
        ("[%r12], [%rd3], 16", "[%r12+8], [%rd3], 16", "misaligned"),
        ("selp.u32 %r15, 16, 0, %p1", "selp.u32 %r15, 32, 0, %p1", "out of bounds"),
        ("tile[2048]", "tile[1984]", "out of bounds"),
    ],
)
@pytest.mark.parametrize("seed", [None, 1])
def test_mutations_are_reported(old: str, new: str, kind: str, seed: int | None) -> None:
    assert COPY.count(old) == 1
    assert kind in kinds(COPY.replace(old, new), seed)


def test_wait_all_lands_what_no_group_has() -> None:
    text = COPY.replace("8, %p2;\n  cp.async.commit_group;", "8, %p2;").replace("cp.async.wait_group 1;", "cp.async.wait_all;")
    np.testing.assert_array_equal(run(text), run(COPY))
