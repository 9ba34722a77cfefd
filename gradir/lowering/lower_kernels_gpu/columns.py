"""Reductions over rows and over everything, in one launch or in two: parts by blocks, then the parts in their order.

A block takes 32 columns, its warps share the rows of its part; of a total, the threads of a block share the elements of its part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import MemRefType, f64
from xdsl.ir import Attribute, SSAValue

from gradir.dialects.target import CudaTargetAttr
from gradir.dialects.target.cuda_facts import WARP
from gradir.dialects.upstream import gpu, memref
from gradir.lowering.lower_kernels.binding import BoundOp, Space
from gradir.lowering.lower_kernels.bodies import combine, identity, widened
from gradir.lowering.lower_kernels.builder import Index, LoopBuilder, i32_array
from gradir.lowering.lower_kernels.tiles import Tile, write
from gradir.lowering.lower_kernels_gpu.launch import (
    BLOCKS_OF_UNKNOWN_SIZE,
    MOST_BLOCKS,
    Launch,
    across_warp,
    branch,
    compare,
    divide,
    loop_between,
    place,
    size_of,
    static_size,
)
from gradir.lowering.lower_kernels_gpu.rows import across_block, adds_widely, finished
from gradir.lowering.schedules.gpu_columns import COLUMNS, LINES, Parts, column_parts

THREADS = WARP * LINES


@dataclass(frozen=True)
class Reduction:
    """How one op is reduced: the dimensions that stay and go, its parts and the memory between the two launches (None: one launch)."""

    key: SSAValue
    parts: Parts | None
    workspace: SSAValue | None


def plan_reduction(space: Space, key: SSAValue, target: CudaTargetAttr) -> Reduction:
    """One launch or two; the workspace is `memref<parts x columns>` of the accumulator's type."""
    op = space.produced[key]
    kept, reduced = _dims(space, op)
    rows, columns = static_size(reduced, space.extents), static_size(kept, space.extents)
    parts = column_parts(rows, columns, target)
    if parts is None or columns is None:
        return Reduction(key, None, None)
    element = _accumulator(op, _wide(op, kept, parts.size))
    new = memref.AllocOp.create(
        result_types=[MemRefType(element, [parts.count, columns])], properties={"operandSegmentSizes": i32_array(0, 0)}
    )
    return Reduction(key, parts, new.memref)


def reduce_in_launches(make: Callable[[], Launch], how: Reduction, memory: frozenset[SSAValue]) -> list[Launch]:
    """The launches of one reduction; what it reads of the group is pulled or in `memory`."""
    first = make()
    _reduce(first, first.space.produced[how.key], how, memory)
    if how.parts is None:
        return [first]
    second = make()
    _join(second, second.space.produced[how.key], how)
    return [first, second]


def _dims(space: Space, op: BoundOp) -> tuple[list[int], list[int]]:
    kept = [d for d in range(len(space.extents)) if d in op.dims and d not in op.reduced]
    return kept, sorted(op.reduced)


def _wide(op: BoundOp, kept: Sequence[int], rows: int | None) -> bool:
    return adds_widely(op, rows, LINES if kept else THREADS)


def _accumulator(op: BoundOp, wide: bool) -> Attribute:
    return f64 if wide else op.element


def _reduce(launch: Launch, op: BoundOp, how: Reduction, memory: frozenset[SSAValue]) -> None:
    kept, reduced = _dims(launch.space, op)
    extents, b = launch.space.extents, launch.b
    rows = static_size(reduced, extents)
    count = how.parts.count if how.parts else 1
    wide = _wide(op, kept, how.parts.size if how.parts else rows)
    columns = static_size(kept, extents)
    tiles = 1 if not kept else BLOCKS_OF_UNKNOWN_SIZE if columns is None else min(-(-columns // COLUMNS), MOST_BLOCKS // count)
    launch.threads = (COLUMNS, LINES) if kept else (THREADS, 1)
    launch.blocks = tiles * count
    if not launch.blocks:
        return
    part, tile_number = divide(b, launch.block(), tiles, small=True) if how.parts else (0, launch.block())
    low: Index = b.mul(part, how.parts.size) if how.parts else 0
    high: Index = b.minimum(b.add(low, how.parts.size), rows or 0) if how.parts else size_of(b, reduced, extents)
    work = _Work(launch, op, memory, kept, reduced, wide, low, high, tiles)
    store = _to_workspace(launch, how, part) if how.workspace is not None else _to_output(launch, op)
    if kept:
        _columns(work, tile_number, store)
    else:
        _total(work, store)


Store = Callable[[LoopBuilder, SSAValue, Index, Tile], None]
"""What becomes of an accumulator: of column number so and so, at a tile of the space."""


def _to_output(launch: Launch, op: BoundOp) -> Store:
    return lambda b, found, _column, tile: write(b, finished(b, op, found), launch.operand(op), tile)


def _to_workspace(launch: Launch, how: Reduction, part: Index) -> Store:
    assert how.workspace is not None
    target = launch.kernel.value(how.workspace)
    return lambda b, found, column, _tile: b.op(memref.StoreOp, [found, target, *b.values([part, column])]) and None


@dataclass(frozen=True)
class _Work:
    """The rows from `low` to `high` of one reduction."""

    launch: Launch
    op: BoundOp
    memory: frozenset[SSAValue]
    kept: Sequence[int]
    reduced: Sequence[int]
    wide: bool
    low: Index
    high: Index
    tiles: int

    def start(self) -> SSAValue:
        b, joined = self.launch.b, self.op.combination
        assert joined is not None
        return widened(b, b.constant(identity(joined.combiner, self.op.element)), self.wide)

    def rows(self, b: LoopBuilder, tile: Tile, first: Index, step: int, start: SSAValue) -> SSAValue:
        """Every `step`-th row from low + `first` on, added up."""
        extents = self.launch.space.extents

        def row(c: LoopBuilder, r: SSAValue, accs: list[SSAValue]) -> list[SSAValue]:
            at = place(c, tile, self.reduced, extents, r)
            return [self.launch.term(c, self.op, at, {}, self.memory, accs[0], self.wide)]

        (found,) = loop_between(b, b.add(self.low, first), self.high, step, [start], row)
        return found


def _columns(work: _Work, tile_number: Index, store: Store) -> None:
    launch, op = work.launch, work.op
    assert op.combination is not None
    combiner, b = op.combination.combiner, launch.b
    extents, origin = launch.space.extents, launch.space.origin
    lane, line = launch.thread("x"), launch.thread("y")
    total = size_of(b, work.kept, extents)
    start = work.start()
    shared = launch.workgroup(start.type, LINES, COLUMNS)

    def tile_of_columns(c: LoopBuilder, first: Index) -> None:
        column = c.add(first, lane)
        inside = compare(c, "slt", column, total)

        def accumulate(d: LoopBuilder) -> None:
            partial = work.rows(d, place(d, origin, work.kept, extents, column), line, LINES, start)
            d.op(memref.StoreOp, [partial, shared, *d.values([line, lane])])

        def join(d: LoopBuilder) -> None:
            found = d(memref.LoadOp, [shared, *d.values([0, lane])], [start.type])
            for k in range(1, LINES):
                found = combine(d, combiner, found, d(memref.LoadOp, [shared, *d.values([k, lane])], [start.type]))
            store(d, found, column, place(d, origin, work.kept, extents, column))

        branch(c, inside, accumulate)
        c.op(gpu.BarrierOp)
        branch(c, compare(c, "eq", line, 0), lambda d: branch(d, inside, join))

    if isinstance(total, int) and work.tiles * COLUMNS >= total:
        tile_of_columns(b, b.mul(tile_number, COLUMNS))
        return

    def step(c: LoopBuilder, first: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
        tile_of_columns(c, first)
        c.op(gpu.BarrierOp)
        return []

    loop_between(b, b.mul(tile_number, COLUMNS), total, work.tiles * COLUMNS, [], step)


def _total(work: _Work, store: Store) -> None:
    launch, op = work.launch, work.op
    assert op.combination is not None
    b, lane = launch.b, launch.thread("x")
    origin = launch.space.origin
    partial = work.rows(b, origin, lane, THREADS, work.start())
    found = across_block(launch, b, op.combination.combiner, across_warp(b, op.combination.combiner, partial, WARP), lane, LINES, {})
    branch(b, compare(b, "eq", lane, 0), lambda c: store(c, found, 0, origin))


def _join(launch: Launch, op: BoundOp, how: Reduction) -> None:
    """The second launch: the parts of every column, in their order; of a total, a warp adds every 32nd and its lanes meet in a tree."""
    assert how.parts is not None and how.workspace is not None and op.combination is not None
    kept, _ = _dims(launch.space, op)
    combiner, b = op.combination.combiner, launch.b
    extents, origin = launch.space.extents, launch.space.origin
    memory = launch.kernel.value(how.workspace)
    columns = static_size(kept, extents) or 0
    element = memory.type.element_type if isinstance(memory.type, MemRefType) else memory.type
    wide = element != op.element
    neutral = widened(b, b.constant(identity(combiner, op.element)), wide)

    def parts(c: LoopBuilder, column: Index, first: Index, step: int) -> SSAValue:
        def part(d: LoopBuilder, p: SSAValue, accs: list[SSAValue]) -> list[SSAValue]:
            return [combine(d, combiner, accs[0], d(memref.LoadOp, [memory, p, d.value(column)], [element]))]

        (found,) = loop_between(c, first, how.parts.count if how.parts else 0, step, [neutral], part)
        return found

    if columns == 1:
        launch.threads, launch.blocks = (WARP, 1), 1
        lane = launch.thread("x")
        found = across_warp(b, combiner, parts(b, 0, lane, WARP), WARP)
        branch(b, compare(b, "eq", lane, 0), lambda c: write(c, finished(c, op, found), launch.operand(op), origin))
        return
    launch.threads, launch.blocks = (THREADS, 1), -(-columns // THREADS)

    def column_of(c: LoopBuilder, column: Index) -> None:
        tile = place(c, origin, kept, extents, column)
        write(c, finished(c, op, parts(c, column, 0, 1)), launch.operand(op), tile)

    launch.grid_loop(columns, column_of)
