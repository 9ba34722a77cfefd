"""Derivatives of gather and scatter of windows: ct goes to the element that was read, or comes from the place that was written.

Indices take none. Positions are computed in the flattened operand, element by element, so that a window over the edge loses exactly what
the scatter dropped.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from gradir import size_algebra
from gradir.autodiff.registry import Contribution, vjp
from gradir.autodiff.spell_out import LOOPS
from gradir.autodiff.tensors import TensorBuilder, known_sizes, named_size
from gradir.dialects import nd
from gradir.dialects.nd.base import emit
from gradir.dialects.nd.shape import TO_END
from gradir.dialects.nd.spelled_out import counted, lifted
from gradir.dialects.types import element_of, i64_attr, is_unsigned, numpy_dtype, shape_of, tensor
from gradir.ir.builder import Builder

Rule = tuple[Contribution, ...]


@vjp(nd.GatherGeneralOp)
def gather_general_vjp(t: TensorBuilder, op: nd.GatherGeneralOp, ct: SSAValue) -> Rule:
    """y[b, o] = x[clamp(s[b]) + o]: dx = scatter-add of ct with the same dimension numbers at the clamped starts"""
    n, sizes = op.dimensions, op.numbers("sizes")
    if 0 in shape_of(ct):
        return (t.zeros(op.operand.type), None)
    made = nd.ScatterGeneralOp.make(
        "add",
        [t.zeros(op.operand.type)],
        _clamped(t, op, sizes),
        [ct],
        window=n.window,
        inserted=n.dropped,
        operand_batch=n.operand_batch,
        indices_batch=n.indices_batch,
        map=n.map,
    )
    return (emit(t.builder, made), None)


def _clamped(t: TensorBuilder, op: nd.GatherGeneralOp, sizes: Sequence[int]) -> SSAValue:
    """The index vectors, each component where its window fits."""
    indices, mapped = op.indices, op.dimensions.map
    if not mapped:
        return indices
    element = element_of(indices)
    dtype = numpy_dtype(element)
    rooms = [size_algebra.minus(named_size(op, op.operand, d), sizes[d]) for d in mapped]
    numbers = [room for room in rooms if isinstance(room, int)]
    if len(numbers) == len(rooms):
        limits = emit(t.builder, nd.ConstantOp.make(np.array([min(n, np.iinfo(dtype).max) for n in numbers], dtype)))
    else:
        limits = t.concatenate([t.full_size(room or 0, tensor(element, (1,))) for room in rooms], 0)
    bounds = t.broadcast(limits, indices.type, [len(shape_of(indices)) - 1])
    return t.emit(nd.ClampOp, [t.full_like(0, indices), indices, bounds], indices.type)


# -- scatter


@dataclass
class _Places:
    """Where each update belongs: `at` in the flattened operand (in bounds), `inside` whether it was not dropped."""

    t: TensorBuilder
    op: nd.ScatterGeneralOp
    at: SSAValue
    inside: SSAValue | None
    volume: int | str

    @classmethod
    def of(cls, t: TensorBuilder, op: nd.ScatterGeneralOp) -> _Places:
        """Positions in i64 over the shape of the updates."""
        n, shape, updates = op.dimensions, _named(op, op.inputs[0]), _named(op, op.updates[0])
        kind = tensor(i64, updates)
        coordinates: dict[int, SSAValue] = {}

        def add(d: int, value: SSAValue) -> None:
            coordinates[d] = t.add(coordinates[d], value) if d in coordinates else value

        for k, d in enumerate(n.map):
            add(d, t.broadcast(_component(t, op.indices, k, shape[d]), kind, n.batch))
        for k, d in enumerate(n.operand_batch):
            add(d, t.iota(kind, n.batch_of(k)))
        for d, place in zip(n.walked, n.window):
            add(d, t.iota(kind, place))
        at, inside = t.zeros(kind), None
        for d, value in coordinates.items():
            at = t.add(at, t.mul(value, t.full_size(_volume(shape[d + 1 :]), kind)))
            for fits in (t.compare("ge", value, t.full_like(0, value)), t.compare("lt", value, t.full_size(shape[d], kind))):
                inside = fits if inside is None else t.logical_and(inside, fits)
        volume = _volume(shape)
        if inside is not None:
            at = t.select(inside, at, t.full_size(volume, kind))
        return cls(t, op, at, inside, volume)

    def read(self, x: SSAValue) -> SSAValue:
        """Of a tensor like the operand, the element at each update's place; where it was dropped, any."""
        t, shape = self.t, shape_of(self.at)
        flat = t.reshape(x, (self.volume,))
        return t.emit(nd.GatherOp, [flat, self.at], tensor(element_of(x), shape), dim=i64_attr(0))

    def kept(self, value: SSAValue) -> SSAValue:
        """0 where the update was dropped."""
        return value if self.inside is None else self.t.where(self.inside, value)

    def scatter(self, kind: str, x: SSAValue, updates: SSAValue) -> SSAValue:
        """The same scatter with other values."""
        n, op = self.op.dimensions, self.op
        made = nd.ScatterGeneralOp.make(
            kind,
            [x],
            op.indices,
            [updates],
            window=n.window,
            inserted=n.dropped,
            operand_batch=n.operand_batch,
            indices_batch=n.indices_batch,
            map=n.map,
        )
        return emit(self.t.builder, made)


def _named(op: nd.ScatterGeneralOp, value: SSAValue) -> tuple[int | str, ...]:
    return tuple(named_size(op, value, d) for d in range(len(shape_of(value))))


def _volume(sizes: Sequence[int | str]) -> int | str:
    found = size_algebra.product(sizes)
    assert found is not None, "the product of sizes with names has one"
    return found


def _component(t: TensorBuilder, indices: SSAValue, k: int, size: int | str) -> SSAValue:
    """Component k of every index vector, in i64; a ui64 beyond its range is beyond any size."""
    *batch, _ = shape_of(indices)
    sizes = [n if isinstance(n, int) else TO_END for n in batch]
    found = t.reshape(t.slice(indices, [*(0 for _ in batch), k], [*sizes, k + 1]), batch)
    if is_unsigned(element_of(found)) and numpy_dtype(element_of(found)).itemsize == 8:
        found = t.binary(nd.MinOp, found, t.full_size(size, found.type))
    return t.convert(found, i64)


@vjp(nd.ScatterGeneralOp)
def scatter_general_vjp(t: TensorBuilder, op: nd.ScatterGeneralOp, cts: SSAValue | Sequence[SSAValue | None]) -> Rule:
    """By kind: see the functions below; each operand with its own updates. One with a region is its loop by now"""
    given = [cts] if isinstance(cts, SSAValue) else list(cts)
    rule = {"set": _set, "add": _add, "mul": _mul, "min": _extreme, "max": _extreme}[op.combine]
    count = len(op.inputs)
    if 0 in shape_of(op.updates[0]) or 0 in shape_of(op.inputs[0]):
        return (*given, None, *(None if ct is None else t.zeros(u.type) for ct, u in zip(given, op.updates)))
    places = _Places.of(t, op)
    pairs = [(None, None) if ct is None else rule(places, k, ct) for k, ct in enumerate(given)]
    assert len(pairs) == count
    return (*(x for x, _ in pairs), None, *(u for _, u in pairs))


Pair = tuple[Contribution, Contribution]


def _add(p: _Places, k: int, ct: SSAValue) -> Pair:
    """y = x + updates: x takes ct, an update what is at its place"""
    return ct, lambda: p.kept(p.read(ct))


def _set(p: _Places, k: int, ct: SSAValue) -> Pair:
    """The update that came last takes ct, the others and what was overwritten 0"""
    t, updates = p.t, p.op.updates[k]
    shape = shape_of(p.at)
    numbers = t.reshape(t.iota(tensor(i64, (size_algebra.product(shape),)), 0), shape)
    last = p.scatter("set", t.full(-1, tensor(i64, shape_of(ct))), numbers)
    untouched = t.compare("lt", last, t.full_like(0, last))
    wins = t.compare("eq", p.read(last), numbers)
    assert updates.type == tensor(element_of(ct), shape)
    return lambda: t.where(untouched, ct), lambda: p.kept(t.where(wins, p.read(ct)))


def _extreme(p: _Places, k: int, ct: SSAValue) -> Pair:
    """ct is shared evenly by all that equal the result, NaN like any other; counted in i64"""
    t, x, updates = p.t, p.op.inputs[k], p.op.updates[k]
    result = p.scatter(p.op.combine, x, updates)

    def equal(a: SSAValue, b: SSAValue) -> SSAValue:
        return t.logical_or(t.compare("eq", a, b), t.logical_and(t.is_nan(a), t.is_nan(b)))

    kept, wins = equal(x, result), equal(updates, p.read(result))
    ones = p.scatter("add", t.convert(kept, i64), t.convert(wins, i64))
    count = t.emit(nd.MaxOp, [ones, t.full_like(1, ones)], ones.type)
    share = t.div(ct, t.convert(count, element_of(ct)))
    return lambda: t.where(kept, share), lambda: p.kept(t.where(wins, p.read(share)))


def _mul(p: _Places, k: int, ct: SSAValue) -> Pair:
    """y[j] = x[j] u_1 u_2 ..: each factor takes ct times the product of the others, without a division"""
    t, x, updates = p.t, p.op.inputs[k], p.op.updates[k]

    def by_operand() -> SSAValue:
        return t.mul_strong(ct, p.scatter("mul", t.full_like(1.0, x), updates))

    def by_updates() -> SSAValue:
        others = t.mul_strong(_products_of_others(p, updates), p.read(x))
        return p.kept(t.mul_strong(p.read(ct), others))

    return by_operand, by_updates


def _products_of_others(p: _Places, updates: SSAValue) -> SSAValue:
    """For each update the product of all other updates of its place.

    The updates are sorted by place; products of those before and of those behind within a place double their reach each step.
    """
    t, shape = p.t, shape_of(p.at)
    count = size_algebra.product(shape)
    if not isinstance(count, int):
        return _products_of_all_others(p, updates)
    line = (count,)
    order = nd.SortOp.make([t.reshape(p.at, line), t.reshape(updates, line), t.iota(tensor(i64, line), 0)], 0)
    emit(t.builder, order)
    at, factor, number = order.outputs

    def shifted(x: SSAValue, by: int, fill: float) -> SSAValue:
        return t.pad(x, fill, (by,), (-by,))

    def before(by: int, value: SSAValue, step: int) -> SSAValue:
        same = t.compare("eq", at, shifted(at, step * by, -1))
        return t.select(same, shifted(value, step * by, 1.0), t.full_like(1.0, value))

    sides: list[SSAValue] = []
    for step in (1, -1):
        product, reach = before(1, factor, step), 1
        while reach < count:
            product = t.mul_strong(product, before(reach, product, step))
            reach *= 2
        sides.append(product)
    back = nd.SortOp.make([number, t.mul_strong(*sides)], 0)
    emit(t.builder, back)
    return t.reshape(back.outputs[1], shape)


def _products_of_all_others(p: _Places, updates: SSAValue) -> SSAValue:
    """The same where their number is known at run time alone: each update with every other one, n^2 products."""
    t, shape = p.t, shape_of(p.at)
    count = size_algebra.product(shape)
    places, factors = t.reshape(p.at, (count,)), t.reshape(updates, (count,))
    kind = tensor(i64, (count, count))
    same = t.compare("eq", t.broadcast(places, kind, (0,)), t.broadcast(places, kind, (1,)))
    other = t.compare("ne", t.iota(kind, 0), t.iota(kind, 1))
    square = t.broadcast(factors, tensor(element_of(updates), (count, count)), (1,))
    chosen = t.select(t.logical_and(same, other), square, t.full_like(1.0, square))
    return t.reshape(t.reduce(nd.ReduceProdOp, chosen, (1,)), shape)


# -- with a region


def scatter_loop(builder: Builder, op: nd.ScatterGeneralOp) -> Sequence[SSAValue]:
    """One update after the other, in row-major order: `new = region(old, update)` at its place, unless that lies outside."""
    t, shape, count = TensorBuilder(builder), known_sizes(op, op.inputs[0]), len(op.inputs)
    if not math.prod(shape) or 0 in shape_of(op.updates[0]):
        return op.inputs
    places = _Places.of(t, op)
    trips = math.prod(known_sizes(op, op.updates[0]))
    at = t.reshape(places.at, (trips,))
    inside = None if places.inside is None else t.reshape(places.inside, (trips,))
    updates = [t.reshape(value, (trips,)) for value in op.updates]

    def step(inner: Builder, k: SSAValue, state: list[SSAValue]) -> Sequence[SSAValue]:
        u = TensorBuilder(inner)
        place = u.index_at(at, k)
        olds = [u.reshape(emit(inner, nd.DynamicSliceOp.make(x, [place], [1])), ()) for x in state]
        assert op.combiner is not None
        news = lifted(inner, op.combiner.block, [*olds, *(u.index_at(x, k) for x in updates)], ())
        if inside is not None:
            news = [u.select(u.index_at(inside, k), new, old) for new, old in zip(news, olds)]
        return [emit(inner, nd.DynamicUpdateSliceOp.make(x, u.reshape(new, (1,)), [place])) for x, new in zip(state, news)]

    flat = [t.reshape(x, (places.volume,)) for x in op.inputs]
    return [t.reshape(x, shape) for x in counted(builder, trips, flat, step)][:count]


def _has_region(op: nd.ScatterGeneralOp) -> bool:
    return op.combine == "region"


LOOPS[nd.ScatterGeneralOp] = (_has_region, scatter_loop)
