"""What the forms of `rows` kernels share: loops over rows that carry accumulators, storing results, what a sweep recomputes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from xdsl.ir import SSAValue

from gradir.lowering.lower_kernels.binding import BoundOp
from gradir.lowering.lower_kernels.bodies import combine, widened
from gradir.lowering.lower_kernels.builder import LoopBuilder
from gradir.lowering.lower_kernels.rows_plan import RowsPlan, joined
from gradir.lowering.lower_kernels.tiles import Tile, write

Row: TypeAlias = Callable[[LoopBuilder, Tile, list[SSAValue]], list[SSAValue]]
"""Emits one row at a tile; takes and returns the accumulators."""


def rows_loop(b: LoopBuilder, dims: list[int], plan: RowsPlan, tile: Tile, carried: list[SSAValue], row: Row) -> list[SSAValue]:
    """Loops over all of `dims`, the first outermost, that carry accumulators through every row."""
    if not dims:
        return row(b, tile, carried)
    first, rest = dims[0], dims[1:]
    return b.loop(0, plan.space.extents[first], 1, carried, lambda c, i, a: rows_loop(c, rest, plan, tile.moved(first, i), a, row))


def accumulate(b: LoopBuilder, plan: RowsPlan, op: BoundOp, total: SSAValue, tile: Tile, known: dict[SSAValue, SSAValue]) -> SSAValue:
    """`total` joined with the term of `op` at `tile`, elementwise."""
    term = b.splat(plan.term(b, op, tile, known), tile.type(op.element))
    return combine(b, joined(op).combiner, total, widened(b, term, plan.wide(op)))


def store(b: LoopBuilder, ops: Iterable[BoundOp], tile: Tile, known: dict[SSAValue, SSAValue]) -> None:
    """Write the results among `ops` that the kernel returns."""
    for op in ops:
        if op.stored:
            b.loc = op.op.location
            write(b, known[op.key], op.output, tile)


def closure(plan: RowsPlan, wanted: Iterable[BoundOp], available: Iterable[SSAValue] = ()) -> set[SSAValue]:
    """Keys of `wanted` and of the full ops that they read, directly or not, except for what is `available`."""
    needed = {op.key for op in wanted}
    recomputed = {op.key for op, section in plan.ops if section.form == "full"} - set(available)
    for op in reversed(plan.space.ops):
        if op.key in needed:
            needed |= {i.memory for i in op.used if i is not None and i.memory in recomputed}
    return needed
