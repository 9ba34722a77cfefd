"""A GEMM for sm_90a written by hand: tensor copies into a ring of stages, one producer and two consumer warpgroups, results by tensor copies."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from gradir.ptx.launch import launch
from gradir.ptx.reports import Reports
from gradir.ptx.tensor_maps import TensorMap, row_major

Array = np.ndarray[Any, np.dtype[Any]]
ROWS, COLUMNS, DEPTH, STAGES = 128, 64, 64, 3
STAGE = (ROWS + COLUMNS) * DEPTH * 2
TILE = STAGES * STAGE
FULL = TILE + ROWS * COLUMNS * 4
EMPTY = FULL + 8 * STAGES
SHARED = EMPTY + 8 * STAGES
_SUMS = ", ".join(f"%f{k}" for k in range(32))
_HIGH = 1 << 62 | (1024 >> 4) << 32 | 1 << 16
COPY = "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"


def _product(k: int) -> tuple[str, str]:
    """Descriptors of the k-th step of a stage, and its product."""
    product = f"wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {{{_SUMS}}}, %rd{6 + 2 * k}, %rd{7 + 2 * k}, 1, 1, 1, 0, 0;"
    return f"  add.s64 %rd{6 + 2 * k}, %rd4, {2 * k}; add.s64 %rd{7 + 2 * k}, %rd5, {2 * k};\n", f"  {product}\n"


def _text() -> str:
    inits = "\n".join(
        f"  mbarrier.init.shared.b64 [%r5+{FULL + 8 * s}], 1; mbarrier.init.shared.b64 [%r5+{EMPTY + 8 * s}], 2;" for s in range(STAGES)
    )
    zeros = " ".join(f"mov.f32 %f{k}, 0f00000000;" for k in range(32))
    stores = "\n".join(f"  st.shared.v2.f32 [%r26+{32 * (i // 2) + 2048 * (i % 2)}], {{%f{2 * i}, %f{2 * i + 1}}};" for i in range(16))
    turn = f"""
  add.u32 %r12, %r12, 1; add.u32 %r10, %r10, 1; setp.eq.u32 %p5, %r10, {STAGES}; selp.b32 %r10, 0, %r10, %p5;
  selp.b32 %r19, 1, 0, %p5; xor.b32 %r11, %r11, %r19; setp.lt.u32 %p6, %r12, %r4;"""
    products = [_product(k) for k in range(4)]
    return f""".version 8.0
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 smem[];
.visible .entry gemm(.param .align 64 .b8 ta[128], .param .align 64 .b8 tb[128], .param .align 64 .b8 tc[128], .param .u32 steps)
.reqntid 384 .minnctapersm 1
{{
  .reg .pred %p<9>; .reg .b32 %r<40>; .reg .b64 %rd<20>; .reg .f32 %f<32>;
  mov.b64 %rd1, ta; mov.b64 %rd2, tb; mov.b64 %rd3, tc; cvta.param.u64 %rd1, %rd1; cvta.param.u64 %rd2, %rd2; cvta.param.u64 %rd3, %rd3;
  mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ctaid.y; ld.param.u32 %r4, [steps]; mov.u32 %r5, smem;
  shr.u32 %r6, %r1, 7; and.b32 %r7, %r1, 127; shl.b32 %r8, %r2, 6; shl.b32 %r9, %r3, 7; mov.u32 %r10, 0; mov.u32 %r12, 0;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra READY;
{inits}
  fence.mbarrier_init.release.cluster;
READY:
  bar.sync 0;
  setp.ne.u32 %p3, %r7, 0; setp.ne.u32 %p2, %r6, 0;
  @%p2 bra CONSUMER;
  setmaxnreg.dec.sync.aligned.u32 40;
  @%p3 bra DONE;
  mov.u32 %r11, 1;
PRODUCE:
  shl.b32 %r13, %r10, 3; add.u32 %r14, %r5, %r13; add.u32 %r17, %r14, {FULL};
FREE:
  mbarrier.try_wait.parity.shared.b64 %p4, [%r14+{EMPTY}], %r11;
  @!%p4 bra FREE;
  mbarrier.arrive.expect_tx.shared.b64 _, [%r17], {STAGE};
  mul.lo.u32 %r15, %r10, {STAGE}; add.u32 %r15, %r15, %r5; shl.b32 %r16, %r12, 6; add.u32 %r18, %r15, {ROWS * DEPTH * 2};
  {COPY} [%r15], [%rd1, {{%r16, %r9}}], [%r17];
  {COPY} [%r18], [%rd2, {{%r16, %r8}}], [%r17];{turn}
  @%p6 bra PRODUCE;
  bra DONE;
CONSUMER:
  setmaxnreg.inc.sync.aligned.u32 232;
  {zeros}
  mov.u32 %r11, 0; sub.u32 %r20, %r6, 1; shl.b32 %r21, %r20, 13;
CONSUME:
  shl.b32 %r13, %r10, 3; add.u32 %r14, %r5, %r13;
COME:
  mbarrier.try_wait.parity.shared.b64 %p4, [%r14+{FULL}], %r11;
  @!%p4 bra COME;
  mul.lo.u32 %r15, %r10, {STAGE}; add.u32 %r15, %r15, %r5; add.u32 %r18, %r15, {ROWS * DEPTH * 2}; add.u32 %r15, %r15, %r21;
  shr.u32 %r22, %r15, 4; shr.u32 %r23, %r18, 4; cvt.u64.u32 %rd4, %r22; cvt.u64.u32 %rd5, %r23;
  or.b64 %rd4, %rd4, {_HIGH}; or.b64 %rd5, %rd5, {_HIGH};
{"".join(setup for setup, _ in products)}  wgmma.fence.sync.aligned;
{"".join(product for _, product in products)}  wgmma.commit_group.sync.aligned;
  wgmma.wait_group.sync.aligned 0;
  @%p3 bra NEXT;
  mbarrier.arrive.shared.b64 _, [%r14+{EMPTY}];
NEXT:{turn}
  @%p6 bra CONSUME;
  shl.b32 %r21, %r20, 14; add.u32 %r24, %r5, %r21; add.u32 %r24, %r24, {TILE};
  and.b32 %r25, %r7, 28; shl.b32 %r25, %r25, 6; shr.u32 %r27, %r7, 5; shl.b32 %r27, %r27, 12; and.b32 %r28, %r7, 3; shl.b32 %r28, %r28, 3;
  add.u32 %r26, %r24, %r25; add.u32 %r26, %r26, %r27; add.u32 %r26, %r26, %r28;
{stores}
  fence.proxy.async.shared::cta;
  bar.sync %r6, 128;
  @%p3 bra DONE;
  shl.b32 %r29, %r20, 6; add.u32 %r9, %r9, %r29;
  cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd3, {{%r8, %r9}}], [%r24];
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group.read 0;
DONE:
  ret;
}}
"""


GEMM = _text()


def arguments(m: int, n: int, k: int, c: Array) -> tuple[list[Any], Array]:
    """Arguments of a product of m x k by (n x k)^T into `c`, and what should come out."""
    random = np.random.default_rng(m + n + k)
    a = random.standard_normal((m, k)).astype(ml_dtypes.bfloat16)
    b = random.standard_normal((n, k)).astype(ml_dtypes.bfloat16)
    maps: list[TensorMap] = [row_major(a, (ROWS, DEPTH), 128), row_major(b, (COLUMNS, DEPTH), 128), row_major(c, (64, COLUMNS))]
    return [*maps, np.uint32(-(-k // DEPTH))], a.astype(np.float32) @ b.astype(np.float32).T


def run(
    text: str = GEMM, *, size: tuple[int, int, int] = (256, 128, 320), seed: int | None = None, **changes: Any
) -> tuple[Reports, Array, Array]:
    """Reports, results and expected results of a launch; `changes` replace arguments by their number (`a0=...`)."""
    m, n, k = size
    c = np.zeros((m, n), np.float32)
    args, expected = arguments(m, n, k, c)
    for name, change in changes.items():
        args[int(name[1:])] = change(args[int(name[1:])])
    grid = (-(-n // COLUMNS), -(-m // ROWS))
    return launch(text, grid=grid, block=384, args=args, shared=SHARED, seed=seed, check=False), c, expected
