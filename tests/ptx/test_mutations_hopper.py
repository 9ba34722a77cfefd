"""Mistakes planted in a GEMM for sm_90a: each is reported for what it is, whatever order warps run in; the GEMM itself never is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gradir.ptx.tensor_maps import TensorMap
from tests.ptx.hopper import EMPTY, GEMM, STAGE, run

ARRIVE = f"  @%p3 bra NEXT;\n  mbarrier.arrive.shared.b64 _, [%r14+{EMPTY}];\n"
WAIT = "  wgmma.wait_group.sync.aligned 0;\n"
EXPECT = "mbarrier.arrive.expect_tx.shared.b64 _, [%r17]"
STRIDE = (1024 >> 4) << 32
MUTATIONS: dict[str, tuple[list[tuple[str, str]], set[str]]] = {
    "the producer waits for the wrong parity": ([("mov.u32 %r11, 1;", "mov.u32 %r11, 0;")], {"deadlock"}),
    "consumers wait for the wrong parity": (
        [("mov.u32 %r11, 0; sub.u32", "mov.u32 %r11, 1; sub.u32")],
        {"uninitialised read", "unwaited copy", "race"},
    ),
    "consumers do not arrive": ([(ARRIVE, "")], {"deadlock"}),
    "one of two consumers does not arrive": ([("@%p3 bra NEXT;", "setp.ne.u32 %p7, %r1, 128; @%p7 bra NEXT;")], {"deadlock"}),
    "no bytes are expected": (
        [(f"{EXPECT}, {STAGE};", "mbarrier.arrive.shared.b64 _, [%r17];")],
        {"unwaited copy", "race", "uninitialised read"},
    ),
    "too many bytes are expected": ([(f"{EXPECT}, {STAGE};", f"{EXPECT}, {STAGE + 16};")], {"deadlock"}),
    "no proxy fence before the results are copied": ([("  fence.proxy.async.shared::cta;\n", "")], {"missing fence"}),
    "no fence behind the initialisation": ([("  fence.mbarrier_init.release.cluster;\n", "")], {"missing fence"}),
    "no barrier behind the initialisation": ([("  bar.sync 0;\n", "")], {"race", "bad mbarrier"}),
    "no wait for the products": ([(WAIT, "")], {"unwaited wgmma"}),
    "products wait for the last but one group": ([(WAIT, WAIT.replace("0;", "1;"))], {"race"}),
    "a stage is released before it was read": ([(WAIT + ARRIVE, ARRIVE.replace("NEXT;", "EARLY;") + "EARLY:\n" + WAIT)], {"race"}),
    "no fence before the products": ([("  wgmma.fence.sync.aligned;\n", "")], {"missing fence"}),
    "the stride of a descriptor": ([(f"or.b64 %rd5, %rd5, {1 << 62 | STRIDE | 1 << 16}", f"or.b64 %rd5, %rd5, {1 << 62 | STRIDE // 2 | 1 << 16}")], {"bad layout"}),
    "the swizzle of a descriptor": ([(f"or.b64 %rd4, %rd4, {1 << 62 | STRIDE | 1 << 16}", f"or.b64 %rd4, %rd4, {2 << 62 | STRIDE | 1 << 16}")], {"bad layout"}),
    "a stage is smaller than its tiles": ([(f"mul.lo.u32 %r15, %r10, {STAGE};", f"mul.lo.u32 %r15, %r10, {STAGE - 8192};")], {"race", "unwaited copy"}),
    "copies of a stage count at the next one": ([("[%rd2, {%r16, %r8}], [%r17]", "[%rd2, {%r16, %r8}], [%r14]")], {"bad mbarrier", "deadlock"}),
    "no barrier between the results and their copy": ([("  bar.sync %r6, 128;\n", "")], {"race", "uninitialised read"}),
    "the block ends while results are read": ([("  cp.async.bulk.wait_group.read 0;\n", "")], {"unwaited copy"}),
    "more registers than there are": ([("setmaxnreg.inc.sync.aligned.u32 232", "setmaxnreg.inc.sync.aligned.u32 248")], {"deadlock"}),
    "fewer registers than there were": ([("setmaxnreg.inc.sync.aligned.u32 232", "setmaxnreg.inc.sync.aligned.u32 160")], {"bad registers"}),
    "one warp of a warpgroup multiplies elsewhere": ([("  wgmma.fence.sync.aligned;\n", "  setp.gt.u32 %p8, %r1, 351;\n  @%p8 bra DONE;\n  wgmma.fence.sync.aligned;\n")], {"deadlock"}),
}  # fmt: skip


@pytest.mark.parametrize("seed", [None, 3])
@pytest.mark.parametrize("name", MUTATIONS)
def test_mutations_are_reported(name: str, seed: int | None) -> None:
    text = GEMM
    changes, expected = MUTATIONS[name]
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    reports, _, _ = run(text, size=(128, 64, 320), seed=seed)
    assert expected & {report.kind for report in reports.mistakes}, reports.mistakes


MAPS: dict[str, tuple[Callable[[TensorMap], Any], str]] = {
    "the box of the left factor": (lambda m: replace(m, box=(64, 64)), "deadlock"),
    "the swizzle of the left factor": (lambda m: replace(m, swizzle=64, box=(32, 256)), "bad layout"),
    "no swizzle of the left factor": (lambda m: replace(m, swizzle=0), "bad layout"),
}


@pytest.mark.parametrize("seed", [None, 3])
@pytest.mark.parametrize("name", MAPS)
def test_wrong_tensor_maps_are_reported(name: str, seed: int | None) -> None:
    change, kind = MAPS[name]
    reports, _, _ = run(size=(128, 64, 320), seed=seed, a0=change)
    assert kind in {report.kind for report in reports.mistakes}, reports.mistakes


@pytest.mark.parametrize("seed", [None, 0, 1, pytest.param(range(2, 20), marks=pytest.mark.full)])
def test_nothing_is_reported_of_the_gemm(seed: Any) -> None:
    for one in seed if isinstance(seed, range) else [seed]:
        reports, found, expected = run(size=(128, 128, 256), seed=one)
        assert not reports.mistakes, reports.mistakes
        np.testing.assert_allclose(found, expected, 1e-4, 1e-4)


@pytest.mark.parametrize("size", [(256, 128, 320), (200, 100, 72), (1, 4, 8)])
def test_any_size_by_zeros_outside_of_the_tensors(size: tuple[int, int, int]) -> None:
    reports, found, expected = run(size=size)
    assert not reports.mistakes, reports.mistakes
    np.testing.assert_allclose(found, expected, 1e-4, 1e-4)
