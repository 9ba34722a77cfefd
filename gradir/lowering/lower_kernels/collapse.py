"""Neighbouring dimensions of a space as one, where every operand holds them side by side in memory.

`a[i, j]` of shape 8x64 is `a[i * 64 + j]` of shape 512: fewer loops, longer vectors, fewer tails.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace
from functools import cache
from typing import Any, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, IntegerAttr, MemRefType, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap

from gradir.dialects.upstream import linalg, memref
from gradir.lowering.bufferize.layouts import collapsed_type
from gradir.lowering.lower_kernels.binding import BoundOp, Kernel, Space
from gradir.lowering.lower_kernels.builder import Index, LoopBuilder
from gradir.lowering.lower_kernels.tiles import Operand, uses


@cache
def _groups(rank: int, first: int) -> tuple[tuple[int, ...], ...]:
    """All dimensions alone, but `first` and its successor."""
    return (*((k,) for k in range(first)), (first, first + 1), *((k,) for k in range(first + 2, rank)))


@cache
def _grouping(rank: int, first: int) -> Attribute:
    return ArrayAttr([ArrayAttr([IntegerAttr(k, i64) for k in group]) for group in _groups(rank, first)])


def collapse(kernel: Kernel, space: Space, run: Sequence[int]) -> Space:
    """`space` with as many neighbours among the consecutive dimensions `run` joined as the operands allow; `run[0]` comes first."""
    for first in reversed(run[:-1]):
        inside = {*space.produced, *kernel.temporaries}
        if all(_joinable(op, first, space.extents[first + 1], inside) for op in space.ops):
            space = _join(kernel, space, first)
    return space


def _joinable(op: BoundOp, first: int, inner: Index, inside: Set[SSAValue]) -> bool:
    pair = {first, first + 1}
    if len(pair & set(op.dims)) == 1 or len(pair & op.reduced) == 1:
        return False
    if isinstance(op.op, linalg.GenericOp):
        asked = {op.dims[i.dim.value.data] for i in op.op.body.block.ops if isinstance(i, linalg.IndexOp)}
        if pair & asked:
            return False
    return all(_side_by_side(o, first, inner, inside) for o in (*(i for i in op.used if i is not None), op.output))


def _side_by_side(operand: Operand, first: int, inner: Index, inside: Set[SSAValue]) -> bool:
    """Rows of `inner` elements follow each other: a window of size 3 in rows of size 4 leaves gaps. Temporaries have the space's shape."""
    if not {first, first + 1} & uses(operand.map):
        return True
    where = _position(operand.map, first)
    kind = cast("MemRefType[Any]", operand.memory.type)
    if where is None or collapsed_type(kind, _groups(len(kind.get_shape()), where)) is None:
        return False
    size = kind.get_shape()[where + 1] if operand.memory not in inside else None
    return size is None or size == (inner if isinstance(inner, int) else DYNAMIC_INDEX)


def _position(map_: AffineMap, first: int) -> int | None:
    """The result that is dimension `first`, followed by dimension `first + 1`, both used nowhere else."""
    a, c = AffineDimExpr(first), AffineDimExpr(first + 1)
    found = [k for k in range(len(map_.results) - 1) if map_.results[k] == a and map_.results[k + 1] == c]
    others = [e for k, e in enumerate(map_.results) if k not in (found[0], found[0] + 1)] if len(found) == 1 else []
    alone = all(not {first, first + 1} & e.used_dims() for e in others)
    return found[0] if len(found) == 1 and alone else None


def _join(kernel: Kernel, space: Space, first: int) -> Space:
    b = kernel.b
    extents = space.extents
    joined: Index = b.mul(extents[first], extents[first + 1])
    inside = {*space.produced, *kernel.temporaries}
    views: dict[tuple[SSAValue, int], SSAValue] = {}

    def renumber(d: int) -> int:
        return d - (d > first)

    def operand(o: Operand) -> Operand:
        where = _position(o.map, first)
        dims: list[AffineExpr] = [AffineDimExpr(renumber(d)) for d in range(len(extents))]
        map_ = o.map.replace_dims_and_symbols(dims, [], len(extents) - 1, 0)
        if where is None:
            return Operand(o.memory, map_)
        results = (*map_.results[:where], *map_.results[where + 1 :])
        memory = o.memory
        if memory not in inside:
            if (memory, where) not in views:
                views[memory, where] = _view(b, memory, where)
            memory = views[memory, where]
        return Operand(memory, AffineMap(map_.num_dims, 0, results))

    ops = tuple(
        replace(
            op,
            dims=tuple(renumber(d) for d in op.dims),
            reduced=frozenset(renumber(d) for d in op.reduced),
            inputs=tuple(operand(i) if u is not None else i for i, u in zip(op.inputs, op.used)),
            output=operand(op.output),
        )
        for op in space.ops
    )
    place = {old: renumber(new) for old, new in space.place.items()}
    return Space((*extents[:first], joined, *extents[first + 2 :]), ops, place)


def _view(b: LoopBuilder, memory: SSAValue, where: int) -> SSAValue:
    kind = cast("MemRefType[Any]", memory.type)
    rank = len(kind.get_shape())
    type_ = collapsed_type(kind, _groups(rank, where))
    assert type_ is not None, "they are side by side"
    return b(memref.CollapseShapeOp, [memory], [type_], {"reassociation": _grouping(rank, where)})
