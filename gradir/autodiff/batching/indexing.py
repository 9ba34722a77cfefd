"""Batching rules of reads and writes at computed places: lanes are batch dimensions of `nd.gather_general` and `nd.scatter_general`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from gradir.autodiff.batching.lanes import Lanes, moved, next_dim
from gradir.autodiff.batching.rules import batches, kinds, spread
from gradir.dialects import nd
from gradir.dialects.nd.gather_scatter import COMBINERS
from gradir.dialects.nd.indexing import RUN_TIME
from gradir.dialects.types import i64_array, rank_of, shape_of, tensor


@batches(nd.GatherOp)
def gather(lanes: Lanes, op: nd.GatherOp, operands: list[SSAValue], on: list[bool]) -> list[SSAValue] | None:
    """Rows of one operand for all lanes, or of each lane's own."""
    dim = op.number("dim")
    operand, indices = operands
    if not on[1]:
        return lanes.again(op, operands, kinds(lanes, op), {"dim": next_dim(dim)})
    if not on[0]:
        shape = shape_of(op.operand)
        wide = (*shape[:dim], *shape_of(indices), *shape[dim + 1 :])
        (found,) = lanes.again(op, operands, [tensor(lanes.lanes(op.result.type).element_type, wide)])
        return [lanes.to_front(found, dim)]
    count = rank_of(op.indices)
    vectors = lanes.t.reshape(indices, (*shape_of(indices), 1))
    rank = rank_of(op.operand)
    sizes = [1 if k == dim else _known(n) for k, n in enumerate(shape_of(op.operand))]
    if None in sizes:
        return None
    offset = [1 + k if k < dim else k + count for k in range(rank) if k != dim]
    return [
        lanes.t.emit(
            nd.GatherGeneralOp,
            [operand, vectors],
            lanes.lanes(op.result.type),
            offset=i64_array(offset),
            collapsed=i64_array((dim + 1,)),
            operand_batch=i64_array((0,)),
            indices_batch=i64_array((0,)),
            map=i64_array((dim + 1,)),
            sizes=i64_array((1, *(s for s in sizes if s is not None))),
        )
    ]


def _known(size: Any) -> int | None:
    return size if isinstance(size, int) else None


@batches(nd.DynamicSliceOp)
def dynamic_slice(lanes: Lanes, op: nd.DynamicSliceOp, operands: list[SSAValue], on: list[bool]) -> list[SSAValue] | None:
    """One start for all lanes: a slice of all; starts per lane: a window per lane, which a gather knows only of static sizes."""
    operand, *starts = operands
    sizes = op.numbers("sizes")
    if not any(on[1:]):
        if not isinstance(lanes.n, int):
            return None
        if not starts:
            return [operand]
        zero = lanes.t.full(0, starts[0].type)
        return lanes.again(op, [operand, zero, *starts], kinds(lanes, op), {"sizes": i64_array((lanes.n, *sizes))})
    if RUN_TIME in sizes:
        return None
    vectors = lanes.index_vectors(spread(lanes, starts, on[1:]))
    return [_windows(lanes, operand, on[0], vectors, sizes, lanes.lanes(op.result.type))]


def _windows(lanes: Lanes, operand: SSAValue, own: bool, vectors: SSAValue, sizes: Sequence[int], kind: Any) -> SSAValue:
    """Per lane the window at its start, of its own operand or of the one for all."""
    first = int(own)
    rank = len(sizes)
    return lanes.t.emit(
        nd.GatherGeneralOp,
        [operand, vectors],
        kind,
        offset=i64_array(range(1, rank + 1)),
        collapsed=i64_array(()),
        operand_batch=i64_array((0,) if own else ()),
        indices_batch=i64_array((0,) if own else ()),
        map=i64_array(range(first, first + rank)),
        sizes=i64_array(((1,) if own else ()) + tuple(sizes)),
    )


@batches(nd.DynamicUpdateSliceOp)
def dynamic_update_slice(lanes: Lanes, op: nd.DynamicUpdateSliceOp, operands: list[SSAValue], on: list[bool]) -> list[SSAValue] | None:
    """One start for all lanes: an update of all; starts per lane: a scatter, at starts that are clamped first."""
    operand, update, *starts = operands
    flags = on[2:]
    operand, update = spread(lanes, [operand, update], on[:2])
    if not starts:
        return [update]
    if not any(flags):
        return lanes.again(op, [operand, update, lanes.t.full(0, starts[0].type), *starts], kinds(lanes, op))
    room = [_room(n, m) for n, m in zip(shape_of(op.operand), shape_of(op.update))]
    if None in room:
        return None
    columns: list[SSAValue] = []
    for start, last in zip(spread(lanes, starts, flags), room):
        wide = lanes.t.convert(start, i64)
        columns.append(lanes.t.emit(nd.ClampOp, [lanes.t.full(0, wide.type), wide, lanes.t.full(last or 0, wide.type)], wide.type))
    return [_scattered(lanes, "set", operand, lanes.index_vectors(columns), update, rank_of(op.operand))]


def _room(whole: Any, part: Any) -> int | None:
    return whole - part if isinstance(whole, int) and isinstance(part, int) else None


def _scattered(lanes: Lanes, kind: str, operand: SSAValue, vectors: SSAValue, updates: SSAValue, rank: int) -> SSAValue:
    """Per lane a window of `updates` written at its start."""
    return lanes.t.emit(
        nd.ScatterGeneralOp,
        [operand, vectors, updates],
        operand.type,
        kind=COMBINERS[kind],
        window=i64_array(range(1, rank + 1)),
        inserted=i64_array(()),
        operand_batch=i64_array((0,)),
        indices_batch=i64_array((0,)),
        map=i64_array(range(1, rank + 1)),
    )


@batches(nd.IndexAtOp)
def index_at(lanes: Lanes, op: nd.IndexAtOp, operands: list[SSAValue], on: list[bool]) -> list[SSAValue] | None:
    """One place for all lanes, or a row per lane."""
    dim = op.number("dim")
    operand, at = operands
    if not on[1]:
        return [lanes.t.index_at(operand, at, dim + 1)]
    sizes = [1 if k == dim else _known(n) for k, n in enumerate(shape_of(op.operand))]
    if None in sizes:
        return None
    zero = lanes.t.full(0, at.type)
    vectors = lanes.index_vectors([at if k == dim else zero for k in range(len(sizes))])
    wide = tensor(lanes.lanes(op.operand.type).element_type, (lanes.n, *sizes))
    found = _windows(lanes, operand, on[0], vectors, [s for s in sizes if s is not None], wide)
    return [lanes.t.reshape(found, shape_of(lanes.lanes(op.result.type)))]


@batches(nd.UpdateAtOp)
def update_at(lanes: Lanes, op: nd.UpdateAtOp, operands: list[SSAValue], on: list[bool]) -> list[SSAValue]:
    """One place for all lanes, or a row per lane."""
    dim = op.number("dim")
    value, operand, at = operands
    value, operand = spread(lanes, [value, operand], on[:2])
    if not on[2]:
        return [lanes.t.update_at(value, operand, at, dim + 1)]
    sizes = [1 if k == dim else n for k, n in enumerate(shape_of(op.operand))]
    zero = lanes.t.full(0, at.type)
    vectors = lanes.index_vectors([at if k == dim else zero for k in range(len(sizes))])
    return [_scattered(lanes, "set", operand, vectors, lanes.t.reshape(value, (lanes.n, *sizes)), len(sizes))]


@batches(nd.GatherGeneralOp)
def gather_general(lanes: Lanes, op: nd.GatherGeneralOp, operands: list[SSAValue], on: list[bool]) -> list[SSAValue]:
    """Lanes of the operand are a batch dimension; of the indices alone, more index vectors."""
    operand, indices = operands
    own = on[0]
    if not on[1]:
        indices = lanes.spread(indices)
    named = {name: moved(op.numbers(name)) for name in ("offset", "indices_batch")}
    if own:
        named |= {name: moved(op.numbers(name)) for name in ("collapsed", "map")}
        named["operand_batch"] = i64_array((0, *(d + 1 for d in op.numbers("operand_batch"))))
        named["indices_batch"] = i64_array((0, *(d + 1 for d in op.numbers("indices_batch"))))
        named["sizes"] = i64_array((1, *op.numbers("sizes")))
    return lanes.again(op, [operand, indices], kinds(lanes, op), named)


@batches(nd.ScatterGeneralOp)
def scatter_general(lanes: Lanes, op: nd.ScatterGeneralOp, operands: list[SSAValue], on: list[bool]) -> list[SSAValue]:
    """Lanes are a batch dimension."""
    named = {name: moved(op.numbers(name)) for name in ("window", "inserted", "map")}
    named |= {name: i64_array((0, *(d + 1 for d in op.numbers(name)))) for name in ("operand_batch", "indices_batch")}
    return lanes.again(op, spread(lanes, operands, on), kinds(lanes, op), named)


@batches(nd.ScatterAddOp)
def scatter_add(lanes: Lanes, op: nd.ScatterAddOp, operands: list[SSAValue], on: list[bool]) -> list[SSAValue]:
    """One set of places for all lanes: the same op; places per lane: a scatter with a batch dimension."""
    dim = op.number("dim")
    operand, indices, updates = operands
    operand, updates = spread(lanes, [operand, updates], [on[0], on[2]])
    if not on[1]:
        return lanes.again(op, [operand, indices, updates], kinds(lanes, op), {"dim": next_dim(dim)})
    count, rank = rank_of(op.indices), rank_of(op.operand)
    window = [1 + k if k < dim else k + count for k in range(rank) if k != dim]
    return [
        lanes.t.emit(
            nd.ScatterGeneralOp,
            [operand, lanes.t.reshape(indices, (*shape_of(indices), 1)), updates],
            operand.type,
            kind=COMBINERS["add"],
            window=i64_array(window),
            inserted=i64_array((dim + 1,)),
            operand_batch=i64_array((0,)),
            indices_batch=i64_array((0,)),
            map=i64_array((dim + 1,)),
        )
    ]
