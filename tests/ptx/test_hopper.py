"""Instructions of sm_90a one by one: mbarriers, bulk and tensor copies, products of warpgroups, clusters. All texts assemble too."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from gradir.errors import GradirError
from gradir.ptx.launch import launch
from gradir.ptx.tensor_maps import TensorMap, row_major, swizzled
from gradir.targets.nvptx import find_ptxas
from tests.targets.assembler import NO_PTXAS

Array = np.ndarray[Any, np.dtype[Any]]
BAR, MAPS = "smem+32768", {"t": ".param .align 64 .b8 t[128]", "x": ".param .u64 x", "y": ".param .u64 y"}
GET = "cp.async.bulk.tensor.{n}d.shared::cluster.global.mbarrier::complete_tx::bytes"


def text_of(body: str, parameters: str, directives: str = "") -> str:
    """A kernel with 64 KB of shared memory, its thread in %r1, and the parameters' addresses in %rd1, %rd2, ..."""
    names = parameters.split()
    loads = " ".join(
        f"mov.b64 %rd{k + 1}, {n}; cvta.param.u64 %rd{k + 1}, %rd{k + 1};" if n == "t" else f"ld.param.u64 %rd{k + 1}, [{n}];"
        for k, n in enumerate(names)
    )
    return f""".version 8.0
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 smem[];
.visible .entry k({", ".join(MAPS[n] for n in names)}) {directives}
{{
  .reg .pred %p<9>; .reg .b16 %h<4>; .reg .b32 %r<64>; .reg .b64 %rd<32>; .reg .f32 %f<260>;
  mov.u32 %r1, %tid.x; setp.ne.u32 %p1, %r1, 0; {loads}
{body}
  ret;
}}
"""


def run(text: str, args: list[Any], *, block: int = 32, grid: int = 1, **options: Any) -> set[str]:
    """The text is assembled where there is an assembler, and runs in the emulator; kinds of what is reported."""
    return {r.kind for r in launch(text, grid=grid, block=block, args=args, shared=65536, check=False, **options).mistakes}


def assembles(text: str, tmp_path: Path) -> None:
    ptxas = find_ptxas()
    if ptxas is None:
        pytest.skip(NO_PTXAS)
    source = tmp_path / "k.ptx"
    source.write_text(text)
    done = subprocess.run(
        [ptxas, "-arch=sm_90a", str(source), "-o", str(tmp_path / "k.cubin")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


INIT = """
  mov.u32 %r2, smem; add.u32 %r3, %r2, 32768;
  @%p1 bra READY;
  mbarrier.init.shared.b64 [%r3], 1;
  fence.proxy.async;
READY:
  bar.sync 0;"""
WAIT = """
COME: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3], 0;
  @!%p2 bra COME;"""
DUMP = """
  shl.b32 %r20, %r1, 2; cvt.u64.u32 %rd10, %r20; add.s64 %rd10, %rd2, %rd10; add.u32 %r20, %r20, %r2; mov.u32 %r21, {words};
DUMP: ld.shared.u32 %r22, [%r20]; st.global.u32 [%rd10], %r22; add.u32 %r20, %r20, 128; add.s64 %rd10, %rd10, 128; sub.u32 %r21, %r21, 32;
  setp.gt.s32 %p3, %r21, 0;
  @%p3 bra DUMP;"""


def fetch(rank: int, words: int) -> str:
    """Copies the box at the coordinates 1, -1, 1, ... and writes all of it to y."""
    coordinates = ", ".join(f"%r{10 + d}" for d in range(rank))
    moves = " ".join(f"mov.u32 %r{10 + d}, {1 if d % 2 == 0 else -1};" for d in range(rank))
    return text_of(
        f"""{INIT}
  {moves}
  @%p1 bra SENT;
  mbarrier.arrive.expect_tx.shared.b64 _, [%r3], {4 * words};
  {GET.format(n=rank)} [%r2], [%rd1, {{{coordinates}}}], [%r3];
SENT:{WAIT}{DUMP.format(words=words)}""",
        "t y",
    )


@pytest.mark.parametrize(
    ("shape", "box", "swizzle", "fill", "steps"),
    [
        ((40,), (32,), 0, "zero", (1,)),
        ((6, 40), (8, 32), 128, "nan", (1, 1)),
        ((9, 20), (8, 16), 64, "zero", (1, 1)),
        ((9, 20), (16, 8), 32, "zero", (1, 2)),
        ((3, 5, 20), (2, 4, 16), 0, "zero", (1, 1, 1)),
        ((3, 4, 5, 20), (2, 2, 4, 8), 0, "zero", (1, 1, 1, 1)),
        ((2, 3, 4, 5, 20), (2, 1, 2, 4, 8), 0, "nan", (1, 1, 1, 1, 1)),
    ],
)
def test_boxes_of_tensors(shape: Any, box: Any, swizzle: int, fill: str, steps: Any, tmp_path: Path) -> None:
    """Elements outside are filled; a swizzle moves pieces of 16 bytes."""
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    tensor = replace(row_major(x, box, swizzle, fill), element_strides=steps)
    words = tensor.bytes // 4
    text = fetch(len(shape), words)
    y = np.zeros(words, np.float32)
    assert run(text, [tensor, y]) == set()
    padded = np.full([n + 64 for n in shape], np.nan if fill == "nan" else 0, np.float32)
    padded[tuple(slice(8, 8 + n) for n in shape)] = x
    starts = [8 + (1 if d % 2 == 0 else -1) for d in range(len(shape))][::-1]
    wanted = padded[tuple(slice(s, s + n, step) for s, n, step in zip(starts, box, steps[::-1]))].reshape(-1)
    where = swizzled(np.arange(0, 4 * words, 4), swizzle) // 4
    np.testing.assert_array_equal(y[where], wanted)
    assembles(text, tmp_path)


def test_tensor_maps_are_checked() -> None:
    x = np.zeros((8, 20), np.float32)
    for box, swizzle in (((8, 300), 0), ((8, 6), 0), ((8, 16), 128), ((8, 16), 7)):
        with pytest.raises(GradirError, match="OP064"):
            row_major(x, box, swizzle)
    with pytest.raises(GradirError, match="OP064"):
        TensorMap(x, np.float32, (20, 8), (81,), (8, 8))
    with pytest.raises(GradirError, match="OP064"):
        launch(fetch(2, 128), grid=1, block=32, args=[replace(row_major(x, (8, 16)), shape=(20, 99)), x], shared=65536)


LINE = f"""{INIT}
  @%p1 bra SENT;
  mbarrier.arrive.expect_tx.shared.b64 _, [%r3], 256;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd1], 256, [%r3];
SENT:{WAIT}
  shl.b32 %r4, %r1, 2; add.u32 %r4, %r4, %r2; ld.shared.u32 %r5, [%r4]; add.u32 %r5, %r5, 1; st.shared.u32 [%r4+256], %r5;
  fence.proxy.async.shared::cta;
  bar.sync 0;
  @%p1 bra DONE;
  add.u32 %r6, %r2, 256;
  cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r6], 128;
  cp.async.bulk.commit_group;
  cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd2+128], [%r6], 128;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
DONE:"""


@pytest.mark.parametrize("seed", [None, 0, 1])
def test_bytes_in_a_row(seed: int | None, tmp_path: Path) -> None:
    text = text_of(LINE, "x y")
    x, y = np.arange(64, dtype=np.uint32), np.full(64, 1000, np.uint32)
    assert run(text, [x, y], seed=seed) == set()
    np.testing.assert_array_equal(y, np.concatenate([x[:32] + 1, x[:32] + 1001]))
    assembles(text, tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        (WAIT, "", "unwaited copy"),
        ("  fence.proxy.async.shared::cta;\n", "", "missing fence"),
        ("  fence.proxy.async;\n", "", "missing fence"),
        ("[%rd2+128], [%r6], 128", "[%rd2+136], [%r6], 112", "misaligned"),
        ("[%rd2+128], [%r6], 128", "[%rd2+144], [%r6], 128", "out of bounds"),
        ("[%rd1], 256", "[%rd1+16], 256", "out of bounds"),
        ("[%r6], 128", "[%r6], 144", "uninitialised read"),
        ("  cp.async.bulk.wait_group 0;\n", "", "unwaited copy"),
        ("_, [%r3], 256", "_, [%r3], 240", "deadlock"),
        ("[%r3], 1;", "[%r3], 0;", "bad mbarrier"),
        ("  mbarrier.init.shared.b64 [%r3], 1;\n", "", "bad mbarrier"),
        ("mbarrier.init.shared.b64 [%r3], 1", "mbarrier.init.shared.b64 [%r3+4], 1", "misaligned"),
    ],
)
def test_mistakes_with_bulk_copies(old: str, new: str, kind: str) -> None:
    text = text_of(LINE, "x y")
    assert old in text
    assert kind in run(text.replace(old, new), [np.arange(64, dtype=np.uint32), np.zeros(64, np.uint32)])


def test_forms_of_mbarriers(tmp_path: Path) -> None:
    """States, counts, drops, transactions by hand, tests that fail and pass; 64 threads in two warps."""
    text = text_of(
        """
  mov.u32 %r2, smem; add.u32 %r3, %r2, 8; mov.u32 %r5, 0;
  @%p1 bra READY;
  mbarrier.init.shared.b64 [%r2], 65; mbarrier.init.shared::cta.b64 [%r3], 3;
READY: bar.sync 0;
  mbarrier.arrive.shared.b64 %rd5, [%r2];
  bar.sync 0;
  mbarrier.test_wait.shared.b64 %p2, [%r2], %rd5; selp.u32 %r4, 1, 0, %p2; add.u32 %r5, %r5, %r4;
  bar.sync 0;
  @%p1 bra LATER;
  mbarrier.arrive.noComplete.shared.b64 %rd6, [%r3], 1; mbarrier.pending_count.b64 %r6, %rd6;
  mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r3], 64;
  mbarrier.arrive_drop.shared.b64 _, [%r3]; mbarrier.arrive.shared.b64 _, [%r3];
  mbarrier.test_wait.parity.shared.b64 %p3, [%r3], 0; selp.u32 %r7, 100, 0, %p3; add.u32 %r5, %r5, %r7;
  mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r3], 64;
  mbarrier.try_wait.parity.shared.b64 %p3, [%r3], 0; selp.u32 %r7, 10, 0, %p3; add.u32 %r5, %r5, %r7; add.u32 %r5, %r5, %r6;
  mbarrier.arrive.shared.b64 _, [%r3], 2; mbarrier.try_wait.parity.shared.b64 %p3, [%r3], 1;
  selp.u32 %r7, 20, 0, %p3; add.u32 %r5, %r5, %r7;
  mbarrier.arrive.shared.b64 _, [%r2];
LATER:
COME: mbarrier.try_wait.shared.b64 %p2, [%r2], %rd5, 1000;
  @!%p2 bra COME;
  bar.sync 0;
  @%p1 bra END;
  mbarrier.inval.shared.b64 [%r3];
END: shl.b32 %r8, %r1, 2; cvt.u64.u32 %rd7, %r8; add.s64 %rd7, %rd1, %rd7; st.global.u32 [%rd7], %r5;""",
        "y",
    )
    for seed in (None, 0, 1, 2):
        y = np.zeros(64, np.uint32)
        assert run(text, [y], block=64, seed=seed) == set()
        assert y.tolist() == [10 + 3 + 20, *[0] * 63]
    assembles(text, tmp_path)


def test_threads_of_cp_async_arrive_when_their_copies_have_come(tmp_path: Path) -> None:
    text = text_of(
        """
  mov.u32 %r2, smem; add.u32 %r3, %r2, 4096; shl.b32 %r4, %r1, 4; add.u32 %r5, %r2, %r4; cvt.u64.u32 %rd3, %r4; add.s64 %rd4, %rd1, %rd3;
  @%p1 bra READY;
  mbarrier.init.shared.b64 [%r3], 64;
READY: bar.sync 0;
  cp.async.cg.shared.global [%r5], [%rd4], 16;
  cp.async.mbarrier.arrive.noinc.shared.b64 [%r3];
COME: mbarrier.try_wait.parity.shared.b64 %p2, [%r3], 0;
  @!%p2 bra COME;
  xor.b32 %r6, %r4, 1008; add.u32 %r6, %r6, %r2; ld.shared.v4.u32 {%r10, %r11, %r12, %r13}, [%r6];
  add.s64 %rd5, %rd2, %rd3; st.global.v4.u32 [%rd5], {%r10, %r11, %r12, %r13};""",
        "x y",
    )
    x = np.arange(256, dtype=np.uint32).reshape(64, 4)
    for seed in (None, 0, 1):
        y = np.zeros((64, 4), np.uint32)
        assert run(text, [x, y], block=64, seed=seed) == set()
        np.testing.assert_array_equal(y, x[::-1])
    assert "unwaited copy" in run(text.replace("  @!%p2 bra COME;\n", "").replace("COME: mbarrier.try_wait", "COME: mbarrier.test_wait").replace("shared.b64 %p2, [%r3], 0", "shared.b64 %p2, [%r3], 1"), [x, np.zeros((64, 4), np.uint32)], block=64)  # fmt: skip
    assembles(text, tmp_path)


# Products


def product(n: int, kind: str, to: str, *, k: int, registers: bool, turned: tuple[int, int], swizzle: int) -> str:
    """One product: A (64 x k or its transpose) and B (n x k or its transpose) are stored to shared memory as TMA would lay them out."""
    count = n // 4 if to == "f16" else n // 2
    letter = "f" if to == "f32" else "r"
    first = 0 if to == "f32" else 30
    sums = ", ".join(f"%{letter}{first + i}" for i in range(count))
    zeros = " ".join(f"mov.b32 %{letter}{first + i}, 0;" for i in range(count))
    flags = {"f16": f", 1, 1, {turned[0]}, {turned[1]}", "bf16": f", 1, 1, {turned[0]}, {turned[1]}"}.get(
        kind, "" if kind in ("s8", "u8") else ", 1, 1"
    )
    left = "%rd12"
    if registers:
        left = "{%r10, %r11, %r12, %r13}"
        flags = {"f16": f", 1, 1, {turned[1]}", "bf16": f", 1, 1, {turned[1]}"}.get(kind, flags)
    loads = " ".join(f"ld.global.u32 %r{10 + i}, [%rd1+{32768 + 512 * i}];" for i in range(4)) if registers else ""
    stores = "\n".join(f"  st.global.b32 [%rd16+{512 * i}], %{letter}{first + i};" for i in range(count))
    return text_of(
        f"""
  shl.b32 %r2, %r1, 2; mov.u32 %r3, smem; add.u32 %r4, %r3, %r2; cvt.u64.u32 %rd10, %r2; add.s64 %rd11, %rd1, %rd10; mov.u32 %r5, 64;
COPY: ld.global.u32 %r6, [%rd11]; st.shared.u32 [%r4], %r6; add.s64 %rd11, %rd11, 512; add.u32 %r4, %r4, 512; sub.u32 %r5, %r5, 1;
  setp.ne.u32 %p2, %r5, 0;
  @%p2 bra COPY;
  fence.proxy.async;
  bar.sync 0;
  add.s64 %rd1, %rd1, %rd10; {loads}
  {zeros}
  ld.param.u64 %rd15, [x]; ld.global.u64 %rd12, [%rd15+36864]; ld.global.u64 %rd13, [%rd15+36872];
  setp.eq.u32 %p4, %r3, 12345678;
  wgmma.fence.sync.aligned;
  wgmma.mma_async.sync.aligned.m64n{n}k{k}.{to}.{kind}.{kind} {{{sums}}}, {left}, %rd13, %p4{flags};
  wgmma.commit_group.sync.aligned;
  wgmma.wait_group.sync.aligned 0;
  add.s64 %rd16, %rd2, %rd10;
{stores}""",
        "x y",
        ".reqntid 128",
    ).replace(".reg .b32 %r<64>", ".reg .b32 %r<300>")


KINDS: dict[str, tuple[Any, str]] = {
    "f16": (np.float16, "f32"), "bf16": (ml_dtypes.bfloat16, "f32"), "tf32": (np.float32, "f32"),
    "e4m3": (ml_dtypes.float8_e4m3fn, "f32"), "e5m2": (ml_dtypes.float8_e5m2, "f32"), "s8": (np.int8, "s32"), "u8": (np.uint8, "s32"),
}  # fmt: skip
_MODES = {0: 0, 128: 1, 64: 2, 32: 3}


def _laid_out(matrix: Array, swizzle: int, turned: bool) -> tuple[Array, int, int]:
    """Bytes of a matrix [rows, k] in one of the canonical layouts; leading and stride offsets."""
    source = np.ascontiguousarray(matrix.T if turned else matrix)
    lines, row = source.shape[0], source.shape[1] * source.itemsize
    raw = source.view(np.uint8).reshape(lines, row)
    pieces = row // 16
    out = np.zeros(16384, np.uint8)
    width = swizzle or 16
    atom = width // 16
    for line in range(lines):
        for piece in range(pieces):
            base = piece // atom * lines * width + line * width + piece % atom * 16
            at = int(swizzled(np.array(base), swizzle)) if swizzle else base
            out[at : at + 16] = raw[line, 16 * piece : 16 * piece + 16]
    across, down = lines * width, 8 * width
    if swizzle:
        return out, across, down
    return (out, down, across) if turned else (out, across, down)


@pytest.mark.parametrize(
    ("n", "kind", "to", "registers", "turned", "swizzle"),
    [
        (64, "bf16", "f32", False, (0, 0), 32),
        (128, "f16", "f32", False, (0, 0), 0),
        (8, "f16", "f16", False, (0, 0), 32),
        (256, "bf16", "f32", True, (0, 0), 32),
        (24, "tf32", "f32", False, (0, 0), 32),
        (16, "tf32", "f32", True, (0, 0), 0),
        (96, "e4m3", "f32", False, (0, 0), 32),
        (32, "e5m2", "f32", True, (0, 0), 32),
        (48, "s8", "s32", False, (0, 0), 32),
        (64, "u8", "s32", False, (0, 0), 0),
        (64, "bf16", "f32", False, (1, 1), 128),
        (128, "bf16", "f32", False, (0, 1), 64),
        (64, "f16", "f32", False, (1, 0), 32),
        (64, "f16", "f32", False, (1, 1), 0),
        (64, "f16", "f32", True, (0, 1), 128),
    ],
)  # fmt: skip
def test_products_of_warpgroups(n: int, kind: str, to: str, registers: bool, turned: tuple[int, int], swizzle: int, tmp_path: Path) -> None:
    dtype, _ = KINDS[kind]
    size = np.dtype(dtype).itemsize
    k = 32 // size
    random = np.random.default_rng(n)
    if kind in ("s8", "u8"):
        a, b = random.integers(-100 if kind == "s8" else 0, 100, (64, k)).astype(dtype), random.integers(0, 100, (n, k)).astype(dtype)
    else:
        a, b = random.standard_normal((64, k)).astype(dtype), random.standard_normal((n, k)).astype(dtype)
    # K-major matrices have 32 bytes a row: no swizzle, or one of 32; MN-major ones may have any
    modes = [swizzle if (turned[i] or swizzle in (0, 32)) else 32 for i in (0, 1)]
    left, lead_a, stride_a = _laid_out(a, modes[0], bool(turned[0]))
    right, lead_b, stride_b = _laid_out(b, modes[1], bool(turned[1]))
    high = [_MODES[m] << 62 | s >> 4 << 32 | lead >> 4 << 16 for m, s, lead in ((modes[0], stride_a, lead_a), (modes[1], stride_b, lead_b))]
    lanes = np.arange(128)
    per = 4 // size
    rows = lanes // 32 * 16 + lanes % 32 // 4
    words = []
    for register in range(4):
        columns = (register // 2) * 4 * per + lanes % 4 * per
        words.append(
            np.ascontiguousarray(np.stack([a[rows + 8 * (register % 2), columns + e] for e in range(per)], 1)).view(np.uint32)[:, 0]
        )
    descriptors = np.array([high[0], high[1] | 16384 >> 4], np.uint64)
    x = np.concatenate(
        [
            left,
            right,
            np.stack(words).view(np.uint8).reshape(-1)[:2048],
            np.zeros(2048, np.uint8),
            descriptors.view(np.uint8),
            np.zeros(16, np.uint8),
        ]
    )
    count = n // 4 if to == "f16" else n // 2
    y = np.zeros((count, 128), np.uint32)
    text = product(n, kind, to, k=k, registers=registers, turned=turned, swizzle=swizzle)
    assert run(text, [x, y], block=128) == set()
    wanted = a.astype(np.float64) @ b.astype(np.float64).T
    found = np.zeros((64, n))
    for i in range(count):
        if to == "f16":
            pair = y[i].view(np.float16).reshape(128, 2)
            for e in range(2):
                found[rows + 8 * (i % 2), 8 * (i // 2) + 2 * (lanes % 4) + e] = pair[:, e]
        else:
            values = y[i].view(np.float32 if to == "f32" else np.int32)
            found[rows + 8 * (i // 2 % 2), 8 * (i // 4) + 2 * (lanes % 4) + i % 2] = values
    tolerance = 2e-2 if to == "f16" or kind == "tf32" else 1e-5
    np.testing.assert_allclose(found, wanted, tolerance, tolerance)
    assembles(text, tmp_path)


# Clusters

CLUSTER = """
  mov.u32 %r2, smem; mov.u32 %r30, %cluster_ctarank; xor.b32 %r31, %r30, 1; add.u32 %r3, %r2, 32768; shl.b32 %r4, %r1, 2; add.u32 %r5, %r2, %r4;
  @%p1 bra READY;
  mbarrier.init.shared.b64 [%r3], 1;
  fence.mbarrier_init.release.cluster;
READY:
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
  @%p1 bra SENT;
  mbarrier.arrive.expect_tx.shared.b64 _, [%r3], 512;
  shl.b32 %r6, %r30, 6; shl.b32 %r7, %r30, 8; add.u32 %r7, %r7, %r2; mov.b16 %h1, 3; mov.u32 %r8, 0;
  cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r7], [%rd1, {%r6, %r8}], [%r3], %h1;
SENT:
COME: mbarrier.try_wait.parity.shared.b64 %p2, [%r3], 0;
  @!%p2 bra COME;
  ld.shared.u32 %r10, [%r5]; ld.shared.u32 %r11, [%r5+256];
  add.u32 %r10, %r10, %r11; mapa.shared::cluster.u32 %r12, %r5, %r31; st.shared::cluster.u32 [%r12+1024], %r10;
  barrier.cluster.arrive.release.aligned;
  barrier.cluster.wait.acquire.aligned;
  ld.shared.u32 %r13, [%r5+1024]; mov.u32 %r14, %ctaid.x; shl.b32 %r14, %r14, 8; add.u32 %r14, %r14, %r4; cvt.u64.u32 %rd5, %r14;
  add.s64 %rd5, %rd2, %rd5; st.global.u32 [%rd5], %r13;"""


@pytest.mark.parametrize("seed", [None, 0, 1, 2])
def test_clusters(seed: int | None, tmp_path: Path) -> None:
    """Each of two blocks sends its half of a row to both; each sends its sums to the other one."""
    text = text_of(CLUSTER, "t y", ".reqnctapercluster 2, 1, 1")
    x, y = np.arange(128, dtype=np.uint32).reshape(1, 128), np.zeros((4, 64), np.uint32)
    assert run(text, [row_major(x, (1, 64)), y], block=64, grid=4, seed=seed) == set()
    np.testing.assert_array_equal(y, np.broadcast_to(x[0, :64] + x[0, 64:], (4, 64)))
    assembles(text, tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ("  barrier.cluster.arrive.release.aligned;\n  barrier.cluster.wait.acquire.aligned;\n", "", "race"),
        ("  barrier.cluster.arrive.aligned;\n  barrier.cluster.wait.aligned;\n", "  bar.sync 0;\n", "race"),
        ("mov.b16 %h1, 3;", "mov.b16 %h1, 7;", "out of bounds"),
        ("mov.b16 %h1, 3;", "mov.b16 %h1, 1;", "deadlock"),
        ("barrier.cluster.wait.acquire.aligned;", "", "race"),
    ],
)
def test_mistakes_in_clusters(old: str, new: str, kind: str) -> None:
    text = text_of(CLUSTER, "t y", ".reqnctapercluster 2, 1, 1")
    assert old in text
    x, y = np.arange(128, dtype=np.uint32).reshape(1, 128), np.zeros((4, 64), np.uint32)
    found = run(text.replace(old, new), [row_major(x, (1, 64)), y], block=64, grid=4)
    assert kind in found or (kind == "race" and "bad mbarrier" in found), found


def test_clusters_are_whole() -> None:
    with pytest.raises(GradirError, match="OP064"):
        run(text_of(CLUSTER, "t y", ".reqnctapercluster 2, 1, 1"), [row_major(np.zeros((1, 128), np.uint32), (1, 64)), np.zeros(1)], grid=3)


def test_a_tensor_may_be_a_part_of_an_array() -> None:
    whole = np.arange(16 * 64, dtype=np.float32).reshape(16, 64)
    y = np.zeros(128, np.float32)
    assert run(fetch(2, 128), [row_major(whole[2:12, 8:48], (8, 16)), y]) == set()
    wanted = np.zeros((8, 16), np.float32)
    wanted[1:] = whole[2:9, 9:25]
    np.testing.assert_array_equal(y.reshape(8, 16), wanted)
