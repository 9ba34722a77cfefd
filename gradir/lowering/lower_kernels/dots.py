"""Contractions with few rows whose operands both lie side by side along k: dot products of vectors along k.

A few results at a time: one accumulator per result, several registers wide, joined across lanes at the end; the rest of k goes in narrower
vectors, then one by one. This is what `W x` with a row-major W and `x w^T` of a single row are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Attribute, SSAValue

from gradir.dialects.types import i64_array
from gradir.dialects.upstream import arith, vector
from gradir.lowering.lower_kernels.binding import BoundOp, Space
from gradir.lowering.lower_kernels.bodies import across_lanes
from gradir.lowering.lower_kernels.builder import Index, LoopBuilder, number, vector_type
from gradir.lowering.lower_kernels.tiles import Axis, Tile, powers_of_two, stride_along, uses

RESULTS = 4
"""Results that one pass along k computes together."""


@dataclass(frozen=True)
class DotSteps:
    """What the micro-kernel of dot products needs from the contraction generator: `product` is `acc + a * b` at a tile."""

    space: Space
    element: Attribute
    lanes: int
    n: int | None
    k: tuple[int, ...]
    combiner: arith.AddfOp | arith.AddiOp
    product: Callable[[LoopBuilder, Tile, SSAValue], SSAValue]


def suits_dots(core: BoundOp, k: tuple[int, ...]) -> bool:
    """Do both operands lie side by side along the innermost k loop?"""
    return bool(k) and all(k[-1] in uses(o.map) and stride_along(o, k[-1]) == 1 for o in core.inputs)


def dots(steps: DotSteps, b: LoopBuilder, tile: Tile, results: int) -> list[SSAValue]:
    """The sums over all k loops of `results` neighbours along n from `tile` on, as scalars."""
    return _outer(steps, b, list(steps.k[:-1]), tile, [b.constant(number(0, steps.element))] * results)


def _outer(steps: DotSteps, b: LoopBuilder, dims: list[int], tile: Tile, totals: list[SSAValue]) -> list[SSAValue]:
    if dims:
        d, rest = dims[0], dims[1:]
        extent = steps.space.extents[d]
        return b.loop(0, extent, 1, totals, lambda c, i, a: _outer(steps, c, rest, tile.moved(d, i), list(a)))
    return _along(steps, b, tile, totals)


def _along(steps: DotSteps, b: LoopBuilder, tile: Tile, totals: list[SSAValue]) -> list[SSAValue]:
    """`totals` plus the products along the innermost k loop."""
    k, results = steps.k[-1], len(totals)
    extent = steps.space.extents[k]
    rows = (Axis(steps.n, results),) if steps.n is not None and results > 1 else ()

    def vectors(c: LoopBuilder, low: Index, high: Index, width: int, totals: list[SSAValue]) -> list[SSAValue]:
        wide = tile.with_axes(*rows, Axis(k, width))
        start = c.splat(c.constant(number(0, steps.element)), wide.type(steps.element))
        (sums,) = c.loop(low, high, width, [start], lambda e, i, a: [steps.product(e, wide.moved(k, i), a[0])])
        return [_add(steps, c, total, _row(c, sums, t, results)) for t, total in enumerate(totals)]

    def one(c: LoopBuilder, i: SSAValue, totals: list[SSAValue]) -> list[SSAValue]:
        at = tile.moved(k, i)
        if steps.n is None:
            return [steps.product(c, at, totals[0])]
        n = steps.n
        return [steps.product(c, at.moved(n, c.add(at.at[n], t)), total) for t, total in enumerate(totals)]

    width = steps.lanes * (2 if results > 1 else 8)
    if isinstance(extent, int):
        while width > steps.lanes and width > extent:
            width //= 2
    whole = b.round_down(extent, width)
    if not isinstance(extent, int) or not isinstance(whole, int):
        totals = vectors(b, 0, whole, width, totals)
        return b.loop(whole, extent, 1, totals, lambda c, i, a: one(c, i, list(a)))
    if whole:
        totals = vectors(b, 0, whole, width, totals)
    for start, size in powers_of_two(extent - whole, width):
        if size < steps.lanes:
            return b.loop(whole + start, extent, 1, totals, lambda c, i, a: one(c, i, list(a)))
        totals = vectors(b, whole + start, whole + start + size, size, totals)
    return totals


def _row(b: LoopBuilder, sums: SSAValue, row: int, rows: int) -> SSAValue:
    """Row `row` of a tile of accumulators."""
    if rows == 1:
        return sums
    assert isinstance(sums.type, VectorType)
    type_ = vector_type(sums.type.element_type, sums.type.get_shape()[-1])
    return b(vector.ExtractOp, [sums], [type_], {"static_position": i64_array((row,))})


def _add(steps: DotSteps, b: LoopBuilder, total: SSAValue, sums: SSAValue) -> SSAValue:
    return b(type(steps.combiner), [total, across_lanes(b, steps.combiner, sums)], [total.type], steps.combiner.properties)
