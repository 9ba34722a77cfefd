"""Kind `elementwise`: one pass over the index space, all ops of the group on each vector, nothing but results in memory."""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import i1
from xdsl.ir import SSAValue

from gradir.dialects.upstream import linalg
from gradir.lowering.groups import Group
from gradir.lowering.lower_kernels.binding import Kernel, Space, bind, compute
from gradir.lowering.lower_kernels.bodies import is_plain
from gradir.lowering.lower_kernels.builder import Index, LoopBuilder
from gradir.lowering.lower_kernels.collapse import collapse
from gradir.lowering.lower_kernels.gathered_rows import gathered_rows
from gradir.lowering.lower_kernels.streams import Streams
from gradir.lowering.lower_kernels.strips import each_block, nest, shared_dim, strips
from gradir.lowering.lower_kernels.tiles import Tile, stride_along
from gradir.lowering.lower_kernels.turned import find_turn, lower_turned
from gradir.lowering.schedules.elementwise import schedule_elementwise
from gradir.lowering.schedules.machine import Machine

MOST_PIECE_OPS = 60
"""Ops of all left-over pieces together, beyond which left-over elements go one by one."""
TASK_ELEMENTS = 1 << 15
"""Elements of one parallel task, at most."""
TASKS_PER_THREAD = 4
"""So many tasks of few expensive elements, as the pool cuts a range."""


def lower_elementwise(kernel: Kernel, group: Group, machine: Machine) -> None:
    """Build the whole kernel into `kernel.b`."""
    space = collapse(kernel, bind(kernel, group), range(len(group.space)))
    rank = len(space.extents)
    streams = Streams(kernel, space)
    if rank == 0:
        _point(kernel, space, streams, 1, kernel.b, space.origin)
        return
    dim = max((d for d in range(rank) if space.extents[d] != 1), default=rank - 1)
    turn = find_turn(space, dim, machine)
    if turn is not None:
        lower_turned(kernel, space, turn)
        return
    tile = kernel.schedule.field("tile") or schedule_elementwise(group, machine).field("tile")
    lanes = tile[-1] if runs_on_vectors(space, dim) else 1
    pieces = _size(space) * 3 <= MOST_PIECE_OPS
    b = kernel.b
    around = [d for d in range(rank) if d != dim]
    gather = gathered_rows(kernel, space, dim, machine) if lanes > 1 else None

    def vectors(c: LoopBuilder, at: Tile, low: Index, high: Index) -> None:
        strips(c, at, dim, low, high, lanes, lambda e, t: _point(kernel, space, streams, lanes, e, t), pieces=pieces)

    def rows(c: LoopBuilder, at: Tile, low: Index, high: Index) -> None:
        if gather is None:
            vectors(c, at, low, high)
            return
        with gather.row_at(c, at) as ask:

            def point(e: LoopBuilder, t: Tile) -> None:
                ask(e, t)
                _point(kernel, space, streams, lanes, e, t)

            strips(c, at, dim, low, high, lanes, point, pieces=pieces)

    if not kernel.schedule.field("parallel"):
        nest(b, around, space, space.origin, lambda c, at: rows(c, at, 0, space.extents[dim]))
        return
    if not around:
        block = _task(space.extents[dim], machine) // lanes * lanes
        each_block(b, 0, space.extents[dim], max(lanes, block), lambda c, low, high: vectors(c, space.origin, low, high))
        return

    first, rest = shared_dim(around, space)

    def row(c: LoopBuilder, i: SSAValue) -> None:
        nest(c, rest, space, space.origin.moved(first, i), lambda e, at: rows(e, at, 0, space.extents[dim]))

    b.parallel(0, space.extents[first], 1, row)


def _task(extent: Index, machine: Machine) -> int:
    """Elements of a task."""
    return min(TASK_ELEMENTS, -(-extent // (TASKS_PER_THREAD * machine.threads))) if isinstance(extent, int) else TASK_ELEMENTS


def runs_on_vectors(space: Space, dim: int) -> bool:
    """Are all bodies free of regions, and at least half of the memory operands side by side (or constant) along `dim`?"""
    if not all(is_plain(op.op.body.block) for op in space.ops if isinstance(op.op, linalg.GenericOp)):
        return False
    produced = space.produced
    operands = [i for op in space.ops for i in op.used if i is not None and i.memory not in produced]
    operands += [op.output for op in space.ops if op.stored]
    well = sum(1 for o in operands if stride_along(o, dim) in (0, 1) and o.element != i1)
    return 2 * well >= len(operands)


def _size(space: Space) -> int:
    return sum(1 for op in space.ops for _ in cast("linalg.GenericOp", op.op).body.block.walk())


def _point(kernel: Kernel, space: Space, streams: Streams, lanes: int, b: LoopBuilder, tile: Tile) -> None:
    """All ops at one tile; every read comes before the first write, so outputs may be inputs."""
    known: dict[SSAValue, SSAValue] = {}
    for op in space.ops:
        known[op.key] = compute(b, kernel, op, tile, known)
    for op in space.ops:
        if op.stored:
            b.loc = op.op.location
            streams.write(b, known[op.key], op.output, tile, lanes)
