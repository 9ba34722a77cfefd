"""Panels: the part of a contraction's operand that a panel of columns reads, copied side by side.

A panel is `memref<k... x columns>`: what the micro-kernel loads in one step lies in one line, whatever the operand's strides. Columns past
the operand's end are zero.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from gradir.lowering.lower_kernels.binding import Space
from gradir.lowering.lower_kernels.builder import Index, LoopBuilder, number, vector_type
from gradir.lowering.lower_kernels.tiles import Axis, Operand, Tile, read, stride_along, write


def panel_operand(panel: SSAValue, k: Sequence[int], n: int, rank: int) -> Operand:
    """A panel as an operand of the contraction's space; its columns count from 0."""
    return Operand(panel, AffineMap(rank, 0, (*(AffineDimExpr(d) for d in k), AffineDimExpr(n))))


def pack_panel(
    b: LoopBuilder,
    space: Space,
    operand: Operand,
    target: Operand,
    tile: Tile,
    k: Sequence[int],
    across: Axis,
    count: int | None,
    low: Index,
    high: Index | None,
) -> None:
    """Copy the columns `across` (from `tile` on) of `operand` into the panel `target`, for all k.

    `low` to `high` is the part of the outermost k loop that the panel holds; None: all of it.
    """
    contiguous = stride_along(operand, across.dim) == 1

    def inside(c: LoopBuilder, at: Tile, column: Index) -> Tile:
        """Where in the panel the point `at` of the operand goes."""
        here = at.moved(across.dim, column)
        return here if high is None else here.moved(k[0], c.sub(at.at[k[0]], low))

    def row(c: LoopBuilder, at: Tile) -> None:
        value = read(c, operand, at.with_axes(across), whole=True)
        write(c, value, target, inside(c, at, 0).with_axes(Axis(across.dim, across.size)))

    def scalars(c: LoopBuilder, at: Tile) -> None:
        if across.masked:
            zero = c.splat(c.constant(number(0, operand.element)), vector_type(operand.element, across.size))
            write(c, zero, target, inside(c, at, 0).with_axes(Axis(across.dim, across.size)))
        first = at.at[across.dim]
        existing: Index = count if count is not None else c.minimum(across.size, c.sub(space.extents[across.dim], first))
        c.loop(0, existing, 1, [], lambda e, i, _: one(e, at, first, i))

    def one(c: LoopBuilder, at: Tile, first: Index, column: SSAValue) -> list[SSAValue]:
        value = read(c, operand, at.moved(across.dim, c.add(first, column)))
        write(c, value, target, inside(c, at, column))
        return []

    def loops(c: LoopBuilder, dims: Sequence[int], at: Tile) -> None:
        if not dims:
            (row if contiguous else scalars)(c, at)
            return

        def carry(e: LoopBuilder, i: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
            loops(e, dims[1:], at.moved(dims[0], i))
            return []

        first, last = (low, high) if dims[0] == k[0] and high is not None else (0, space.extents[dims[0]])
        c.loop(first, last, 1, [], carry)

    loops(b, list(k), tile)
