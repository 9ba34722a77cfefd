"""Mistakes planted in kernels that are right: each is reported as what it is, whatever the order of warps; some only make results wrong.

The kernels are those of `tests/ptx/foreign`; the tensor-core GEMM has three stages of `cp.async`, swizzled rows and guarded tails.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from gradir.ptx.launch import launch

Array = np.ndarray[Any, Any]
FOREIGN = Path(__file__).parent / "foreign"
SEEDS = pytest.mark.parametrize("seed", [None, pytest.param(5, marks=pytest.mark.full)])


@dataclass(frozen=True)
class Run:
    """What a launch reported, what it computed and what it should have computed."""

    kinds: set[str]
    found: Array
    expected: Array


def gemm(text: str, seed: int | None) -> Run:
    m, n, k = 72, 40, 96
    random = np.random.default_rng(0)
    a, b = (random.standard_normal(shape).astype(ml_dtypes.bfloat16) for shape in ((m, k), (k, n)))
    arena = np.zeros((m + 32) * n, np.float32)  # what lies behind c belongs to somebody else
    c = arena[: m * n].reshape(m, n)
    reports = launch(text, grid=(1, 2), block=128, args=[a, b, c, m, n, k], undefined=[2], check=False, seed=seed)
    return Run({r.kind for r in reports.mistakes}, c, a.astype(np.float32) @ b.astype(np.float32))


def norms(text: str, seed: int | None) -> Run:
    x, found = np.random.default_rng(0).standard_normal((11, 77)).astype(np.float32), np.zeros(11, np.float32)
    others = [np.zeros(11, np.uint32), np.zeros(11, np.uint32)]
    reports = launch(text, grid=3, block=128, args=[x, found, *others, 11, 77], check=False, seed=seed)
    return Run({r.kind for r in reports.mistakes}, found, np.linalg.norm(x, axis=1))


def total(text: str, seed: int | None) -> Run:
    x, partial, found = np.ones(900, np.float32), np.zeros(4, np.float32), np.zeros(1, np.float32)
    reports = launch(text, grid=4, block=128, args=[x, partial, found, 900], undefined=[1, 2], together=True, check=False, seed=seed)
    return Run({r.kind for r in reports.mistakes}, found, np.array([900]))


def counts(text: str, seed: int | None) -> Run:
    keys, found = np.random.default_rng(0).integers(0, 256, 700).astype(np.uint8), np.zeros(256, np.uint32)
    rest = [np.zeros(256, np.float32), np.zeros(1)]
    args = [keys, np.ones(700, np.float32), found, *rest, 700]
    reports = launch(text, grid=2, block=256, args=args, check=False, seed=seed)
    return Run({r.kind for r in reports.mistakes}, found, np.bincount(keys, minlength=256))


def matvec(text: str, seed: int | None) -> Run:
    a, x, y = np.ones((9, 60)), np.ones(60), np.zeros(9)
    found = np.zeros(1)
    args = [a, x, y, 1.0, 0.0, 30, np.zeros(1, np.uint32), found]
    reports = launch(text, grid=9, block=128, args=args, check=False, seed=seed)
    return Run({r.kind for r in reports.mistakes}, found, np.array([540.0]))


KERNELS: dict[str, Callable[[str, int | None], Run]] = {
    "mma_gemm": gemm, "warp_norms": norms, "cooperative_sum": total, "histogram": counts, "matvec": matvec,
}  # fmt: skip
LEFT, RIGHT = "_ZZ8mma_gemmPK13__nv_bfloat16S1_PfiiiE4left", "_ZZ8mma_gemmPK13__nv_bfloat16S1_PfiiiE5right"
MUTATIONS: dict[str, tuple[str, str, str, int, str]] = {
    # name: kernel, what is there, what is put there, which occurrence (-1: all), what is reported
    "dropped barrier": ("mma_gemm", "bar.sync \t0;", "", 0, "race"),
    "weakened wait_group": ("mma_gemm", "cp.async.wait_group 1;", "cp.async.wait_group 2;", 0, "unwaited copy"),
    "missing wait_group": ("mma_gemm", "cp.async.wait_group 1;", "", 0, "unwaited copy"),
    "missing commit": ("mma_gemm", "cp.async.commit_group;", "", 0, "unwaited copy"),
    "missing copy": ("mma_gemm", "cp.async.cg.shared.global [%r66], [%rd31], 16, %r67;", "", 0, "uninitialised read"),
    "aliasing tiles": ("mma_gemm", f"mov.u32 \t%r95, {RIGHT};", f"mov.u32 \t%r95, {LEFT};", 0, "race"),
    "one stage less": ("mma_gemm", f"{LEFT}[12288]", f"{LEFT}[8192]", 0, "race"),
    "dropped store guard inside an arena": ("mma_gemm", "@%p44 bra \t$L__BB0_27;", "", 0, "out of bounds"),
    "dropped load guard": ("mma_gemm", "setp.lt.s32 \t%p6, %r105, %r42;", "setp.ge.s32 \t%p6, %r105, 0;", 0, "out of bounds"),
    "no zeros beyond the edge": ("mma_gemm", "selp.b32 \t%r65, 16, 0, %p6;", "mov.b32 %r65, 20;", 0, "out of bounds"),
    "misaligned tile": ("mma_gemm", "add.s32 \t%r62, %r96, %r94;", "add.s32 %r62, %r96, %r94; add.s32 %r62, %r62, 8;", 0, "misaligned"),
    "swapped fragment": ("mma_gemm", "{%r311, %r312, %r313, %r314}, [%r315]", "{%r311, %r313, %r312, %r314}, [%r315]", 0, "wrong result"),
    "wrong swizzle": ("mma_gemm", "xor.b32  \t%r269, %r210, %r268;", "mov.b32 %r269, %r210;", 0, "wrong result"),
    "not transposed": ("mma_gemm", "x4.trans.shared", "x4.shared", 0, "wrong result"),
    "product of part of a warp": ("mma_gemm", "mma.sync", "setp.lt.u32 %p1, %r1, 100;\n@%p1 mma.sync", 0, "divergent sync"),
    "off-by-one tail": ("warp_norms", "setp.ge.s32 \t%p2, %r31, %r26;", "setp.gt.s32 \t%p2, %r31, %r26;", 0, "out of bounds"),
    "divergent shuffle": ("warp_norms", "shfl.sync.down.b32 \t%r71|%p14", "@%p13 shfl.sync.down.b32 \t%r71|%p14", 0, "divergent sync"),
    "shuffle of too few": ("warp_norms", "mov.u32 \t%r67, -1;", "mov.u32 \t%r67, 65535;", 0, "divergent sync"),
    "dropped release in a grid wait": ("cooperative_sum", "atom.add.release.gpu", "atom.add.relaxed.gpu", 0, "race"),
    "dropped acquire in a grid wait": ("cooperative_sum", "ld.acquire.gpu", "ld.relaxed.gpu", 0, "race"),
    "nobody arrives in a grid wait": ("cooperative_sum", "atom.add.release.gpu.u32 %r80,[%rd37],%r81;", "mov.u32 %r80, 0;", 0, "deadlock"),
    "counters that are not atomic": ("histogram", "atom.shared.add.u32 \t%r87, [%r86], 1;", "st.shared.u32 [%r86], 1;", 0, "race"),
    "counters that are not cleared": ("histogram", "bar.sync \t0;", "", 0, "race"),
    "dropped fence of the last block": ("matvec", "membar.gl;", "", 0, "race"),
    "dropped fence in the last block": ("matvec", "membar.gl;", "", 1, "race"),
}  # fmt: skip


def mutated(text: str, old: str, new: str, which: int) -> str:
    pieces = text.split(old)
    assert len(pieces) > which + 1, old
    return old.join(pieces[: which + 1]) + new + old.join(pieces[which + 1 :])


@SEEDS
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_kernels_are_right(kernel: str, seed: int | None) -> None:
    run = KERNELS[kernel]((FOREIGN / f"{kernel}.ptx").read_text(), seed)
    assert not run.kinds
    np.testing.assert_allclose(run.found, run.expected, atol=2e-5)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("kernel", KERNELS)
def test_nothing_is_reported_in_any_order(kernel: str, seed: int) -> None:
    run = KERNELS[kernel]((FOREIGN / f"{kernel}.ptx").read_text(), seed)
    assert not run.kinds
    np.testing.assert_allclose(run.found, run.expected, atol=2e-5)


@SEEDS
@pytest.mark.parametrize("name", MUTATIONS)
def test_mutations_are_reported(name: str, seed: int | None) -> None:
    kernel, old, new, which, kind = MUTATIONS[name]
    run = KERNELS[kernel](mutated((FOREIGN / f"{kernel}.ptx").read_text(), old, new, which), seed)
    if kind == "wrong result":
        assert not run.kinds and np.abs(run.found - run.expected).max() > 0.1
    else:
        assert kind in run.kinds
