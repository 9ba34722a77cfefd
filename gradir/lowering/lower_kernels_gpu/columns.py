"""Reductions over rows: a block takes 32 columns, its warps share the rows; a total takes one block."""

from __future__ import annotations

from xdsl.ir import SSAValue

from gradir.dialects.upstream import gpu, memref
from gradir.lowering.lower_kernels.binding import BoundOp
from gradir.lowering.lower_kernels.bodies import combine, identity, widened
from gradir.lowering.lower_kernels.builder import LoopBuilder
from gradir.lowering.lower_kernels.tiles import write
from gradir.lowering.lower_kernels_gpu.launch import (
    WARP,
    Launch,
    across_warp,
    branch,
    compare,
    loop_between,
    place,
    size_of,
    static_size,
)
from gradir.lowering.lower_kernels_gpu.rows import across_block, adds_widely, finished

WARPS = 8


def reduce_columns(launch: Launch, op: BoundOp, memory: frozenset[SSAValue]) -> None:
    """`op` reduces its `reduced` dimensions; what it reads of the group is pulled or in `memory`."""
    reduced = sorted(op.reduced)
    kept = [d for d in range(len(launch.space.extents)) if d in op.dims and d not in op.reduced]
    if kept:
        _columns(launch, op, kept, reduced, memory)
    else:
        _total(launch, op, reduced, memory)


def _columns(launch: Launch, op: BoundOp, kept: list[int], reduced: list[int], memory: frozenset[SSAValue]) -> None:
    assert op.combination is not None
    combiner = op.combination.combiner
    extents = launch.space.extents
    columns = static_size(kept, extents)
    launch.threads = (WARP, WARPS)
    launch.blocks = 1024 if columns is None else min(-(-columns // WARP), 1 << 16)
    rows = static_size(reduced, extents)
    wide = adds_widely(op, rows, WARPS)
    b = launch.b
    lane, line = launch.thread("x"), launch.thread("y")
    total = size_of(b, kept, extents)
    start = widened(b, b.constant(identity(combiner, op.element)), wide)
    shared = launch.workgroup(start.type, WARPS, WARP)

    def tile_of_columns(c: LoopBuilder, first: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
        column = c.add(first, lane)
        inside = compare(c, "slt", column, total)

        def accumulate(d: LoopBuilder) -> None:
            tile = place(d, launch.space.origin, kept, extents, column)

            def row(f: LoopBuilder, r: SSAValue, accs: list[SSAValue]) -> list[SSAValue]:
                return [launch.term(f, op, place(f, tile, reduced, extents, r), {}, memory, accs[0], wide)]

            (partial,) = loop_between(d, line, size_of(d, reduced, extents), WARPS, [start], row)
            d.op(memref.StoreOp, [partial, shared, *d.values([line, lane])])

        def store(d: LoopBuilder) -> None:
            found = d(memref.LoadOp, [shared, *d.values([0, lane])], [start.type])
            for k in range(1, WARPS):
                found = combine(d, combiner, found, d(memref.LoadOp, [shared, *d.values([k, lane])], [start.type]))
            tile = place(d, launch.space.origin, kept, extents, column)
            write(d, finished(d, op, found), launch.operand(op), tile)

        branch(c, inside, accumulate)
        c.op(gpu.BarrierOp)
        branch(c, compare(c, "eq", line, 0), lambda d: branch(d, inside, store))
        c.op(gpu.BarrierOp)
        return []

    loop_between(b, b.mul(launch.block(), WARP), total, launch.blocks * WARP, [], tile_of_columns)


def _total(launch: Launch, op: BoundOp, reduced: list[int], memory: frozenset[SSAValue]) -> None:
    assert op.combination is not None
    combiner = op.combination.combiner
    extents = launch.space.extents
    threads = WARP * WARPS
    launch.threads, launch.blocks = (threads, 1), 1
    wide = adds_widely(op, static_size(reduced, extents), threads)
    b = launch.b
    lane = launch.thread("x")
    start = widened(b, b.constant(identity(combiner, op.element)), wide)

    def point(c: LoopBuilder, i: SSAValue, accs: list[SSAValue]) -> list[SSAValue]:
        return [launch.term(c, op, place(c, launch.space.origin, reduced, extents, i), {}, memory, accs[0], wide)]

    (partial,) = loop_between(b, lane, size_of(b, reduced, extents), threads, [start], point)
    found = across_block(launch, b, combiner, across_warp(b, combiner, partial, WARP), lane, WARPS, {})
    branch(b, compare(b, "eq", lane, 0), lambda c: write(c, finished(c, op, found), launch.operand(op), launch.space.origin))
