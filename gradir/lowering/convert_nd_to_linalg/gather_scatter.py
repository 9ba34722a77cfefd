"""Gather of windows reads the operand in the body of a nest; scatter of windows is a template that walks the updates in their order."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import BFloat16Type, Float16Type
from xdsl.ir import Attribute, SSAValue

from gradir.dialects.nd.gather_scatter import GatherGeneralOp, Numbers, ScatterGeneralOp
from gradir.dialects.target import CudaTargetAttr, target_of
from gradir.dialects.types import element_of, is_unsigned, shape_of
from gradir.dialects.upstream import arith, tensor as tensors
from gradir.lowering.convert_nd_to_linalg.conversions import widen
from gradir.lowering.convert_nd_to_linalg.elements import lowered
from gradir.lowering.convert_nd_to_linalg.function import Lowering
from gradir.lowering.convert_nd_to_linalg.indexing import as_index
from gradir.lowering.convert_nd_to_linalg.nests import linear_index
from gradir.lowering.convert_nd_to_linalg.reduction import MAX, MIN, PRODUCT, SUM, Fold, accumulator_type
from gradir.lowering.convert_nd_to_linalg.regions import code_of, scalar_code
from gradir.lowering.convert_nd_to_linalg.rules import lowers
from gradir.lowering.convert_nd_to_linalg.scalars import Scalars, to_index
from gradir.lowering.convert_nd_to_linalg.spreading import owner_count, parallel_loops
from gradir.lowering.convert_nd_to_linalg.templates import LoopBuilder
from gradir.lowering.convert_nd_to_linalg.views import View, constant, dim


@lowers(GatherGeneralOp)
def lower_gather_general(lowering: Lowering, op: GatherGeneralOp) -> View:
    """`result[b, o] = operand[clamp(start(b)) + o]`"""
    n, sizes, shape, element = op.dimensions, op.numbers("sizes"), shape_of(op.result), element_of(op.operand)
    operand = lowering.view(op.operand)
    if 0 in shape:
        return lowering.whole(lowering.nests.empty(element, shape), element)
    if operand.is_splat:
        return operand
    source = lowering.tensor(op.operand)
    vectors = lowering.view(op.indices)
    components = [vectors.over([*(dim(d) for d in n.batch), constant(k)]) for k in range(len(n.map))]
    rooms = [_room(lowering, op.operand, d, sizes[d]) for d in n.map]
    batch = {d: n.batch_of(k) for k, d in enumerate(n.operand_batch)}
    walked = dict(zip(n.walked, n.window))

    def body(s: Scalars, xs: list[SSAValue], _: SSAValue) -> SSAValue:
        starts = {d: to_index(s, x, room) for d, x, room in zip(n.map, xs, rooms)}
        starts |= {d: linear_index(s, dim(b)) for d, b in batch.items()}
        places: list[SSAValue] = []
        for d in range(n.rank):
            at = starts.get(d)
            if d in walked and (sizes[d] != 1 or at is None):
                offset = linear_index(s, dim(walked[d]))
                at = offset if at is None else s.i(arith.AddiOp, at, offset)
            places.append(at if at is not None else linear_index(s, constant(0)))
        return s.builder(tensors.ExtractOp, (source, *places), (lowered(element),))

    unsigned = is_unsigned(element_of(op.indices))
    return lowering.whole(lowering.nests.nest(components, element, shape, body, compute=False, unsigned=unsigned, share=False), element)


def _room(lowering: Lowering, operand: SSAValue, d: int, size: int) -> SSAValue:
    """How many starts along dimension d keep a window of `size` inside."""
    total = shape_of(operand)[d]
    if isinstance(total, int):
        return lowering.index(total - size + 1)
    return lowering.nests.minus(lowering.size(operand, d), size - 1)


FOLDS: dict[str, Fold] = {"add": SUM, "mul": PRODUCT, "max": MAX, "min": MIN}


@lowers(ScatterGeneralOp)
def lower_scatter_general(lowering: Lowering, op: ScatterGeneralOp) -> View | tuple[View, ...]:
    """A template that updates the operands' tensors, in row-major order of the updates; sums in f32 at least, rounded at the end.

    Whether the operands must be copied for that is for `bufferize` to know: not where a loop hands them on.
    """
    elements = [element_of(value) for value in op.inputs]
    wide = [accumulator_type(e) if op.combine == "add" else e for e in elements]
    cast = lowering.nests.cast
    inputs = [cast(lowering.tensor(v), e, w) for v, e, w in zip(op.inputs, elements, wide)]
    updates = [cast(lowering.tensor(v), e, w) for v, e, w in zip(op.updates, elements, wide)]

    def body(loops: LoopBuilder, arguments: Sequence[SSAValue]) -> Sequence[SSAValue]:
        return _scatter(loops, arguments, op, wide)

    n = op.dimensions
    unsigned = tuple(is_unsigned(e) for e in (*elements, element_of(op.indices)))
    key = (op.combine, n.window, n.dropped, n.operand_batch, n.indices_batch, n.map, code_of(op.combiner), unsigned)
    results = lowering.templates.call_all(lowering.builder, "scatter", key, [lowering.tensor(op.indices), *updates], inputs, body)
    views = [lowering.whole(cast(r, w, e), e) for r, w, e in zip(results, wide, elements)]
    return tuple(views) if len(views) > 1 else views[0]


def _scatter(loops: LoopBuilder, arguments: Sequence[SSAValue], op: ScatterGeneralOp, wide: Sequence[Attribute]) -> Sequence[SSAValue]:
    count, n = len(wide), op.dimensions
    indices, updates, started = arguments[0], arguments[1 : count + 1], arguments[count + 1 :]
    sizes = loops.sizes(started[0])
    owners = _owners(op, started[0], updates[0]) if isinstance(target_of(op), CudaTargetAttr) else 0

    def one(inner: LoopBuilder, at: list[SSAValue], carried: list[SSAValue], owner: SSAValue | None = None) -> list[SSAValue]:
        s = Scalars(inner.builder)
        place = _place(inner, n, indices, at, is_unsigned(element_of(op.indices)))
        inside: SSAValue | None = None
        for p, size in zip(place, sizes):
            fits = s.cmpi("ult", p, size)  # unsigned: a negative index is beyond any size
            inside = fits if inside is None else s.i(arith.AndIOp, inside, fits)

        if owner is not None:
            mine = s.cmpi("eq", s.i(arith.AndIOp, place[n.map[0]], inner.index(owners - 1)), owner)
            inside = mine if inside is None else s.i(arith.AndIOp, inside, mine)

        def join(joining: LoopBuilder) -> list[SSAValue]:
            olds = [joining.load(x, place) for x in carried]
            news = [joining.load(x, at) for x in updates]
            return [joining.store(value, x, place) for value, x in zip(_joined(joining, op, wide, olds, news), carried)]

        return join(inner) if inside is None else inner.when_all(inside, join, carried)

    if not owners:
        return loops.loops(loops.sizes(updates[0]), started, one)
    apart, extents = free_dims(n), loops.sizes(updates[0])
    ordered = [d for d in range(len(extents)) if d not in apart]

    def of_owner(outer: LoopBuilder, fixed: list[SSAValue], carried: list[SSAValue]) -> list[SSAValue]:
        own = dict(zip(apart, fixed[1:]))

        def update(inner: LoopBuilder, rest: list[SSAValue], values: list[SSAValue]) -> list[SSAValue]:
            at = own | dict(zip(ordered, rest))
            return one(inner, [at[d] for d in range(len(extents))], values, fixed[0] if owners > 1 else None)

        return outer.loops([extents[d] for d in ordered], carried, update)

    return parallel_loops(loops, [loops.index(owners), *(extents[d] for d in apart)], started, of_owner)


def free_dims(n: Numbers) -> list[int]:
    """Dimensions of the updates that are dimensions of the operand too: updates that differ there never meet."""
    batch = {n.batch_of(k) for k in range(len(n.operand_batch))}
    return sorted(batch | {place for d, place in zip(n.walked, n.window) if d not in n.map})


def _owners(op: ScatterGeneralOp, operand: SSAValue, updates: SSAValue) -> int:
    """Parts of the operand's first indexed dimension."""
    n = op.dimensions
    rows = shape_of(operand)[n.map[0]] if n.map else 1
    return owner_count(rows, [shape_of(updates)[d] for d in free_dims(n)])


def _place(loops: LoopBuilder, n: Numbers, indices: SSAValue, at: Sequence[SSAValue], unsigned: bool) -> list[SSAValue]:
    """Where in the operand the update at `at` belongs."""
    s = Scalars(loops.builder, unsigned)
    vector = [at[d] for d in n.batch]
    starts = {d: as_index(s, loops.load(indices, [*vector, loops.index(k)])) for k, d in enumerate(n.map)}
    starts |= {d: at[n.batch_of(k)] for k, d in enumerate(n.operand_batch)}
    walked = {d: at[place] for d, place in zip(n.walked, n.window)}
    places: list[SSAValue] = []
    for d in range(n.rank):
        start, offset = starts.get(d), walked.get(d)
        if start is not None and offset is not None:
            start = s.i(arith.AddiOp, start, offset)
        places.append(start if start is not None else offset if offset is not None else loops.index(0))
    return places


def _joined(
    loops: LoopBuilder, op: ScatterGeneralOp, wide: Sequence[Attribute], olds: Sequence[SSAValue], news: Sequence[SSAValue]
) -> list[SSAValue]:
    if op.combiner is not None:
        return scalar_code(loops.builder, op.combiner.block, [*olds, *news])
    if op.combine == "set":
        return list(news)
    found: list[SSAValue] = []
    for element, old, new in zip(wide, olds, news):
        s = Scalars(loops.builder, is_unsigned(element))
        value = FOLDS[op.combine].join(s, widen(s, new), widen(s, old))
        narrow = isinstance(old.type, Float16Type | BFloat16Type)
        found.append(s.to(arith.TruncFOp, value, old.type) if narrow else value)
    return found
