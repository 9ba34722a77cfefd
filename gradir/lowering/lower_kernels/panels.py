"""Panels: what the tiles of a contraction read again and again, copied side by side.

Columns: `memref<(panels * k0) x k... x width>`. What the micro-kernel loads in one step lies in one line, whatever the operand's strides;
panel p of a group starts at row p * k0, columns past the operand's end are zero. Several panels are copied in one sweep along k, so that
rows are read in long runs: a row of one panel is one line of a page that nothing else of the panel touches.

Elements are converted on the way, so that the micro-kernel need not. With `joined` = 2, two steps of k lie side by side for each column,
`memref<(panels * ceil(k / 2)) x (2 * width)>`: what instructions that multiply and add pairs read; an odd last step is joined with zeros.

Where neighbours of the source are not neighbours of the copy, squares of a register's lanes are transposed in registers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects.builtin import i1
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineConstantExpr, AffineDimExpr, AffineMap

from gradir.dialects.upstream import vector
from gradir.lowering.lower_kernels.binding import Space
from gradir.lowering.lower_kernels.builder import Index, LoopBuilder, number, vector_type
from gradir.lowering.lower_kernels.row_blocks import transposed
from gradir.lowering.lower_kernels.strips import each
from gradir.lowering.lower_kernels.tiles import Axis, Operand, Tile, read, stride_along, write
from gradir.lowering.schedules.machine import element_bytes

Convert: TypeAlias = Callable[[LoopBuilder, SSAValue, Tile], SSAValue]
"""What becomes of a value (of a tile) of the operand before it is stored."""
TOGETHER = 4
"""Panels that one sweep along k fills."""


def packed_map(rank: int, deep: int, across: int, depth: int, width: int) -> AffineMap:
    """How an operand that was packed before lies: `[(across / width) * depth + deep, across % width]`, whole panels only."""
    n, columns = AffineDimExpr(across), AffineConstantExpr(width)
    panel = AffineBinaryOpExpr(AffineBinaryOpKind.FloorDiv, n, columns)
    return AffineMap(rank, 0, (panel * depth + AffineDimExpr(deep), AffineBinaryOpExpr(AffineBinaryOpKind.Mod, n, columns)))


def is_packed(map_: AffineMap, across: int, width: int) -> bool:
    """Is this a `packed_map` of panels of `width` columns?"""
    if len(map_.results) != 2 or not isinstance(map_.results[1], AffineBinaryOpExpr):
        return False
    return map_.results[1] == AffineBinaryOpExpr(AffineBinaryOpKind.Mod, AffineDimExpr(across), AffineConstantExpr(width))


@dataclass(frozen=True)
class Columns:
    """Columns of a contraction's operand that are packed together: from `start` on, for steps `low` to `high` of the outermost k loop."""

    space: Space
    operand: Operand
    k: tuple[int, ...]
    n: int
    width: int
    lanes: int
    start: Index
    low: Index
    high: Index
    depth: Index
    """Rows of the store that a panel has: steps of the outermost k loop, or pairs of them."""
    joined: int
    convert: Convert

    @property
    def contiguous(self) -> bool:
        """Are neighbours along n neighbours in memory?"""
        return stride_along(self.operand, self.n) == 1

    @property
    def along_k(self) -> bool:
        """Are neighbours along the only k loop neighbours in memory, so that squares can be transposed?"""
        whole = len(self.k) == 1 and self.width % self.lanes == 0 and self.lanes & (self.lanes - 1) == 0
        return whole and self.lanes > 1 and self.operand.element != i1 and stride_along(self.operand, self.k[0]) == 1

    def place(self, b: LoopBuilder, at: Index) -> Index:
        """The row of the store at which the panel of the columns `at` begins."""
        return b.mul(b.quotient(b.sub(at, self.start), self.width), self.depth)

    def store(self, memory: SSAValue) -> Operand:
        """The store of panels as an operand of the space: columns count from 0, the outermost k from a panel's row."""
        rank = len(self.space.extents)
        return Operand(memory, AffineMap(rank, 0, (*(AffineDimExpr(d) for d in self.k), AffineDimExpr(self.n))))

    def inside(self, b: LoopBuilder, at: Tile, place: Index, column: Index) -> Tile:
        """Where in the store the point `at` of the operand goes."""
        step = b.quotient(b.sub(at.at[self.k[0]], self.low), self.joined)
        return at.moved(self.n, column).moved(self.k[0], b.add(step, place))

    def value(self, b: LoopBuilder, at: Tile, *, whole: bool = False) -> SSAValue:
        """The operand at a tile, converted."""
        return self.convert(b, read(b, self.operand, at, whole=whole), at)

    def extent(self, dim: int) -> tuple[Index, Index]:
        """Bounds of a k loop."""
        return (self.low, self.high) if dim == self.k[0] else (0, self.space.extents[dim])


def pack_columns(b: LoopBuilder, columns: Columns, memory: SSAValue, tile: Tile, end: Index, together: int | None) -> None:
    """Copy whole panels, from the start of `columns` to `end`. `together` 0: there are few, `TOGETHER`: a multiple of it, None: unknown."""
    store, width = columns.store(memory), columns.width
    if columns.joined > 1:
        each(b, columns.start, end, width, lambda c, j: _join_panel(c, columns, store, tile.moved(columns.n, j), width, width))
    elif columns.contiguous:
        several: Index = columns.start
        if together is None:
            several = b.add(columns.start, b.round_down(b.sub(end, columns.start), TOGETHER * width))
        elif together:
            several = end
        if several is not columns.start:
            each(
                b, columns.start, several, TOGETHER * width, lambda c, j: _copy_rows(c, columns, store, tile.moved(columns.n, j), TOGETHER)
            )
        if several is not end:
            each(b, several, end, width, lambda c, j: _copy_rows(c, columns, store, tile.moved(columns.n, j), 1))
    elif columns.along_k:
        each(b, columns.start, end, width, lambda c, j: _transpose_panel(c, columns, store, tile.moved(columns.n, j)))
    else:
        each(b, columns.start, end, width, lambda c, j: pack_edge(c, columns, memory, tile.moved(columns.n, j), width, width))


def pack_edge(b: LoopBuilder, columns: Columns, memory: SSAValue, tile: Tile, width: int, count: int | None) -> None:
    """Copy one panel of `count` columns (None: known when it runs), zeros up to `width`."""
    store, n = columns.store(memory), columns.n
    if columns.joined > 1:
        _join_panel(b, columns, store, tile, width, count)
        return
    place, first = columns.place(b, tile.at[n]), tile.at[n]
    across = Axis(n, width, count != width)

    def row(c: LoopBuilder, at: Tile) -> None:
        if columns.contiguous and not (across.masked and element_bytes(columns.operand.element) < 4):
            write(c, columns.value(c, at.with_axes(across), whole=True), store, columns.inside(c, at, place, 0).with_axes(Axis(n, width)))
            return
        if across.masked:
            zero = c.splat(c.constant(number(0, store.element)), vector_type(store.element, width))
            write(c, zero, store, columns.inside(c, at, place, 0).with_axes(Axis(n, width)))
        existing: Index = count if count is not None else c.minimum(width, c.sub(columns.space.extents[n], first))
        each(c, 0, existing, 1, lambda e, i: one(e, at, i))

    def one(c: LoopBuilder, at: Tile, column: SSAValue) -> None:
        write(c, columns.value(c, at.moved(n, c.add(first, column))), store, columns.inside(c, at, place, column))

    _over_k(b, columns, columns.k, tile, row)


def _over_k(b: LoopBuilder, columns: Columns, dims: Sequence[int], at: Tile, body: Callable[[LoopBuilder, Tile], None]) -> None:
    """Loops over `dims` of k, the first outermost."""
    if not dims:
        body(b, at)
        return
    each(b, *columns.extent(dims[0]), 1, lambda c, i: _over_k(c, columns, dims[1:], at.moved(dims[0], i), body))


def _copy_rows(b: LoopBuilder, columns: Columns, store: Operand, tile: Tile, panels: int) -> None:
    """`panels` neighbouring panels whose rows are read in one run."""
    n, width = columns.n, columns.width
    first = tile.at[n]
    begin = columns.place(b, first)
    places = [b.add(begin, b.mul(p, columns.depth)) for p in range(panels)]

    def row(c: LoopBuilder, at: Tile) -> None:
        tiles = [at.moved(n, c.add(first, p * width)).with_axes(Axis(n, width)) for p in range(panels)]
        reads = [columns.value(c, part, whole=True) for part in tiles]
        for place, value in zip(places, reads):
            write(c, value, store, columns.inside(c, at, place, 0).with_axes(Axis(n, width)))

    _over_k(b, columns, columns.k, tile, row)


def _transpose_panel(b: LoopBuilder, columns: Columns, store: Operand, tile: Tile) -> None:
    """One panel of an operand whose columns lie along k: squares in registers, then what is left of k one by one."""
    n, k, lanes = columns.n, columns.k[0], columns.lanes
    place, first = columns.place(b, tile.at[n]), tile.at[n]
    whole = b.add(columns.low, b.round_down(b.sub(columns.high, columns.low), lanes))

    def square(c: LoopBuilder, at: Tile, column: int) -> None:
        source = at.moved(n, c.add(first, column)).with_axes(Axis(n, lanes), Axis(k, lanes))
        target = columns.inside(c, at, place, column).with_axes(Axis(k, lanes), Axis(n, lanes))
        write(c, columns.convert(c, transposed(c, read(c, columns.operand, source)), target), store, target)

    def squares(c: LoopBuilder, i: SSAValue) -> None:
        for column in range(0, columns.width, lanes):
            square(c, tile.moved(k, i), column)

    def rest(c: LoopBuilder, i: SSAValue) -> None:
        at = tile.moved(k, i)
        for column in range(columns.width):
            write(c, columns.value(c, at.moved(n, c.add(first, column))), store, columns.inside(c, at, place, column))

    each(b, columns.low, whole, lanes, squares)
    each(b, whole, columns.high, 1, rest)


def _join_panel(b: LoopBuilder, columns: Columns, store: Operand, tile: Tile, width: int, count: int | None) -> None:
    """One panel in which two steps of k lie side by side for each column."""
    n, k = columns.n, columns.k[0]
    place, first = columns.place(b, tile.at[n]), tile.at[n]
    across = Axis(n, width, count != width)
    existing: Index = width
    if across.masked:
        existing = count if count is not None else b.minimum(width, b.sub(columns.space.extents[n], first))
    even = b.add(columns.low, b.round_down(b.sub(columns.high, columns.low), 2))

    def rows(c: LoopBuilder, at: Tile, steps: int) -> None:
        values = [columns.value(c, at.moved(k, c.add(at.at[k], s)).with_axes(across), whole=True) for s in range(steps)]
        if steps == 1:
            values.append(c.splat(c.constant(number(0, store.element)), values[0].type))
        joined = c(vector.InterleaveOp, values, [vector_type(store.element, 2 * width)])
        write(c, joined, store, columns.inside(c, at, place, 0).with_axes(Axis(n, 2 * width)))

    def pairs(c: LoopBuilder, at: Tile, steps: int) -> None:
        if steps == 1 or across.masked:
            zero = c.splat(c.constant(number(0, store.element)), vector_type(store.element, 2 * width))
            write(c, zero, store, columns.inside(c, at, place, 0).with_axes(Axis(n, 2 * width)))
        each(c, 0, existing, 1, lambda e, column: pair(e, at, steps, column))

    def pair(c: LoopBuilder, at: Tile, steps: int, column: SSAValue) -> None:
        here, there = at.moved(n, c.add(first, column)), columns.inside(c, at, place, c.mul(column, 2))
        if steps == 2 and stride_along(columns.operand, k) == 1:
            write(c, columns.value(c, here.with_axes(Axis(k, 2))), store, there.with_axes(Axis(n, 2)))
            return
        for s in range(steps):
            value = columns.value(c, here.moved(k, c.add(here.at[k], s)))
            write(c, value, store, there.moved(n, c.add(there.at[n], s)))

    masks = across.masked and element_bytes(columns.operand.element) < 4
    body = rows if columns.contiguous and not masks else pairs
    each(b, columns.low, even, 2, lambda c, i: body(c, tile.moved(k, i), 2))
    each(b, even, columns.high, 1, lambda c, i: body(c, tile.moved(k, i), 1))
