"""Tiles: a point of an index space, widened to vectors along some of its dimensions, and how operands are read and written there.

An operand is a memref and an affine map from the dimensions of the space to its own. A read gives a scalar when the operand does not
vary inside the tile, else a vector of the tile's shape. Unit stride along the innermost tile dimension is one `vector.load`, other
projections are transfers, everything else goes lane by lane.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import prod
from typing import Any, NamedTuple, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, IntegerAttr, MemRefType, StridedLayoutAttr, VectorType, i1, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
)

from gradir.dialects.types import i64_array
from gradir.dialects.upstream import memref, vector
from gradir.lowering.lower_kernels.builder import (
    Index,
    LoopBuilder,
    flags,
    i32_array,
    number,
    projection,
    strides_of,
    vector_type,
)

MOST_LANES = 64
"""A vector is put together lane by lane up to this size."""


class NotCovered(Exception):
    """A specialised generator met a kernel that it does not take; the loops generator takes every kernel."""


class Axis(NamedTuple):
    """One vector dimension of a tile: `size` lanes along `dim`; `masked` when lanes may lie beyond the extent."""

    dim: int
    size: int
    masked: bool = False


class Tile(NamedTuple):
    """`at[d]` is the first index along dimension d; `axes` are the dimensions of its vectors, outermost first."""

    at: tuple[Index, ...]
    axes: tuple[Axis, ...] = ()

    def type(self, element: Attribute) -> Attribute:
        """The type of values over the whole tile."""
        return vector_type(element, *(a.size for a in self.axes)) if self.axes else element

    def moved(self, dim: int, index: Index) -> Tile:
        """The tile that starts at `index` along `dim`."""
        return Tile((*self.at[:dim], index, *self.at[dim + 1 :]), self.axes)

    def with_axes(self, *axes: Axis) -> Tile:
        """The same point with other vector dimensions."""
        return Tile(self.at, axes)


@dataclass(frozen=True)
class Operand:
    """A memref, or a scalar (then the map has no results), as seen from an index space."""

    memory: SSAValue
    map: AffineMap

    @property
    def is_scalar(self) -> bool:
        return not isinstance(self.memory.type, MemRefType)

    @property
    def element(self) -> Attribute:
        return cast("MemRefType[Any]", self.memory.type).element_type if not self.is_scalar else self.memory.type


@lru_cache(maxsize=1 << 14)
def linear(expr: AffineExpr) -> tuple[tuple[tuple[int, int], ...], int] | None:
    """`((dim, coefficient), ...), constant` of a linear expression; None for a division or remainder."""
    if isinstance(expr, AffineConstantExpr):
        return (), expr.value
    if isinstance(expr, AffineDimExpr):
        return ((expr.position, 1),), 0
    if not isinstance(expr, AffineBinaryOpExpr):
        return None
    a, b = linear(expr.lhs), linear(expr.rhs)
    if a is None or b is None:
        return None
    if expr.kind is AffineBinaryOpKind.Add:
        terms = dict(a[0])
        for dim, c in b[0]:
            terms[dim] = terms.get(dim, 0) + c
        return tuple(sorted((d, c) for d, c in terms.items() if c)), a[1] + b[1]
    if expr.kind is AffineBinaryOpKind.Mul and (not a[0] or not b[0]):
        scale, (terms_, constant) = (a[1], b) if not a[0] else (b[1], a)
        return tuple((d, c * scale) for d, c in terms_ if c * scale), constant * scale
    return None


@lru_cache(maxsize=1 << 14)
def uses(map_: AffineMap) -> frozenset[int]:
    """The dimensions that any result of the map depends on."""
    return frozenset(d for e in map_.results for d in e.used_dims())


def stride_along(operand: Operand, dim: int) -> int | None:
    """Elements between neighbours along a dimension of the space: 0 for none, None when unknown or not constant."""
    total = 0
    strides = strides_of(cast("MemRefType[Any]", operand.memory.type)) if not operand.is_scalar else ()
    for expr, stride in zip(operand.map.results, strides):
        form = linear(expr)
        if form is None:
            if dim in expr.used_dims():
                return None
            continue
        coefficient = dict(form[0]).get(dim, 0)
        if coefficient and stride is None:
            return None
        total += coefficient * (stride or 0)
    return total


def _positions(operand: Operand, tile: Tile) -> tuple[int | None, ...] | None:
    """For each axis the memref dimension that it walks with step 1 (None: it does not vary); None when a transfer cannot say it."""
    found: list[int | None] = []
    for axis in tile.axes:
        where = [k for k, e in enumerate(operand.map.results) if axis.dim in e.used_dims()]
        if not where:
            found.append(None)
            continue
        form = linear(operand.map.results[where[0]])
        if len(where) > 1 or form is None or dict(form[0])[axis.dim] != 1:
            return None
        found.append(where[0])
    used = [k for k in found if k is not None]
    return tuple(found) if len(set(used)) == len(used) else None


def _unit_stride(operand: Operand) -> bool:
    return strides_of(cast("MemRefType[Any]", operand.memory.type))[-1] == 1


def read(b: LoopBuilder, operand: Operand, tile: Tile, *, whole: bool = False, column: bool = False) -> SSAValue:
    """The operand at `tile`: a scalar if it does not vary there (unless `whole`), else a vector of the tile's shape.

    A `column` is a few scalars that are wanted one by one (the rows of a micro-kernel), never one contiguous load.
    """
    if operand.is_scalar:
        return b.splat(operand.memory, tile.type(operand.element)) if whole else operand.memory
    indices = [b.affine(e, tile.at) for e in operand.map.results]
    used = uses(operand.map)
    element, rank = operand.element, len(indices)
    if not any(a.dim in used for a in tile.axes):
        scalar = b(memref.LoadOp, [operand.memory, *b.values(indices)], [element])
        return b.splat(scalar, tile.type(element)) if whole else scalar
    positions = _positions(operand, tile)
    type_ = tile.type(element)
    if positions is None or element == i1 or not (column or _unit_stride(operand) or len(tile.axes) > 1):
        return _read_lanes(b, operand, tile)
    inner = tile.axes[-1]
    masked = any(a.masked and k is not None for a, k in zip(tile.axes, positions))
    if not column and not masked and positions[-1] == rank - 1 and _unit_stride(operand) and all(k is None for k in positions[:-1]):
        row = b(vector.LoadOp, [operand.memory, *b.values(indices)], [vector_type(element, inner.size)])
        return row if len(tile.axes) == 1 else b(vector.BroadcastOp, [row], [type_])
    return b(
        vector.TransferReadOp,
        [operand.memory, *b.values(indices), b.constant(number(0, element))],
        [type_],
        {
            "permutation_map": projection(rank, positions),
            "in_bounds": flags(*(k is None or not a.masked for a, k in zip(tile.axes, positions))),
            "operandSegmentSizes": i32_array(1, rank, 1, 0),
        },
    )


def _lane_indices(b: LoopBuilder, operand: Operand, tile: Tile, lane: Sequence[int]) -> list[SSAValue]:
    at = list(tile.at)
    for axis, offset in zip(tile.axes, lane):
        at[axis.dim] = b.add(at[axis.dim], offset)
    return b.values([b.affine(e, at) for e in operand.map.results])


def _check_lanes(tile: Tile) -> None:
    if prod(a.size for a in tile.axes) > MOST_LANES or any(a.masked for a in tile.axes):
        raise NotCovered("an operand without unit stride in a tile that is large or masked")


def _read_lanes(b: LoopBuilder, operand: Operand, tile: Tile) -> SSAValue:
    _check_lanes(tile)
    element = operand.element
    lanes = product(*(range(a.size) for a in tile.axes))
    scalars = [b(memref.LoadOp, [operand.memory, *_lane_indices(b, operand, tile, lane)], [element]) for lane in lanes]
    return b(vector.FromElementsOp, scalars, [tile.type(element)])


def write(b: LoopBuilder, value: SSAValue, operand: Operand, tile: Tile) -> None:
    """Store `value` (of the tile's type, or a scalar for all of it) where `operand` lies at `tile`."""
    element = operand.element
    if not tile.axes:
        b.op(memref.StoreOp, [value, operand.memory, *b.values([b.affine(e, tile.at) for e in operand.map.results])])
        return
    value = b.splat(value, tile.type(element))
    positions = _positions(operand, tile)
    if positions is None or None in positions or element == i1 or not (_unit_stride(operand) or len(tile.axes) > 1):
        _check_lanes(tile)
        for lane in product(*(range(a.size) for a in tile.axes)):
            properties = {"static_position": i64_array(lane)}
            scalar = b(vector.ExtractOp, [value], [element], properties)
            b.op(memref.StoreOp, [scalar, operand.memory, *_lane_indices(b, operand, tile, lane)])
        return
    indices = b.values([b.affine(e, tile.at) for e in operand.map.results])
    rank = len(indices)
    masked = any(a.masked for a in tile.axes)
    if len(tile.axes) == 1 and positions[0] == rank - 1 and not masked and _unit_stride(operand):
        b.op(vector.StoreOp, [value, operand.memory, *indices])
        return
    b.op(
        vector.TransferWriteOp,
        [value, operand.memory, *indices],
        [],
        {
            "permutation_map": projection(rank, positions),
            "in_bounds": flags(*(not a.masked for a in tile.axes)),
            "operandSegmentSizes": i32_array(1, 1, rank, 0),
        },
    )


def columns(b: LoopBuilder, value: SSAValue, start: int, size: int) -> SSAValue:
    """Lanes `start` to `start + size` of the last dimension of a vector; a scalar is itself."""
    if not isinstance(value.type, VectorType):
        return value
    shape = value.type.get_shape()
    if start == 0 and size == shape[-1]:
        return value
    rank = len(shape)
    properties = {
        "offsets": vector_slice(*[0] * (rank - 1), start),
        "sizes": vector_slice(*shape[:-1], size),
        "strides": vector_slice(*[1] * rank),
    }
    return b(vector.ExtractStridedSliceOp, [value], [vector_type(value.type.element_type, *shape[:-1], size)], properties)


@lru_cache(maxsize=1 << 10)
def vector_slice(*values: int) -> Attribute:
    """The array attribute of `vector.extract_strided_slice`, interned."""
    return ArrayAttr([IntegerAttr(v, i64) for v in values])


def powers_of_two(n: int, most: int) -> list[tuple[int, int]]:
    """`n` lanes as (start, size) pieces whose sizes are powers of two up to `most`, largest first."""
    pieces: list[tuple[int, int]] = []
    start, size = 0, most
    while start < n:
        while size > n - start:
            size //= 2
        pieces.append((start, size))
        start += size
    return pieces


def subview(b: LoopBuilder, memory: SSAValue, offsets: Sequence[Index], sizes: Sequence[int]) -> SSAValue:
    """`memory[offsets][sizes]` with steps of 1; `memory` itself when that is all of it."""
    kind = cast("MemRefType[Any]", memory.type)
    if all(o == 0 for o in offsets) and list(sizes) == list(kind.get_shape()):
        return memory
    strides = strides_of(kind)
    if None in strides:
        raise NotCovered("a window of memory whose strides only the run knows")
    base: int | None = 0
    if isinstance(kind.layout, StridedLayoutAttr):
        base = kind.layout.get_offset()
    for offset, stride in zip(offsets, strides):
        base = base + offset * cast("int", stride) if base is not None and isinstance(offset, int) else None
    type_ = MemRefType(kind.element_type, list(sizes), StridedLayoutAttr(cast("list[int]", list(strides)), base), kind.memory_space)
    dynamic = [o for o in offsets if not isinstance(o, int)]
    properties: dict[str, Attribute] = {
        "static_offsets": i64_array([o if isinstance(o, int) else DYNAMIC_INDEX for o in offsets]),
        "static_sizes": i64_array(sizes),
        "static_strides": i64_array([1] * len(sizes)),
        "operandSegmentSizes": i32_array(1, len(dynamic), 0, 0),
    }
    return b(memref.SubviewOp, [memory, *dynamic], [type_], properties)
