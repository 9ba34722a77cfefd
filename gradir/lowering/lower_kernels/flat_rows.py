"""Tiles whose rows are positions of an image one after the other, across the ends of its lines.

Lines of 7 positions make tiles of 4 and 3 rows, which leave the multiply-add units waiting; 49 positions make nine tiles of 5 and 6. A row
of such a tile is a point (line, place in the line) of its own. Before the sum a view of the row operand is made for each, from which the
steps of k then read at one common offset:

```mlir
%h0 = arith.divui %at, %c7 .. // and so on, for each row of the tile
%v0 = memref.subview %x[%n, %h0, %w0, 0] [1, 3, 3, 512] [1, 1, 1, 1]
// in the loops over the window and the channels:
%x0 = memref.load %v0[%c0, %i, %j, %c]
%column = vector.from_elements %x0, .. : vector<6xf32>
%next = vector.outerproduct %column, %row, %sum
```
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr

from gradir.dialects.upstream import memref, vector
from gradir.lowering.lower_kernels.binding import BoundOp, Space
from gradir.lowering.lower_kernels.builder import Index, LoopBuilder, strides_of, vector_type
from gradir.lowering.lower_kernels.tiles import Operand, Tile, linear, subview, uses

MOST_POINTS = 8
"""Rows of such a tile at most: each is an address in a register."""


@dataclass(frozen=True)
class Flat:
    """`line` and `place` are walked as one dimension of `line extent * width` positions, in tiles of at most `height` rows."""

    line: int
    place: int
    width: int
    extent: int
    height: int


@dataclass(frozen=True)
class Points:
    """The rows of a tile, (line, place) each, and a view of the row operand for each."""

    at: tuple[tuple[Index, Index], ...]
    views: tuple[SSAValue, ...]


def rows_per_tile(extent: int, most: int) -> float:
    """Rows of a tile on the average."""
    return extent / -(-extent // most)


def find_flat(space: Space, core: BoundOp, a: int, b: int, k: Sequence[int], n: int, height: int) -> Flat | None:
    """How to walk the two innermost dimensions of the row operand as one, where tiles along the innermost would be low."""
    used_a, used_b = uses(core.inputs[a].map), uses(core.inputs[b].map)
    rows = [d for d in sorted(uses(core.output.map)) if d != n and d in used_a and d not in used_b]
    if len(rows) < 2 or core.inputs[a].element != core.element or n in used_a:
        return None
    line, place = rows[-2:]
    lines, width = space.extents[line], space.extents[place]
    if not isinstance(lines, int) or not isinstance(width, int) or not all(isinstance(space.extents[d], int) for d in k):
        return None
    most = min(height, MOST_POINTS)
    if lines < 2 or width < 2 or rows_per_tile(width, most) >= most - 1 or rows_per_tile(lines * width, most) < most - 1:
        return None
    if any(linear(e) is None for e in core.inputs[a].map.results) or None in strides_of(
        cast("MemRefType[Any]", core.inputs[a].memory.type)
    ):
        return None
    return Flat(line, place, width, lines * width, most)


def points(b: LoopBuilder, flat: Flat, space: Space, operand: Operand, k: Sequence[int], tile: Tile, first: Index, rows: int) -> Points:
    """The rows `first` to `first + rows`."""
    at: list[tuple[Index, Index]] = []
    views: list[SSAValue] = []
    sizes = [_reach(space, operand, d, k) for d in range(len(operand.map.results))]
    for r in range(rows):
        position = b.add(first, r)
        line = b.quotient(position, flat.width)
        place = b.sub(position, b.mul(line, flat.width))
        at.append((line, place))
        there = list(tile.moved(flat.line, line).moved(flat.place, place).at)
        offsets: list[Index] = []
        for expr in operand.map.results:
            for d, coefficient in _terms(expr, k):  # the least index that the steps of k reach
                extent = space.extents[d]
                assert isinstance(extent, int)
                there[d] = extent - 1 if coefficient < 0 else 0
            offsets.append(b.affine(expr, there))
        views.append(subview(b, operand.memory, offsets, sizes))
    return Points(tuple(at), tuple(views))


def column(b: LoopBuilder, found: Points, space: Space, operand: Operand, k: Sequence[int], at: Tile) -> SSAValue:
    """The row operand of all rows at one step of k."""
    indices: list[Index] = []
    for expr in operand.map.results:
        index: Index = 0
        for d, coefficient in _terms(expr, k):
            extent = space.extents[d]
            assert isinstance(extent, int)
            step = at.at[d] if coefficient > 0 else b.sub(extent - 1, at.at[d])
            index = b.add(index, b.mul(step, abs(coefficient)))
        indices.append(index)
    where = b.values(indices)
    scalars = [b(memref.LoadOp, [view, *where], [operand.element]) for view in found.views]
    return b(vector.FromElementsOp, scalars, [vector_type(operand.element, len(scalars))])


def _terms(expr: AffineExpr, k: Sequence[int]) -> list[tuple[int, int]]:
    """(dimension, coefficient) of the steps of k in an index."""
    form = linear(expr)
    assert form is not None, "asked before"
    return [(d, c) for d, c in form[0] if d in k]


def _reach(space: Space, operand: Operand, dim: int, k: Sequence[int]) -> int:
    """Elements between the first and the last that the steps of k read along one dimension of the memory, both included."""
    total = 1
    for d, coefficient in _terms(operand.map.results[dim], k):
        extent = space.extents[d]
        assert isinstance(extent, int)
        total += abs(coefficient) * (extent - 1)
    return total
