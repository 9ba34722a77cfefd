"""Ops that only move elements. Transpose, broadcast, reverse, slice and most reshapes are views; pad and concatenate write slices."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import cast

from xdsl.ir import SSAValue

from gradir import size_algebra
from gradir.dialects import nd
from gradir.dialects.types import Dim, Shape, element_of, rank_of, shape_of
from gradir.lowering.convert_nd_to_linalg.function import Lowering
from gradir.lowering.convert_nd_to_linalg.nests import Offset
from gradir.lowering.convert_nd_to_linalg.reshape import reshape_view
from gradir.lowering.convert_nd_to_linalg.rules import lowers
from gradir.lowering.convert_nd_to_linalg.slices import slice_view
from gradir.lowering.convert_nd_to_linalg.views import View, constant, dim, dims

TO_END = -1
LARGE_FRAME = 1 << 14
"""Elements of a padded tensor from which on only its edges are filled before the rest is written."""


@lowers(nd.TransposeOp)
def lower_transpose(lowering: Lowering, op: nd.TransposeOp) -> View:
    """`result[i] = operand[j]` with `j[perm[d]] = i[d]`."""
    perm = op.numbers("perm")
    return lowering.view(op.operand).over([dim(perm.index(d)) for d in range(len(perm))])


@lowers(nd.BroadcastOp)
def lower_broadcast(lowering: Lowering, op: nd.BroadcastOp) -> View:
    """`result[i] = operand[j]` with `j[k] = i[dims[k]]`."""
    lowering.learn_sizes(shape_of(op.result), op.sizes)
    return lowering.view(op.operand).over(dims(*op.numbers("dims")))


@lowers(nd.ReverseOp)
def lower_reverse(lowering: Lowering, op: nd.ReverseOp) -> View:
    """`result[i] = operand[size - 1 - i]` along dims."""
    view, shape, reversed_dims = lowering.view(op.operand), shape_of(op.operand), op.numbers("dims")
    sizes = [shape[d] for d in reversed_dims if view.uses(d)]
    if not all(isinstance(n, int) for n in sizes):
        return _reverse_by_reading(lowering, op)
    return view.over([dim(d, -1, cast("int", n) - 1) if d in reversed_dims and view.uses(d) else dim(d) for d, n in enumerate(shape)])


def _reverse_by_reading(lowering: Lowering, op: nd.ReverseOp) -> View:
    """A run-time size is no constant of an index map: each element reads its mirror image."""
    from_end = {d: lowering.nests.last(lowering.size(op.operand, d)) for d in op.numbers("dims")}
    return lowering.whole(lowering.nests.mirrored(lowering.tensor(op.operand), from_end, element_of(op.result)), element_of(op.result))


@lowers(nd.ReshapeOp)
def lower_reshape(lowering: Lowering, op: nd.ReshapeOp) -> View:
    return reshape_view(lowering, lowering.view(op.operand), shape_of(op.operand), shape_of(op.result))


@lowers(nd.SliceOp)
def lower_slice(lowering: Lowering, op: nd.SliceOp) -> View:
    """`result[i] = operand[start + i * stride]`."""
    for d, (size, limit) in enumerate(zip(shape_of(op.operand), op.numbers("limit"))):
        if not isinstance(size, int) and limit >= 0:
            lowering.require_within(limit, size, f"nd.slice of dimension {d}")
    starts = [lowering.within(start, size) for start, size in zip(op.numbers("start"), shape_of(op.operand))]
    return slice_view(lowering, lowering.view(op.operand), shape_of(op.operand), starts, shape_of(op.result), op.numbers("stride"))


@lowers(nd.PadOp)
def lower_pad(lowering: Lowering, op: nd.PadOp) -> View:
    low, high, interior = (op.numbers(p) for p in ("low", "high", "interior"))
    return pad_view(
        lowering, lowering.view(op.operand), shape_of(op.operand), lowering.view(op.value), shape_of(op.result), low, high, interior
    )


def pad_view(
    lowering: Lowering,
    view: View,
    shape: Shape,
    value: View,
    result: Shape,
    low: Sequence[int],
    high: Sequence[int],
    interior: Sequence[int],
) -> View:
    """`result[low + i * (interior + 1)] = view[i]`, elsewhere `value`, in the memory order of the view's base.

    Negative edges leave elements out first.
    """
    if not any(low) and not any(high) and not any(interior):
        return view
    offsets, kept, places = list[Offset](), list[Dim](), list[Offset]()
    for d, n in enumerate(shape):
        step = interior[d] + 1
        first = max(0, -(low[d] // step)) if low[d] < 0 else 0
        kept.append(_kept(n, result[d], low[d], high[d], step, first))
        offsets.append(lowering.within(first, n))
        places.append(lowering.within(low[d] + first * step, result[d]))
    sizes = tuple(kept)
    if 0 in sizes:
        return value.over(())
    part = slice_view(lowering, view, shape, offsets, sizes, [1] * len(shape))
    if sizes == tuple(result):
        return part
    walked = _walked(part, sizes, result)
    if walked is None:
        part = lowering.whole(lowering.materialized(part, sizes), part.element)
        walked = tuple(range(len(shape)))
    frame_shape = tuple(1 if d is None else result[d] for d in walked)
    target: list[Offset] = [0 if d is None else places[d] for d in walked]
    taken = tuple(1 if d is None else sizes[d] for d in walked)
    steps = [1 if d is None else interior[d] + 1 for d in walked]
    frame = _edges(lowering, value.over(()), frame_shape, target, taken, steps)
    if frame is None:
        frame = lowering.materialized(value.over(()), frame_shape)
    return View(lowering.nests.insert_slice(cast("SSAValue", part.base), frame, target, taken, steps), part.index, part.element)


def _edges(lowering: Lowering, value: View, shape: Shape, target: Sequence[Offset], taken: Shape, steps: Sequence[int]) -> SSAValue | None:
    """A large frame with `value` around a box only; None where all of it may as well be written, or sizes are known to the run alone.

    Dimension by dimension the two slabs beside the box, without what earlier slabs cover.
    """
    if any(not isinstance(n, int) for n in (*shape, *target, *taken)) or set(steps) != {1}:
        return None
    shape, origin, taken = (cast("tuple[int, ...]", tuple(numbers)) for numbers in (shape, target, taken))
    if prod(shape) < LARGE_FRAME or 2 * prod(taken) < prod(shape):
        return None
    frame = lowering.nests.empty(value.element, shape)
    starts, sizes = [0] * len(shape), list(shape)
    for d, n in enumerate(shape):
        end = origin[d] + taken[d]
        for first, count in ((0, origin[d]), (end, n - end)):
            if count:
                box = (*sizes[:d], count, *sizes[d + 1 :])
                at = [*starts[:d], first, *starts[d + 1 :]]
                frame = lowering.nests.insert_slice(lowering.materialized(value, box), frame, at, box, [1] * len(shape))
        starts[d], sizes[d] = origin[d], taken[d]
    return frame


def _kept(size: Dim, result: Dim, low: int, high: int, step: int, first: int) -> Dim:
    """How many elements of a dimension, from `first` on, are inside of a result of that size."""
    if not isinstance(size, int) and low >= 0 and high >= 0:
        return size
    last, fits = size_algebra.minus(size, 1), size_algebra.floordiv(size_algebra.minus(result, 1 + low), step)
    least = size_algebra.minus(size_algebra.plus(last, fits), size_algebra.maximum(last, fits))  # min(a, b) == a + b - max(a, b)
    return size_algebra.maximum(size_algebra.plus(least, 1 - first), 0)


def _walked(view: View, shape: Shape, result: Shape) -> tuple[int | None, ...] | None:
    """The dimension that each dimension of the base is (None: it has size 1); None when the view is not such a permutation.

    Dimensions of the value that the base lacks must have size 1 and stay so.
    """
    if not view.is_tensor:
        return None
    walked: list[int | None] = []
    for n, form in zip(shape_of(cast("SSAValue", view.base)), view.index):
        if form.dim is None and not (n == 1 and form == constant(0)):
            return None
        walked.append(form.dim)
    missing = [d for d in range(len(shape)) if d not in walked]
    plain = len({d for d in walked if d is not None}) == len([d for d in walked if d is not None])
    return tuple(walked) if plain and all(shape[d] == result[d] == 1 for d in missing) else None


@lowers(nd.ConcatenateOp)
def lower_concatenate(lowering: Lowering, op: nd.ConcatenateOp) -> View:
    """Each input is inserted after the ones before it."""
    axis, element = op.number("dim"), element_of(op.result)
    inputs = [v for v in op.inputs if 0 not in shape_of(v)]
    if len(inputs) == 1:
        return lowering.view(inputs[0])
    result = lowering.nests.empty(element, shape_of(op.result))
    offset: Offset = 0
    for value in inputs:
        offsets: list[Offset] = [offset if d == axis else 0 for d in range(rank_of(value))]
        result = lowering.nests.insert_slice(lowering.tensor(value), result, offsets, shape_of(value), [1] * rank_of(value))
        size = shape_of(value)[axis]
        if isinstance(offset, int) and isinstance(size, int):
            offset += size
        else:
            offset = lowering.nests.add(offset, size if isinstance(size, int) else lowering.size(value, axis))
    return lowering.whole(result, element)


@lowers(nd.DimOp)
def lower_dim(lowering: Lowering, op: nd.DimOp) -> SSAValue:
    """The size of a dimension: a number, what its name stands for, or what memory says."""
    return lowering.size(op.operand, op.number("dim"))
