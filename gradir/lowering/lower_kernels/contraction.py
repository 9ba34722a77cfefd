"""Kind `contraction`: a register tile per step of all k loops, then the elementwise epilogue on the tile.

    for batch, for further n: for panels of columns: [pack the panel]  for further m: for tiles of rows:
        acc[rows, columns] = init;  for k...: acc += column(a) x row(b);  epilogue; store

`n` is the output's innermost dimension, `a` the operand that does not vary along it, `b` the one that does. Rows are split evenly, so that
there are at most two heights of tile; the last panel of columns is padded to whole registers, loads are masked, stores go in pieces.
When both operands vary along the output's innermost dimension (a depthwise convolution) the step is an elementwise fma instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, cast

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineDimExpr

from gradir.dialects.upstream import arith, math, vector
from gradir.lowering.groups import Group
from gradir.lowering.lower_kernels.binding import BoundOp, Kernel, Space, bind, compute
from gradir.lowering.lower_kernels.bodies import KINDS, combine, is_identity
from gradir.lowering.lower_kernels.builder import Index, LoopBuilder
from gradir.lowering.lower_kernels.collapse import collapse
from gradir.lowering.lower_kernels.dots import RESULTS, DotSteps, dots, suits_dots
from gradir.lowering.lower_kernels.panels import pack_panel, panel_operand
from gradir.lowering.lower_kernels.tiles import (
    Axis,
    NotCovered,
    Operand,
    Tile,
    columns,
    powers_of_two,
    read,
    stride_along,
    uses,
    write,
)
from gradir.lowering.schedules.contraction import UNKNOWN, even_split, tile_of
from gradir.lowering.schedules.machine import Machine, element_bytes

LARGE_WORK = 1 << 24
"""Multiply-adds from which on a second height of tile is worth its compile time."""
UNROLLED = 4
"""An innermost k loop of at most this many steps is written out."""


@dataclass(frozen=True)
class Plan:
    """What the generator has decided: roles of dimensions and operands, sizes of the tile."""

    space: Space
    core: BoundOp
    epilogue: tuple[BoundOp, ...]
    a: int
    b: int
    n: int | None
    """The output's innermost dimension; None when there is one result in all."""
    row: int | None
    around: tuple[int, ...]
    """Loops outside of the panels: batch dimensions and further dimensions of b."""
    rows_around: tuple[int, ...]
    """Loops between panels and row tiles: further dimensions of a."""
    k: tuple[int, ...]
    height: int
    width: int
    pack: bool
    parallel: int | None
    dots: bool
    """Sum along k in vectors instead of along n."""


def lower_contraction(kernel: Kernel, group: Group, machine: Machine) -> None:
    """Build the whole kernel into `kernel.b`."""
    plan = make_plan(kernel, group, machine)
    _Generator(kernel, plan, machine).run()


def make_plan(kernel: Kernel, group: Group, machine: Machine) -> Plan:
    """Roles of the dimensions, and the schedule's sizes fitted to them."""
    assert group.contraction is not None
    space = bind(kernel, group)
    position = group.contraction.index
    space = _collapsed(kernel, space, group)
    core = space.ops[position]
    epilogue = tuple(op for k, op in enumerate(space.ops) if k != position)
    if core.combination is None or not isinstance(core.combination.term.owner, arith.MulfOp | arith.MuliOp):
        raise NotCovered("a contraction that is no sum of products")
    if not all(isinstance(e, AffineDimExpr) or e.used_dims() == set() for e in core.output.map.results):
        raise NotCovered("an output that is read through sums")
    output = [d for d in range(len(space.extents)) if d in uses(core.output.map)]
    k = tuple(d for d in range(len(space.extents)) if d in core.reduced and space.extents[d] != 1)
    schedule = kernel.schedule
    parallel = next((space.place[d] for d in schedule.field("parallel") if d in space.place), None)
    if not output:
        if not suits_dots(core, k):
            raise NotCovered("one result of operands that do not lie side by side")
        return Plan(space, core, epilogue, 0, 1, None, None, (), (), k, 1, 1, False, None, True)
    n = max(output)
    a, b = (0, 1) if n in uses(core.inputs[1].map) else (1, 0)
    if n not in uses(core.inputs[b].map):
        raise NotCovered("no operand varies along the innermost dimension")
    row = _row_dim(space, core, a, b, output, n)
    used_a, used_b = uses(core.inputs[a].map), uses(core.inputs[b].map)
    others = [d for d in output if d not in (n, row)]
    rows_around = tuple(d for d in others if d in used_a and d not in used_b)
    around = tuple(d for d in others if d not in rows_around)
    tile = schedule.field("tile")
    if len(tile) < 2:
        rows, width = space.extents[row] if row is not None else 1, space.extents[n]
        known = [e if isinstance(e, int) else UNKNOWN for e in (rows, width)]
        tile = tile_of(machine, element_bytes(core.element), *known)
    height = 1 if row is None else tile[0]
    pack = 1 in schedule.field("pack") and n not in used_a
    dots = not pack and n not in used_a and stride_along(core.inputs[b], n) != 1 and suits_dots(core, k)
    return Plan(space, core, epilogue, a, b, n, row, around, rows_around, k, height, tile[1], pack, parallel, dots)


def _collapsed(kernel: Kernel, space: Space, group: Group) -> Space:
    """`space` with neighbouring dimensions of one role joined where memory allows."""
    roles = group.contraction
    assert roles is not None
    for dims in (roles.k, roles.n, roles.m, roles.batch):
        places = sorted({space.place[d] for d in dims})
        runs: list[list[int]] = []
        for p in places:
            if runs and runs[-1][-1] == p - 1:
                runs[-1].append(p)
            else:
                runs.append([p])
        for run in reversed(runs):
            space = collapse(kernel, space, run)
    return space


def _row_dim(space: Space, core: BoundOp, a: int, b: int, output: Sequence[int], n: int) -> int | None:
    """The dimension of the tile's rows: along a and not along b, the innermost that splits evenly, else the longest."""
    used_a, used_b = uses(core.inputs[a].map), uses(core.inputs[b].map)
    found = [d for d in output if d != n and d in used_a and d not in used_b]
    if not found and n in used_a:
        found = [d for d in output if d != n and d in used_a ^ used_b]
    if not found:
        return None

    def length(d: int) -> int:
        extent = space.extents[d]
        return extent if isinstance(extent, int) else 1 << 30

    even = (d for d in reversed(found) if any(length(d) % size == 0 for size in (4, 5, 6)))
    return next(even, max(found, key=length))


class _Generator:
    """Emits the loops of one plan."""

    def __init__(self, kernel: Kernel, plan: Plan, machine: Machine) -> None:
        self.kernel, self.plan, self.machine = kernel, plan, machine
        self.space, self.core = plan.space, plan.core
        self.element: Attribute = plan.core.element
        self.lanes = machine.lanes_of(element_bytes(self.element))
        assert plan.core.combination is not None
        combiner = plan.core.combination.combiner
        assert isinstance(combiner, arith.AddfOp | arith.AddiOp)
        self.combiner = combiner
        product = plan.core.combination.term.owner
        block = cast("Any", plan.core.op).body.block
        factors = dict(zip((_source(v, block) for v in product.operands), product.operands))  # pyright: ignore
        if set(factors) != {0, 1}:
            raise NotCovered("a product of other than the two operands")
        self.factor = factors
        known = [e if isinstance(e, int) else UNKNOWN for e in plan.space.extents]
        self.least_height = plan.height - plan.height // 3 if prod(known) < LARGE_WORK else plan.height - plan.height // 6

    def run(self) -> None:
        self._around(self.kernel.b, list(self.plan.around), self.space.origin)

    # loops outside of the micro-kernel

    def _loop(self, b: LoopBuilder, dim: int, low: Index, high: Index, step: int, body: Callable[[LoopBuilder, SSAValue], None]) -> None:
        """A loop along `dim`, on several threads when the schedule says so."""
        if dim == self.plan.parallel and (not isinstance(high, int) or not isinstance(low, int) or high - low > step):
            b.parallel(low, high, step, body)
            return

        def carry(c: LoopBuilder, i: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
            body(c, i)
            return []

        b.loop(low, high, step, [], carry)

    def _around(self, b: LoopBuilder, dims: list[int], tile: Tile) -> None:
        if dims:
            self._loop(b, dims[0], 0, self.space.extents[dims[0]], 1, lambda c, i: self._around(c, dims[1:], tile.moved(dims[0], i)))
            return
        n, width = self.plan.n, self.plan.width
        if self.plan.dots or n is None:
            self._dots(b, [*self.plan.rows_around, *([] if self.plan.row is None else [self.plan.row])], tile)
            return
        extent = self.space.extents[n]
        if isinstance(extent, int):
            whole = extent - extent % width
            self._loop(b, n, 0, whole, width, lambda c, j: self._panel(c, tile.moved(n, j), width, width))
            if extent > whole:
                self._panel(b, tile.moved(n, whole), self._edge_width(extent - whole), extent - whole)
            return
        if element_bytes(self.element) < 4:
            raise NotCovered("masks on small elements")
        whole = b.round_down(extent, width)
        self._loop(b, n, 0, whole, width, lambda c, j: self._panel(c, tile.moved(n, j), width, width))
        b.loop(whole, extent, width, [], lambda c, j, _: self._panel(c, tile.moved(n, j), width, None) or [])

    def _edge_width(self, columns: int) -> int:
        """Whole registers that hold the last `columns`, a power of two of them; fewer lanes when one register is too much."""
        width = self.lanes
        while width < columns:
            width *= 2
        while width // 2 >= columns:
            width //= 2
        return width

    def _panel(self, b: LoopBuilder, tile: Tile, width: int, count: int | None) -> None:
        """All rows of one panel of columns; `count` of its `width` columns exist (None: known when it runs)."""
        plan = self.plan
        assert plan.n is not None
        operand = self.core.inputs[plan.b]
        panel: SSAValue | None = None
        if plan.pack:
            sizes = [self.space.extents[d] for d in plan.k]
            panel = b.scratch(operand.element, [*sizes, width])
            pack_panel(b, self.space, operand, panel, tile, plan.k, Axis(plan.n, width, masked=count != width), count)
            operand = panel_operand(panel, plan.k, plan.n, len(self.space.extents))
        self._rows_around(b, list(plan.rows_around), tile, operand, width, count, plan.pack)
        if panel is not None:
            b.release(panel)

    def _rows_around(self, b: LoopBuilder, dims: list[int], tile: Tile, operand: Operand, width: int, count: int | None, packed: bool) -> None:
        if dims:
            d, rest = dims[0], dims[1:]
            extent = self.space.extents[d]
            self._loop(b, d, 0, extent, 1, lambda c, i: self._rows_around(c, rest, tile.moved(d, i), operand, width, count, packed))
            return
        row, height = self.plan.row, self.plan.height
        if row is None:
            self._micro(b, tile, operand, 1, width, count, packed)
            return
        extent = self.space.extents[row]
        if isinstance(extent, int):
            for start, tiles, size in even_split(extent, height, self.least_height):
                self._loop(
                    b,
                    row,
                    start,
                    start + tiles * size,
                    size,
                    lambda c, i, size=size: self._micro(c, tile.moved(row, i), operand, size, width, count, packed),
                )
            return
        whole = b.round_down(extent, height)
        for low, high, size in ((0, whole, height), (whole, extent, 1)):
            self._loop(
                b, row, low, high, size, lambda c, i, size=size: self._micro(c, tile.moved(row, i), operand, size, width, count, packed)
            )

    # dot products

    def _dots(self, b: LoopBuilder, dims: list[int], tile: Tile) -> None:
        """All rows and columns, a few results along n at a time."""
        if dims:
            self._loop(b, dims[0], 0, self.space.extents[dims[0]], 1, lambda c, i: self._dots(c, dims[1:], tile.moved(dims[0], i)))
            return
        n = self.plan.n
        if n is None:
            self._dot_results(b, tile, 1)
            return
        extent = self.space.extents[n]
        whole = b.round_down(extent, RESULTS)
        self._loop(b, n, 0, whole, RESULTS, lambda c, j: self._dot_results(c, tile.moved(n, j), RESULTS))
        b.loop(whole, extent, 1, [], lambda c, j, _: self._dot_results(c, tile.moved(n, j), 1) or [])

    def _dot_results(self, b: LoopBuilder, tile: Tile, results: int) -> None:
        plan = self.plan

        def product(c: LoopBuilder, at: Tile, total: SSAValue) -> SSAValue:
            c.loc = self.core.op.location
            factors = [self._factor(c, position, self.core.inputs[position], at) for position in (plan.a, plan.b)]
            return self._fma(c, factors[0], factors[1], total)

        steps = DotSteps(self.space, self.element, self.lanes, plan.n, plan.k, self.combiner, product)
        for t, total in enumerate(dots(steps, b, tile, results)):
            at = tile if plan.n is None else tile.moved(plan.n, b.add(tile.at[plan.n], t))
            if self.core.init is not None and not is_identity(self.core.init, self.combiner):
                total = combine(b, self.combiner, self.core.init, total)
            elif self.core.init is None:
                total = combine(b, self.combiner, read(b, self.core.output, at), total)
            self._finish(b, at, total)

    # the micro-kernel

    def _micro(self, b: LoopBuilder, tile: Tile, operand: Operand, height: int, width: int, count: int | None, packed: bool) -> None:
        plan, core = self.plan, self.core
        assert plan.n is not None
        masked = count != width
        rows = () if height == 1 or plan.row is None else (Axis(plan.row, height),)
        across = Axis(plan.n, width, masked)
        whole = tile.with_axes(*rows, across)
        b.loc = core.op.location
        if core.init is not None:
            start = b.splat(core.init, whole.type(self.element))
        else:
            start = read(b, core.output, whole, whole=True)

        def step(c: LoopBuilder, dims: list[int], at: Tile, accumulator: SSAValue) -> SSAValue:
            if not dims:
                return self._multiply(c, at, operand, rows, across, accumulator, packed)
            d, rest = dims[0], dims[1:]
            extent = self.space.extents[d]
            if not rest and isinstance(extent, int) and extent <= UNROLLED:
                for i in range(extent):
                    accumulator = step(c, rest, at.moved(d, i), accumulator)
                return accumulator
            return c.loop(0, extent, 1, [accumulator], lambda e, i, carried: [step(e, rest, at.moved(d, i), carried[0])])[0]

        total = step(b, list(plan.k), tile, start)
        if count is None or not masked:
            self._finish(b, whole, total)
            return
        pieces = powers_of_two(count, width)
        if len(pieces) > 2 and element_bytes(self.element) >= 4:
            self._finish(b, whole, total)
            return
        for first, size in pieces:
            part = tile.moved(plan.n, b.add(tile.at[plan.n], first))
            self._finish(b, part.with_axes(*rows, Axis(plan.n, size)), columns(b, total, first, size))

    def _multiply(
        self, b: LoopBuilder, at: Tile, operand: Operand, rows: tuple[Axis, ...], across: Axis, accumulator: SSAValue, packed: bool
    ) -> SSAValue:
        """`accumulator + a * b` at one point of the k loops."""
        plan, core = self.plan, self.core
        assert plan.n is not None
        b.loc = core.op.location
        used = uses(core.inputs[plan.a].map)
        here = at.moved(plan.n, 0) if packed else at
        unpacked_mask = replace(across, masked=across.masked and not packed)
        if plan.n not in used and (plan.row is None or plan.row not in uses(core.inputs[plan.b].map)):
            column = self._factor(b, plan.a, core.inputs[plan.a], at.with_axes(*rows), column=True)
            row = self._factor(b, plan.b, operand, here.with_axes(unpacked_mask))
            if rows and plan.row in used:
                return b(vector.OuterProductOp, [column, row, accumulator], [accumulator.type], {"kind": KINDS[arith.AddfOp]})
            return self._fma(b, column, row, accumulator)
        tile = at.with_axes(*rows, across)
        factors = [self._factor(b, position, core.inputs[position], tile) for position in (plan.a, plan.b)]
        return self._fma(b, factors[0], factors[1], accumulator)

    def _factor(self, b: LoopBuilder, position: int, operand: Operand, tile: Tile, *, column: bool = False) -> SSAValue:
        """One factor of the product at `tile`: the operand, converted as the body says."""
        value = read(b, operand, tile, column=column)
        arguments: list[SSAValue | None] = [None, None, None]
        arguments[position] = value
        op = cast("Any", self.core.op)
        wanted = self.factor[position]
        if wanted is op.body.block.args[position]:
            return value
        return _conversions(b, wanted, op.body.block, value, tile)

    def _fma(self, b: LoopBuilder, x: SSAValue, y: SSAValue, accumulator: SSAValue) -> SSAValue:
        type_ = accumulator.type
        x, y = b.splat(x, type_), b.splat(y, type_)
        if isinstance(self.element, IntegerType):
            product = b(arith.MuliOp, [x, y], [type_], {"overflowFlags": arith.IntegerOverflowAttr("none")})
            return b(arith.AddiOp, [accumulator, product], [type_], {"overflowFlags": arith.IntegerOverflowAttr("none")})
        if type_ == self.element:
            return b(math.FmaOp, [x, y, accumulator], [type_], {"fastmath": arith.FastMathFlagsAttr("none")})
        return b(vector.FMAOp, [x, y, accumulator], [type_])

    def _finish(self, b: LoopBuilder, tile: Tile, total: SSAValue) -> None:
        """Epilogue and stores of one tile: all reads come before the first write."""
        known: dict[SSAValue, SSAValue] = {self.core.key: total}
        for op in self.plan.epilogue:
            known[op.key] = compute(b, self.kernel, op, tile, known)
        for op in (self.core, *self.plan.epilogue):
            if op.stored:
                b.loc = op.op.location
                write(b, known[op.key], op.output, tile)


def _source(value: SSAValue, block: Any) -> int:
    """The argument of the body that a factor converts; -1 when it does more than convert."""
    while value.owner is not block:
        owner = cast("Any", value.owner)
        if len(owner.operands) != 1:
            return -1
        value = owner.operands[0]
    return cast("Any", value).index


def _conversions(b: LoopBuilder, wanted: SSAValue, block: Any, value: SSAValue, tile: Tile) -> SSAValue:
    """The unary ops between an argument of the body and `wanted`, on whatever shape `value` has."""
    chain: list[Any] = []
    at = wanted
    while at.owner is not block:
        chain.append(at.owner)
        at = cast("Any", at.owner).operands[0]
    for op in reversed(chain):
        element = op.results[0].type
        type_ = tile.type(element) if value.type != op.operands[0].type else element
        value = b(type(op), [value], [type_], op.properties)
    return value
