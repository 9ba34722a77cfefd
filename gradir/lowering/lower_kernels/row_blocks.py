"""Blocks of rows of a contraction, copied so that the micro-kernel reads along k: `memref<rows x k>`.

Worth it where the row operand lies the other way round (transposed), and where its elements have to be converted. Rows that lie side by
side are transposed in registers, a square of a register's lanes at a time; elements are converted on the way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from gradir.dialects.types import i64_array
from gradir.dialects.upstream import vector
from gradir.lowering.lower_kernels.builder import Index, LoopBuilder, number
from gradir.lowering.lower_kernels.strips import each, strips
from gradir.lowering.lower_kernels.tiles import Axis, Operand, Tile, read, stride_along, write


def transposed(b: LoopBuilder, square: SSAValue) -> SSAValue:
    """A square of lanes with rows and columns exchanged."""
    return b(vector.TransposeOp, [square], [square.type], {"permutation": i64_array((1, 0))})


@dataclass(frozen=True)
class RowBlock:
    """Rows that were copied to `operand`, from `start` on; k from `low` on."""

    operand: Operand
    start: Index
    low: Index


@dataclass(frozen=True)
class RowSource:
    """The operand whose rows (along `row`) are copied for steps `low` to `high` of `k`.

    `joined` = 2: an odd last step gets a zero beside it.
    """

    operand: Operand
    row: int
    k: int
    lanes: int
    low: Index
    high: Index
    joined: int
    convert: Callable[[LoopBuilder, SSAValue, Tile], SSAValue]


def pack_rows(b: LoopBuilder, source: RowSource, memory: SSAValue, tile: Tile, first: Index, last: Index) -> RowBlock:
    """Copy the rows `first` to `last` to `memory`."""
    row, k, low, high, lanes = source.row, source.k, source.low, source.high, source.lanes
    store = Operand(memory, AffineMap(len(tile.at), 0, (AffineDimExpr(row), AffineDimExpr(k))))
    steps = b.sub(high, low)

    def inside(c: LoopBuilder, at: Tile) -> Tile:
        return at.moved(row, c.sub(at.at[row], first)).moved(k, c.sub(at.at[k], low))

    def copy(c: LoopBuilder, at: Tile) -> None:
        write(c, source.convert(c, read(c, source.operand, at, whole=True), at), store, inside(c, at))

    def square(c: LoopBuilder, i: SSAValue, step: SSAValue) -> None:
        at = tile.moved(row, i).moved(k, step)
        value = transposed(c, read(c, source.operand, at.with_axes(Axis(k, lanes), Axis(row, lanes))))
        there = at.with_axes(Axis(row, lanes), Axis(k, lanes))
        write(c, source.convert(c, value, there), store, inside(c, there))

    if stride_along(source.operand, row) == 1 and lanes > 1:
        whole_rows = b.add(first, b.round_down(b.sub(last, first), lanes))
        whole_steps = b.add(low, b.round_down(steps, lanes))
        each(b, low, whole_steps, lanes, lambda c, step: each(c, first, whole_rows, lanes, lambda e, i: square(e, i, step)))
        each(
            b, whole_steps, high, 1, lambda c, step: each(c, first, whole_rows, 1, lambda e, i: copy(e, tile.moved(row, i).moved(k, step)))
        )
        each(b, low, high, 1, lambda c, step: each(c, whole_rows, last, 1, lambda e, i: copy(e, tile.moved(row, i).moved(k, step))))
    else:
        width = lanes if stride_along(source.operand, k) == 1 else 1
        each(b, first, last, 1, lambda c, i: strips(c, tile.moved(row, i), k, low, high, width, copy))
    if source.joined > 1 and not (isinstance(steps, int) and steps % source.joined == 0):
        zero = b.constant(number(0, store.element))
        padded = b.mul(b.quotient(b.add(steps, source.joined - 1), source.joined), source.joined)
        each(
            b,
            steps,
            padded,
            1,
            lambda c, s: each(
                c, first, last, 1, lambda e, i: write(e, zero, store, inside(e, tile.moved(row, i).moved(k, low)).moved(k, s))
            ),
        )
    return RowBlock(store, first, low)
