"""Schedules of contractions on a GPU: tensor cores or not, tiles of blocks, warps and threads, stages, parts of the sum.

`block = [rows, columns, depth]` of a block's tile; `tile` is what a warp (tensor cores, from 16 rows on) or a thread (up to 8) adds up in
registers; `stages` tiles of the operands are in workgroup memory at once; `split` blocks share one sum, which a second kernel adds in
order. The choice is the smallest estimated time of a list of tiles: instructions, bytes from L2, waves of blocks over the multiprocessors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from gradir.dialects.kernel import ContractionAttr
from gradir.dialects.target import CudaTargetAttr
from gradir.dialects.target.cuda_facts import STATIC_SHARED, architecture
from gradir.dialects.upstream import arith
from gradir.lowering.groups import Group
from gradir.lowering.schedules.machine import bytes_of, element_of

ROW_BYTES = 128
"""A row of a staged tile along the depth: eight copies of 16 bytes, all banks once."""
PAD = 4
"""Elements behind each row of a tile that threads read as vectors of four."""
RESULT_PAD = 8
"""Elements behind each row of a tile of sums: pairs of four rows, as lanes hold them, meet all banks."""
SIMT_DEPTH = 16
MMA_DEPTHS = {"f16": (16, "f32"), "bf16": (16, "f32"), "i8": (32, "i32")}
"""Elements of factors on tensor cores -> depth of one instruction, and what it adds up in."""

MMA_TILES = (
    (128, 256, 64, 64),
    (256, 128, 64, 64),
    (128, 128, 64, 32),
    (128, 64, 32, 32),
    (64, 128, 32, 32),
    (64, 64, 32, 32),
    (32, 128, 16, 32),
    (128, 32, 32, 16),
    (32, 64, 16, 32),
    (64, 32, 32, 16),
    (32, 32, 16, 16),
    (16, 128, 16, 32),
    (128, 16, 32, 16),
    (16, 64, 16, 16),
    (64, 16, 16, 16),
)
"""Rows and columns of a block's tile, then of a warp's."""
SIMT_TILES = (
    (128, 128, 8, 8),
    (64, 64, 4, 4),
    (32, 64, 4, 4),
    (64, 32, 4, 4),
    (32, 32, 4, 4),
    (8, 256, 4, 4),
    (256, 8, 4, 4),
    (4, 256, 4, 4),
    (256, 4, 4, 4),
)
"""Rows and columns of a block's tile, then of a thread's."""
WARPGROUP_SUMS = 64 * 128
"""A tile of so many sums is a warpgroup's: of sm_90a, where a schedule asks for it."""
MOST_SPLITS = 32
MOST_WORKSPACE = 64 << 20
"""Bytes of all parts of sums."""
STEPS_OF_PART = 4
"""Staged tiles of a part of the sum at least."""

# Cycles of one multiprocessor, of the order of an A100's (NVIDIA A100 whitepaper; L2 and latencies measured by Jia et al., 2018).
_MMA_RATE, _SIMT_RATE = 1024, {(8, 8): 56, (4, 4): 36}
"""Multiply-adds a cycle: of 2-byte elements on tensor cores, of f32 by tiles of a thread."""
_SHARED_BYTES, _L2_BYTES, _LATENCY, _LAUNCH = 128, 40, 1500, 4000


@dataclass(frozen=True)
class ProductSizes:
    """`batches` products of rows x depth by depth x columns; element types of the factors (rows first) and of the sums."""

    batches: int
    rows: int
    columns: int
    depth: int
    left: str
    right: str
    sums: str
    unsigned: bool
    left_bytes: int
    right_bytes: int
    sum_bytes: int


def oriented(group: Group) -> tuple[tuple[int, ...], tuple[int, ...], bool]:
    """Dimensions of rows and columns: the output's last dimension is a column, so the operands change places where it is of the first."""
    roles = group.contraction
    assert roles is not None
    last = next((d for d in reversed(group.space) if group.extents[d] != 1), None)
    return (roles.n, roles.m, True) if last in roles.m else (roles.m, roles.n, False)


def product_sizes(group: Group) -> ProductSizes | None:
    """The sizes of the group's contraction; None where only the run knows them or something is empty."""
    roles = group.contraction
    assert roles is not None
    if not all(isinstance(e, int) and e > 0 for e in group.extents):
        return None
    core = group.ops[roles.index]
    rows, columns, swapped = oriented(group)

    def size(dims: tuple[int, ...]) -> int:
        return prod(int(group.extents[d] or 0) for d in dims)

    left, right = (core.inputs[1][0], core.inputs[0][0]) if swapped else (core.inputs[0][0], core.inputs[1][0])
    unsigned = any(isinstance(o, arith.ExtUIOp) for o in core.op.body.block.ops)
    return ProductSizes(
        size(roles.batch), size(rows), size(columns), size(roles.k),
        element_of(left), element_of(right), element_of(core.output), unsigned,
        bytes_of(left), bytes_of(right), bytes_of(core.output),
    )  # fmt: skip


def on_tensor_cores(sizes: ProductSizes, target: CudaTargetAttr) -> bool:
    """Has the GPU an instruction for these elements, with sums as wide as the program says? f32 is never rounded to tf32."""
    return sizes.left == sizes.right and has_instruction(sizes.left, sizes.sums, target) and not sizes.unsigned


def has_instruction(element: str, sums: str, target: CudaTargetAttr) -> bool:
    """Multiplies the GPU factors of `element` on tensor cores, with these sums?"""
    depth, wide = MMA_DEPTHS.get(element, (0, ""))
    return sums == wide and (16, 8, depth) in architecture(target.arch).mma.get(element, ())


def stage_bytes(sizes: ProductSizes, rows: int, columns: int, depth: int, *, mma: bool) -> int:
    """Bytes of one stage of both operands in workgroup memory, at most."""
    if mma:
        return (rows + columns) * depth * sizes.left_bytes
    return (rows + columns + 2 * PAD) * depth * sizes.sum_bytes


def result_bytes(sizes: ProductSizes, rows: int, columns: int) -> int:
    """Bytes of a tile of sums on its way through workgroup memory."""
    return rows * (columns + RESULT_PAD) * sizes.sum_bytes


def schedule_gpu_contraction(group: Group, target: CudaTargetAttr) -> ContractionAttr:
    """The schedule of a contraction for a GPU; without fields where sizes are not known."""
    sizes = product_sizes(group)
    return ContractionAttr.of() if sizes is None else schedule_product(sizes, target)


def schedule_product(sizes: ProductSizes, target: CudaTargetAttr) -> ContractionAttr:
    """The quickest of the tiles that fit."""
    return min(_candidates(sizes, target), key=lambda pair: pair[0])[1]


def _candidates(sizes: ProductSizes, target: CudaTargetAttr) -> Iterator[tuple[float, ContractionAttr]]:
    mma = on_tensor_cores(sizes, target)
    facts = architecture(target.arch)
    depth = ROW_BYTES // sizes.left_bytes if mma else SIMT_DEPTH
    steps = -(-sizes.depth // depth)
    results = sizes.batches * sizes.rows * sizes.columns * sizes.sum_bytes
    for rows, columns, inner_rows, inner_columns in MMA_TILES if mma else SIMT_TILES:
        if not mma and sizes.sum_bytes > 4 and inner_rows > 4:
            continue  # 64 accumulators of 8 bytes leave no registers
        one = stage_bytes(sizes, rows, columns, depth, mma=mma)
        room = facts.shared_per_block if mma else STATIC_SHARED
        stages = min(4 if mma else 2, room // one)
        if mma and 3 * one <= STATIC_SHARED < stages * one:
            stages = 3  # more blocks on a multiprocessor hide more than a fourth stage
        if stages < 2 or result_bytes(sizes, rows, columns) > facts.shared_per_block:
            continue
        if not mma and result_bytes(sizes, rows, columns) > STATIC_SHARED and inner_rows < 8:
            continue
        split = 1
        blocks = sizes.batches * -(-sizes.rows // rows) * -(-sizes.columns // columns)
        most = min(MOST_SPLITS, steps // STEPS_OF_PART, MOST_WORKSPACE // results) if blocks < 2 * target.sms else 1
        while split == 1 or split <= most:
            time = _time(sizes, target, (rows, columns, depth, inner_rows, inner_columns), split, mma=mma)
            fields = {"tile": [inner_rows, inner_columns], "block": [rows, columns, depth], "stages": [stages]}
            yield time, ContractionAttr.of(**fields, **({"split": [split]} if split > 1 else {}))
            split *= 2


def _time(sizes: ProductSizes, target: CudaTargetAttr, tile: tuple[int, int, int, int, int], split: int, *, mma: bool) -> float:
    """Cycles, roughly: a multiprocessor works through its share of the blocks, each as fast as its products or its operands arrive."""
    rows, columns, depth, *inner = tile
    blocks = sizes.batches * -(-sizes.rows // rows) * -(-sizes.columns // columns) * split
    deep = -(-sizes.depth // (depth * split)) * depth
    if mma:  # fragments are read from workgroup memory while others are multiplied, which hides about half of that
        reads = (1 / inner[0] + 1 / inner[1]) * sizes.left_bytes / _SHARED_BYTES
        rate = 1 / (sizes.left_bytes / (2 * _MMA_RATE) + reads / 2)
    else:
        rate = _SIMT_RATE[inner[0], inner[1]] / (1 if sizes.sum_bytes <= 4 else 2)
    work = max(rows * columns / rate, (rows * sizes.left_bytes + columns * sizes.right_bytes) / _L2_BYTES)
    waves = -(-blocks // target.sms)
    resident = max(1, min(8, waves))
    time = waves * deep * work + _LATENCY * -(-waves // resident)
    if split > 1:
        results = sizes.batches * sizes.rows * sizes.columns
        time += _LAUNCH + 2 * split * results * sizes.sum_bytes / (target.sms * _L2_BYTES)
    return time


def reason_gpu_contraction(group: Group, target: CudaTargetAttr, schedule: ContractionAttr) -> str:
    """`tiles of 128 x 128 x 64 by blocks of 256 threads on tensor cores, 64 x 32 a warp, 3 stages; ...`"""
    block, tile = schedule.field("block"), schedule.field("tile")
    if not block:
        return "sizes that only the run knows: a thread for each element"
    if tile[0] * tile[1] >= WARPGROUP_SUMS:
        size = " x ".join(map(str, block))
        return f"tiles of {size} by two warpgroups that multiply and one that copies, {schedule.field('stages')[0]} stages"
    warps = tile[0] >= 16
    threads = block[0] * block[1] // (tile[0] * tile[1]) * (32 if warps else 1)
    unit = "on tensor cores, {} x {} a warp" if warps else "of multiply-adds, {} x {} a thread"
    parts = [
        f"tiles of {' x '.join(map(str, block))} by blocks of {threads} threads {unit.format(*tile)}",
        f"{(*schedule.field('stages'), 1)[0]} stages",
    ]
    split = (*schedule.field("split"), 1)[0]
    return "; ".join([*parts, *([f"{split} blocks share a sum"] if split > 1 else [])])
