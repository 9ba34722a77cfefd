"""Kind `rows` on a GPU: the threads that share a row hold it in registers, and meet in shuffles and shared memory.

Every thread has a few accesses (chunks) of its row; what is read or computed there is kept for later sweeps. Rows that do not fit are swept
from memory. Column reductions and what follows them are launches of their own; values of a row that they read are written to a temporary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import VectorType, f32, f64
from xdsl.ir import Operation, SSAValue

from gradir.dialects.kernel import RowsAttr
from gradir.dialects.target.cuda_facts import WARP
from gradir.dialects.types import i64_array
from gradir.dialects.upstream import arith, gpu, linalg, memref, vector
from gradir.lowering.groups import Group
from gradir.lowering.lower_kernels.binding import BoundOp, compute
from gradir.lowering.lower_kernels.bodies import combine, identity, is_plain, narrowed, widened
from gradir.lowering.lower_kernels.builder import Index, LoopBuilder, vector_type
from gradir.lowering.lower_kernels.tiles import Axis, Operand, Tile, read, write
from gradir.lowering.lower_kernels_gpu.launch import (
    BLOCKS_OF_UNKNOWN_SIZE,
    MOST_BLOCKS,
    Launch,
    across_warp,
    both,
    branch,
    compare,
    divide,
    loop_between,
    place,
    size_of,
    static_size,
)
from gradir.lowering.lower_kernels_gpu.row_plan import RowPlan
from gradir.lowering.schedules.gpu_rows import RowTile, row_tile

LONGEST_F32_SUM = 32

Row = Callable[[LoopBuilder, Tile, SSAValue | bool], None]
"""What is done at the tile of a row, and whether there is one."""


@dataclass
class _Chunk:
    """One access of a thread: where, whether the row reaches so far, and what is known there."""

    tile: Tile
    inside: SSAValue | bool
    known: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])


@dataclass
class _Sweeper:
    """What all sweeps of one launch share."""

    launch: Launch
    plan: RowPlan
    inner: Sequence[int]
    shape: RowTile
    lane: Index
    wanted: Sequence[BoundOp]
    shared_inputs: frozenset[SSAValue]
    scratch: dict[object, SSAValue] = field(default_factory=dict[object, SSAValue])

    @property
    def length(self) -> int | None:
        return static_size(self.inner, self.launch.space.extents)

    @property
    def axes(self) -> tuple[Axis, ...]:
        last = next((d for d in reversed(self.inner) if self.launch.space.extents[d] != 1), self.inner[-1])
        return (Axis(last, self.shape.lanes),) if self.shape.lanes > 1 else ()

    def at(self, b: LoopBuilder, row: Tile, number: Index) -> Tile:
        """The tile of an access of the row."""
        dims = [d for d in self.inner if self.launch.space.extents[d] != 1] or [self.inner[-1]]
        return place(b, row, dims, self.launch.space.extents, number, self.shape.lanes).with_axes(*self.axes)

    def chunks(self, b: LoopBuilder, row: Tile) -> list[_Chunk]:
        """The accesses of this thread that are in registers; those beyond the row look at its beginning."""
        assert self.length is not None
        count, width = self.length // self.shape.lanes, self.shape.width
        found: list[_Chunk] = []
        for k in range(self.shape.chunks):
            number = b.add(self.lane, k * width)
            inside = True if (k + 1) * width <= count else compare(b, "slt", number, count)
            if inside is not True:
                number = b(arith.SelectOp, [inside, *b.values([number, 0])], [b.value(0).type])
            found.append(_Chunk(self.at(b, row, number), inside))
        return found

    def read_inputs(self, b: LoopBuilder, chunk: _Chunk, ops: Sequence[BoundOp]) -> None:
        """Inputs that several ops read in the same way are read once."""
        for op in ops:
            for operand in op.used:
                if operand is not None and operand.memory in self.shared_inputs and operand.memory not in chunk.known:
                    chunk.known[operand.memory] = read(b, operand, chunk.tile)

    def start(self, b: LoopBuilder, op: BoundOp, wide: bool) -> SSAValue:
        """The neutral element of a reduction in all lanes of an access."""
        assert op.combination is not None
        scalar = widened(b, b.constant(identity(op.combination.combiner, op.element)), wide)
        return b.splat(scalar, vector_type(scalar.type, self.shape.lanes)) if self.shape.lanes > 1 else scalar

    def joined(self, b: LoopBuilder, op: BoundOp, at: Tile, known: dict[SSAValue, SSAValue], acc: SSAValue, wide: bool) -> SSAValue:
        """The term of a reduction at one access, in the type of the accumulator."""
        assert op.combination is not None
        self.launch.inputs(b, op, at, known, frozenset())
        term = widened(b, compute(b, self.launch.kernel, op, at, known, None, op.combination.term), wide)
        return b.splat(term, acc.type) if isinstance(acc.type, VectorType) else term

    def reduce_chunks(self, b: LoopBuilder, op: BoundOp, chunks: Sequence[_Chunk]) -> SSAValue:
        """This thread's part of a reduction over a row in registers."""
        assert op.combination is not None
        neutral = self.start(b, op, False)
        found: SSAValue | None = None
        for chunk in chunks:
            term = self.joined(b, op, chunk.tile, chunk.known, neutral, False)
            if not isinstance(chunk.inside, bool):
                term = b(arith.SelectOp, [chunk.inside, term, neutral], [term.type])
            found = term if found is None else combine(b, op.combination.combiner, found, term)
        return self.lanes_joined(b, op, found if found is not None else neutral)

    def lanes_joined(self, b: LoopBuilder, op: BoundOp, value: SSAValue) -> SSAValue:
        """The lanes of a vector combined in a tree."""
        assert op.combination is not None
        if not isinstance(value.type, VectorType):
            return value
        element = value.type.element_type
        lanes = [b(vector.ExtractOp, [value], [element], {"static_position": i64_array((k,))}) for k in range(self.shape.lanes)]
        while len(lanes) > 1:
            lanes = [combine(b, op.combination.combiner, x, y) for x, y in zip(lanes[::2], lanes[1::2])]
        return lanes[0]

    def total(self, b: LoopBuilder, op: BoundOp, partial: SSAValue) -> SSAValue:
        """The result of a row in every thread that shares it: partials in a tree, then the initial value."""
        assert op.combination is not None
        combiner, width = op.combination.combiner, self.shape.width
        found = across_warp(b, combiner, partial, min(width, WARP))
        if width > WARP:
            found = across_block(self.launch, b, combiner, found, self.lane, width // WARP, self.scratch)
        return finished(b, op, found)

    def sweep(
        self, b: LoopBuilder, row: Tile, known: dict[SSAValue, SSAValue], reductions: Sequence[BoundOp], stores: Sequence[BoundOp]
    ) -> list[SSAValue]:
        """One pass over a row in memory: this thread's parts of the reductions, and the stores."""
        extents = self.launch.space.extents
        length, lanes, width = self.length, self.shape.lanes, self.shape.width
        wides = [adds_widely(op, length, width * lanes) for op in reductions]
        starts = [self.start(b, op, wide) for op, wide in zip(reductions, wides)]
        count = size_of(b, self.inner, extents) if length is None else length // lanes

        def point(c: LoopBuilder, number: SSAValue, accs: list[SSAValue]) -> list[SSAValue]:
            chunk = _Chunk(self.at(c, row, number), True, dict(known))
            self.read_inputs(c, chunk, [*reductions, *stores])
            out: list[SSAValue] = []
            for op, acc, wide in zip(reductions, accs, wides):
                assert op.combination is not None
                out.append(combine(c, op.combination.combiner, acc, self.joined(c, op, chunk.tile, chunk.known, acc, wide)))
            self.store(c, chunk, stores)
            return out

        parts = loop_between(b, self.lane, count, width, starts, point)
        return [self.lanes_joined(b, op, part) for op, part in zip(reductions, parts)]

    def store(self, b: LoopBuilder, chunk: _Chunk, stores: Sequence[BoundOp]) -> None:
        """Everything is read before anything is written: outputs may be inputs."""
        values = [self.launch.pull(b, op.key, chunk.tile, chunk.known, frozenset()) for op in stores]
        for op, value in zip(stores, values):
            b.loc = op.op.location
            write(b, value, self.launch.operand(op), chunk.tile)


def sweep_rows(launch: Launch, group: Group, plan: RowPlan) -> None:
    """The launch that writes the values of the rows."""
    roles = group.rows
    assert roles is not None
    outer, inner = ([launch.space.place[d] for d in dims] for dims in (roles.outer, roles.inner))
    extents = launch.space.extents
    shape = _shape(launch, group)
    launch.threads = (shape.width, shape.rows)
    count = static_size(outer, extents)
    launch.blocks = BLOCKS_OF_UNKNOWN_SIZE if count is None else min(-(-count // shape.rows), MOST_BLOCKS)
    if not launch.blocks:
        return
    needed = [launch.space.produced[k] for k in plan.rows]
    wanted = _needed(launch, plan)
    sweeps = 1 + max((plan.sections[op.key].sweep for op in wanted if plan.sections[op.key].form != "row"), default=-1)
    sweeper = _Sweeper(launch, plan, inner, shape, launch.thread("x"), wanted, _shared_inputs(launch, wanted))
    line = launch.thread("y")

    def row(b: LoopBuilder, tile: Tile, exists: SSAValue | bool) -> None:
        known: dict[SSAValue, SSAValue] = {}
        _row_values(launch, plan, b, tile, known, -1, wanted)
        chunks = sweeper.chunks(b, tile) if shape.chunks else []
        for sweep in range(sweeps):
            reductions = [op for op in wanted if plan.sections[op.key].form == "reduce_inner" and plan.sections[op.key].sweep == sweep]
            stores = [op for op in needed if plan.sections[op.key].form == "full"] if sweep == sweeps - 1 else []
            if shape.chunks:
                for chunk in chunks:
                    chunk.known.update(known)
                    sweeper.read_inputs(b, chunk, [*wanted] if sweep == 0 else [])
                partials = [sweeper.reduce_chunks(b, op, chunks) for op in reductions]
                _store_chunks(sweeper, b, chunks, stores, exists)
            elif exists is True or not stores:
                partials = sweeper.sweep(b, tile, known, reductions, stores)
            else:
                partials = sweeper.sweep(b, tile, known, reductions, [])
                branch(b, exists, lambda c, stores=stores: _only_stores(sweeper, c, tile, known, stores))
            for op, partial in zip(reductions, partials):
                known[op.key] = sweeper.total(b, op, partial)
            _row_values(launch, plan, b, tile, known, sweep, wanted)
        singles = [op for op in needed if plan.sections[op.key].form != "full"]

        def store(c: LoopBuilder) -> None:
            for op in singles:
                write(c, known[op.key], launch.operand(op), tile)

        if singles:
            branch(b, both(b, [compare(b, "eq", sweeper.lane, 0) if shape.width > 1 else True, exists]), store)

    _each_row(launch, outer, shape, line, row)


def _store_chunks(sweeper: _Sweeper, b: LoopBuilder, chunks: Sequence[_Chunk], stores: Sequence[BoundOp], exists: SSAValue | bool) -> None:
    """What a row's threads write; values are computed before the branch, so that all lanes of a warp stay together."""
    if not stores:
        return
    values = [[sweeper.launch.pull(b, op.key, chunk.tile, chunk.known, frozenset()) for op in stores] for chunk in chunks]
    for chunk, found in zip(chunks, values):

        def put(c: LoopBuilder, chunk: _Chunk = chunk, found: list[SSAValue] = found) -> None:
            for op, value in zip(stores, found):
                c.loc = op.op.location
                write(c, value, op.output, chunk.tile)

        branch(b, both(b, [chunk.inside, exists]), put)


def _only_stores(sweeper: _Sweeper, b: LoopBuilder, tile: Tile, known: dict[SSAValue, SSAValue], stores: Sequence[BoundOp]) -> None:
    sweeper.sweep(b, tile, known, [], stores)


def _each_row(launch: Launch, outer: Sequence[int], shape: RowTile, line: Index, row: Row) -> None:
    """`row(builder, tile, exists)` for the rows of this block; a thread without a row works on the first one and writes nothing.

    All threads of a warp run the same shuffles and all threads of a block the same barriers, so no thread leaves early.
    """
    b, extents = launch.b, launch.space.extents
    count = size_of(b, outer, extents)
    first = b.add(b.mul(launch.block(), shape.rows), line)

    def one(c: LoopBuilder, number: Index) -> None:
        exists: SSAValue | bool = True
        if not isinstance(count, int) or count % shape.rows:
            exists = compare(c, "slt", number, count)
            number = c(arith.SelectOp, [exists, *c.values([number, 0])], [c.value(0).type])
        row(c, place(c, launch.space.origin, outer, extents, number), exists)

    if isinstance(count, int) and launch.blocks * shape.rows >= count:
        one(b, first)
        return

    def step(c: LoopBuilder, start: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
        one(c, c.add(start, line))
        return []

    loop_between(b, b.mul(launch.block(), shape.rows), count, launch.blocks * shape.rows, [], step)


def _shape(launch: Launch, group: Group) -> RowTile:
    """The schedule's shape where it has one; single elements where bodies do not run on vectors."""
    schedule = launch.kernel.schedule
    shape = RowTile.of(schedule) if isinstance(schedule, RowsAttr) else None
    shape = shape or row_tile(group)
    if not all(is_plain(op.op.body.block) for op in launch.space.ops if isinstance(op.op, linalg.GenericOp)):
        shape = RowTile(shape.width, 1, shape.chunks * shape.lanes, shape.rows)
    return shape


def _shared_inputs(launch: Launch, wanted: Sequence[BoundOp]) -> frozenset[SSAValue]:
    """Memory of outside operands that all ops of the launch read through one map."""
    maps: dict[SSAValue, list[Operand]] = {}
    for op in wanted:
        for operand in op.used:
            if operand is not None and not operand.is_scalar and operand.memory not in launch.space.produced:
                maps.setdefault(operand.memory, []).append(operand)
    rank = len(launch.space.extents)
    full = {d for d in range(rank) if launch.space.extents[d] != 1}
    return frozenset(
        memory
        for memory, operands in maps.items()
        if all(o.map == operands[0].map for o in operands) and full <= {d for e in operands[0].map.results for d in e.used_dims()}
    )


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


def adds_widely(op: BoundOp, length: int | None, lanes: int) -> bool:
    """Would a lane add more than 32 f32 terms in a row? Then it adds in f64 (docs/numerics.md)."""
    joined = op.combination
    return joined is not None and joined.sums_floats and op.element == f32 and (length is None or length > LONGEST_F32_SUM * lanes)


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
    lines = launch.threads[1]
    if key not in scratch:
        scratch[key] = launch.workgroup(total.type, lines, warps)
    memory = scratch[key]
    line = launch.thread("y")
    warp, within = divide(b, lane, WARP, small=True)
    b.op(gpu.BarrierOp)  # the previous use of the memory is over

    def leave(c: LoopBuilder) -> None:
        c.op(memref.StoreOp, [total, memory, *c.values([line, warp])])

    branch(b, compare(b, "eq", within, 0), leave)
    b.op(gpu.BarrierOp)
    found = [b(memref.LoadOp, [memory, *b.values([line, k])], [total.type]) for k in range(warps)]
    while len(found) > 1:
        rest = [found[-1]] if len(found) % 2 else []
        found = [*(combine(b, combiner, x, y) for x, y in zip(found[::2], found[1::2])), *rest]
    return found[0]
