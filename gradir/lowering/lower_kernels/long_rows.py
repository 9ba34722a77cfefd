"""`rows` kernels with long rows: a row is swept once for every reduction that later ops wait for.

One row alone that is large (a sum over everything) is cut into pieces that threads take; what each adds up to waits in scratch memory and
is joined in the order of the pieces, so that the result does not depend on who did what.

A sweep runs over blocks of the row where it adds floats (other reductions do not care how many steps they take). Within a block every
accumulator is one vector of several registers that takes at most 32 additions in a row; blocks are joined in a scalar, which is f64 for
long f32 sums (docs/numerics.md). What a later sweep needs of an earlier one is computed again, or kept in a row of scratch memory when it
is costly. Accumulators over all rows that keep the row's positions are a row of scratch.
"""

from __future__ import annotations

from xdsl.dialects.builtin import f64
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from gradir.lowering.lower_kernels.binding import BoundOp, compute
from gradir.lowering.lower_kernels.bodies import across_lanes, combine, is_costly, widened
from gradir.lowering.lower_kernels.builder import Index, LoopBuilder
from gradir.lowering.lower_kernels.rows_loops import Row, closure, rows_loop, store
from gradir.lowering.lower_kernels.rows_plan import RowsPlan, joined
from gradir.lowering.lower_kernels.streams import Streams
from gradir.lowering.lower_kernels.strips import each_block, strips
from gradir.lowering.lower_kernels.tiles import Axis, NotCovered, Operand, Tile, powers_of_two, read, stride_along, uses, write
from gradir.lowering.schedules.machine import LINE_BYTES, Machine, element_bytes
from gradir.lowering.schedules.streaming import bytes_in_all

BLOCK_STEPS = 32
"""Additions in a row on one accumulator."""
KEPT_BYTES = 64 << 10
"""A row longer than this is computed again instead of kept."""
TASK_ELEMENTS = 1 << 13
PIECES_PER_THREAD = 4
"""Pieces of one long row that each thread takes: as many chunks as the pool makes."""


def lower_long_rows(plan: RowsPlan, machine: Machine) -> None:
    """Build the whole kernel into `plan.kernel.b`."""
    _LongRows(plan, machine).run()


class _LongRows:
    """State of one kernel: rows of scratch memory by the key of the op whose values they hold."""

    def __init__(self, plan: RowsPlan, machine: Machine) -> None:
        self.plan, self.machine = plan, machine
        self.extent = plan.space.extents[plan.vector]
        self.width = plan.lanes * plan.accumulators
        self.sweeps = 1 + max((s.sweep for s in plan.sections if s.form != "row"), default=0)
        self.accumulating = [op for op, s in plan.ops if s.form == "reduce_outer"]
        self.around = [d for d in plan.inner if d != plan.vector]
        self.piece = self._piece()
        self.kept: dict[SSAValue, Operand] = {}
        self.sums: dict[SSAValue, Operand] = {}
        self.streams = Streams(plan.kernel, plan.space)
        self.ahead = self._fetched_ahead()
        if self.around and (self.accumulating or plan.has("inner")):
            raise NotCovered("accumulators over rows of more than one dimension")

    def run(self) -> None:
        plan, b = self.plan, self.plan.kernel.b
        origin = plan.space.origin
        starts: list[SSAValue] = []
        for op in self.accumulating:
            if plan.keeps_inner(op):
                self._clear(b, op, origin)
            else:
                starts.append(plan.start(b, op, origin, plan.wide(op)))
        if plan.parallel and not self.accumulating:
            first, rest = plan.outer[0], list(plan.outer[1:])
            block = max(1, TASK_ELEMENTS // self.extent) if isinstance(self.extent, int) and self.extent else 4

            def task(c: LoopBuilder, low: Index, high: Index) -> None:
                self._keep(c)
                c.loop(low, high, 1, [], lambda e, i, _: rows_loop(e, rest, plan, origin.moved(first, i), [], self._row))

            each_block(b, 0, plan.space.extents[first], block, task)
            return
        self._keep(b)
        totals = rows_loop(b, list(plan.outer), plan, origin, starts, self._row)
        self._after(b, origin, totals)

    def _piece(self) -> int:
        """Elements of the pieces of one row that threads share: a whole number of blocks; 0 where they do not."""
        plan = self.plan
        if not plan.kernel.schedule.field("parallel") or plan.outer or self.around or not isinstance(self.extent, int):
            return 0
        block = self.width * BLOCK_STEPS
        return self.extent // (PIECES_PER_THREAD * self.machine.threads) // block * block

    # scratch rows

    def _row_operand(self, memory: SSAValue) -> Operand:
        return Operand(memory, AffineMap(len(self.plan.space.extents), 0, (AffineDimExpr(self.plan.vector),)))

    def _clear(self, b: LoopBuilder, op: BoundOp, origin: Tile) -> None:
        """A row of accumulators that hold nothing yet."""
        if not isinstance(self.extent, int):
            raise NotCovered("a row of accumulators of unknown length")
        wide = self.plan.wide(op)
        operand = self.sums[op.key] = self._row_operand(b.scratch(f64 if wide else op.element, [self.extent]))
        strips(b, origin, self.plan.vector, 0, self.extent, self.width, lambda c, t: write(c, self.plan.start(c, op, t, wide), operand, t))

    def _keep(self, b: LoopBuilder) -> None:
        """Scratch for costly values that a later sweep reads."""
        plan = self.plan
        self.kept = {}
        for position, (op, section) in enumerate(plan.ops):
            if section.form != "full" or not isinstance(self.extent, int) or len(plan.inner) > 1 or not is_costly(op.op):
                continue
            readers = [s for o, s in plan.ops[position + 1 :] if any(i is not None and i.memory == op.key for i in o.used)]
            late = any(s.form in ("full", "reduce_inner", "reduce_outer") and s.sweep > section.sweep for s in readers)
            if late and self.extent * element_bytes(op.element) <= KEPT_BYTES:
                self.kept[op.key] = self._row_operand(b.scratch(op.element, [self.extent]))

    def _fetched_ahead(self) -> list[Operand]:
        """Operands from beyond L2 that sweep 0 reads row by row: sweep 1, whose row is in L1, asks for the next one."""
        plan, found = self.plan, dict[SSAValue, Operand]()
        if self.sweeps == 1 or not plan.outer or len(plan.inner) > 1 or not isinstance(self.extent, int):
            return []
        produced = plan.space.produced
        for op, section in plan.ops:
            for operand in (o for o in op.used if o is not None and section.sweep == 0 and section.form in ("full", "reduce_inner")):
                row = self.extent * element_bytes(operand.element)
                far = bytes_in_all(operand.memory) > self.machine.l2 and row <= self.machine.l2 // 8
                if (
                    operand.memory not in produced
                    and far
                    and stride_along(operand, plan.vector) == 1
                    and plan.outer[-1] in uses(operand.map)
                ):
                    found[operand.memory] = operand
        return list(found.values())

    def _ask_for_next_row(self, b: LoopBuilder, tile: Tile) -> None:
        if not self.ahead or not tile.axes:
            return
        row, vector = self.plan.outer[-1], self.plan.vector
        for operand in self.ahead:
            size = element_bytes(operand.element)
            for first in range(0, tile.axes[-1].size * size, LINE_BYTES):
                at = tile.moved(row, b.add(tile.at[row], 1)).moved(vector, b.add(tile.at[vector], first // size))
                indices = b.values([b.affine(e, at.at) for e in operand.map.results])
                b.prefetch(operand.memory, indices)

    # one row

    def _row(self, b: LoopBuilder, at: Tile, carried: list[SSAValue]) -> list[SSAValue]:
        plan = self.plan
        known: dict[SSAValue, SSAValue] = {}
        totals = list(carried)
        scalars = [op for op in self.accumulating if not plan.keeps_inner(op)]
        for sweep in range(-1, self.sweeps):
            if sweep >= 0:
                known.update(self._sweep(b, at, sweep, known))
            for op, section in plan.ops:
                if section.form == "row" and section.sweep == sweep:
                    known[op.key] = compute(b, plan.kernel, op, at, known)
                elif op in scalars and section.sweep == sweep:
                    inside = bool(op.reduced & set(plan.inner))
                    term = known[op.key] if inside else widened(b, plan.term(b, op, at, known), plan.wide(op))
                    position = scalars.index(op)
                    totals[position] = combine(b, joined(op).combiner, totals[position], term)
        store(b, [op for op, s in plan.ops if s.form in ("row", "reduce_inner")], at, known)
        return totals

    def _sweep(self, b: LoopBuilder, at: Tile, sweep: int, rows_known: dict[SSAValue, SSAValue]) -> dict[SSAValue, SSAValue]:
        """One pass over the row; returns the row's results of the reductions (unfinished for accumulators over rows)."""
        plan = self.plan
        last = sweep == self.sweeps - 1
        here = [(op, s) for op, s in plan.ops if s.sweep == sweep]
        reducing = [op for op, s in here if s.form == "reduce_inner" or (s.form == "reduce_outer" and op.reduced & set(plan.inner))]
        adding = [op for op, s in here if s.form == "reduce_outer" and plan.keeps_inner(op)]
        storing = [op for op, s in plan.ops if s.form == "full" and op.stored and (last if op.in_place else s.sweep == sweep)]
        keeping = [op for op, _ in here if op.key in self.kept]
        earlier = {op.key for op, s in plan.ops if op.key in self.kept and s.sweep < sweep}
        needed = closure(plan, [*reducing, *adding, *storing, *keeping], earlier)
        if not reducing and not adding and not storing and not keeping:
            return {}

        def values(c: LoopBuilder, tile: Tile) -> dict[SSAValue, SSAValue]:
            known = dict(rows_known)
            for op, section in plan.ops:
                if section.form == "full" and op.key in earlier:
                    known[op.key] = read(c, self.kept[op.key], tile)
                elif section.form == "full" and op.key in needed:
                    known[op.key] = compute(c, plan.kernel, op, tile, known)
            return known

        def finish(c: LoopBuilder, tile: Tile, known: dict[SSAValue, SSAValue]) -> None:
            if sweep == 1:
                self._ask_for_next_row(c, tile)
            for op in adding:
                term = c.splat(plan.term(c, op, tile, known), tile.type(op.element))
                total = read(c, self.sums[op.key], tile)
                write(c, combine(c, joined(op).combiner, total, widened(c, term, plan.wide(op))), self.sums[op.key], tile)
            for op in keeping:
                write(c, known[op.key], self.kept[op.key], tile)
            for op in storing:
                self.streams.write(c, known[op.key], op.output, tile, tile.axes[-1].size if tile.axes else 1)

        def terms(c: LoopBuilder, tile: Tile, carried: list[SSAValue]) -> list[SSAValue]:
            """Accumulators of the tile's type joined with the tile's terms."""
            known = values(c, tile)
            new = [
                combine(c, joined(op).combiner, total, c.splat(plan.term(c, op, tile, known), tile.type(op.element)))
                for op, total in zip(reducing, carried)
            ]
            finish(c, tile, known)
            return new

        if not reducing:

            def plain(c: LoopBuilder, t: Tile, carried: list[SSAValue]) -> list[SSAValue]:
                lanes, pieces = max(1, self.width // 2), isinstance(self.extent, int)

                def part(e: LoopBuilder, low: Index, high: Index) -> None:
                    strips(e, t, plan.vector, low, high, lanes, lambda g, tile: finish(g, tile, values(g, tile)), pieces=pieces)

                whole = self._whole_pieces()
                if whole:
                    each_block(c, 0, whole, self.piece, part)
                part(c, whole, self.extent)
                return carried

            rows_loop(b, self.around, plan, at, [], plain)
            return {}
        totals = [plan.start(b, op, at, plan.wide(op)) for op in reducing]
        totals = rows_loop(b, self.around, plan, at, totals, lambda c, t, a: self._reduce_all(c, t, reducing, a, terms))
        found: dict[SSAValue, SSAValue] = {}
        for op, total in zip(reducing, totals):
            found[op.key] = total if op in self.accumulating else plan.finish(b, op, total, plan.wide(op))
        return found

    def _whole_pieces(self) -> int:
        """Elements of all pieces that threads share."""
        return self.extent // self.piece * self.piece if self.piece and isinstance(self.extent, int) else 0

    def _reduce_all(self, b: LoopBuilder, at: Tile, ops: list[BoundOp], totals: list[SSAValue], terms: Row) -> list[SSAValue]:
        """Scalar totals joined with everything along the vector dimension, piece by piece where threads share it."""
        whole = self._whole_pieces()
        if not whole:
            return self._reduce(b, at, 0, self.extent, ops, totals, terms)
        plan, pieces = self.plan, whole // self.piece
        place = AffineMap(len(plan.space.extents), 0, (AffineDimExpr(plan.vector),))
        partial = [Operand(b.scratch(f64 if plan.wide(op) else op.element, [pieces]), place) for op in ops]

        def piece(c: LoopBuilder, number: SSAValue) -> None:
            low = c.mul(number, self.piece)
            starts = [plan.start(c, op, at, plan.wide(op)) for op in ops]
            found = self._reduce(c, at, low, c.add(low, self.piece), ops, starts, terms)
            for total, operand in zip(found, partial):
                write(c, total, operand, at.moved(plan.vector, number))

        def join(c: LoopBuilder, number: SSAValue, carried: list[SSAValue]) -> list[SSAValue]:
            here = at.moved(plan.vector, number)
            return [combine(c, joined(op).combiner, total, read(c, operand, here)) for op, total, operand in zip(ops, carried, partial)]

        b.parallel(0, pieces, 1, piece)
        totals = b.loop(0, pieces, 1, totals, join)
        for operand in partial:
            b.release(operand.memory)
        return self._reduce(b, at, whole, self.extent, ops, totals, terms)

    def _reduce(
        self, b: LoopBuilder, at: Tile, start: Index, end: Index, ops: list[BoundOp], totals: list[SSAValue], terms: Row
    ) -> list[SSAValue]:
        """Scalar totals joined with what lies from `start` to `end`; `terms` joins the accumulators of one tile with its terms."""
        plan, width = self.plan, self.width

        def joined_with(c: LoopBuilder, totals: list[SSAValue], accumulators: list[SSAValue]) -> list[SSAValue]:
            new: list[SSAValue] = []
            for op, total, accumulator in zip(ops, totals, accumulators):
                scalar = widened(c, across_lanes(c, joined(op).combiner, accumulator), plan.wide(op))
                new.append(combine(c, joined(op).combiner, total, scalar))
            return new

        def block(c: LoopBuilder, low: Index, high: Index, totals: list[SSAValue]) -> list[SSAValue]:
            wide_tile = at.with_axes(Axis(plan.vector, width))
            starts = [plan.start(c, op, wide_tile, False) for op in ops]
            found = c.loop(low, high, width, starts, lambda e, i, a: terms(e, wide_tile.moved(plan.vector, i), a))
            return joined_with(c, totals, found)

        def narrow(c: LoopBuilder, tile: Tile, totals: list[SSAValue]) -> list[SSAValue]:
            starts = [plan.start(c, op, tile, False) for op in ops]
            return joined_with(c, totals, terms(c, tile, starts))

        span = width * BLOCK_STEPS
        adds = any(joined(op).sums_floats for op in ops)
        if isinstance(start, SSAValue):  # a piece: whole blocks
            if not adds:
                return block(b, start, end, totals)
            return b.loop(start, end, span, totals, lambda c, low, a: block(c, low, c.add(low, span), list(a)))
        whole = b.add(start, b.round_down(b.sub(end, start), width))
        if isinstance(whole, int) and whole == start:
            pass
        elif not adds or (isinstance(whole, int) and whole - start <= span):
            totals = block(b, start, whole, totals)
        else:
            totals = b.loop(start, whole, span, totals, lambda c, low, a: block(c, low, c.minimum(c.add(low, span), whole), list(a)))
        if not isinstance(end, int) or not isinstance(whole, int):
            return b.loop(whole, end, 1, totals, lambda c, i, a: narrow(c, at.moved(plan.vector, i), list(a)))
        for done, size in powers_of_two(end - whole, width):
            if size < plan.lanes:
                rest = whole + done
                return b.loop(rest, end, 1, totals, lambda c, i, a: narrow(c, at.moved(plan.vector, i), list(a)))
            totals = narrow(b, at.moved(plan.vector, whole + done).with_axes(Axis(plan.vector, size)), totals)
        return totals

    # after all rows

    def _after(self, b: LoopBuilder, at: Tile, totals: list[SSAValue]) -> None:
        plan = self.plan
        known: dict[SSAValue, SSAValue] = {}
        scalars = [op for op in self.accumulating if not plan.keeps_inner(op)]
        for op, total in zip(scalars, totals):
            known[op.key] = plan.finish(b, op, total, plan.wide(op))
        for op, section in plan.ops:
            if section.form == "scalar":
                known[op.key] = compute(b, plan.kernel, op, at, known)
        store(b, [*scalars, *(op for op, s in plan.ops if s.form == "scalar")], at, known)
        positions = [op for op, s in plan.ops if s.form == "inner" or (op in self.accumulating and plan.keeps_inner(op))]
        if not positions:
            return

        def strip(c: LoopBuilder, tile: Tile) -> None:
            here = dict(known)
            for op in positions:
                if op.key in self.sums:
                    here[op.key] = plan.finish(c, op, read(c, self.sums[op.key], tile), plan.wide(op))
                else:
                    here[op.key] = compute(c, plan.kernel, op, tile, here)
            store(c, positions, tile, here)

        strips(b, at, plan.vector, 0, self.extent, plan.lanes, strip, pieces=True)
