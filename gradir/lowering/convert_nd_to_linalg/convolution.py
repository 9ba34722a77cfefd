"""Convolutions and windows: nests whose input index is `position * stride + offset in the window * dilation`, over a padded input.

Padding is an insertion into a filled frame. An input with gaps is taken by phases (`convolution_phases`).
Windows that do not overlap need no such index: the window becomes dimensions of the operand, a plain reduction.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import cast

from xdsl.dialects.builtin import TensorType
from xdsl.ir import BlockArgument, SSAValue

from gradir import size_algebra
from gradir.dialects import nd
from gradir.dialects.nd.shape import padded_shape
from gradir.dialects.target import CpuTargetAttr, target_of
from gradir.dialects.types import Dim, Shape, element_of, is_unsigned, rank_of, shape_of
from gradir.lowering.convert_nd_to_linalg.convolution_nests import Geometry, in_memory, sum_of_windows, window_form
from gradir.lowering.convert_nd_to_linalg.convolution_phases import by_phases
from gradir.lowering.convert_nd_to_linalg.elements import lowered, number
from gradir.lowering.convert_nd_to_linalg.function import Lowering
from gradir.lowering.convert_nd_to_linalg.layouts import MOST_STEPS, Layout, plain, returned_order
from gradir.lowering.convert_nd_to_linalg.reduction import ALL, ANY, MAX, MIN, PRODUCT, SUM, Fold, accumulator_type, fold_view
from gradir.lowering.convert_nd_to_linalg.reshape import reshape_view
from gradir.lowering.convert_nd_to_linalg.rules import lowers
from gradir.lowering.convert_nd_to_linalg.shape import pad_view
from gradir.lowering.convert_nd_to_linalg.slices import slice_view
from gradir.lowering.convert_nd_to_linalg.views import View, constant, dim
from gradir.lowering.schedules.convolution import LEAST_CHANNELS

FOLDS: dict[str, Fold] = {"sum": SUM, "prod": PRODUCT, "max": MAX, "min": MIN, "and": ALL, "or": ANY}

FEW_CHANNELS = 8
"""Channels below which an image stays in the order in which it came."""
LONG_ROW = 16
"""Positions of a result from which on vectors run along them rather than along channels, where that saves transposing."""


@lowers(nd.ConvGeneralOp)
def lower_conv_general(lowering: Lowering, op: nd.ConvGeneralOp) -> View:
    """`result[n, s, o] = sum over k, c of padded[n, s * strides + k * rhs_dilation, c] * rhs[k, c, o]`."""
    geometry = Geometry(op.numbers("strides"), op.numbers("rhs_dilation"), op.number("feature_groups"), op.number("batch_groups"))
    rhs, rhs_shape = in_memory(lowering, lowering.view(op.rhs), shape_of(op.rhs))
    phased = by_phases(lowering, op, geometry, rhs, rhs_shape)
    if phased is not None:
        result = phased
    else:
        lhs, lhs_shape = _padded_input(lowering, op)
        layout = _result_layout(lowering, op, lhs)
        result = sum_of_windows(lowering, lhs, lhs_shape, rhs, rhs_shape, geometry, shape_of(op.result), element_of(op.result), layout)
    if isinstance(result.base, SSAValue):
        lowering.laid_out.add(result.base)
    return result


def _result_layout(lowering: Lowering, op: nd.ConvGeneralOp, lhs: View) -> Layout:
    """Channels last: a position's channels are one row of the result, whatever the input's order.

    Except where the result leaves the function with its positions side by side. If the input has them so too, neither is transposed; if
    it has channels last, the kernel turns its tiles on their way out.
    """
    rank, perm = rank_of(op.result), returned_order(op.result)
    if perm is None or perm[-1] in (0, rank - 1) or not lhs.index:
        return plain(rank)
    beside, shape = lhs.index[-1].dim, shape_of(op.result)
    extent, channels = shape[perm[-1]], shape[-1]
    if perm[-1] == beside and (not isinstance(extent, int) or extent >= LONG_ROW):
        return Layout(perm)
    if not isinstance(target_of(op), CpuTargetAttr):
        return plain(rank)
    known = all(isinstance(n, int) and n > 0 for n in (*shape, *shape_of(op.lhs), *shape_of(op.rhs)))
    window, positions = shape_of(op.rhs)[:-2], shape[1:-1]
    known = known and prod(cast("tuple[int, ...]", positions)) > prod(cast("tuple[int, ...]", window))  # no gradient of a filter
    moves = any(n != 1 for n in window) and op.number("feature_groups") == op.number("batch_groups") == 1
    if beside == rank - 1 and known and moves and isinstance(channels, int) and channels >= LEAST_CHANNELS:
        return Layout(perm) if _meets_its_own_order(lowering, op.result) else plain(rank)
    return plain(rank)


def _meets_its_own_order(lowering: Lowering, value: SSAValue) -> bool:
    """Are the other operands of what happens to a value on its way out, if they are as large, arguments or in their own order?"""
    for _ in range(MOST_STEPS):
        (use,) = value.uses
        user = use.operation
        if not user.results:
            return True
        for operand in user.operands:
            if operand is value or not isinstance(operand.type, TensorType) or shape_of(operand) != shape_of(value):
                continue
            view = lowering.values.get(operand)
            if not isinstance(view, View) or (isinstance(view.base, SSAValue) and view.base in lowering.laid_out):
                return False
        value = user.results[0]
    return False


def _padded_input(lowering: Lowering, op: nd.ConvGeneralOp) -> tuple[View, Shape]:
    """lhs with its padding and dilation, in memory."""
    shape, spatial = shape_of(op.lhs), rank_of(op.lhs) - 2
    padding, dilation = op.numbers("padding"), op.numbers("lhs_dilation")
    low = [0, *padding[0::2], 0]
    high = [0, *padding[1::2], 0]
    interior = [0, *(n - 1 for n in dilation), 0]
    padded = padded_shape(shape, low, high, interior)
    if spatial:
        padded = tuple(max(n, 0) if isinstance(n, int) else n for n in padded)
    element = element_of(op.lhs)
    zero = View(number(0, lowered(element)), (), element)
    view = lowering.view(op.lhs)
    if padded != shape:
        view = _laid_for_padding(lowering, view, shape)
    view = pad_view(lowering, view, shape, zero, padded, low, high, interior)
    return in_memory(lowering, view, padded)


def _laid_for_padding(lowering: Lowering, view: View, shape: Shape) -> View:
    """What is copied into a frame anyway: channels last if there are enough of them, and by a kernel rather than as a plain copy."""
    if not view.is_tensor or (_is_computed(view) and view.index[-1].dim == len(shape) - 1):
        return view
    channels = shape[-1]
    if isinstance(channels, int) and channels < FEW_CHANNELS:
        return view
    return lowering.whole(lowering.nests.copy(view, shape), view.element)


def _is_computed(view: View) -> bool:
    return isinstance(view.base, SSAValue) and not isinstance(view.base, BlockArgument)


@lowers(nd.ReduceWindowOp)
def lower_reduce_window(lowering: Lowering, op: nd.ReduceWindowOp) -> View:
    """`result[i] = fold over w of padded[i * strides + w * dilations]`."""
    how, element = FOLDS[op.kind.data.value], element_of(op.operand)
    window, strides, dilations, padding = (op.numbers(p) for p in ("window", "strides", "dilations", "padding"))
    shape, result = shape_of(op.operand), shape_of(op.result)
    into = accumulator_type(element)
    identity = View(number(how.start(lowered(element), is_unsigned(element)), lowered(element)), (), element)
    low, high = padding[0::2], padding[1::2]
    padded = tuple(max(n, 0) if isinstance(n, int) else n for n in padded_shape(shape, low, high, [0] * len(shape)))
    view = pad_view(lowering, lowering.view(op.operand), shape, identity, padded, low, high, [0] * len(shape))
    moving = [d for d, w in enumerate(window) if w != 1]
    if all(strides[d] == window[d] and dilations[d] == 1 for d in moving) and all(
        strides[d] == 1 for d in range(len(shape)) if d not in moving
    ):
        split, split_shape, inner = split_windows(lowering, view, padded, window, result)
        folded = fold_view(lowering, split, split_shape, inner, how)
    else:
        folded = _fold_windows(lowering, view, padded, window, strides, dilations, result, how)
    return lowering.whole(lowering.nests.cast(folded, into, element), element)


def split_windows(lowering: Lowering, view: View, shape: Shape, window: Sequence[int], count: Shape) -> tuple[View, Shape, tuple[int, ...]]:
    """Windows side by side: each dimension becomes (count, window); the view, its shape, the positions of the window dimensions."""
    sizes = tuple(size_algebra.times(n, w) for n, w in zip(count, window))
    view = slice_view(lowering, view, shape, [0] * len(shape), sizes, [1] * len(shape))
    split: list[Dim] = []
    inner: list[int] = []
    for n, w in zip(count, window):
        split.append(n)
        if w != 1:
            inner.append(len(split))
            split.append(w)
    return reshape_view(lowering, view, sizes, tuple(split)), tuple(split), tuple(inner)


def _fold_windows(
    lowering: Lowering,
    view: View,
    shape: Shape,
    window: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    result: Shape,
    how: Fold,
) -> SSAValue:
    """Overlapping windows: the window's loops are reductions, their extents come from a shape-only operand."""
    if not view.is_tensor:
        view = lowering.whole(lowering.materialized(view, shape), view.element)
    rank = len(result)
    moving = [d for d, w in enumerate(window) if w != 1]
    forms = [
        window_form(dim(d), strides[d], dim(rank + moving.index(d)) if d in moving else constant(0), dilations[d]) for d in range(rank)
    ]
    into = accumulator_type(view.element)
    unsigned = is_unsigned(view.element)
    if not moving:
        return lowering.nests.nest([view.over(forms)], into, result, lambda _, xs, __: xs[0])
    return lowering.nests.nest(
        [view.over(forms)],
        into,
        result,
        lambda s, xs, accumulator: how.join(s, xs[0], accumulator),
        kinds="p" * rank + "r" * len(moving),
        out=range(rank),
        init=how.start(into, unsigned),
        unsigned=unsigned,
        windows=[window[d] for d in moving],
    )
