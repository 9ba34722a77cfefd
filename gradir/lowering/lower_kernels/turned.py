"""Elementwise kernels some of whose operands lie side by side along another dimension than the results: transposes, alone and fused.

Square tiles of vectors: a turned operand is read in rows of its own and transposed in registers, results are written in theirs. Tiles go in
stripes as wide as a cache line, so that every line of either side is done with soon, and in bands of rows that keep few pages open:

```mlir
scf.for %band = .. step 256 { scf.for %left = .. step 16 { scf.for %i = %band to .. step 8 { scf.for %j = %left to .. step 8 {
  %t = vector.transfer_read %x[%j, %i], .. : memref<4096x4096xf32>, vector<8x8xf32>
  %u = vector.transpose %t, [1, 0] : vector<8x8xf32> to vector<8x8xf32>
  vector.transfer_write %u, %y[%i, %j] ..
```
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from xdsl.dialects.builtin import DenseArrayBase, i1, i64
from xdsl.ir import SSAValue

from gradir.dialects.upstream import linalg, vector
from gradir.lowering.lower_kernels.binding import BoundOp, Kernel, Space
from gradir.lowering.lower_kernels.bodies import evaluate, is_plain
from gradir.lowering.lower_kernels.builder import Index, LoopBuilder, vector_type
from gradir.lowering.lower_kernels.strips import each, nest, shared_dim
from gradir.lowering.lower_kernels.tiles import Axis, Operand, Tile, read, stride_along, uses, write
from gradir.lowering.schedules.machine import LINE_BYTES, Machine, element_bytes

MOST_SIDE = 8
"""Lanes of a tile's side: 8 registers, turned in three rounds of shuffles."""
LEAST_SIDE = 4
"""Smaller squares alone gain nothing."""
BAND = 256
"""Rows of the results that a band visits: their pages stay in the translation buffer."""
Range: TypeAlias = tuple[Index, Index]
"""First index and number of them."""
_SWAPPED = DenseArrayBase.from_list(i64, [1, 0])


@dataclass(frozen=True)
class Turn:
    """`dim`: along which results lie side by side, `other`: along which the `turned` operands do; `side` lanes each way."""

    dim: int
    other: int
    side: int
    turned: frozenset[tuple[int, int]]
    """(op, input) by position."""


def find_turn(space: Space, dim: int, machine: Machine) -> Turn | None:
    """How to run the kernel on turned tiles; None where no operand gains by it, or where one lies badly both ways."""
    if not all(is_plain(op.op.body.block) for op in space.ops if isinstance(op.op, linalg.GenericOp)):
        return None
    produced = space.produced
    turned: set[tuple[int, int]] = set()
    others: set[int] = set()
    widest = 1
    for position, op in enumerate(space.ops):
        if op.element == i1 or (op.stored and stride_along(op.output, dim) != 1):
            return None
        widest = max(widest, element_bytes(op.element))
        for k, operand in enumerate(op.used):
            if operand is None or operand.memory in produced:
                continue
            if operand.element == i1:
                return None
            widest = max(widest, element_bytes(operand.element))
            if stride_along(operand, dim) in (0, 1):
                continue
            along = [d for d in range(len(space.extents)) if d != dim and stride_along(operand, d) == 1]
            if len(along) != 1 or not _apart(operand, along[0], dim):
                return None
            others.add(along[0])
            turned.add((position, k))
    side = min(MOST_SIDE, machine.lanes_of(widest))
    if len(others) != 1 or side < 2 or side & (side - 1):
        return None
    (other,) = others
    extents = space.extents[dim], space.extents[other]
    while any(isinstance(n, int) and n < side for n in extents):
        side //= 2
    if side < LEAST_SIDE:
        return None
    if not all(_apart(op.output, other, dim) for op in space.ops if op.stored):
        return None
    return Turn(dim, other, side, frozenset(turned))


def _apart(operand: Operand, a: int, b: int) -> bool:
    """Do the two dimensions walk two dimensions of the memory, each with step 1?"""
    places = [[k for k, e in enumerate(operand.map.results) if d in e.used_dims()] for d in (a, b)]
    return all(len(p) == 1 for p in places) and places[0] != places[1] and {a, b} <= uses(operand.map)


def lower_turned(kernel: Kernel, space: Space, turn: Turn) -> None:
    """Build the whole kernel into `kernel.b`."""
    dim, other, side = turn.dim, turn.other, turn.side
    around = [d for d in range(len(space.extents)) if d not in (dim, other)]
    size = max(element_bytes(o.element) for o in space.ops)
    stripe = max(side, LINE_BYTES // size // side * side)
    parallel = bool(kernel.schedule.field("parallel"))

    def square(b: LoopBuilder, at: Tile, i: SSAValue, j: SSAValue, side: int) -> None:
        axes = (Axis(other, side), Axis(dim, side)) if side > 1 else ()
        _tile(b, kernel, space, replace(turn, side=side), at.moved(other, i).moved(dim, j).with_axes(*axes))

    def area(b: LoopBuilder, at: Tile, rows: Range, columns: Range, side: int) -> None:
        """Squares of `side`; what is left over at the right and below in smaller ones, or point by point where sizes are not known."""
        (top, height), (left, width) = rows, columns
        whole = b.round_down(height, side), b.round_down(width, side)
        low, right = b.add(top, whole[0]), b.add(left, whole[1])
        if side == turn.side:

            def columns_of_stripe(c: LoopBuilder, near: SSAValue) -> None:
                far = c.minimum(c.add(near, stripe), right)
                each(c, top, low, side, lambda e, i: each(e, near, far, side, lambda g, j: square(g, at, i, j, side)))

            each(b, left, right, stripe, columns_of_stripe)
        else:
            each(b, top, low, side, lambda c, i: each(c, left, right, side, lambda e, j: square(e, at, i, j, side)))
        if side > 1:
            small = side // 2 if isinstance(height, int) and isinstance(width, int) else 1
            area(b, at, (top, whole[0]), (right, b.sub(width, whole[1])), small)
            area(b, at, (low, b.sub(height, whole[0])), columns, small)

    def band(b: LoopBuilder, at: Tile, low: Index, count: Index) -> None:
        area(b, at, (low, count), (0, space.extents[dim]), side)

    def bands(b: LoopBuilder, at: Tile) -> None:
        whole = b.round_down(extent, BAND)
        each(b, 0, whole, BAND, lambda c, low: band(c, at, low, BAND))
        band(b, at, whole, b.sub(extent, whole))

    extent, b = space.extents[other], kernel.b
    if parallel and around:
        first, rest = shared_dim(around, space)
        b.parallel(0, space.extents[first], 1, lambda c, i: nest(c, rest, space, space.origin.moved(first, i), bands))
    elif parallel:
        b.parallel(0, extent, BAND, lambda c, low: band(c, space.origin, low, c.minimum(BAND, c.sub(extent, low))))
    else:
        nest(b, around, space, space.origin, bands)


def _tile(b: LoopBuilder, kernel: Kernel, space: Space, turn: Turn, tile: Tile) -> None:
    """All ops at one tile; every read comes before the first write."""
    known: dict[SSAValue, SSAValue] = {}
    for position, op in enumerate(space.ops):
        b.loc = op.op.location
        known[op.key] = _value(b, kernel, op, tile, [_argument(b, turn, position, k, i, tile, known) for k, i in enumerate(op.used)])
    for op in space.ops:
        if op.stored:
            b.loc = op.op.location
            write(b, known[op.key], op.output, tile)


def _argument(
    b: LoopBuilder, turn: Turn, position: int, k: int, operand: Operand | None, tile: Tile, known: dict[SSAValue, SSAValue]
) -> SSAValue | None:
    if operand is None or operand.memory in known:
        return None if operand is None else known[operand.memory]
    if (position, k) not in turn.turned or not tile.axes:
        return read(b, operand, tile)
    rows = read(b, operand, tile.with_axes(*reversed(tile.axes)))
    kind = vector_type(operand.element, turn.side, turn.side)
    return b(vector.TransposeOp, [rows], [kind], {"permutation": _SWAPPED})


def _value(b: LoopBuilder, kernel: Kernel, op: BoundOp, tile: Tile, arguments: list[SSAValue | None]) -> SSAValue:
    if not isinstance(op.op, linalg.GenericOp):
        assert arguments[0] is not None
        return arguments[0]
    return evaluate(b, op.op, op.dims, [*arguments, None], tile, kernel.values)
