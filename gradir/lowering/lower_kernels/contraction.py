"""Kind `contraction`: a register tile per step of all k loops, then the elementwise epilogue on the tile.

    for batch, for further n: for panels of columns: [pack the panel]  for further m: for tiles of rows: micro-kernel

`n` is the output's innermost dimension, `a` the operand that does not vary along it, `b` the one that does. Rows are split evenly, so that
there are at most two heights of tile; the last panel of columns is padded to whole registers, loads are masked, stores go in pieces.
When k is so long that operands leave the cache between two uses, all of the above runs for one block of k after the other; sums wait in
memory, and the epilogue is a pass of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType
from xdsl.ir import SSAValue

from gradir.dialects.upstream import arith
from gradir.lowering.groups import Group
from gradir.lowering.lower_kernels.binding import Kernel
from gradir.lowering.lower_kernels.bodies import combine, is_identity
from gradir.lowering.lower_kernels.builder import Index, LoopBuilder
from gradir.lowering.lower_kernels.contraction_plan import Plan, make_plan
from gradir.lowering.lower_kernels.dots import RESULTS, DotSteps, dots
from gradir.lowering.lower_kernels.micro_kernel import MicroKernel, Panel
from gradir.lowering.lower_kernels.panels import pack_panel, panel_operand
from gradir.lowering.lower_kernels.strips import each, nest, strips
from gradir.lowering.lower_kernels.tiles import Axis, NotCovered, Operand, Tile, read, write
from gradir.lowering.schedules.contraction import UNKNOWN, even_split
from gradir.lowering.schedules.machine import Machine, element_bytes

LARGE_WORK = 1 << 24
"""Multiply-adds from which on a second height of tile is worth its compile time."""


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
    if not core.stored or core.in_place:
        shape = cast("MemRefType[Any]", core.key.type).get_shape()
        if DYNAMIC_INDEX in shape or any(not isinstance(space.extents[d], int) for d in output):
            raise NotCovered("blocks of k into results of unknown sizes")
        scratch = b.scratch(core.element, list(shape))
        partial = Operand(scratch, core.output.map)
    lanes = machine.lanes_of(element_bytes(core.element)) * 2

    def everywhere(action: Callable[[LoopBuilder, Tile], None]) -> None:
        nest(b, output[:-1], space, space.origin, lambda c, at: strips(c, at, output[-1], 0, space.extents[output[-1]], lanes, action))

    init = core.init
    if init is not None:
        everywhere(lambda c, at: write(c, c.splat(init, at.type(core.element)), partial, at))
    generator = _Generator(kernel, plan, machine, partial)

    def block(c: LoopBuilder, low: SSAValue) -> None:
        generator.around(c, list(plan.around), space.origin, low, c.minimum(c.add(low, plan.k_block), extent))

    each(b, 0, extent, plan.k_block, block)
    if plan.epilogue or scratch is not None:
        everywhere(lambda c, at: generator.micro.finish(c, at, read(c, partial, at)))
    if scratch is not None:
        b.release(scratch)


class _Generator:
    """Emits the loops around the micro-kernel of one plan."""

    def __init__(self, kernel: Kernel, plan: Plan, machine: Machine, partial: Operand | None) -> None:
        self.plan, self.space, self.core = plan, plan.space, plan.core
        self.micro = MicroKernel(kernel, plan, partial)
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
        n, width = self.plan.n, self.plan.width
        if self.plan.dots or n is None:
            self._dots(b, [*self.plan.rows_around, *([] if self.plan.row is None else [self.plan.row])], tile)
            return

        def panel(c: LoopBuilder, j: Index, width: int, count: int | None) -> None:
            operand = self.core.inputs[self.plan.b]
            self._panel(c, tile.moved(n, j), Panel(operand, width, count, False, low, high))

        extent = self.space.extents[n]
        whole = b.round_down(extent, width)
        self._loop(b, n, 0, whole, width, lambda c, j: panel(c, j, width, width))
        if isinstance(extent, int) and isinstance(whole, int):
            if extent > whole:
                panel(b, whole, self._edge_width(extent - whole), extent - whole)
        elif element_bytes(self.element) < 4:
            raise NotCovered("masks on small elements")
        else:
            each(b, whole, extent, width, lambda c, j: panel(c, j, width, None))

    def _edge_width(self, columns: int) -> int:
        """Whole registers that hold the last `columns`, a power of two of them; fewer lanes when one register is too much."""
        width = self.lanes
        while width < columns:
            width *= 2
        while width // 2 >= columns:
            width //= 2
        return width

    def _panel(self, b: LoopBuilder, tile: Tile, panel: Panel) -> None:
        """All rows of one panel of columns, which is packed first if the plan says so."""
        plan, n = self.plan, self.plan.n
        assert n is not None
        if not plan.pack:
            self._rows(b, list(plan.rows_around), tile, panel)
            return
        sizes = [self.space.extents[d] for d in plan.k]
        if panel.high is not None:
            sizes[0] = plan.k_block
        memory = b.scratch(panel.operand.element, [*sizes, panel.width])
        copy = panel_operand(memory, plan.k, n, len(self.space.extents))
        across = Axis(n, panel.width, masked=panel.masked)
        pack_panel(b, self.space, panel.operand, copy, tile, plan.k, across, panel.count, panel.low, panel.high)
        self._rows(b, list(plan.rows_around), tile, Panel(copy, panel.width, panel.count, True, panel.low, panel.high))
        b.release(memory)

    def _rows(self, b: LoopBuilder, dims: list[int], tile: Tile, panel: Panel) -> None:
        """Loops over further row dimensions, then over tiles of rows."""
        if dims:
            d, rest = dims[0], dims[1:]
            self._loop(b, d, 0, self.space.extents[d], 1, lambda c, i: self._rows(c, rest, tile.moved(d, i), panel))
            return
        row, height = self.plan.row, self.plan.height
        if row is None:
            self.micro.emit(b, tile, panel, 1)
            return
        extent = self.space.extents[row]
        if isinstance(extent, int):
            runs = [(start, start + count * size, size) for start, count, size in even_split(extent, height, self.least_height)]
        else:
            whole = b.round_down(extent, height)
            runs = [(0, whole, height), (whole, extent, 1)]
        for low, high, size in runs:
            self._loop(b, row, low, high, size, lambda c, i, size=size: self.micro.emit(c, tile.moved(row, i), panel, size))

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
