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
    b: LoopBuilder, space: Space, operand: Operand, panel: SSAValue, tile: Tile, k: Sequence[int], across: Axis, count: int | None
) -> None:
    """Copy the columns `across` (from `tile` on) of `operand` into `panel`, for all k."""
    target = panel_operand(panel, k, across.dim, len(space.extents))
    contiguous = stride_along(operand, across.dim) == 1

    def row(c: LoopBuilder, at: Tile) -> None:
        value = read(c, operand, at.with_axes(across), whole=True)
        write(c, value, target, at.moved(across.dim, 0).with_axes(Axis(across.dim, across.size)))

    def scalars(c: LoopBuilder, at: Tile) -> None:
        if across.masked:
            zero = c.splat(c.constant(number(0, operand.element)), vector_type(operand.element, across.size))
            write(c, zero, target, at.moved(across.dim, 0).with_axes(Axis(across.dim, across.size)))
        first = at.at[across.dim]
        high: Index = count if count is not None else c.sub(space.extents[across.dim], first)
        c.loop(0, high, 1, [], lambda e, i, _: one(e, at, first, i))

    def one(c: LoopBuilder, at: Tile, first: Index, column: SSAValue) -> list[SSAValue]:
        value = read(c, operand, at.moved(across.dim, c.add(first, column)))
        write(c, value, target, at.moved(across.dim, column))
        return []

    def loops(c: LoopBuilder, dims: Sequence[int], at: Tile) -> None:
        if not dims:
            (row if contiguous else scalars)(c, at)
            return

        def carry(e: LoopBuilder, i: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
            loops(e, dims[1:], at.moved(dims[0], i))
            return []

        c.loop(0, space.extents[dims[0]], 1, [], carry)

    loops(b, list(k), tile)

