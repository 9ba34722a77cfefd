"""Kind `contraction` on a GPU: a tile of the results a block, its operands in a ring of stages in workgroup memory.

The schedule says whether a warp multiplies on tensor cores or a thread by multiply-adds, the tiles, the stages, and whether several blocks
share a sum. See docs/kernels/cuda-gemm.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, cast

from xdsl.dialects.builtin import IntegerAttr, MemRefType, i64
from xdsl.ir import Attribute, SSAValue

from gradir.dialects.kernel import ContractionAttr, Schedule
from gradir.dialects.target import CudaTargetAttr
from gradir.dialects.target.cuda_facts import WARP, architecture
from gradir.dialects.upstream import gpu, memref, vector
from gradir.lowering.groups import Group
from gradir.lowering.lower_kernels.builder import Index, LoopBuilder
from gradir.lowering.lower_kernels.tiles import NotCovered
from gradir.lowering.lower_kernels_gpu import hopper, matrix_units, multiply_adds
from gradir.lowering.lower_kernels_gpu.epilogue import tile_results
from gradir.lowering.lower_kernels_gpu.launch import Launch, place
from gradir.lowering.lower_kernels_gpu.product import Product, product_of
from gradir.lowering.lower_kernels_gpu.staging import Copies, Staged, pipelined, stage, staged_type
from gradir.lowering.lower_kernels_gpu.tile_order import place_of_block
from gradir.lowering.schedules.gpu_contraction import RESULT_PAD, schedule_gpu_contraction
from gradir.lowering.schedules.machine import element_bytes

_WARP_ROWS = 16
"""A tile of so many rows or more is a warp's, on tensor cores."""
ALIGN = 128


@dataclass(frozen=True)
class Tiles:
    """What a schedule says: a block's tile, a warp's or thread's, stages, parts of a sum."""

    rows: int
    columns: int
    depth: int
    inner: tuple[int, int]
    stages: int
    parts: int

    @staticmethod
    def of(schedule: Schedule) -> Tiles:
        """Raises `NotCovered` for a schedule that says nothing."""
        block, tile = schedule.field("block"), schedule.field("tile")
        if len(block) != 3 or len(tile) != 2:
            raise NotCovered("a contraction without a schedule for a GPU")
        return Tiles(*block, (tile[0], tile[1]), (*schedule.field("stages"), 2)[0], (*schedule.field("split"), 1)[0])

    @property
    def mma(self) -> bool:
        return self.inner[0] >= _WARP_ROWS

    @property
    def warpgroups(self) -> bool:
        """Is the tile one of two warpgroups (see `hopper`)?"""
        return self == Tiles(hopper.ROWS, hopper.COLUMNS, hopper.DEPTH, (hopper.HEIGHT, hopper.COLUMNS), hopper.STAGES, 1)

    @property
    def threads(self) -> int:
        return self.rows * self.columns // prod(self.inner) * (WARP if self.mma else 1)


def gpu_schedule(schedule: Schedule, group: Group, target: CudaTargetAttr) -> Schedule:
    """The kernel's schedule; the heuristic's where it has none for a GPU."""
    return schedule if isinstance(schedule, ContractionAttr) and schedule.field("stages") else schedule_gpu_contraction(group, target)


def workspace_type(product: Product, tiles: Tiles) -> MemRefType[Any]:
    """Where the parts of sums are between two launches."""
    return MemRefType(product.sums, [tiles.parts, product.batches, product.rows.extent, product.columns.extent])


def lower_product(launch: Launch, group: Group, tiles: Tiles, target: CudaTargetAttr, workspace: SSAValue | None) -> None:
    """The launch that multiplies; with `workspace` it leaves parts of sums there. Raises `NotCovered` (see `product_of`)."""
    product = product_of(launch, group)
    down, across = -(-product.rows.extent // tiles.rows), -(-product.columns.extent // tiles.columns)
    launch.threads, launch.blocks = (tiles.threads, 1), tiles.parts * product.batches * down * across
    b = launch.b
    thread = launch.thread()
    where = place_of_block(b, launch.block(), product.batches, down, across)
    origin = place(b, launch.space.origin, product.batch, product.extents, where.batch)
    start = (b.mul(where.row, tiles.rows), b.mul(where.column, tiles.columns))
    staged, sums_memory = _memories(product, tiles, target)
    copies = [Copies(s, b, origin, first, thread, tiles.threads) for s, first in zip(staged, start)]
    first, last = _steps(b, product, tiles, where.part)
    if tiles.mma:
        warps = matrix_units.Warps.of(b, thread, tiles.rows, *tiles.inner)
        left = matrix_units.Fragments(b, staged[0], warps, warps.row, warps.rows, left=True)
        right = matrix_units.Fragments(b, staged[1], warps, warps.column, warps.columns, left=False)
        inits = matrix_units.zeros(b, warps, product.sums)
        sums = pipelined(b, copies, first, last, tiles.stages, inits, lambda c, s, a: matrix_units.multiply(c, s, left, right, a))
        matrix_units.visit(b, warps, sums, lambda v, r, k: _store(b, v, sums_memory, r, k))
    else:
        threads = multiply_adds.Threads.of(b, thread, (tiles.rows, tiles.columns), tiles.inner)
        inits = multiply_adds.zeros(b, threads, product.sums)
        sums = pipelined(b, copies, first, last, tiles.stages, inits, lambda c, s, a: multiply_adds.multiply(c, s, *staged, threads, a))
        multiply_adds.visit(b, threads, sums, lambda v, r, k: _store(b, v, sums_memory, r, k))
    b.op(gpu.BarrierOp)
    parts = None if workspace is None else (launch.kernel.value(workspace), where.part, where.batch)
    tile_results(product, b, sums_memory, (tiles.rows, tiles.columns), start, thread, tiles.threads, origin, parts)


def _steps(b: LoopBuilder, product: Product, tiles: Tiles, part: Index) -> tuple[Index, Index]:
    """The staged tiles of this block along the depth."""
    steps = -(-product.depth // tiles.depth)
    if tiles.parts == 1:
        return 0, steps
    each = -(-steps // tiles.parts)
    first = b.mul(part, each)
    return first, b.minimum(b.add(first, each), steps)


def _memories(product: Product, tiles: Tiles, target: CudaTargetAttr) -> tuple[tuple[Staged, Staged], SSAValue]:
    """The rings of both operands, one behind the other, and the tile of sums in their place afterwards."""
    launch, b = product.launch, product.launch.b
    asynchronous = architecture(target.arch).asynchronous
    sides = ((product.rows, tiles.rows), (product.columns, tiles.columns))
    types: list[MemRefType[Any]] = []
    for side, free in sides:
        element = side.operand.element if tiles.mma else product.sums
        types.append(staged_type(product, side, element, free, tiles.depth, tiles.stages, mma=tiles.mma))
    results = gpu.shared(product.sums, tiles.rows, tiles.columns + RESULT_PAD)
    second = -(-_bytes(types[0]) // ALIGN) * ALIGN
    memory = launch.workgroup_bytes(max(second + _bytes(types[1]), _bytes(results)))
    views = [b(memref.ViewOp, [memory, b.value(at)], [t]) for at, t in zip((0, second, 0), (*types, results))]
    found = [
        stage(product, side, view, free, tiles.depth, mma=tiles.mma, asynchronous=asynchronous) for (side, free), view in zip(sides, views)
    ]
    return (found[0], found[1]), views[2]


def _bytes(t: MemRefType[Any]) -> int:
    return prod(t.get_shape()) * element_bytes(t.element_type)


def _store(b: LoopBuilder, value: SSAValue, memory: SSAValue, row: Index, column: Index) -> None:
    t = cast("Any", value.type)
    aligned: dict[str, Attribute] = {"alignment": IntegerAttr(min(16, t.get_shape()[0] * element_bytes(t.element_type)), i64)}
    b.op(vector.StoreOp, [value, memory, *b.values([row, column])], attributes=aligned)
