"""The micro-kernel of contractions: all k loops over one register tile, then the epilogue on the tile.

`acc[rows, columns] += column(a) x row(b)` is one `vector.outerproduct` per step; where both operands vary along the columns it is one fma.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, cast

from xdsl.dialects.builtin import IntegerType, VectorType, i1
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from gradir.dialects.types import i64_array
from gradir.dialects.upstream import arith, math, vector
from gradir.lowering.lower_kernels.binding import Kernel, compute
from gradir.lowering.lower_kernels.bodies import KINDS, is_polynomial
from gradir.lowering.lower_kernels.builder import Index, LoopBuilder, vector_type
from gradir.lowering.lower_kernels.contraction_plan import Plan
from gradir.lowering.lower_kernels.flat_rows import Points, column as flat_column, points
from gradir.lowering.lower_kernels.panels import Convert
from gradir.lowering.lower_kernels.row_blocks import RowBlock, transposed
from gradir.lowering.lower_kernels.tiles import Axis, NotCovered, Operand, Tile, columns, powers_of_two, read, stride_along, uses, write
from gradir.lowering.schedules.machine import LINE_BYTES, Machine, element_bytes
from gradir.lowering.schedules.streaming import bytes_in_all

FETCH_STEPS = 128
"""Steps of k from which on there is time to fetch the operands of the epilogue."""
UNROLLED = 4
"""An innermost k loop of at most this many steps is written out."""


@dataclass(frozen=True)
class Panel:
    """A panel of `width` columns of which `count` exist (None: known when it runs), and the part of k that it holds.

    `operand` is read instead of b: b itself (`place` None), or a packed copy whose columns count from 0, the outermost k from `place`.
    """

    operand: Operand
    width: int
    count: int | None
    place: Index | None
    low: Index
    high: Index | None
    """Range of the outermost k loop; `high` None: all of it."""

    @property
    def masked(self) -> bool:
        return self.count != self.width


class MicroKernel:
    """Emits one tile of one plan at a time. `partial`: where sums wait between blocks of k; None when a tile is finished at once."""

    def __init__(self, kernel: Kernel, plan: Plan, partial: Operand | None, machine: Machine) -> None:
        self.kernel, self.plan, self.partial = kernel, plan, partial
        self.space, self.core = plan.space, plan.core
        self.element: Attribute = plan.core.element
        self.lanes = machine.lanes_of(element_bytes(self.element))
        assert plan.core.combination is not None
        product = plan.core.combination.term.owner
        block = cast("Any", plan.core.op).body.block
        factors = {_source(v, block): v for v in cast("Operation", product).operands}
        if set(factors) != {0, 1}:
            raise NotCovered("a product of other than the two operands")
        self.factors = factors
        inside = plan.space.produced
        operands = [o for op in plan.epilogue for o in (*op.used, op.output if op.stored else None)]
        memory = [o for o in operands if o is not None and o.memory not in inside]
        self.far = self._far_operands(machine)
        self.by_rows = any(is_polynomial(op.op) for op in plan.epilogue) or any(o.element == i1 for o in memory)

    def emit(self, b: LoopBuilder, tile: Tile, panel: Panel, height: int, packed: RowBlock | None) -> None:
        """`height` rows from `tile` on, all columns of the panel; `packed`: the copy of the row operand to read."""
        plan, core = self.plan, self.core
        assert plan.n is not None
        rows = () if height == 1 or plan.row is None else (Axis(plan.row, height),)
        whole = tile.with_axes(*rows, Axis(plan.n, panel.width, panel.masked))
        b.loc = core.op.location
        if self.partial is not None:
            start = read(b, self.partial, whole, whole=True)
        elif core.init is not None:
            start = b.splat(core.init, whole.type(self.element))
        else:
            start = read(b, core.output, whole, whole=True)
        for r in range(height if rows else 0):
            assert plan.row is not None
            self._ask_for_operands(b, tile.moved(plan.row, b.add(tile.at[plan.row], r)).with_axes(whole.axes[-1]))
        if plan.joined > 1 and packed is not None:
            total = self._joined(b, whole, panel, packed, start)
        else:
            total = self._sum(b, list(plan.k), whole, panel, packed, start)
        for part, value in self._parts(b, whole, panel, total):
            if self.partial is not None:
                write(b, value, self.partial, part)
            else:
                self.finish(b, part, value)

    def _far_operands(self, machine: Machine) -> list[tuple[Operand, bool]]:
        """Operands of the epilogue beyond L2 (True: written): a few lines for each tile, where the sum leaves time to fetch them."""
        plan = self.plan
        steps = [n for d in plan.k if isinstance(n := self.space.extents[d], int)]
        if self.partial is not None or plan.row is None or plan.n is None or len(steps) < len(plan.k) or prod(steps) < FETCH_STEPS:
            return []
        found: dict[SSAValue, tuple[Operand, bool]] = {}
        for op in plan.epilogue:
            for operand, written in (*((o, False) for o in op.used if o is not None), (op.output, True)):
                if operand.is_scalar or operand.memory in plan.space.produced or bytes_in_all(operand.memory) <= machine.l2:
                    continue
                if (not written or op.stored) and plan.row in uses(operand.map) and stride_along(operand, plan.n) == 1:
                    found.setdefault(operand.memory, (operand, written))
        return list(found.values())

    def _ask_for_operands(self, b: LoopBuilder, tile: Tile) -> None:
        """Have the lines on their way that the epilogue of one row of a tile reads and writes."""
        across = tile.axes[-1]
        for operand, written in self.far:
            size = element_bytes(operand.element)
            for first in range(0, across.size, max(1, LINE_BYTES // size)):
                at = tile.moved(across.dim, b.add(tile.at[across.dim], first))
                indices = b.values([b.affine(e, at.at) for e in operand.map.results])
                b.prefetch(operand.memory, indices, write=written)

    def emit_flat(self, b: LoopBuilder, tile: Tile, panel: Panel, height: int, first: Index) -> None:
        """`height` positions from the one with number `first` on, across the ends of lines."""
        plan, core, flat = self.plan, self.core, self.plan.flat
        assert plan.n is not None and flat is not None
        b.loc = core.op.location
        found = points(b, flat, self.space, core.inputs[plan.a], plan.k, tile, first, height)
        across = Axis(plan.n, panel.width, panel.masked)
        rows = [tile.moved(flat.line, line).moved(flat.place, place).with_axes(across) for line, place in found.at]
        for row in rows:
            self._ask_for_operands(b, row)
        total = self._flat_sum(b, tile, panel, height, found)
        type_ = vector_type(self.element, panel.width)
        if not self.by_rows:
            for r, row in enumerate(rows):
                value = b(vector.ExtractOp, [total], [type_], {"static_position": i64_array((r,))})
                for part, piece in self._parts(b, row, panel, value):
                    self._finish(b, part, piece)
            return
        saved = Operand(b.scratch(self.element, [height, panel.width]), AffineMap(2, 0, (AffineDimExpr(0), AffineDimExpr(1))))
        write(b, total, saved, Tile((0, 0), (Axis(0, height), Axis(1, panel.width))))

        def one_row(c: LoopBuilder, r: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
            value = read(c, saved, Tile((r, 0), (Axis(1, panel.width),)))
            position = c.add(first, r)
            line = c.quotient(position, flat.width)
            row = tile.moved(flat.line, line).moved(flat.place, c.sub(position, c.mul(line, flat.width))).with_axes(across)
            for part, piece in self._parts(c, row, panel, value):
                self._finish(c, part, piece)
            return []

        b.loop(0, height, 1, [], one_row)

    def _flat_sum(self, b: LoopBuilder, tile: Tile, panel: Panel, height: int, found: Points) -> SSAValue:
        plan, core, flat = self.plan, self.core, self.plan.flat
        assert plan.n is not None and flat is not None and core.init is not None
        whole = tile.with_axes(Axis(flat.place, height), Axis(plan.n, panel.width, panel.masked))
        return self._sum(b, list(plan.k), whole, panel, found, b.splat(core.init, whole.type(self.element)))

    def emit_staged(self, b: LoopBuilder, tile: Tile, panel: Panel, height: int, first: Index, store: Operand) -> None:
        """The sums of `height` positions from `first` on, to the rows of `store` of the same numbers."""
        plan, core = self.plan, self.core
        assert plan.n is not None and plan.row is not None and core.init is not None
        b.loc = core.op.location
        if plan.flat is not None:
            found = points(b, plan.flat, self.space, core.inputs[plan.a], plan.k, tile, first, height)
            total = self._flat_sum(b, tile, panel, height, found)
        else:
            rows = () if height == 1 else (Axis(plan.row, height),)
            whole = tile.moved(plan.row, first).with_axes(*rows, Axis(plan.n, panel.width, panel.masked))
            total = self._sum(b, list(plan.k), whole, panel, None, b.splat(core.init, whole.type(self.element)))
        axes = (Axis(0, height), Axis(1, panel.width)) if plan.flat is not None or height > 1 else (Axis(1, panel.width),)
        write(b, total, store, Tile((first, 0), axes))

    def unstage(self, b: LoopBuilder, tile: Tile, panel: Panel, store: Operand, base: Index, length: int) -> None:
        """Turn and finish the `length` positions of the line at `tile`, which are the rows of `store` from `base` on."""
        n, row = self.plan.n, self.plan.row
        assert n is not None and row is not None and panel.count is not None
        start = tile.at[n]

        def square(c: LoopBuilder, i: Index, j: int, side: int) -> None:
            here = tile.moved(n, c.add(start, j)).moved(row, i)
            there = Tile((c.add(base, i), j), (Axis(0, side), Axis(1, side)) if side > 1 else ())
            value = read(c, store, there)
            if side == 1:
                self.finish(c, here, value)
            else:
                self.finish(c, here.with_axes(Axis(n, side), Axis(row, side)), transposed(c, value))

        def area(low: int, rows: int, left: int, columns: int, side: int) -> None:
            deep, wide = rows - rows % side, columns - columns % side
            for j in range(left, left + wide, side):
                b.loop(low, low + deep, side, [], lambda c, i, _, j=j: square(c, i, j, side) or [])
            if side > 1:
                area(low, deep, left + wide, columns - wide, side // 2)
                area(low + deep, rows - deep, left, columns, side // 2)

        area(0, length, 0, panel.count, min(8, self.lanes))

    def _sum(self, b: LoopBuilder, dims: list[int], at: Tile, panel: Panel, packed: RowBlock | Points | None, total: SSAValue) -> SSAValue:
        """The k loops `dims`, the first outermost, around the product."""
        if not dims:
            return self.multiply(b, at, panel, packed, total)
        d, rest = dims[0], dims[1:]
        low: Index = 0
        high = self.space.extents[d]
        if d == self.plan.k[0] and panel.high is not None:
            low, high = panel.low, panel.high
        if not rest and low == 0 and isinstance(high, int) and high <= UNROLLED:
            for i in range(high):
                total = self._sum(b, rest, at.moved(d, i), panel, packed, total)
            return total
        return b.loop(low, high, 1, [total], lambda c, i, a: [self._sum(c, rest, at.moved(d, i), panel, packed, a[0])])[0]

    def _parts(self, b: LoopBuilder, whole: Tile, panel: Panel, total: SSAValue) -> list[tuple[Tile, SSAValue]]:
        """The tile as what is stored together: whole (masked if need be), or unmasked pieces of powers of two."""
        n = self.plan.n
        assert n is not None
        if panel.count is None or not panel.masked:
            return [(whole, total)]
        pieces = powers_of_two(panel.count, panel.width)
        if len(pieces) > 2 and element_bytes(self.element) >= 4:
            return [(whole, total)]
        at = whole.at[n]
        return [
            (whole.moved(n, b.add(at, first)).with_axes(*whole.axes[:-1], Axis(n, size)), columns(b, total, first, size))
            for first, size in pieces
        ]

    def multiply(self, b: LoopBuilder, at: Tile, panel: Panel, packed: RowBlock | Points | None, total: SSAValue) -> SSAValue:
        """`total + a * b` at one point of the k loops."""
        plan, core = self.plan, self.core
        n = plan.n
        assert n is not None
        b.loc = core.op.location
        *rows, across = at.axes
        used = uses(core.inputs[plan.a].map)
        if n in used or (plan.row is not None and plan.row in uses(core.inputs[plan.b].map)):
            factors = [self.factor(b, position, core.inputs[position], at) for position in (plan.a, plan.b)]
            return self.fma(b, factors[0], factors[1], total)
        source, there = core.inputs[plan.a], at.with_axes(*rows)
        if isinstance(packed, RowBlock):
            assert plan.row is not None
            k, source = plan.k[0], packed.operand
            there = there.moved(plan.row, b.sub(at.at[plan.row], packed.start)).moved(k, b.sub(at.at[k], packed.low))
        converted = isinstance(packed, RowBlock) and source.element == self.element
        if isinstance(packed, Points):
            column = flat_column(b, packed, self.space, source, plan.k, there)
        else:
            column = read(b, source, there, column=True) if converted else self.factor(b, plan.a, source, there, column=True)
        here = at.with_axes(across)
        if panel.place is not None:
            here = here.moved(n, 0).with_axes(Axis(n, across.size))
            if plan.k:
                k = plan.k[0]
                here = here.moved(k, b.add(b.sub(at.at[k], panel.low), panel.place))
        row = read(b, panel.operand, here) if panel.place is not None else self.factor(b, plan.b, panel.operand, here)
        if rows and plan.row in used:
            return b(vector.OuterProductOp, [column, row, total], [total.type], {"kind": KINDS[arith.AddfOp]})
        return self.fma(b, column, row, total)

    def _joined(self, b: LoopBuilder, whole: Tile, panel: Panel, packed: RowBlock, start: SSAValue) -> SSAValue:
        """The k loop in steps of several products that one instruction adds up: a small matrix product of packed operands."""
        plan = self.plan
        assert plan.n is not None and plan.row is not None and panel.place is not None
        k, n, row, joined, width = plan.k[0], plan.n, plan.row, plan.joined, whole.axes[-1].size
        high = panel.high if panel.high is not None else self.space.extents[k]
        steps = b.quotient(b.add(b.sub(high, panel.low), joined - 1), joined)
        rows = whole.axes[:-1]
        first = whole.moved(row, b.sub(whole.at[row], packed.start))
        kinds = vector.contract_properties(len(rows))
        element = panel.operand.element
        place = panel.place

        def step(c: LoopBuilder, i: SSAValue, a: list[SSAValue]) -> list[SSAValue]:
            left = read(c, packed.operand, first.moved(k, c.mul(i, joined)).with_axes(*rows, Axis(k, joined)))
            flat = read(c, panel.operand, whole.moved(n, 0).moved(k, c.add(i, place)).with_axes(Axis(n, joined * width)))
            right = c(vector.ShapeCastOp, [flat], [vector_type(element, width, joined)])
            return [c(vector.ContractionOp, [left, right, a[0]], [a[0].type], kinds)]

        return b.loop(0, steps, 1, [start], step)[0]

    def convert(self, position: int) -> Convert:
        """What becomes of an operand's elements when they are packed: the accumulator's element, or what is joined."""
        plan, block = self.plan, cast("Any", self.core.op).body.block
        wanted = self.factors[position]

        def convert(b: LoopBuilder, value: SSAValue, tile: Tile) -> SSAValue:
            if plan.packed_element == self.element:
                return _converted(b, wanted, block, value, tile)
            if wanted.owner is block or _element_of(value) == plan.packed_element:
                return value
            return b(type(cast("Operation", wanted.owner)), [value], [tile.type(plan.packed_element)])

        return convert

    def factor(self, b: LoopBuilder, position: int, operand: Operand, tile: Tile, *, column: bool = False) -> SSAValue:
        """One factor of the product at `tile`: the operand, converted as the body says."""
        value = read(b, operand, tile, column=column)
        return _converted(b, self.factors[position], cast("Any", self.core.op).body.block, value, tile)

    def fma(self, b: LoopBuilder, x: SSAValue, y: SSAValue, total: SSAValue) -> SSAValue:
        """`total + x * y`, elementwise."""
        type_ = total.type
        x, y = b.splat(x, type_), b.splat(y, type_)
        if isinstance(self.element, IntegerType):
            flags = {"overflowFlags": arith.IntegerOverflowAttr("none")}
            return b(arith.AddiOp, [total, b(arith.MuliOp, [x, y], [type_], flags)], [type_], flags)
        if type_ == self.element:
            return b(math.FmaOp, [x, y, total], [type_], {"fastmath": arith.FastMathFlagsAttr("none")})
        return b(vector.FMAOp, [x, y, total], [type_])

    def finish(self, b: LoopBuilder, tile: Tile, total: SSAValue) -> None:
        """Epilogue and stores of one tile: all reads come before the first write.

        An epilogue of polynomials, or with booleans in memory (which are read one by one), takes the tile row by row through scratch
        memory: a whole tile of them has no room in registers.
        """
        if len(tile.axes) < 2 or not self.by_rows:
            self._finish(b, tile, total)
            return
        (rows, across), row, n = tile.axes, tile.axes[0].dim, tile.axes[1].dim
        memory = b.scratch(self.element, [rows.size, across.size])
        saved = Operand(memory, AffineMap(len(tile.at), 0, (AffineDimExpr(row), AffineDimExpr(n))))
        inside = tile.moved(row, 0).moved(n, 0)
        write(b, total, saved, inside.with_axes(Axis(row, rows.size), Axis(n, across.size)))

        def one_row(c: LoopBuilder, r: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
            value = read(c, saved, inside.moved(row, r).with_axes(Axis(n, across.size)))
            self._finish(c, tile.moved(row, c.add(tile.at[row], r)).with_axes(across), value)
            return []

        b.loop(0, rows.size, 1, [], one_row)

    def _finish(self, b: LoopBuilder, tile: Tile, total: SSAValue) -> None:
        known: dict[SSAValue, SSAValue] = {self.core.key: total}
        for op in self.plan.epilogue:
            known[op.key] = compute(b, self.kernel, op, tile, known)
        for op in (self.core, *self.plan.epilogue):
            if op.stored:
                b.loc = op.op.location
                write(b, known[op.key], op.output, tile)


def _element_of(value: SSAValue) -> Attribute:
    return value.type.element_type if isinstance(value.type, VectorType) else value.type


def _source(value: SSAValue, block: Any) -> int:
    """The argument of the body that a factor converts; -1 when it does more than convert."""
    while value.owner is not block:
        owner = cast("Any", value.owner)
        if len(owner.operands) != 1:
            return -1
        value = owner.operands[0]
    return cast("Any", value).index


def _converted(b: LoopBuilder, wanted: SSAValue, block: Any, value: SSAValue, tile: Tile) -> SSAValue:
    """The unary ops between an argument of the body and `wanted`, on whatever shape `value` has."""
    chain: list[Any] = []
    while wanted.owner is not block:
        chain.append(wanted.owner)
        wanted = cast("Any", wanted.owner).operands[0]
    for op in reversed(chain):
        element = op.results[0].type
        type_ = element if value.type == op.operands[0].type else tile.type(element)
        value = b(type(op), [value], [type_], op.properties)
    return value
