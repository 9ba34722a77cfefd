"""Ops whose positions are values: gathers read in the body of a nest, slices are slices, scatters are templates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects.builtin import IntegerType, i64
from xdsl.ir import SSAValue

from gradir.dialects import nd
from gradir.dialects.target import CudaTargetAttr, target_of
from gradir.dialects.types import Shape, element_of, is_unsigned, rank_of, shape_of
from gradir.dialects.upstream import arith, tensor as tensors
from gradir.lowering.convert_nd_to_linalg.elements import lowered
from gradir.lowering.convert_nd_to_linalg.function import Lowering
from gradir.lowering.convert_nd_to_linalg.nests import INDEX, Offset, linear_index
from gradir.lowering.convert_nd_to_linalg.reduction import accumulator_type
from gradir.lowering.convert_nd_to_linalg.rules import lowers
from gradir.lowering.convert_nd_to_linalg.scalars import Scalars, to_index
from gradir.lowering.convert_nd_to_linalg.slices import slice_view
from gradir.lowering.convert_nd_to_linalg.spreading import owner_count, parallel_loops
from gradir.lowering.convert_nd_to_linalg.templates import LoopBuilder
from gradir.lowering.convert_nd_to_linalg.views import View, dim, dims


@lowers(nd.GatherOp)
def lower_gather(lowering: Lowering, op: nd.GatherOp) -> View:
    """`result[a, i, b] = operand[a, clamp(indices[i]), b]`: the body reads the operand at the clamped index."""
    axis, shape, element = op.number("dim"), shape_of(op.result), element_of(op.operand)
    operand = lowering.view(op.operand)
    if 0 in shape:
        return lowering.whole(lowering.nests.empty(element, shape), element)
    if operand.is_splat:
        return operand
    source = lowering.tensor(op.operand)
    size = lowering.size(op.operand, axis)
    middle = rank_of(op.indices)
    indices = lowering.view(op.indices).over(dims(*range(axis, axis + middle)))
    after = [dim(d + middle - 1) for d in range(axis + 1, rank_of(op.operand))]

    def body(s: Scalars, xs: list[SSAValue], _: SSAValue) -> SSAValue:
        at = to_index(s, xs[0], size)
        places = [*(linear_index(s, form) for form in dims(*range(axis))), at, *(linear_index(s, form) for form in after)]
        return s.builder(tensors.ExtractOp, (source, *places), (lowered(element),))

    unsigned = is_unsigned(element_of(op.indices))
    return lowering.whole(lowering.nests.nest([indices], element, shape, body, compute=False, unsigned=unsigned), element)


@lowers(nd.ScatterAddOp)
def lower_scatter_add(lowering: Lowering, op: nd.ScatterAddOp) -> View:
    """A template that adds to the operand's tensor, in row-major order of the indices; sums in f32 at least, then rounded.

    Whether the operand must be copied for that is for `bufferize` to know: not where a loop hands it on.
    """
    axis, element = op.number("dim"), element_of(op.operand)
    into = accumulator_type(element)
    operand = lowering.nests.cast(lowering.tensor(op.operand), element, into)
    updates = lowering.nests.cast(lowering.tensor(op.updates), element, into)
    unsigned = is_unsigned(element_of(op.indices))
    middle = rank_of(op.indices)

    on_gpu = isinstance(target_of(op), CudaTargetAttr)

    def body(loops: LoopBuilder, arguments: Sequence[SSAValue]) -> SSAValue:
        return (_scatter_add_by_owners if on_gpu else _scatter_add)(loops, arguments, axis, middle, unsigned)

    operands = (lowering.tensor(op.indices), updates)
    result = lowering.templates.call(lowering.builder, "scatter_add", (axis, unsigned), operands, operand, body)
    return lowering.whole(lowering.nests.cast(result, into, element), element)


def _scatter_add(loops: LoopBuilder, arguments: Sequence[SSAValue], axis: int, middle: int, unsigned: bool) -> SSAValue:
    indices, updates, destination = arguments
    size = loops.size(destination, axis)

    def one_row(rows: LoopBuilder, at: list[SSAValue], carried: list[SSAValue]) -> list[SSAValue]:
        row = as_index(Scalars(rows.builder, unsigned), rows.load(indices, at))
        inside = Scalars(rows.builder).cmpi("ult", row, size)  # unsigned: a negative index is beyond any size

        def add_row(adding: LoopBuilder) -> SSAValue:
            return _add_row(adding, updates, carried[0], at, row, axis, middle)

        return [rows.when(inside, add_row, carried[0])]

    (result,) = loops.loops(loops.sizes(indices), [destination], one_row)
    return result


def _scatter_add_by_owners(loops: LoopBuilder, arguments: Sequence[SSAValue], axis: int, middle: int, unsigned: bool) -> SSAValue:
    """For a GPU: a thread owns the rows that are equal to its number modulo the owners, at one place within them, and adds in order."""
    indices, updates, destination = arguments
    size = loops.size(destination, axis)
    around = [d for d in range(rank_of(updates)) if not axis <= d < axis + middle]
    shape = shape_of(updates)
    owners = owner_count(shape_of(destination)[axis], [shape[d] for d in around])

    def own(outer: LoopBuilder, fixed: list[SSAValue], carried: list[SSAValue]) -> list[SSAValue]:
        owner, *rest = fixed

        def update(inner: LoopBuilder, at: list[SSAValue], values: list[SSAValue]) -> list[SSAValue]:
            s = Scalars(inner.builder, unsigned)
            row = as_index(s, inner.load(indices, at))
            inside = s.cmpi("ult", row, size)
            if owners > 1:
                inside = s.i(arith.AndIOp, inside, s.cmpi("eq", s.i(arith.AndIOp, row, inner.index(owners - 1)), owner))

            def add(adding: LoopBuilder) -> SSAValue:
                t, place = Scalars(adding.builder), [*rest[:axis], row, *rest[axis:]]
                old, new = adding.load(values[0], place), adding.load(updates, [*rest[:axis], *at, *rest[axis:]])
                total = t.i(arith.AddiOp, old, new) if isinstance(old.type, IntegerType) else t.f(arith.AddfOp, old, new)
                return adding.store(total, values[0], place)

            return [inner.when(inside, add, values[0])]

        return outer.loops(outer.sizes(indices), carried, update)

    return parallel_loops(loops, [loops.index(owners), *(loops.size(updates, d) for d in around)], [destination], own)[0]


def _add_row(
    loops: LoopBuilder, updates: SSAValue, destination: SSAValue, at: list[SSAValue], row: SSAValue, axis: int, middle: int
) -> SSAValue:
    """`destination[a, row, b] += updates[a, at, b]` for all a, b."""
    around = [d for d in range(rank_of(updates)) if not axis <= d < axis + middle]

    def add(inner: LoopBuilder, rest: list[SSAValue], carried: list[SSAValue]) -> list[SSAValue]:
        place = [*rest[:axis], row, *rest[axis:]]
        s = Scalars(inner.builder)
        old, new = inner.load(carried[0], place), inner.load(updates, [*rest[:axis], *at, *rest[axis:]])
        total = s.i(arith.AddiOp, old, new) if isinstance(old.type, IntegerType) else s.f(arith.AddfOp, old, new)
        return [inner.store(total, carried[0], place)]

    (result,) = loops.loops([loops.size(updates, d) for d in around], [destination], add)
    return result


def as_index(s: Scalars, x: SSAValue) -> SSAValue:
    """An integer as an index; an unsigned one beyond the range of index stays outside every tensor (it reads as negative)."""
    return s.to(arith.IndexCastUIOp if s.unsigned and x.type != i64 else arith.IndexCastOp, x, INDEX)


@lowers(nd.DynamicSliceOp)
def lower_dynamic_slice(lowering: Lowering, op: nd.DynamicSliceOp) -> View:
    """`result[i] = operand[s + i]` with `s = clamp(starts, 0, size - sizes)`."""
    offsets = _clamped(lowering, op.operand, op.starts, shape_of(op.result))
    ones = [1] * rank_of(op.operand)
    return slice_view(lowering, lowering.view(op.operand), shape_of(op.operand), offsets, shape_of(op.result), ones)


@lowers(nd.DynamicUpdateSliceOp)
def lower_dynamic_update_slice(lowering: Lowering, op: nd.DynamicUpdateSliceOp) -> View:
    """`operand` with the update at the clamped start."""
    if 0 in shape_of(op.update):
        return lowering.view(op.operand)
    offsets = _clamped(lowering, op.operand, op.starts, shape_of(op.update))
    value, into = lowering.tensor(op.update), lowering.tensor(op.operand)
    ones = [1] * rank_of(op.operand)
    return lowering.whole(lowering.nests.insert_slice(value, into, offsets, shape_of(op.update), ones), element_of(op.result))


def _clamped(lowering: Lowering, operand: SSAValue, starts: Sequence[SSAValue], sizes: Shape) -> list[Offset]:
    """Start indices in [0, size - taken], numbers where both are known."""
    offsets: list[Offset] = []
    for d, (start, taken) in enumerate(zip(starts, sizes)):
        size = shape_of(operand)[d]
        if size == taken and size is not None:
            offsets.append(0)
            continue
        view = lowering.view(start)
        if isinstance(size, int) and isinstance(taken, int):
            room = lowering.index(size - taken + 1)
            if view.is_splat and not isinstance(view.base, SSAValue):
                known = int(cast("Any", view.base).value.data)
                offsets.append(min(max(known, 0), size - taken))
                continue
        else:
            lowering.require_within(taken, size, f"a slice of dimension {d}")
            total = lowering.size(operand, d)
            room = lowering.nests.add(lowering.nests.minus(total, taken if isinstance(taken, int) else lowering.size_of(taken)), 1)
        s = Scalars(lowering.builder, is_unsigned(element_of(start)))
        offsets.append(to_index(s, lowering.element_at_origin(view), room))
    return offsets


@lowers(nd.IndexAtOp)
def lower_index_at(lowering: Lowering, op: nd.IndexAtOp) -> View:
    """`result[a, b] = operand[a, at, b]`: a slice of size 1 whose dimension disappears."""
    axis, shape = op.number("dim"), shape_of(op.operand)
    offsets: list[Offset] = [lowering.scalar(op.at) if d == axis else 0 for d in range(len(shape))]
    sizes = tuple(1 if d == axis else n for d, n in enumerate(shape))
    return slice_view(lowering, lowering.view(op.operand), shape, offsets, sizes, [1] * len(shape), (axis,))


@lowers(nd.UpdateAtOp)
def lower_update_at(lowering: Lowering, op: nd.UpdateAtOp) -> View:
    """`operand` with the slice at `at` replaced by `value`."""
    if 0 in shape_of(op.value):
        return lowering.view(op.operand)
    axis, shape = op.number("dim"), shape_of(op.operand)
    offsets: list[Offset] = [lowering.scalar(op.at) if d == axis else 0 for d in range(len(shape))]
    sizes = tuple(1 if d == axis else n for d, n in enumerate(shape))
    result = lowering.nests.insert_slice(lowering.tensor(op.value), lowering.tensor(op.operand), offsets, sizes, [1] * len(shape))
    return lowering.whole(result, element_of(op.result))


@lowers(tensors.ExtractOp)
def lower_extract(lowering: Lowering, op: tensors.ExtractOp) -> SSAValue:
    """A scalar out of a tensor, for control flow."""
    view = lowering.view(op.tensor)
    if not op.indices:
        return lowering.element_at_origin(view)
    at = [lowering.scalar(i) for i in op.indices]
    return lowering.builder(tensors.ExtractOp, (lowering.tensor(op.tensor), *at), (lowered(op.result.type),))


@lowers(tensors.FromElementsOp)
def lower_from_elements(lowering: Lowering, op: tensors.FromElementsOp) -> View | None:
    """A scalar as a rank-0 tensor: a splat, which reaches memory only if it must."""
    if rank_of(op.result):
        lowering.copy(op)
        return None
    return View(lowering.scalar(op.elements[0]), (), element_of(op.result))
