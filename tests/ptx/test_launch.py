"""Kernels in the emulator: results, and what it reports of kernels that were made wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gradir.errors import GradirError
from gradir.ptx.launch import launch
from tests.ptx.kernels import BLOCK_SUM, SAXPY, kernel

Array = np.ndarray[Any, Any]
INTEGERS: list[tuple[str, Callable[[Array], Any], type[np.generic]]] = [
    ("mul.hi.s32 %r6, %r5, 123456789;", lambda x: (x.astype(np.int32).astype(object) * 123456789 >> 32), np.int32),
    ("shf.l.wrap.b32 %r6, %r5, %r5, 7;", lambda x: [(int(v) << 7 | int(v) >> 25) & 0xFFFFFFFF for v in x], np.uint32),
    ("bfe.s32 %r6, %r5, 4, 9;", lambda x: [((int(v) >> 4 & 511) ^ 256) - 256 for v in x], np.int32),
    ("bfi.b32 %r6, %r5, 0xff00ff00, 3, 5;", lambda x: [(0xFF00FF00 & ~0xF8) | (int(v) & 31) << 3 for v in x], np.uint32),
    ("prmt.b32 %r6, %r5, 0x11223344, 0x7210;", lambda x: [int(v) & 0xFFFFFF | 0x11000000 for v in x], np.uint32),
    ("lop3.b32 %r6, %r5, 0x0f0f0f0f, 0x33333333, 0xe8;", lambda x: [(int(v) & 0x0F0F0F0F) | (int(v) & 0x33333333) | 0x03030303 for v in x], np.uint32),
    ("clz.b32 %r6, %r5;", lambda x: [32 - int(v).bit_length() for v in x], np.uint32),
    ("rem.s32 %r6, %r5, -7;", lambda x: [int(np.fmod(int(v), -7)) for v in x.astype(np.int32)], np.int32),
    ("div.s32 %r6, %r5, 7;", lambda x: [int(abs(int(v)) // 7) * (1 if v >= 0 else -1) for v in x.astype(np.int32)], np.int32),
    ("cvt.rzi.s32.f32 %r6, %f1;", lambda x: np.trunc(x.view(np.float32).astype(np.float64)).clip(-(2**31), 2**31 - 1), np.int32),
]  # fmt: skip


def kinds(text: str, **options: Any) -> set[str]:
    return {report.kind for report in launch(text, check=False, **options).mistakes}


@pytest.mark.parametrize("seed", [None, 0, 1])
@pytest.mark.parametrize("n", [1, 31, 32, 33, 1000, 4099])
def test_saxpy(n: int, seed: int | None) -> None:
    x, y = np.random.default_rng(n).standard_normal((2, n)).astype(np.float32)
    expected = (2.5 * x.astype(np.float64) + y).astype(np.float32)
    launch(SAXPY, grid=-(-n // 128), block=128, args=[x, y, 2.5, n], seed=seed)
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("seed", [None, *range(5)])
def test_sum_of_blocks(seed: int | None) -> None:
    x, y = np.arange(128 * 9, dtype=np.float32), np.zeros(9, np.float32)
    launch(BLOCK_SUM, grid=9, block=128, args=[x, y], seed=seed, undefined=[1])
    np.testing.assert_array_equal(y, x.reshape(9, 128).sum(1))


def test_lanes_part_and_meet() -> None:
    """Collatz steps: every lane loops for as long as it needs, and all meet behind the loop for a vote."""
    text = kernel(
        """
  ld.global.u32 %r5, [%rd3]; mov.u32 %r6, 0;
LOOP: setp.le.u32 %p1, %r5, 1;
  @%p1 bra OUT;
  and.b32 %r7, %r5, 1; setp.eq.u32 %p2, %r7, 0;
  @%p2 bra EVEN;
  mad.lo.u32 %r5, %r5, 3, 1;
  bra.uni COUNT;
EVEN: shr.u32 %r5, %r5, 1;
COUNT: add.u32 %r6, %r6, 1;
  bra.uni LOOP;
OUT: vote.sync.ballot.b32 %r8, 1, 0xffffffff;
  st.global.u32 [%rd4], %r6;"""
    ).replace("vote.sync.ballot.b32 %r8, 1,", "setp.eq.u32 %p3, 0, 0; vote.sync.ballot.b32 %r8, %p3,")

    def steps(n: int) -> int:
        return 0 if n <= 1 else 1 + steps(3 * n + 1 if n % 2 else n // 2)

    x, y = np.arange(1, 257, dtype=np.uint32), np.zeros(256, np.uint32)
    for seed in (None, 3):
        launch(text, grid=2, block=128, args=[x, y], seed=seed)
        assert y.tolist() == [steps(int(n)) for n in x]


def test_lanes_that_end_early_are_not_waited_for() -> None:
    text = kernel(
        """
  setp.ge.u32 %p1, %r3, 40;
  @%p1 exit;
  setp.lt.u32 %p2, %r3, 7;
  @%p2 bra FEW;
  st.global.u32 [%rd4], %r3;
FEW: bar.sync 0;"""
    )
    y = np.full(128, 99, np.uint32)
    launch(text, grid=1, block=128, args=[y.copy(), y])
    assert y.tolist() == [99] * 7 + list(range(7, 40)) + [99] * 88


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ("  bar.sync 0;\n  mov.u32 %r12, 64;", "  mov.u32 %r12, 64;", "race"),
        ("NEXT: bar.sync 0;", "NEXT:", "race"),
        ("st.shared.f32 [%r11], %f1;", "", "uninitialised read"),
        ("buffer[512]", "buffer[508]", "out of bounds"),
        ("mov.u32 %r12, 64;", "mov.u32 %r12, 128;", "out of bounds"),
        ("add.s32 %r14, %r11, %r13;", "add.s32 %r14, %r11, %r13; add.s32 %r14, %r14, 2;", "misaligned"),
        ("mul.wide.u32 %rd5, %r1, 4;", "mul.wide.u32 %rd5, %r1, 8;", "out of bounds"),
        ("  bar.sync 0;\n  mov.u32", "  setp.lt.u32 %p4, %r3, 7;\n  @%p4 bar.sync 0;\n  mov.u32", "divergent sync"),
        ("  bar.sync 0;\n  mov.u32", "  setp.lt.u32 %p4, %r3, 32;\n  @%p4 bar.sync 1, 64;\n  mov.u32", "deadlock"),
        ("DONE:", "DONE: trap;", "trap"),
    ],
)
@pytest.mark.parametrize("seed", [None, 7])
def test_mutations_are_reported(old: str, new: str, kind: str, seed: int | None) -> None:
    assert BLOCK_SUM.count(old) == 1
    x, y = np.ones(256, np.float32), np.zeros(2, np.float32)
    assert kind in kinds(BLOCK_SUM.replace(old, new), grid=2, block=128, args=[x, y], seed=seed)


def test_a_guard_that_is_off_by_one() -> None:
    x, y = np.ones(33, np.float32), np.zeros(33, np.float32)
    text = SAXPY.replace("setp.ge.u32 %p1", "setp.gt.u32 %p1")
    with pytest.raises(GradirError, match="out of bounds in @k: 4 bytes at offset 132 of x, which has 132") as caught:
        launch(text, grid=1, block=128, args=[x, y, 1.0, 33])
    assert caught.value.code == "OP062" and "block (0, 0, 0), thread (33, 0, 0)" in caught.value.found


def test_bounds_follow_the_operand_within_an_arena() -> None:
    """x and y lie side by side in one array; an element too far is no element of the other one."""
    arena = np.zeros(64, np.float32)
    text = SAXPY.replace("setp.ge.u32 %p1", "setp.gt.u32 %p1")
    assert kinds(text, grid=1, block=64, args=[arena[:32], arena[32:], 1.0, 32]) == {"out of bounds"}


def test_reads_of_global_memory_that_nobody_wrote() -> None:
    x, y = np.ones(32, np.float32), np.ones(32, np.float32)
    assert kinds(SAXPY, grid=1, block=32, args=[x, y, 1.0, 32], undefined=[1]) == {"uninitialised read"}
    assert not kinds(SAXPY, grid=1, block=32, args=[x, y, 1.0, 32], undefined=[])


def test_shuffles_votes_and_reductions() -> None:
    text = kernel(
        """
  ld.global.u32 %r5, [%rd3];
  shfl.sync.bfly.b32 %r6, %r5, 1, 31, -1; shfl.sync.up.b32 %r7|%p1, %r5, 1, 0, -1; shfl.sync.idx.b32 %r8, %r5, 3, 31, -1;
  redux.sync.add.u32 %r10, %r5, 0xffffffff; setp.gt.u32 %p2, %r5, 5; vote.sync.ballot.b32 %r11, %p2, 0xffffffff;
  match.any.sync.b32 %r12, %r8, 0xffffffff; popc.b32 %r12, %r12; selp.u32 %r13, 1, 0, %p1;
  xor.b32 %r6, %r6, %r7; add.u32 %r6, %r6, %r8; add.u32 %r6, %r6, %r10; xor.b32 %r6, %r6, %r11; add.u32 %r6, %r6, %r12;
  add.u32 %r6, %r6, %r13; st.global.u32 [%rd4], %r6;"""
    )
    x, y = np.random.default_rng(0).integers(0, 10, 64).astype(np.uint32), np.zeros(64, np.uint32)
    launch(text, grid=1, block=64, args=[x, y])
    for half in (0, 32):
        v = x[half : half + 32].astype(object)
        up = [v[0], *v[:-1]]
        ballot = sum(1 << k for k in range(32) if v[k] > 5)
        want = [((((v[k ^ 1] ^ up[k]) + v[3] + v.sum()) ^ ballot) + 32 + (k > 0)) % 2**32 for k in range(32)]
        assert y[half : half + 32].tolist() == want


def test_atomics_histogram() -> None:
    text = kernel(
        """
  ld.global.u32 %r5, [%rd3]; mul.wide.u32 %rd5, %r5, 4; add.s64 %rd6, %rd2, %rd5;
  atom.global.add.u32 %r6, [%rd6], 1; red.global.max.u32 [%rd6+16], %r6;"""
    )
    x, y = np.random.default_rng(0).integers(0, 4, 256).astype(np.uint32), np.zeros(8, np.uint32)
    launch(text, grid=2, block=128, args=[x, y])
    counts = np.bincount(x, minlength=4)
    assert y[:4].tolist() == counts.tolist() and y[4:].tolist() == (counts - 1).tolist()


@pytest.mark.parametrize(("code", "function", "dtype"), INTEGERS)
def test_integer_instructions(code: str, function: Callable[[Array], Any], dtype: type[np.generic]) -> None:
    x = np.array([0, 1, 5, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x12345678, 0x3FC00000, 0xC1200000, 0x4F000000], np.uint32)
    y = np.zeros(10, np.uint32)
    launch(kernel(f"ld.global.u32 %r5, [%rd3]; mov.b32 %f1, %r5; {code} st.global.u32 [%rd4], %r6;"), grid=1, block=10, args=[x, y])
    expected = np.array([int(0 if v != v else v) & 0xFFFFFFFF for v in function(x)], np.uint32)
    if "cvt" in code:
        expected = np.where(np.isnan(x.view(np.float32)), np.uint32(0), expected)
    np.testing.assert_array_equal(y.view(dtype), expected.view(dtype))


def test_fma_is_rounded_once() -> None:
    a = np.array([1 + 2.0**-12, 1 + 2.0**-23, 3.0, 1e30, 1.5], np.float32)
    text = kernel("ld.global.f32 %f1, [%rd3]; ld.global.f32 %f2, [%rd4]; fma.rn.f32 %f3, %f1, %f1, %f2; st.global.f32 [%rd4], %f3;")
    with np.errstate(over="ignore"):
        y = -(a * a)
    exact = [float(v) ** 2 + float(w) for v, w in zip(a.astype(np.float64), y.astype(np.float64))]
    launch(text, grid=1, block=5, args=[a, y])
    np.testing.assert_array_equal(y[:3], np.array(exact[:3], np.float32))
    assert y[0] == np.float32(2.0**-24)


TABLE = kernel(
    """
  and.b32 %r5, %r3, 3;
  brx.idx %r5, WAYS;
WAYS: .branchtargets A, B, C, A;
A: mov.u32 %r6, 10;
  bra.uni MEET;
B: mov.u32 %r6, 20;
  bra.uni MEET;
C: mov.u32 %r6, 30;
MEET: vote.sync.any.pred %p1, %p1, 0xffffffff;
  st.global.u32 [%rd4], %r6;"""
)


@pytest.mark.parametrize("seed", [None, 2])
def test_tables_of_targets(seed: int | None) -> None:
    """Lanes go four ways and meet again for a vote, which would be reported of lanes that are elsewhere."""
    y = np.zeros(64, np.uint32)
    launch(TABLE, grid=1, block=64, args=[y.copy(), y], seed=seed)
    assert y.tolist() == [10, 20, 30, 10] * 16
    assert kinds(TABLE.replace("B, C, A", "B, C"), grid=1, block=64, args=[y.copy(), y]) == {"trap"}
    with pytest.raises(GradirError, match=r"does not know brx\.idx"):
        launch(TABLE.replace("brx.idx", "@%p1 brx.idx"), grid=1, block=64, args=[y.copy(), y])


def test_carries_packed_halves_and_products_of_bytes() -> None:
    text = kernel(
        """
  ld.global.u32 %r5, [%rd3]; add.cc.u32 %r6, %r5, 0xffffffff; addc.u32 %r7, 0, 0; sub.cc.u32 %r6, %r5, 5; subc.u32 %r8, 0, 0;
  dp4a.s32.s32 %r10, %r5, 0x01ff0201, 7; fma.rn.f16x2 %r11, 0x40003c00, 0x42004000, 0x3c003c00;
  shl.b32 %r7, %r7, 1; sub.u32 %r8, %r7, %r8; xor.b32 %r8, %r8, %r11; add.u32 %r8, %r8, %r10; st.global.u32 [%rd4], %r8;"""
    )
    x, y = np.array([0, 1, 5, 0xFFFFFFFF, 0x80FF7F01], np.uint32), np.zeros(5, np.uint32)
    launch(text, grid=1, block=5, args=[x, y])
    halves = np.array([1 * 2 + 1, 2 * 3 + 1], np.float16).view(np.uint32)[0]

    def want(v: int) -> int:
        carry, borrow = int(v > 0), int(v < 5)
        dot = int((np.array([v], np.uint32).view(np.int8).astype(int) * [1, 2, -1, 1]).sum()) + 7
        return (((2 * carry + borrow) ^ int(halves)) + dot) & 0xFFFFFFFF

    assert y.tolist() == [want(int(v)) for v in x]


def test_an_elected_lane_and_a_barrier_of_two_warps() -> None:
    """Warp 1 waits for what warp 0 wrote; warp 0 only arrives."""
    text = kernel(
        """
  mov.u32 %r10, buffer; setp.ge.u32 %p1, %r3, 32;
  @%p1 bra READ;
  elect.sync %r5|%p2, 0xffffffff;
  @%p2 st.shared.u32 [%r10], 77;
  bar.arrive 3, 64;
  bra.uni DONE;
READ: bar.sync 3, 64;
  ld.shared.u32 %r6, [%r10]; st.global.u32 [%rd4], %r6;
DONE:""",
        variables=".shared .align 4 .b8 buffer[4];",
    )
    for seed in (None, 1, 2):
        y = np.zeros(64, np.uint32)
        launch(text, grid=1, block=64, args=[y.copy(), y], seed=seed)
        assert y.tolist() == [0] * 32 + [77] * 32
    without = text.replace("  bar.arrive 3, 64;\n", "").replace("READ: bar.sync 3, 64;\n", "READ:\n")
    assert "race" in kinds(without, grid=1, block=64, args=[y.copy(), y])


def test_local_memory_and_calls_between_spaces() -> None:
    text = kernel(
        """
  mov.u64 %rd5, stack; cvta.local.u64 %rd6, %rd5; st.local.u32 [stack+4], %r3; ld.u32 %r5, [%rd6+4]; add.u32 %r5, %r5, %r5;
  st.global.u32 [%rd4], %r5;""",
        variables=".local .align 8 .b8 stack[8];",
    )
    y = np.zeros(64, np.uint32)
    launch(text, grid=1, block=64, args=[y.copy(), y])
    assert y.tolist() == list(range(0, 128, 2))


@pytest.mark.parametrize(
    ("text", "options", "code"),
    [
        ("this is not PTX", {}, "OP060"),
        (SAXPY.replace("fma.rn.f32", "tex.2d.v4"), {}, "OP061"),
        (kernel("sub.rz.f64 %d3, %d1, %d2;"), {"args": [np.zeros(1), np.zeros(1)]}, "OP061"),
        (SAXPY, {"entry": "other"}, "OP064"),
        (SAXPY, {"args": [1]}, "OP064"),
        (SAXPY, {"block": 2048}, "OP064"),
        (SAXPY, {"block": (-2, -2, 1)}, "OP064"),
        (SAXPY, {"grid": 0}, "OP064"),
        (SAXPY, {"grid": 2**31}, "OP064"),
        (SAXPY, {"grid": (1, 65536)}, "OP064"),
        (SAXPY, {"args": [np.zeros((4, 4), np.float32)[:, ::2], np.zeros(4, np.float32), 1.0, 4]}, "OP064"),
        (SAXPY, {"args": [np.zeros(4, np.float32), np.zeros(4, np.float32), 1.0, "four"]}, "OP064"),
        (SAXPY.replace("{\n", ".reqntid 64, 1, 1\n{\n", 1), {}, "OP064"),
        (SAXPY.replace("{\n", ".maxntid 64, 1, 1\n{\n", 1), {}, "OP064"),
        (kernel("AGAIN: bra.uni AGAIN;"), {"args": [np.zeros(1), np.zeros(1)]}, "OP063"),
    ],
    ids=[
        "text",
        "instruction",
        "rounding",
        "name",
        "arguments",
        "threads",
        "negative",
        "no blocks",
        "blocks",
        "rows of blocks",
        "strides",
        "type",
        "reqntid",
        "maxntid",
        "endless",
    ],
)
def test_what_cannot_be_launched(text: str, options: dict[str, Any], code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradir.ptx.machine.GENERATIONS", 50)
    monkeypatch.setattr("gradir.ptx.machine.STEPS", 5000)
    given: dict[str, Any] = {"grid": 1, "block": 128, "args": [np.zeros(4, np.float32), np.zeros(4, np.float32), 1.0, 4], **options}
    with pytest.raises(GradirError) as caught:
        launch(text, **given)
    assert caught.value.code == code and caught.value.expected and caught.value.found


def test_an_array_that_is_read_only_may_be_read_but_not_written() -> None:
    x, y = np.ones(8, np.float32), np.zeros(8, np.float32)
    x.flags.writeable = False
    launch(SAXPY, grid=1, block=128, args=[x, y, 2.5, 8])
    np.testing.assert_array_equal(y, np.full(8, 2.5, np.float32))
    y.flags.writeable = False
    (report,) = launch(SAXPY, grid=1, block=128, args=[x, y, 2.5, 8], check=False).mistakes
    assert report.kind == "out of bounds" and "is read-only" in report.message
    np.testing.assert_array_equal(y, np.full(8, 2.5, np.float32))


@pytest.mark.parametrize("number", [2**40, 2**32, -(2**31) - 1, np.int64(2**40)], ids=repr)
def test_a_number_that_its_parameter_cannot_hold(number: Any) -> None:
    with pytest.raises(GradirError) as caught:
        launch(SAXPY, grid=1, block=128, args=[np.ones(8, np.float32), np.zeros(8, np.float32), 2.5, number])
    assert caught.value.code == "OP064" and caught.value.found == str(int(number)) and "a number of 32 bits" in caught.value.expected


@pytest.mark.parametrize("number", [8, np.int64(8), np.uint8(8)], ids=repr)
def test_numbers_of_other_widths_that_fit(number: Any) -> None:
    x, y = np.ones(8, np.float32), np.zeros(8, np.float32)
    launch(SAXPY, grid=1, block=128, args=[x, y, np.float32(2.5), number])
    np.testing.assert_array_equal(y, np.full(8, 2.5, np.float32))


@pytest.mark.parametrize("seed", [None, 1])
def test_barriers_that_ask_all_threads(seed: int | None) -> None:
    """`bar.red` counts, and knows whether all or any of a block's threads say yes; those that ended are not asked."""
    text = kernel(
        """
  setp.ge.u32 %p4, %r3, 90;
  @%p4 exit;
  setp.lt.u32 %p1, %r3, 40; setp.lt.u32 %p2, %r3, 200;
  bar.red.popc.u32 %r5, 0, %p1; bar.red.and.pred %p5, 0, %p2; barrier.cta.red.aligned.or.pred %p6, 1, !%p2;
  selp.u32 %r6, 1000, 0, %p5; selp.u32 %r7, 500, 0, %p6; add.u32 %r5, %r5, %r6; add.u32 %r5, %r5, %r7; st.global.u32 [%rd4], %r5;"""
    )
    y = np.zeros(256, np.uint32)
    launch(text, grid=2, block=128, args=[y.copy(), y], seed=seed)
    assert y.tolist() == ([1040] * 90 + [0] * 38) * 2
