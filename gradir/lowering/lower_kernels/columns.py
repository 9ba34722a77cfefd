"""`rows` kernels that reduce nothing along the vector dimension: accumulators for strips of columns.

Threads share the columns, or the rows where pieces of a row would be shorter than a page: each task adds up rows of its own, and what
they come to is joined in the order of the tasks. A small array: each strip goes down all rows with its accumulators in registers. A large
one, whose rows lie pages apart: bands of a few rows are walked strip by strip, and what a band adds up to goes into a row of scratch
accumulators, so that memory is read in order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from xdsl.dialects.builtin import f64
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from gradir.lowering.lower_kernels.binding import BoundOp, compute
from gradir.lowering.lower_kernels.bodies import combine, widened
from gradir.lowering.lower_kernels.builder import Index, LoopBuilder
from gradir.lowering.lower_kernels.rows_loops import rows_loop, store
from gradir.lowering.lower_kernels.rows_plan import RowsPlan, joined
from gradir.lowering.lower_kernels.strips import each, each_block, nest, strips
from gradir.lowering.lower_kernels.tiles import Operand, Tile, read, write
from gradir.lowering.schedules.machine import Machine, element_bytes

Span: TypeAlias = tuple[Index, Index]
"""From, up to."""

BAND_ROWS = 8
"""Rows of a band: additions in a row on one f32 accumulator, and streams that the prefetcher follows. Rows that lie a power of two apart
share a set of L1: more of them than it has ways push each other's lines out before they are used (docs/kernels/columns.md)."""
LEAST_TASK = 256
"""Columns of one parallel task at least: pieces of rows that memory is still read in order by."""
TASKS_PER_THREAD = 4
"""Tasks of rows that each thread takes: as many chunks as the pool makes."""
LONGEST_ROW = 1 << 14
"""Elements of a row of scratch accumulators."""


def _bytes(rows: Index, extent: int, op: BoundOp) -> int:
    """What one pass over the rows reads; 0 when only the run knows how many there are."""
    return rows * extent * element_bytes(op.element) if isinstance(rows, int) else 0


def lower_columns(plan: RowsPlan, machine: Machine) -> None:
    """Build the whole kernel into `plan.kernel.b`."""
    accumulating = [op for op, s in plan.ops if s.form == "reduce_outer"]
    rows, extent = [plan.space.extents[d] for d in plan.outer], plan.space.extents[plan.vector]
    one_loop = len(rows) == 1 and plan.inner == (plan.vector,)
    if one_loop and isinstance(extent, int) and extent <= LONGEST_ROW and _bytes(rows[0], extent, accumulating[0]) > 2 * machine.l1:
        tasks = TASKS_PER_THREAD * machine.threads if _shares_rows(plan) else 1
        sums = _scratch_rows(plan, accumulating, tasks)
        if tasks > 1:
            _tasks_of_rows(plan, accumulating, sums, tasks)
        else:
            _each_task(plan, machine, lambda c, low, high: _bands(plan, accumulating, sums, c, low, high))
        for operand in sums.values():
            plan.kernel.b.release(operand.memory)
    else:
        _strips(plan, accumulating, machine)


def _row(plan: RowsPlan, accumulating: list[BoundOp], wide: Callable[[BoundOp], bool]) -> Callable[..., list[SSAValue]]:
    """One row of a strip: full values are computed and stored, accumulators joined with their terms."""
    full = [op for op, s in plan.ops if s.form == "full"]

    def row(b: LoopBuilder, tile: Tile, carried: list[SSAValue]) -> list[SSAValue]:
        known: dict[SSAValue, SSAValue] = {}
        totals = list(carried)
        for op, section in plan.ops:
            if section.form == "full":
                known[op.key] = compute(b, plan.kernel, op, tile, known)
            elif section.form == "reduce_outer":
                position = accumulating.index(op)
                term = b.splat(plan.term(b, op, tile, known), tile.type(op.element))
                totals[position] = combine(b, joined(op).combiner, totals[position], widened(b, term, wide(op)))
        store(b, full, tile, known)
        return totals

    return row


def _finish(plan: RowsPlan, b: LoopBuilder, tile: Tile, known: dict[SSAValue, SSAValue]) -> None:
    """The ops that wait for all rows, given the finished reductions of one strip; store both."""
    after = [op for op, s in plan.ops if s.after_rows]
    for op in after:
        known[op.key] = compute(b, plan.kernel, op, tile, known)
    store(b, [*(op for op, s in plan.ops if s.form == "reduce_outer"), *after], tile, known)


def _each_task(plan: RowsPlan, machine: Machine, action: Callable[[LoopBuilder, Index, Index], None]) -> None:
    """`action` on all columns, or on blocks of them that threads take."""
    b, extent = plan.kernel.b, plan.space.extents[plan.vector]
    if not plan.parallel:
        action(b, 0, extent)
        return
    unit = plan.lanes * 4
    share = -(-extent // (2 * machine.threads)) if isinstance(extent, int) else LEAST_TASK
    each_block(b, 0, extent, -(-max(share, LEAST_TASK) // unit) * unit, action)


def _strips(plan: RowsPlan, accumulating: list[BoundOp], machine: Machine) -> None:
    lanes = plan.lanes * 2 if len(plan.space.ops) <= 6 else plan.lanes
    row = _row(plan, accumulating, plan.wide)

    def strip(b: LoopBuilder, tile: Tile) -> None:
        starts = [plan.start(b, op, tile, plan.wide(op)) for op in accumulating]
        totals = rows_loop(b, list(plan.outer), plan, tile, starts, row)
        _finish(plan, b, tile, {op.key: plan.finish(b, op, t, plan.wide(op)) for op, t in zip(accumulating, totals)})

    around = [d for d in plan.inner if d != plan.vector]

    def task(b: LoopBuilder, low: Index, high: Index) -> None:
        nest(b, around, plan.space, plan.space.origin, lambda c, at: strips(c, at, plan.vector, low, high, lanes, strip))

    _each_task(plan, machine, task)


def _shares_rows(plan: RowsPlan) -> bool:
    """Does the schedule have threads share the rows?"""
    return any(plan.space.place[d] in plan.outer for d in plan.kernel.schedule.field("parallel") if d in plan.space.place)


def _scratch_rows(plan: RowsPlan, accumulating: list[BoundOp], tasks: int) -> dict[SSAValue, Operand]:
    """An accumulator in memory for every column, of each task: its row counts tasks."""
    extent = plan.space.extents[plan.vector]
    (outer,) = plan.outer
    position = AffineMap(len(plan.space.extents), 0, (AffineDimExpr(outer), AffineDimExpr(plan.vector)))
    return {op.key: Operand(plan.kernel.b.scratch(f64 if plan.wide(op) else op.element, [tasks, extent]), position) for op in accumulating}


def _lanes(plan: RowsPlan) -> int:
    return plan.lanes * (4 if len(plan.space.ops) <= 2 else 2)


def _clear(plan: RowsPlan, accumulating: list[BoundOp], sums: dict[SSAValue, Operand], b: LoopBuilder, tile: Tile) -> None:
    """Accumulators of one strip that hold nothing yet."""
    for op in accumulating:
        write(b, plan.start(b, op, tile, plan.wide(op)), sums[op.key], tile)


def _add_bands(
    plan: RowsPlan, accumulating: list[BoundOp], sums: dict[SSAValue, Operand], b: LoopBuilder, task: Tile, rows: Span, columns: Span
) -> None:
    """Rows and columns of these spans, band by band, strip by strip, added to the accumulators of `task`."""
    (outer,) = plan.outer
    row = _row(plan, accumulating, lambda op: False)

    def band(c: LoopBuilder, low: SSAValue) -> None:
        high = c.minimum(c.add(low, BAND_ROWS), rows[1])

        def strip(e: LoopBuilder, tile: Tile) -> None:
            starts = [plan.start(e, op, tile, False) for op in accumulating]
            totals = e.loop(low, high, 1, starts, lambda g, i, a: row(g, tile.moved(outer, i), a))
            for op, total in zip(accumulating, totals):
                before = read(e, sums[op.key], tile)
                write(e, combine(e, joined(op).combiner, before, widened(e, total, plan.wide(op))), sums[op.key], tile)

        strips(c, task, plan.vector, *columns, _lanes(plan), strip)

    each(b, *rows, BAND_ROWS, band)


def _bands(plan: RowsPlan, accumulating: list[BoundOp], sums: dict[SSAValue, Operand], b: LoopBuilder, left: Index, right: Index) -> None:
    """The columns from `left` to `right` of all rows."""
    origin, lanes, columns = plan.space.origin, _lanes(plan), (left, right)
    (outer,) = plan.outer

    def end(c: LoopBuilder, tile: Tile) -> None:
        _finish(plan, c, tile, {op.key: plan.finish(c, op, read(c, sums[op.key], tile), plan.wide(op)) for op in accumulating})

    strips(b, origin, plan.vector, *columns, lanes, lambda c, tile: _clear(plan, accumulating, sums, c, tile))
    _add_bands(plan, accumulating, sums, b, origin, (0, plan.space.extents[outer]), columns)
    strips(b, origin, plan.vector, *columns, lanes, end)


def _tasks_of_rows(plan: RowsPlan, accumulating: list[BoundOp], sums: dict[SSAValue, Operand], tasks: int) -> None:
    """Each task adds up rows of its own; then the columns are joined over all tasks, in their order."""
    b, origin, lanes = plan.kernel.b, plan.space.origin, _lanes(plan)
    (outer,) = plan.outer
    extent, columns = plan.space.extents[outer], (0, plan.space.extents[plan.vector])
    each_rows = b.mul(b.quotient(b.add(extent, tasks * BAND_ROWS - 1), tasks * BAND_ROWS), BAND_ROWS)

    def task(c: LoopBuilder, number: SSAValue) -> None:
        here, low = origin.moved(outer, number), c.minimum(c.mul(number, each_rows), extent)
        strips(c, here, plan.vector, *columns, lanes, lambda e, tile: _clear(plan, accumulating, sums, e, tile))
        _add_bands(plan, accumulating, sums, c, here, (low, c.minimum(c.add(low, each_rows), extent)), columns)

    def end(c: LoopBuilder, tile: Tile) -> None:
        starts = [plan.start(c, op, tile, plan.wide(op)) for op in accumulating]

        def join(e: LoopBuilder, number: SSAValue, carried: list[SSAValue]) -> list[SSAValue]:
            here = tile.moved(outer, number)
            return [combine(e, joined(op).combiner, total, read(e, sums[op.key], here)) for op, total in zip(accumulating, carried)]

        totals = c.loop(0, tasks, 1, starts, join)
        _finish(plan, c, tile, {op.key: plan.finish(c, op, total, plan.wide(op)) for op, total in zip(accumulating, totals)})

    b.parallel(0, tasks, 1, task)
    strips(b, origin, plan.vector, *columns, lanes, end)
