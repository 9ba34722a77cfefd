"""Kind `rows`: reductions along rows or down columns, and the elementwise ops around them.

Four forms, by where the vector dimension (the one that lies side by side in memory) is and how long it is:

- columns: nothing is reduced along it: accumulators for strips of columns;
- lanes (here): it counts rows: every lane is a row, reductions need no shuffles;
- short rows: a row fits in a few registers: rows are straight-line code;
- long rows: a row is swept once for every reduction that later ops wait for.
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from gradir.lowering.groups import Group
from gradir.lowering.lower_kernels.binding import BoundOp, Kernel, compute
from gradir.lowering.lower_kernels.bodies import is_polynomial
from gradir.lowering.lower_kernels.builder import LoopBuilder
from gradir.lowering.lower_kernels.columns import lower_columns
from gradir.lowering.lower_kernels.long_rows import lower_long_rows
from gradir.lowering.lower_kernels.rows_loops import accumulate, closure, rows_loop, store
from gradir.lowering.lower_kernels.rows_plan import RowsPlan, make_plan
from gradir.lowering.lower_kernels.short_rows import lower_short_rows
from gradir.lowering.lower_kernels.strips import each_block, nest, strips
from gradir.lowering.lower_kernels.tiles import NotCovered, Tile
from gradir.lowering.schedules.machine import Machine

SHORT_REGISTERS, SHORT_POLYNOMIAL_REGISTERS = 8, 2
"""Registers that a row may take to be short; fewer when polynomials are computed on it."""

STRIP_REGISTERS = 4
"""Registers of rows that are swept together: whole lines of memory, and chains of additions that do not wait for each other."""
LINE_REGISTERS = 2
"""Registers of neighbours that share a line of memory."""
TASK_REGISTERS = 8
"""Registers of rows of one parallel task, at most."""


def lower_rows(kernel: Kernel, group: Group, machine: Machine) -> None:
    """Build the whole kernel into `kernel.b`."""
    plan = make_plan(kernel, group, machine)
    extent = plan.space.extents[plan.vector]
    if plan.vector in plan.outer:
        _lanes(plan, machine)
    elif not plan.has("row", "reduce_inner", "scalar") and all(plan.keeps_inner(op) for op, s in plan.ops if s.form == "reduce_outer"):
        lower_columns(plan, machine)
    elif plan.inner == (plan.vector,) and isinstance(extent, int) and extent <= _short_registers(plan) * plan.lanes:
        lower_short_rows(plan)
    else:
        lower_long_rows(plan, machine)


def _short_registers(plan: RowsPlan) -> int:
    polynomial = any(is_polynomial(op.op) for op, s in plan.ops if s.form in ("full", "reduce_inner", "reduce_outer"))
    return SHORT_POLYNOMIAL_REGISTERS if polynomial else SHORT_REGISTERS


def _lanes(plan: RowsPlan, machine: Machine) -> None:
    """Every lane is a row."""
    if plan.has("reduce_outer", "inner", "scalar"):
        raise NotCovered("a reduction over rows whose lanes are rows")
    around = [d for d in plan.outer if d != plan.vector]
    sweeps = 1 + max((s.sweep for s in plan.sections if s.form != "row"), default=0)

    def rows(b: LoopBuilder, tile: Tile) -> None:
        known: dict[SSAValue, SSAValue] = {}
        later: list[BoundOp] = []
        for sweep in range(-1, sweeps):
            if sweep >= 0:
                known.update(sweep_lanes(b, tile, sweep, sweep == sweeps - 1, known))
            for op, section in plan.ops:
                if section.form == "row" and section.sweep == sweep:
                    known[op.key] = compute(b, plan.kernel, op, tile, known)
                    later.append(op)
        store(b, [*later, *(op for op, s in plan.ops if s.form == "reduce_inner")], tile, known)

    def sweep_lanes(b: LoopBuilder, tile: Tile, sweep: int, last: bool, rows_known: dict[SSAValue, SSAValue]) -> dict[SSAValue, SSAValue]:
        reducing = [op for op, s in plan.ops if s.form == "reduce_inner" and s.sweep == sweep]
        storing = [op for op, s in plan.ops if s.form == "full" and op.stored and (last if op.in_place else s.sweep == sweep)]
        needed = closure(plan, [*reducing, *storing])

        def point(c: LoopBuilder, at: Tile, carried: list[SSAValue]) -> list[SSAValue]:
            known = dict(rows_known)
            totals = list(carried)
            for op, section in plan.ops:
                if section.form == "full" and op.key in needed:
                    known[op.key] = compute(c, plan.kernel, op, at, known)
                elif op in reducing:
                    position = reducing.index(op)
                    totals[position] = accumulate(c, plan, op, totals[position], at, known)
            store(c, storing, at, known)
            return totals

        if not reducing and not storing:
            return {}
        starts = [plan.start(b, op, tile, plan.wide(op)) for op in reducing]
        totals = rows_loop(b, list(plan.inner), plan, tile, starts, point)
        return {op.key: plan.finish(b, op, total, plan.wide(op)) for op, total in zip(reducing, totals)}

    extent = plan.space.extents[plan.vector]
    simple = isinstance(extent, int) and not any(is_polynomial(op.op) for op in plan.space.ops)
    width = plan.lanes * (STRIP_REGISTERS if simple else 1)
    if plan.parallel and not around:
        share = -(-extent // (2 * machine.threads)) if isinstance(extent, int) else plan.lanes * TASK_REGISTERS
        unit = min(width, plan.lanes * LINE_REGISTERS)
        block = min(-(-max(share, 1) // unit) * unit, plan.lanes * TASK_REGISTERS)
        lanes = min(width, block)
        each_block(plan.kernel.b, 0, extent, block, lambda c, low, high: strips(c, plan.space.origin, plan.vector, low, high, lanes, rows))
        return
    while isinstance(extent, int) and plan.lanes < width and width // 2 >= extent:
        width //= 2
    nest(plan.kernel.b, around, plan.space, plan.space.origin, lambda c, at: strips(c, at, plan.vector, 0, extent, width, rows))
