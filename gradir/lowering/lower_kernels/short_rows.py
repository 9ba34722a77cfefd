"""`rows` kernels whose rows fit in a few registers: one row is straight-line code on pieces of powers of two, rows are a loop.

A value over the row is a list of vectors, one per piece; accumulators over all rows are carried by the loop.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from gradir.lowering.lower_kernels.binding import BoundOp, compute
from gradir.lowering.lower_kernels.bodies import across_lanes, combine, widened
from gradir.lowering.lower_kernels.builder import Index, LoopBuilder
from gradir.lowering.lower_kernels.rows_loops import rows_loop
from gradir.lowering.lower_kernels.rows_plan import RowsPlan, joined
from gradir.lowering.lower_kernels.strips import each_block
from gradir.lowering.lower_kernels.tiles import Axis, Tile, powers_of_two, write

TASK_ELEMENTS = 1 << 12
"""Elements of one parallel task."""


def lower_short_rows(plan: RowsPlan) -> None:
    """Build the whole kernel into `plan.kernel.b`."""
    _ShortRows(plan).run()


class _ShortRows:
    """State: which accumulators there are, and at which position each piece of each lies in the carried values."""

    def __init__(self, plan: RowsPlan) -> None:
        self.plan = plan
        extent = plan.space.extents[plan.vector]
        assert isinstance(extent, int)
        self.extent = extent
        self.pieces = powers_of_two(extent, plan.lanes * 8)
        self.accumulating = [op for op, s in plan.ops if s.form == "reduce_outer"]
        self.whole_row = {
            op.key for op, s in plan.ops if s.form in ("full", "inner") or (s.form == "reduce_outer" and plan.keeps_inner(op))
        }

    def run(self) -> None:
        plan, b = self.plan, self.plan.kernel.b
        origin = plan.space.origin
        starts: list[SSAValue] = []
        for op in self.accumulating:
            starts += [plan.start(b, op, t, plan.wide(op)) for t in self._tiles(origin, op)]
        if plan.parallel and not starts:
            first, rest = plan.outer[0], list(plan.outer[1:])
            block = max(1, TASK_ELEMENTS // max(1, self.extent))

            def task(c: LoopBuilder, low: Index, high: Index) -> None:
                c.loop(low, high, 1, [], lambda e, i, _: rows_loop(e, rest, plan, origin.moved(first, i), [], self._row))

            each_block(b, 0, plan.space.extents[first], block, task)
            return
        totals = rows_loop(b, list(plan.outer), plan, origin, starts, self._row)
        self._after(b, origin, totals)

    def _tiles(self, at: Tile, op: BoundOp) -> list[Tile]:
        """The tiles that a value of `op` consists of: the pieces of the row, or the point."""
        if op.key not in self.whole_row:
            return [at]
        vector = self.plan.vector
        return [at.moved(vector, start).with_axes(Axis(vector, size)) for start, size in self.pieces]

    def _pieces(self, at: Tile) -> list[Tile]:
        vector = self.plan.vector
        return [at.moved(vector, start).with_axes(Axis(vector, size)) for start, size in self.pieces]

    def _known(self, values: dict[SSAValue, list[SSAValue]], piece: int) -> dict[SSAValue, SSAValue]:
        """The values of one piece of the row; an empty row has no pieces, only values of the point."""
        return {key: v[piece] if key in self.whole_row else v[0] for key, v in values.items() if v}

    def _values(self, b: LoopBuilder, op: BoundOp, at: Tile, values: dict[SSAValue, list[SSAValue]]) -> list[SSAValue]:
        return [compute(b, self.plan.kernel, op, t, self._known(values, k)) for k, t in enumerate(self._tiles(at, op))]

    def _row(self, b: LoopBuilder, at: Tile, carried: list[SSAValue]) -> list[SSAValue]:
        plan = self.plan
        values: dict[SSAValue, list[SSAValue]] = {}
        totals = list(carried)
        position = 0
        for op, section in plan.ops:
            if section.form in ("full", "row"):
                values[op.key] = self._values(b, op, at, values)
            elif section.form == "reduce_inner":
                values[op.key] = [plan.finish(b, op, self._reduced(b, op, at, values), False)]
            elif section.form == "reduce_outer":
                terms = self._terms(b, op, at, values)
                for k, term in enumerate(terms):
                    totals[position + k] = combine(b, joined(op).combiner, totals[position + k], widened(b, term, plan.wide(op)))
                position += len(terms)
        for op, section in plan.ops:
            if op.stored and section.form in ("full", "row", "reduce_inner"):
                self._store(b, op, at, values[op.key])
        return totals

    def _terms(self, b: LoopBuilder, op: BoundOp, at: Tile, values: dict[SSAValue, list[SSAValue]]) -> list[SSAValue]:
        """What this row adds to an accumulator over rows."""
        plan = self.plan
        if op.key in self.whole_row:
            return [b.splat(plan.term(b, op, t, self._known(values, k)), t.type(op.element)) for k, t in enumerate(self._tiles(at, op))]
        if plan.vector not in op.dims:
            return [plan.term(b, op, at, self._known(values, 0))]
        return [self._reduced(b, op, at, values)]

    def _reduced(self, b: LoopBuilder, op: BoundOp, at: Tile, values: dict[SSAValue, list[SSAValue]]) -> SSAValue:
        """The terms of one row joined into a scalar."""
        plan, combiner = self.plan, joined(op).combiner
        total: SSAValue | None = None
        for k, tile in enumerate(self._pieces(at)):
            term = b.splat(plan.term(b, op, tile, self._known(values, k)), tile.type(op.element))
            scalar = across_lanes(b, combiner, term)
            total = scalar if total is None else combine(b, combiner, total, scalar)
        return total if total is not None else plan.start(b, op, at, False)

    def _store(self, b: LoopBuilder, op: BoundOp, at: Tile, values: list[SSAValue]) -> None:
        b.loc = op.op.location
        for tile, value in zip(self._tiles(at, op), values):
            write(b, value, op.output, tile)

    def _after(self, b: LoopBuilder, at: Tile, totals: list[SSAValue]) -> None:
        """Results of accumulators, and the ops that wait for them."""
        plan = self.plan
        values: dict[SSAValue, list[SSAValue]] = {}
        position = 0
        for op in self.accumulating:
            count = len(self._tiles(at, op))
            values[op.key] = [plan.finish(b, op, total, plan.wide(op)) for total in totals[position : position + count]]
            position += count
        for op, section in plan.ops:
            if section.after_rows:
                values[op.key] = self._values(b, op, at, values)
        for op, section in plan.ops:
            if op.stored and (section.after_rows or section.form == "reduce_outer"):
                self._store(b, op, at, values[op.key])
