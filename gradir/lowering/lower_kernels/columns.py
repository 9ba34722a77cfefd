"""`rows` kernels that reduce nothing along the vector dimension: accumulators for strips of columns.

Threads share the columns. A small array: each strip goes down all rows with its accumulators in registers. A large one, whose rows lie
pages apart: bands of a few rows are walked strip by strip, and what a band adds up to goes into a row of scratch accumulators, so that
memory is read in order.
"""

from __future__ import annotations

from collections.abc import Callable

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

BAND_ROWS = 8
"""Rows of a band: additions in a row on one f32 accumulator, and streams that the prefetcher follows. Rows that lie a power of two apart
share a set of L1: more of them than it has ways push each other's lines out before they are used (docs/kernels/columns.md)."""
LEAST_TASK = 256
"""Columns of one parallel task at least: pieces of rows that memory is still read in order by."""
LONGEST_ROW = 1 << 14
"""Elements of a row of scratch accumulators."""


def _bytes(rows: Index, extent: int, op: BoundOp) -> int:
    """What one pass over the rows reads; 0 when only the run knows how many there are."""
    return rows * extent * element_bytes(op.element) if isinstance(rows, int) else 0


def lower_columns(plan: RowsPlan, machine: Machine) -> None:
    """Build the whole kernel into `plan.kernel.b`. Threads share the columns, so that no sum depends on how many there are."""
    accumulating = [op for op, s in plan.ops if s.form == "reduce_outer"]
    rows, extent = [plan.space.extents[d] for d in plan.outer], plan.space.extents[plan.vector]
    one_loop = len(rows) == 1 and plan.inner == (plan.vector,)
    if one_loop and isinstance(extent, int) and extent <= LONGEST_ROW and _bytes(rows[0], extent, accumulating[0]) > 2 * machine.l1:
        sums = _scratch_row(plan, accumulating)
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


def _scratch_row(plan: RowsPlan, accumulating: list[BoundOp]) -> dict[SSAValue, Operand]:
    """An accumulator in memory for every column."""
    extent = plan.space.extents[plan.vector]
    position = AffineMap(len(plan.space.extents), 0, (AffineDimExpr(plan.vector),))
    return {op.key: Operand(plan.kernel.b.scratch(f64 if plan.wide(op) else op.element, [extent]), position) for op in accumulating}


def _bands(plan: RowsPlan, accumulating: list[BoundOp], sums: dict[SSAValue, Operand], b: LoopBuilder, left: Index, right: Index) -> None:
    """The columns from `left` to `right`."""
    space, vector = plan.space, plan.vector
    (outer,) = plan.outer
    lanes = plan.lanes * (4 if len(space.ops) <= 2 else 2)
    row = _row(plan, accumulating, lambda op: False)

    def clear(c: LoopBuilder, tile: Tile) -> None:
        for op in accumulating:
            write(c, plan.start(c, op, tile, plan.wide(op)), sums[op.key], tile)

    def band(c: LoopBuilder, low: SSAValue) -> None:
        high = c.minimum(c.add(low, BAND_ROWS), space.extents[outer])

        def strip(e: LoopBuilder, tile: Tile) -> None:
            starts = [plan.start(e, op, tile, False) for op in accumulating]
            totals = e.loop(low, high, 1, starts, lambda g, i, a: row(g, tile.moved(outer, i), a))
            for op, total in zip(accumulating, totals):
                before = read(e, sums[op.key], tile)
                write(e, combine(e, joined(op).combiner, before, widened(e, total, plan.wide(op))), sums[op.key], tile)

        strips(c, space.origin, vector, left, right, lanes, strip)

    def end(c: LoopBuilder, tile: Tile) -> None:
        _finish(plan, c, tile, {op.key: plan.finish(c, op, read(c, sums[op.key], tile), plan.wide(op)) for op in accumulating})

    strips(b, space.origin, vector, left, right, lanes, clear)
    each(b, 0, space.extents[outer], BAND_ROWS, band)
    strips(b, space.origin, vector, left, right, lanes, end)
