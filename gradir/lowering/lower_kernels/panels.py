"""Panels: what the tiles of a contraction read again and again, copied side by side.

Columns: `memref<(panels * k0) x k... x width>`. What the micro-kernel loads in one step lies in one line, whatever the operand's strides;
panel p of a group starts at row p * k0, columns past the operand's end are zero. Several panels are copied in one sweep along k, so that
rows are read in long runs: a row of one panel is one line of a page that nothing else of the panel touches.

Rows: `memref<rows x k>`, where the row operand lies with its rows side by side (a transposed operand): the micro-kernel then reads along k.

Where neighbours of the source are not neighbours of the copy, squares of a register's lanes are transposed in registers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import i1
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from gradir.dialects.types import i64_array
from gradir.dialects.upstream import vector
from gradir.lowering.lower_kernels.binding import Space
from gradir.lowering.lower_kernels.builder import Index, LoopBuilder, number, vector_type
from gradir.lowering.lower_kernels.strips import each
from gradir.lowering.lower_kernels.tiles import Axis, Operand, Tile, read, stride_along, write

TOGETHER = 4
"""Panels that one sweep along k fills."""


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
    """Steps of the outermost k loop that a panel has room for."""

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
        return at.moved(self.n, column).moved(self.k[0], b.add(b.sub(at.at[self.k[0]], self.low), place))

    def extent(self, dim: int) -> tuple[Index, Index]:
        """Bounds of a k loop."""
        return (self.low, self.high) if dim == self.k[0] else (0, self.space.extents[dim])


def pack_columns(b: LoopBuilder, columns: Columns, memory: SSAValue, tile: Tile, end: Index, together: int | None) -> None:
    """Copy whole panels, from the start of `columns` to `end`; `together` 0: there are few, `TOGETHER`: a multiple of it, None: unknown."""
    store, width = columns.store(memory), columns.width
    if columns.contiguous:
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
    place, first = columns.place(b, tile.at[n]), tile.at[n]
    across = Axis(n, width, count != width)

    def row(c: LoopBuilder, at: Tile) -> None:
        if columns.contiguous:
            value = read(c, columns.operand, at.with_axes(across), whole=True)
            write(c, value, store, columns.inside(c, at, place, 0).with_axes(Axis(n, width)))
            return
        if across.masked:
            zero = c.splat(c.constant(number(0, store.element)), vector_type(store.element, width))
            write(c, zero, store, columns.inside(c, at, place, 0).with_axes(Axis(n, width)))
        existing: Index = count if count is not None else c.minimum(width, c.sub(columns.space.extents[n], first))
        each(c, 0, existing, 1, lambda e, i: one(e, at, i))

    def one(c: LoopBuilder, at: Tile, column: SSAValue) -> None:
        value = read(c, columns.operand, at.moved(n, c.add(first, column)))
        write(c, value, store, columns.inside(c, at, place, column))

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
        reads = [
            read(c, columns.operand, at.moved(n, c.add(first, p * width)).with_axes(Axis(n, width)), whole=True) for p in range(panels)
        ]
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
        write(c, transposed(c, read(c, columns.operand, source)), store, target)

    def squares(c: LoopBuilder, i: SSAValue) -> None:
        for column in range(0, columns.width, lanes):
            square(c, tile.moved(k, i), column)

    def rest(c: LoopBuilder, i: SSAValue) -> None:
        at = tile.moved(k, i)
        for column in range(columns.width):
            value = read(c, columns.operand, at.moved(n, c.add(first, column)))
            write(c, value, store, columns.inside(c, at, place, column))

    each(b, columns.low, whole, lanes, squares)
    each(b, whole, columns.high, 1, rest)


def transposed(b: LoopBuilder, square: SSAValue) -> SSAValue:
    """A square of lanes with rows and columns exchanged."""
    return b(vector.TransposeOp, [square], [square.type], {"permutation": i64_array((1, 0))})


@dataclass(frozen=True)
class RowBlock:
    """Rows of the row operand that were copied, from `start` on; k from `low` on."""

    operand: Operand
    start: Index
    low: Index


def pack_rows(
    b: LoopBuilder,
    memory: SSAValue,
    operand: Operand,
    tile: Tile,
    row: int,
    k: int,
    lanes: int,
    rows: tuple[Index, Index],
    steps: tuple[Index, Index],
) -> RowBlock:
    """Copy rows `rows[0]` to `rows[1]` of an operand that lies with its rows side by side, for `steps` of k, so that k does."""
    (first, last), (low, high) = rows, steps
    store = Operand(memory, AffineMap(len(tile.at), 0, (AffineDimExpr(row), AffineDimExpr(k))))
    whole_rows = b.add(first, b.round_down(b.sub(last, first), lanes))
    whole_steps = b.add(low, b.round_down(b.sub(high, low), lanes))

    def inside(c: LoopBuilder, at: Tile) -> Tile:
        return at.moved(row, c.sub(at.at[row], first)).moved(k, c.sub(at.at[k], low))

    def square(c: LoopBuilder, i: SSAValue, step: SSAValue) -> None:
        at = tile.moved(row, i).moved(k, step)
        value = read(c, operand, at.with_axes(Axis(k, lanes), Axis(row, lanes)))
        write(c, transposed(c, value), store, inside(c, at).with_axes(Axis(row, lanes), Axis(k, lanes)))

    def one(c: LoopBuilder, i: SSAValue, step: SSAValue) -> None:
        at = tile.moved(row, i).moved(k, step)
        write(c, read(c, operand, at), store, inside(c, at))

    def steps_of(c: LoopBuilder, step: SSAValue) -> None:
        each(c, first, whole_rows, lanes, lambda e, i: square(e, i, step))

    each(b, low, whole_steps, lanes, steps_of)
    each(b, whole_steps, high, 1, lambda c, step: each(c, first, whole_rows, 1, lambda e, i: one(e, i, step)))
    each(b, low, high, 1, lambda c, step: each(c, whole_rows, last, 1, lambda e, i: one(e, i, step)))
    return RowBlock(store, first, low)
