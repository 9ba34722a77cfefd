"""Steps that read and write elements by number: duplicates, out of bounds, moved by the loop index or by the data."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import i32, i64
from xdsl.ir import SSAValue

from gradir.dialects import nd
from gradir.dialects.types import Dim, element_of, shape_of, tensor
from gradir.tools.fuzz.gradients.scope import Scope, is_real


def _vector(s: Scope) -> tuple[SSAValue, int] | None:
    """A float tensor and one of its dimensions with at least one element."""
    value = s.latest(lambda v: is_real(v) and any(isinstance(n, int) and n > 0 for n in shape_of(v)))
    if value is None:
        return None
    return value, s.program.one_of([k for k, n in enumerate(shape_of(value)) if isinstance(n, int) and n > 0])


def _indices(s: Scope, size: int, count: Dim) -> SSAValue:
    """That many positions of a dimension: constants, moved by a number; duplicates and a few out of bounds."""
    kind = tensor(i64, (count,))
    if isinstance(count, str):
        return s.t.iota(kind, 0)
    assert isinstance(count, int)
    found = s.emit(nd.ConstantOp.make(s.program.rng.integers(-1, size + 1, count).astype(np.int64)))
    return s.t.add(found, s.t.broadcast(s.number(), kind, ())) if s.program.chance(0.3) else found


def gather(s: Scope) -> None:
    """Rows by number, some twice; as many as there were."""
    found = _vector(s)
    if found is None:
        return
    value, dim = found
    size = shape_of(value)[dim]
    assert isinstance(size, int)
    s.add(s.emit(nd.GatherOp.make(value, _indices(s, size, size), dim)))


def chosen(s: Scope) -> None:
    """The element that is greatest in another array: argmax has no derivative, the gather has."""
    found = _vector(s)
    if found is None:
        return
    value, dim = found
    at = s.emit(s.program.one_of([nd.ArgmaxOp, nd.ArgminOp]).make(s.float_(shape_of(value)), dim, i32))
    if len(shape_of(value)) == 1:
        s.add(s.emit(nd.GatherOp.make(value, at, dim)))
    else:
        taken = s.emit(nd.GatherOp.make(value, at, dim))
        s.add(s.bounded(s.t.sum(taken, tuple(range(1, len(shape_of(taken)))))))


def scatter(s: Scope) -> None:
    """Rows added at numbers, some to one row, some nowhere."""
    found = _vector(s)
    if found is None:
        return
    value, dim = found
    size = shape_of(value)[dim]
    assert isinstance(size, int)
    s.add(s.bounded(s.emit(nd.ScatterAddOp.make(value, _indices(s, size, size), s.float_(shape_of(value)), dim))))


def element(s: Scope) -> None:
    """One row read, or written, at an index in bounds."""
    found = _vector(s)
    if found is None:
        return
    value, dim = found
    at = s.within(shape_of(value)[dim])
    assert at is not None
    rest = tuple(n for k, n in enumerate(shape_of(value)) if k != dim)
    if s.program.chance(0.5):
        s.add(s.t.index_at(value, at, dim))
    else:
        s.add(s.t.update_at(s.float_(rest), value, at, dim))


def moving_slice(s: Scope) -> None:
    """A slice that starts at a number (clamped), read or replaced."""
    found = _vector(s)
    if found is None:
        return
    value, dim = found
    sizes = list(shape_of(value))
    size = sizes[dim]
    assert isinstance(size, int)
    sizes[dim] = 1 + s.program.below(size)
    starts = [s.number() if k == dim else s.emit(nd.ConstantOp.splat(0, tensor(i64, ()))) for k in range(len(sizes))]
    part = s.emit(nd.DynamicSliceOp.make(value, starts, sizes))
    if s.program.chance(0.5):
        s.add(s.t.scale(s.t.sum(part, tuple(range(len(sizes)))), 0.4))
    else:
        others = [s.number() if k == dim else start for k, start in enumerate(starts)]
        s.add(s.emit(nd.DynamicUpdateSliceOp.make(value, s.bounded(part), others)))


def sorted_(s: Scope) -> None:
    """Sorted along a dimension, alone or taking another array along."""
    found = _vector(s)
    if found is None:
        return
    value, dim = found
    inputs = [value] if s.program.chance(0.5) else [value, s.float_(shape_of(value))]
    op = nd.SortOp.make(inputs, dim, descending=s.program.chance(0.5))
    s.emit(op)
    s.add(*op.results)


def along(s: Scope) -> None:
    """`take_along_axis` at the positions of the sorted array."""
    found = _vector(s)
    if found is None:
        return
    value, dim = found
    places = s.t.iota(tensor(i64, shape_of(value)), dim)
    op = nd.SortOp.make([s.float_(shape_of(value)), places], dim)
    s.emit(op)
    assert element_of(op.results[1]) == i64
    s.add(s.emit(nd.TakeAlongAxisOp.make(value, op.results[1], dim)))
