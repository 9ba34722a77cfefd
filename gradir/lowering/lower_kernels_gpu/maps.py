"""Launches of one thread per point or vector: elementwise groups, single ops of any kind, columns of reductions within a thread."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from gradir.dialects.kernel import ElementwiseAttr
from gradir.dialects.target import CudaTargetAttr
from gradir.dialects.upstream import linalg
from gradir.lowering.groups import Group
from gradir.lowering.lower_kernels.binding import BoundOp, compute
from gradir.lowering.lower_kernels.bodies import combine, narrowed, widened
from gradir.lowering.lower_kernels.builder import Index, LoopBuilder
from gradir.lowering.lower_kernels.collapse import collapse
from gradir.lowering.lower_kernels.elementwise import runs_on_vectors
from gradir.lowering.lower_kernels.loops import adds_in_f64
from gradir.lowering.lower_kernels.tiles import Axis, Tile, read, write
from gradir.lowering.lower_kernels_gpu.launch import (
    BLOCKS_OF_UNKNOWN_SIZE,
    MOST_BLOCKS,
    Launch,
    branch,
    compare,
    place,
    size_of,
    static_size,
)
from gradir.lowering.schedules.gpu_elementwise import THREADS, schedule_gpu_elementwise


def lower_elementwise(launch: Launch, group: Group, target: CudaTargetAttr) -> None:
    """The whole launch: `tile` of the schedule is [accesses of a thread, elements of an access], `block` its threads."""
    launch.space = collapse(launch.kernel, launch.space, range(len(group.space)))
    space = launch.space
    rank = len(space.extents)
    stores = [op for op in space.ops if op.stored]
    schedule = launch.kernel.schedule
    if schedule.kind != "elementwise" or len(schedule.field("tile")) != 2:
        schedule = schedule_gpu_elementwise(group, target)
    assert isinstance(schedule, ElementwiseAttr)
    accesses, lanes = schedule.field("tile")
    threads = (*schedule.field("block"), THREADS)[0]
    last = max((d for d in range(rank) if space.extents[d] != 1), default=None)
    total = static_size(range(rank), space.extents)
    if last is None or total is None or not total or not runs_on_vectors(space, last):
        map_points(launch, range(rank), stores, frozenset())
        return
    extent = space.extents[last]
    assert isinstance(extent, int)
    while extent % lanes:
        lanes //= 2
    dims = range(last + 1)
    launch.threads = (threads, 1)
    vectors = total // lanes
    launch.blocks = -(-vectors // (threads * accesses))
    axes = (Axis(last, lanes),) if lanes > 1 else ()
    b = launch.b
    first = b.add(b.mul(launch.block(), threads * accesses), launch.thread())
    places = [b.add(first, k * threads) for k in range(accesses)]

    def points(c: LoopBuilder, numbers: Sequence[Index]) -> None:
        """Everything is read before anything is written: several reads are on their way at once, and outputs may be inputs."""
        written: list[tuple[BoundOp, SSAValue, Tile]] = []
        for number in numbers:
            tile = place(c, space.origin, dims, space.extents, number, lanes).with_axes(*axes)
            known: dict[SSAValue, SSAValue] = {}
            written += [(op, launch.pull(c, op.key, tile, known, frozenset()), tile) for op in stores]
        for op, value, tile in written:
            c.loc = op.op.location
            write(c, value, op.output, tile)

    if vectors % (threads * accesses) == 0:
        points(b, places)
        return
    for number in places:
        branch(b, compare(b, "slt", number, vectors), lambda c, number=number: points(c, [number]))


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
    return BLOCKS_OF_UNKNOWN_SIZE if points is None else min(-(-points // THREADS), MOST_BLOCKS)
