"""Kind `rows` on a GPU: a warp (short rows) or a block (long rows) sweeps each row, lanes meet in shuffles and shared memory.

Values over a row are computed again in every sweep instead of kept. Column reductions and what follows them are launches of their own;
values of a row that they read are written to a temporary first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import f32, f64
from xdsl.ir import Operation, SSAValue

from gradir.dialects.upstream import gpu, memref
from gradir.lowering.groups import Group
from gradir.lowering.groups.group import Section
from gradir.lowering.lower_kernels.binding import BoundOp
from gradir.lowering.lower_kernels.bodies import combine, identity, narrowed, widened
from gradir.lowering.lower_kernels.builder import Index, LoopBuilder
from gradir.lowering.lower_kernels.tiles import NotCovered, Tile, write
from gradir.lowering.lower_kernels_gpu.launch import (
    WARP,
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

LONG_ROW = 1024
THREADS = 256
LONGEST_F32_SUM = 32


@dataclass(frozen=True)
class RowPlan:
    """The ops of a `rows` group by launch, as keys of level 3.

    `sections` by key; `columns` are reduced over rows, `late` follow them; `kept` are temporaries that later launches read from memory.
    """

    sections: dict[SSAValue, Section]
    rows: tuple[SSAValue, ...]
    columns: tuple[SSAValue, ...]
    late: tuple[SSAValue, ...]
    kept: tuple[SSAValue, ...]


def plan_rows(group: Group, temporaries: frozenset[SSAValue], in_place: bool) -> RowPlan:
    """Which op runs in which launch. Raises `NotCovered` for what needs the op-by-op way."""
    roles = group.rows
    assert roles is not None
    sections = {o.output: s for o, s in zip(group.ops, roles.sections)}
    inputs = {o.output: [v for v, _ in o.inputs if v in sections] for o in group.ops}
    if any(o.loops.is_reduction and o.loops.combiner is None for o in group.ops):
        raise NotCovered("a reduction that is no combination")
    columns = tuple(k for k, s in sections.items() if s.form == "reduce_outer")
    late = tuple(k for k, s in sections.items() if s.after_rows)
    if columns and in_place:
        raise NotCovered("column reductions beside outputs in place")
    kept: dict[SSAValue, None] = dict.fromkeys(columns)

    def keep_row_values(key: SSAValue) -> None:
        for read in inputs[key]:
            if sections[read].form in ("row", "reduce_inner"):
                kept[read] = None
            elif sections[read].form == "full":
                keep_row_values(read)

    for key in columns:
        keep_row_values(key)
    rows = tuple(
        k for k, s in sections.items() if s.form in ("full", "row", "reduce_inner") and (k not in temporaries or k in kept)
    )  # fmt: skip
    return RowPlan(sections, rows, columns, late, tuple(k for k in kept if k in temporaries))


def sweep_rows(launch: Launch, group: Group, plan: RowPlan) -> None:
    """The launch that writes the values of the rows."""
    roles = group.rows
    assert roles is not None
    outer, inner = ([launch.space.place[d] for d in dims] for dims in (roles.outer, roles.inner))
    extents = launch.space.extents
    length = static_size(inner, extents)
    width = WARP if length is not None and length <= LONG_ROW else THREADS
    rows_at_once = THREADS // width
    launch.threads = (width, rows_at_once)
    count = static_size(outer, extents)
    launch.blocks = 1024 if count is None else max(1, min(-(-count // rows_at_once), 1 << 16))
    lane, line = launch.thread("x"), launch.thread("y")
    scratch: dict[object, SSAValue] = {}
    needed = [launch.space.produced[k] for k in plan.rows]
    wanted = _needed(launch, plan)
    sweeps = 1 + max((plan.sections[op.key].sweep for op in wanted if plan.sections[op.key].form != "row"), default=-1)

    def row(b: LoopBuilder, r: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
        tile = place(b, launch.space.origin, outer, extents, r)
        known: dict[SSAValue, SSAValue] = {}
        _row_values(launch, plan, b, tile, known, -1, wanted)
        for sweep in range(sweeps):
            reductions = [op for op in wanted if plan.sections[op.key].form == "reduce_inner" and plan.sections[op.key].sweep == sweep]
            stores = [op for op in needed if plan.sections[op.key].form == "full"] if sweep == sweeps - 1 else []
            totals = _sweep(launch, b, tile, inner, lane, width, known, reductions, stores, length)
            for op, total in zip(reductions, totals):
                known[op.key] = _combined(launch, b, op, total, lane, width, scratch)
            _row_values(launch, plan, b, tile, known, sweep, wanted)
        first = compare(b, "eq", lane, 0)
        singles = [op for op in needed if plan.sections[op.key].form != "full"]

        def store(c: LoopBuilder) -> None:
            for op in singles:
                write(c, known[op.key], launch.operand(op), tile)

        if singles:
            branch(b, first, store)
        return []

    start = launch.b.add(launch.b.mul(launch.block(), rows_at_once), line)
    loop_between(launch.b, start, size_of(launch.b, outer, extents), launch.blocks * rows_at_once, [], row)


def _needed(launch: Launch, plan: RowPlan) -> list[BoundOp]:
    """The ops of the row launch that some stored value depends on, in program order."""
    produced = launch.space.produced
    found: set[SSAValue] = set()
    pending = list(plan.rows)
    while pending:
        key = pending.pop()
        if key in found:
            continue
        found.add(key)
        pending += [i.memory for i in produced[key].used if i is not None and i.memory in produced]
    return [op for op in launch.space.ops if op.key in found]


def _row_values(
    launch: Launch, plan: RowPlan, b: LoopBuilder, tile: Tile, known: dict[SSAValue, SSAValue], sweep: int, wanted: Sequence[BoundOp]
) -> None:
    """Ops that have one value a row and whose sweep has ended: every lane computes them."""
    for op in wanted:
        section = plan.sections[op.key]
        if section.form == "row" and section.sweep == sweep:
            launch.pull(b, op.key, tile, known, frozenset())


def _sweep(
    launch: Launch,
    b: LoopBuilder,
    tile: Tile,
    inner: Sequence[int],
    lane: Index,
    width: int,
    known: dict[SSAValue, SSAValue],
    reductions: Sequence[BoundOp],
    stores: Sequence[BoundOp],
    length: int | None,
) -> list[SSAValue]:
    """One pass of the lanes over a row: partial results of the reductions, and the stores."""
    if not reductions and not stores:
        return []
    extents = launch.space.extents
    wides = [adds_widely(op, length, width) for op in reductions]
    starts: list[SSAValue] = []
    for op, wide in zip(reductions, wides):
        assert op.combination is not None
        starts.append(widened(b, b.constant(identity(op.combination.combiner, op.element)), wide))

    def point(c: LoopBuilder, j: SSAValue, accs: list[SSAValue]) -> list[SSAValue]:
        at = place(c, tile, inner, extents, j)
        here = dict(known)
        out = [launch.term(c, op, at, here, frozenset(), acc, wide) for op, acc, wide in zip(reductions, accs, wides)]
        values = [launch.pull(c, op.key, at, here, frozenset()) for op in stores]
        for op, value in zip(stores, values):
            write(c, value, launch.operand(op), at)
        return out

    return loop_between(b, lane, size_of(b, inner, extents), width, starts, point)


def adds_widely(op: BoundOp, length: int | None, lanes: int) -> bool:
    """Would a lane add more than 32 f32 terms in a row? Then it adds in f64 (docs/numerics.md)."""
    joined = op.combination
    return joined is not None and joined.sums_floats and op.element == f32 and (length is None or length > LONGEST_F32_SUM * lanes)


def _combined(
    launch: Launch, b: LoopBuilder, op: BoundOp, partial: SSAValue, lane: Index, width: int, scratch: dict[object, SSAValue]
) -> SSAValue:
    """The result of a row in every lane: partials combined in a tree, then with the initial value."""
    assert op.combination is not None and op.init is not None
    combiner = op.combination.combiner
    total = across_warp(b, combiner, partial, min(width, WARP))
    if width > WARP:
        total = across_block(launch, b, combiner, total, lane, width // WARP, scratch)
    return finished(b, op, total)


def finished(b: LoopBuilder, op: BoundOp, total: SSAValue) -> SSAValue:
    """The initial value combined with a total, in the type of the result."""
    assert op.combination is not None and op.init is not None
    wide = total.type == f64 and op.element == f32
    return narrowed(b, combine(b, op.combination.combiner, widened(b, op.init, wide), total), wide)


def across_block(
    launch: Launch, b: LoopBuilder, combiner: Operation, total: SSAValue, lane: Index, warps: int, scratch: dict[object, SSAValue]
) -> SSAValue:
    """Totals of warps (equal in all lanes of one) combined: each warp leaves its own in shared memory, every thread adds them up."""
    key = (total.type, warps)
    if key not in scratch:
        scratch[key] = launch.workgroup(total.type, warps)
    memory = scratch[key]
    warp, within = divide(b, lane, WARP)
    b.op(gpu.BarrierOp)  # the previous use of the memory is over

    def leave(c: LoopBuilder) -> None:
        c.op(memref.StoreOp, [total, memory, c.value(warp)])

    branch(b, compare(b, "eq", within, 0), leave)
    b.op(gpu.BarrierOp)
    found = b(memref.LoadOp, [memory, b.value(0)], [total.type])
    for k in range(1, warps):
        found = combine(b, combiner, found, b(memref.LoadOp, [memory, b.value(k)], [total.type]))
    return found
