"""Kind `contraction`: a register tile per step of all k loops, then the elementwise epilogue on the tile.

    for batch, for further n: for groups of columns: [pack the group]
      for further m: for blocks of rows: [pack the block]  for panels of the group: for tiles of the block: micro-kernel

A block of rows stays in L2 while the panels of a group pass by, a panel in L1 while the tiles of the block do. `n` is the output's
innermost dimension, `a` the operand that does not vary along it, `b` the one that does. Rows are split evenly: at most two
heights of tile; the last panel of columns is padded to whole registers, loads are masked, stores go in pieces. When k is so long that
operands leave the cache between two uses, all of the above runs for one block of k after the other; sums wait in memory, and the epilogue
is a pass of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from gradir.dialects.upstream import arith
from gradir.lowering.groups import Group
from gradir.lowering.lower_kernels.binding import Kernel
from gradir.lowering.lower_kernels.bodies import combine, is_identity
from gradir.lowering.lower_kernels.builder import Index, LoopBuilder
from gradir.lowering.lower_kernels.contraction_plan import Plan, make_plan
from gradir.lowering.lower_kernels.dots import RESULTS, DotSteps, dots
from gradir.lowering.lower_kernels.micro_kernel import MicroKernel, Panel
from gradir.lowering.lower_kernels.panels import TOGETHER, Columns, pack_columns, pack_edge
from gradir.lowering.lower_kernels.row_blocks import RowBlock, RowSource, pack_rows
from gradir.lowering.lower_kernels.strips import each, nest, strips
from gradir.lowering.lower_kernels.tiles import NotCovered, Operand, Tile, read, write
from gradir.lowering.schedules.contraction import CONFLICT_BYTES, UNKNOWN, even_split
from gradir.lowering.schedules.machine import LINE_BYTES, Machine, element_bytes

LARGE_WORK = 1 << 21
"""Multiply-adds from which on a second height of tile is worth its compile time."""
SQUARE = 8
"""Most lanes of a square that packing transposes in registers."""


def lower_contraction(kernel: Kernel, group: Group, machine: Machine) -> None:
    """Build the whole kernel into `kernel.b`."""
    plan = make_plan(kernel, group, machine)
    b = kernel.b
    if not plan.k_block:
        _Generator(kernel, plan, machine, None).around(b, list(plan.around), plan.space.origin, 0, None)
        return
    _in_blocks_of_k(kernel, plan, machine)


def _in_blocks_of_k(kernel: Kernel, plan: Plan, machine: Machine) -> None:
    """Start all sums in memory, add one block of k after the other, then run the epilogue."""
    b, core, space = kernel.b, plan.core, plan.space
    extent = space.extents[plan.k[0]]
    output = sorted({d for e in core.output.map.results for d in e.used_dims()})
    scratch: SSAValue | None = None
    partial = core.output
    shape = [space.extents[e.position] if isinstance(e, AffineDimExpr) else 1 for e in core.output.map.results]
    apart = _rows_apart(shape, core.element, machine)
    if not core.stored or core.in_place or (core.init is not None and apart != shape):
        if any(not isinstance(n, int) for n in shape):
            raise NotCovered("blocks of k into results of unknown sizes")
        scratch = b.scratch(core.element, apart)
        partial = Operand(scratch, core.output.map)
    lanes = machine.lanes_of(element_bytes(core.element)) * 2

    def everywhere(action: Callable[[LoopBuilder, Tile], None]) -> None:
        nest(b, output[:-1], space, space.origin, lambda c, at: strips(c, at, output[-1], 0, space.extents[output[-1]], lanes, action))

    init = core.init
    if init is not None:
        everywhere(lambda c, at: write(c, c.splat(init, at.type(core.element)), partial, at))
    generator = _Generator(kernel, plan, machine, partial)

    def blocks(c: LoopBuilder, at: Tile) -> None:
        each(
            c,
            0,
            extent,
            plan.k_block,
            lambda e, low: generator.around(e, list(plan.around), at, low, _end(e, low, plan.k_block, 0, extent)),
        )

    if plan.columns and plan.parallel == plan.n and not plan.around and not plan.k_around:
        generator.columns_of_threads(b, space.origin, extent)
    else:
        nest(b, list(plan.k_around), space, space.origin, blocks)
    if plan.epilogue or scratch is not None:
        everywhere(lambda c, at: generator.micro.finish(c, at, read(c, partial, at)))
    if scratch is not None:
        b.release(scratch)


def _rows_apart(shape: list[Index], element: Attribute, machine: Machine) -> list[Index]:
    """`shape` with longer rows, if rows of it fight for the same sets of the cache and all of it stays in L2."""
    size = element_bytes(element)
    known = [n for n in shape if isinstance(n, int)]
    if len(known) < len(shape) or len(known) < 2 or prod(known) * size > machine.l2 // 2 or known[-1] * size % CONFLICT_BYTES:
        return shape
    return [*known[:-1], known[-1] + LINE_BYTES // size]


def _end(b: LoopBuilder, i: SSAValue, step: int, first: Index, last: Index) -> Index:
    """Where the block of `step` that begins at `i` ends."""
    even = isinstance(first, int) and isinstance(last, int) and (last - first) % step == 0
    return b.add(i, step) if even else b.minimum(b.add(i, step), last)


@dataclass(frozen=True)
class Rows:
    """Rows `first` to `last` in tiles of `size`; `packed`: where they were copied to."""

    first: Index
    last: Index
    size: int
    packed: RowBlock | None


Across: TypeAlias = Callable[[LoopBuilder, Tile, Rows], None]


class _Generator:
    """Emits the loops around the micro-kernel of one plan."""

    def __init__(self, kernel: Kernel, plan: Plan, machine: Machine, partial: Operand | None) -> None:
        self.plan, self.space, self.core = plan, plan.space, plan.core
        self.micro = MicroKernel(kernel, plan, partial, machine)
        self.element = plan.core.element
        self.lanes = machine.lanes_of(element_bytes(self.element))
        known = [e if isinstance(e, int) else UNKNOWN for e in plan.space.extents]
        self.least_height = plan.height - plan.height // 3 if prod(known) < LARGE_WORK else plan.height - plan.height // 6

    def _loop(self, b: LoopBuilder, dim: int, low: Index, high: Index, step: int, body: Callable[[LoopBuilder, SSAValue], None]) -> None:
        """A loop along `dim`, on several threads when the schedule says so."""
        if dim == self.plan.parallel and not (isinstance(high, int) and isinstance(low, int) and high - low <= step):
            b.parallel(low, high, step, body)
        else:
            each(b, low, high, step, body)

    def around(self, b: LoopBuilder, dims: list[int], tile: Tile, low: Index, high: Index | None) -> None:
        """Everything, for steps `low` to `high` of the outermost k loop (None: all of them)."""
        if dims:
            d, rest = dims[0], dims[1:]
            self._loop(b, d, 0, self.space.extents[d], 1, lambda c, i: self.around(c, rest, tile.moved(d, i), low, high))
            return
        n = self.plan.n
        if self.plan.dots or n is None:
            self._dots(b, [*self.plan.rows_around, *([] if self.plan.row is None else [self.plan.row])], tile)
            return
        extent = self.space.extents[n]
        if not isinstance(extent, int) and element_bytes(self.element) < 4:
            raise NotCovered("masks on small elements")
        step = self.plan.columns
        if not step:
            self._group(b, tile.moved(n, 0), extent, low, high)
            return
        self._loop(b, n, 0, extent, step, lambda c, j: self._group(c, tile.moved(n, j), _end(c, j, step, 0, extent), low, high))

    def columns_of_threads(self, b: LoopBuilder, tile: Tile, depth: Index) -> None:
        """All blocks of the outermost k loop for one group of columns, then for the next: threads meet once, not once a block."""
        n, plan = self.plan.n, self.plan
        assert n is not None
        extent = self.space.extents[n]

        def group(c: LoopBuilder, j: SSAValue) -> None:
            end = _end(c, j, plan.columns, 0, extent)
            each(c, 0, depth, plan.k_block, lambda e, low: self._group(e, tile.moved(n, j), end, low, _end(e, low, plan.k_block, 0, depth)))

        self._loop(b, n, 0, extent, plan.columns, group)

    def _group(self, b: LoopBuilder, tile: Tile, end: Index, low: Index, high: Index | None) -> None:
        """The columns from `tile` to `end` in panels, which are packed first if the plan says so."""
        plan, n, width = self.plan, self.plan.n, self.plan.width
        assert n is not None
        operand, extent, start = self.core.inputs[plan.b], self.space.extents[n], tile.at[n]
        whole = b.round_down(extent, width)
        edge = extent - whole if isinstance(extent, int) and isinstance(whole, int) else None
        edge_width = width if edge is None else self._edge_width(edge)
        main = end if edge == 0 else b.minimum(end, whole)
        columns: Columns | None = None
        memory: SSAValue | None = None
        if plan.pack:
            steps: Index = plan.k_block if high is not None else self.space.extents[plan.k[0]]
            depth = b.quotient(b.add(steps, plan.joined - 1), plan.joined)
            upper = high if high is not None else steps
            lanes = min(self.lanes, SQUARE)
            convert = self.micro.convert(plan.b)
            columns = Columns(self.space, operand, plan.k, n, width, lanes, start, low, upper, depth, plan.joined, convert)
            most = plan.columns if not isinstance(extent, int) else min(plan.columns, extent)
            inner = [self.space.extents[d] for d in plan.k[1:]]
            memory = b.scratch(plan.packed_element, [b.mul(-(-most // width), depth), *inner, width * plan.joined])
            even = isinstance(extent, int) and edge == 0 and most % (TOGETHER * width) == 0 and extent % (TOGETHER * width) == 0
            pack_columns(b, columns, memory, tile, main, TOGETHER if even else 0 if most < TOGETHER * width else None)
            if edge != 0:
                edges = columns
                each(b, main, end, width, lambda c, j: pack_edge(c, edges, memory, tile.moved(n, j), edge_width, edge))
        elif plan.panels:
            deep = self.space.extents[plan.k[0]]
            columns = Columns(self.space, operand, plan.k, n, width, self.lanes, 0, 0, deep, deep, 1, self.micro.convert(plan.b))
            memory = operand.memory

        def panel(c: LoopBuilder, j: Index, width: int, count: int | None) -> Panel:
            if columns is None or memory is None:
                return Panel(operand, width, count, None, low, high)
            return Panel(columns.store(memory), width, count, columns.place(c, j), low, high)

        def across(c: LoopBuilder, here: Tile, rows: Rows) -> None:
            each(c, start, main, width, lambda e, j: self._tiles(e, here.moved(n, j), panel(e, j, width, width), rows))
            if edge != 0:
                each(c, main, end, width, lambda e, j: self._tiles(e, here.moved(n, j), panel(e, j, edge_width, edge), rows))

        self._rows(b, list(plan.rows_around), tile, low, high, across)
        if memory is not None and plan.pack:
            b.release(memory)

    def _edge_width(self, columns: int) -> int:
        """Whole registers that hold the last `columns`, a power of two of them; fewer lanes when one register is too much."""
        width = self.lanes
        while width < columns:
            width *= 2
        while self.plan.joined == 1 and width // 2 >= columns > 0:
            width //= 2
        return width

    def _rows(self, b: LoopBuilder, dims: list[int], tile: Tile, low: Index, high: Index | None, across: Across) -> None:
        """Loops over further row dimensions, then over blocks of rows; `across` does all panels for one block."""
        flat = self.plan.flat
        if self.plan.turned and dims == ([] if flat is None else [flat.line]):
            across(b, tile, Rows(0, 0, 0, None))  # a line is complete when all tiles of one panel are
            return
        if flat is not None and dims == [flat.line]:
            for start, count, size in even_split(flat.extent, flat.height, flat.height - 1):
                across(b, tile, Rows(start, start + count * size, size, None))
            return
        if dims:
            d, rest = dims[0], dims[1:]
            self._loop(b, d, 0, self.space.extents[d], 1, lambda c, i: self._rows(c, rest, tile.moved(d, i), low, high, across))
            return
        row, height, most = self.plan.row, self.plan.height, self.plan.rows
        if row is None:
            across(b, tile, Rows(0, 1, 1, None))
            return
        extent = self.space.extents[row]
        if isinstance(extent, int):
            runs = [(start, start + count * size, size) for start, count, size in even_split(extent, height, self.least_height)]
        else:
            whole = b.round_down(extent, height)
            runs = [(0, whole, height), (whole, extent, 1)]
        for first, last, size in runs:
            step = max(1, most // size) * size if most else size if row == self.plan.parallel else 0
            if not step:
                self._block(b, tile, first, last, size, step, low, high, across)
                continue
            self._loop(
                b,
                row,
                first,
                last,
                step,
                lambda c, i, first=first, last=last, size=size, step=step: self._block(
                    c, tile, i, _end(c, i, step, first, last), size, step, low, high, across
                ),
            )

    def _block(
        self, b: LoopBuilder, tile: Tile, first: Index, last: Index, size: int, most: int, low: Index, high: Index | None, across: Across
    ) -> None:
        """One block of rows, packed if the plan says so."""
        plan, row = self.plan, self.plan.row
        assert row is not None
        if not plan.pack_rows:
            across(b, tile, Rows(first, last, size, None))
            return
        k = plan.k[0]
        end = high if high is not None else self.space.extents[k]
        steps: Index = plan.k_block if high is not None else end
        room = b.mul(b.quotient(b.add(steps, plan.joined - 1), plan.joined), plan.joined)
        memory = b.scratch(plan.packed_element, [most or b.sub(last, first), room])
        source = RowSource(self.core.inputs[plan.a], row, k, min(self.lanes, SQUARE), low, end, plan.joined, self.micro.convert(plan.a))
        packed = pack_rows(b, source, memory, tile, first, last)
        across(b, tile, Rows(first, last, size, packed))
        b.release(memory)

    def _tiles(self, b: LoopBuilder, tile: Tile, panel: Panel, rows: Rows) -> None:
        """All tiles of a block of rows in one panel."""
        row = self.plan.row
        if row is None:
            self.micro.emit(b, tile, panel, 1, None)
            return
        if self.plan.turned:
            self._lines(b, tile, panel)
            return
        if self.plan.flat is not None:
            each(b, rows.first, rows.last, rows.size, lambda c, i: self.micro.emit_flat(c, tile, panel, rows.size, i))
            return
        each(b, rows.first, rows.last, rows.size, lambda c, i: self.micro.emit(c, tile.moved(row, i), panel, rows.size, rows.packed))

    def _lines(self, b: LoopBuilder, tile: Tile, panel: Panel) -> None:
        """One panel of a line (or of all lines, if tiles run across their ends): its tiles in scratch memory, then turned and finished."""
        plan, row, flat = self.plan, self.plan.row, self.plan.flat
        assert row is not None
        length = self.space.extents[row]
        assert isinstance(length, int), "asked before"
        extent, height = (flat.extent, flat.height) if flat is not None else (length, plan.height)
        memory = b.scratch(self.element, [extent, panel.width])
        store = Operand(memory, AffineMap(2, 0, (AffineDimExpr(0), AffineDimExpr(1))))
        for start, count, size in even_split(extent, height, self.least_height):
            each(b, start, start + count * size, size, lambda c, i, size=size: self.micro.emit_staged(c, tile, panel, size, i, store))
        if flat is None:
            self.micro.unstage(b, tile, panel, store, 0, length)
        else:
            each(
                b, 0, extent // length, 1,
                lambda c, line: self.micro.unstage(c, tile.moved(flat.line, line), panel, store, c.mul(line, length), length),
            )  # fmt: skip
        b.release(memory)

    def _dots(self, b: LoopBuilder, dims: list[int], tile: Tile) -> None:
        """All rows and columns as dot products, a few results along n at a time."""
        if dims:
            d, rest = dims[0], dims[1:]
            self._loop(b, d, 0, self.space.extents[d], 1, lambda c, i: self._dots(c, rest, tile.moved(d, i)))
            return
        n = self.plan.n
        if n is None:
            self._dot_results(b, tile, 1)
            return
        extent = self.space.extents[n]
        whole = b.round_down(extent, RESULTS)
        self._loop(b, n, 0, whole, RESULTS, lambda c, j: self._dot_results(c, tile.moved(n, j), RESULTS))
        each(b, whole, extent, 1, lambda c, j: self._dot_results(c, tile.moved(n, j), 1))

    def _dot_results(self, b: LoopBuilder, tile: Tile, results: int) -> None:
        plan, core, micro = self.plan, self.core, self.micro
        assert core.combination is not None
        combiner = core.combination.combiner
        assert isinstance(combiner, arith.AddfOp | arith.AddiOp)

        def product(c: LoopBuilder, at: Tile, total: SSAValue) -> SSAValue:
            c.loc = core.op.location
            factors = [micro.factor(c, position, core.inputs[position], at) for position in (plan.a, plan.b)]
            return micro.fma(c, factors[0], factors[1], total)

        steps = DotSteps(self.space, self.element, self.lanes, plan.n, plan.k, combiner, product)
        for t, total in enumerate(dots(steps, b, tile, results)):
            at = tile if plan.n is None else tile.moved(plan.n, b.add(tile.at[plan.n], t))
            if core.init is None:
                total = combine(b, combiner, read(b, core.output, at), total)
            elif not is_identity(core.init, combiner):
                total = combine(b, combiner, core.init, total)
            micro.finish(b, at, total)
