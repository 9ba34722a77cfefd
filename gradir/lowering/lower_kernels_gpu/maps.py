"""Launches of one thread per point: elementwise groups, single ops of any kind, columns of reductions within a thread."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from gradir.dialects.upstream import linalg
from gradir.lowering.lower_kernels.binding import BoundOp, compute
from gradir.lowering.lower_kernels.bodies import combine, narrowed, widened
from gradir.lowering.lower_kernels.builder import Index, LoopBuilder
from gradir.lowering.lower_kernels.loops import adds_in_f64
from gradir.lowering.lower_kernels.tiles import Tile, read, write
from gradir.lowering.lower_kernels_gpu.launch import Launch, place, size_of, static_size

THREADS = 256
BLOCKS_OF_UNKNOWN_SIZE = 1024


def map_points(launch: Launch, dims: Sequence[int], stores: Sequence[BoundOp], memory: frozenset[SSAValue]) -> None:
    """At every point of `dims`: the values of `stores`, from what is in memory and from inputs; reads come before writes."""
    extents = launch.space.extents
    launch.blocks = _blocks(static_size(dims, extents))

    def at(b: LoopBuilder, i: Index) -> None:
        tile = place(b, launch.space.origin, dims, extents, i)
        known: dict[SSAValue, SSAValue] = {}
        values = [launch.pull(b, op.key, tile, known, memory) for op in stores]
        for op, value in zip(stores, values):
            b.loc = op.op.location
            write(b, value, launch.operand(op), tile)

    launch.grid_loop(size_of(launch.b, dims, extents), at)


def map_op(launch: Launch) -> None:
    """One op alone: a thread per element of its output, reductions as loops within the thread."""
    (op,) = launch.space.ops
    extents = launch.space.extents
    parallel = [d for d in range(len(extents)) if d not in op.reduced]
    launch.blocks = _blocks(static_size(parallel, extents))

    def at(b: LoopBuilder, i: Index) -> None:
        tile = place(b, launch.space.origin, parallel, extents, i)
        b.loc = op.op.location
        write(b, _value(launch, op, b, tile), op.output, tile)

    launch.grid_loop(size_of(launch.b, parallel, extents), at)


def _value(launch: Launch, op: BoundOp, b: LoopBuilder, tile: Tile) -> SSAValue:
    """What an op writes at one point of its output."""
    kernel, space = launch.kernel, launch.space
    reads_output = isinstance(op.op, linalg.GenericOp) and op.op.body.block.args[-1].first_use is not None
    if not reads_output:
        return compute(b, kernel, op, tile, {})
    wide = adds_in_f64(op, space)
    start = op.init if op.init is not None else read(b, op.output, tile)

    def reduce(b: LoopBuilder, dims: list[int], tile: Tile, acc: SSAValue) -> SSAValue:
        if dims:
            return b.loop(0, space.extents[dims[0]], 1, [acc], lambda c, i, a: [reduce(c, dims[1:], tile.moved(dims[0], i), a[0])])[0]
        if op.combination is None:
            return compute(b, kernel, op, tile, {}, acc)
        return combine(b, op.combination.combiner, acc, widened(b, compute(b, kernel, op, tile, {}, None, op.combination.term), wide))

    return narrowed(b, reduce(b, sorted(op.reduced), tile, widened(b, start, wide)), wide)


def _blocks(points: int | None) -> int:
    return BLOCKS_OF_UNKNOWN_SIZE if points is None else max(1, min(-(-points // THREADS), 1 << 16))
