"""Convolutions and windows: nests whose input index is `position * stride + offset in the window * dilation`, over a padded input.

Padding and input dilation are one insertion into a filled frame. Groups become a loop of their own by splitting dimensions in place.
Windows that do not overlap need no such index: the window becomes dimensions of the operand, a plain reduction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.ir import SSAValue

from gradir import size_algebra
from gradir.dialects import nd
from gradir.dialects.nd.shape import padded_shape
from gradir.dialects.types import Dim, Shape, element_of, is_unsigned, rank_of, shape_of
from gradir.lowering.convert_nd_to_linalg.contraction import Layout, layout_of, multiply_add
from gradir.lowering.convert_nd_to_linalg.elements import lowered, number
from gradir.lowering.convert_nd_to_linalg.function import Lowering
from gradir.lowering.convert_nd_to_linalg.reduction import ALL, ANY, MAX, MIN, PRODUCT, SUM, Fold, accumulator_type, fold_view
from gradir.lowering.convert_nd_to_linalg.reshape import reshape_view
from gradir.lowering.convert_nd_to_linalg.rules import lowers
from gradir.lowering.convert_nd_to_linalg.shape import pad_view
from gradir.lowering.convert_nd_to_linalg.slices import slice_view
from gradir.lowering.convert_nd_to_linalg.views import Linear, View, constant, dim, dims

FOLDS: dict[str, Fold] = {"sum": SUM, "prod": PRODUCT, "max": MAX, "min": MIN, "and": ALL, "or": ANY}


@lowers(nd.ConvGeneralOp)
def lower_conv_general(lowering: Lowering, op: nd.ConvGeneralOp) -> View:
    """`result[n, s, o] = sum over k, c of padded[n, s * strides + k * rhs_dilation, c] * rhs[k, c, o]`.

    Loops: (groups g), then the result's dimensions in memory order, then k, c. With one group, g is absent; the group's loop runs
    over the leading part of the channel that it splits.
    """
    spatial = rank_of(op.lhs) - 2
    lhs, lhs_shape = _padded_input(lowering, op)
    rhs, rhs_shape = _in_memory(lowering, lowering.view(op.rhs), shape_of(op.rhs))
    shape = shape_of(op.result)
    features, batches = op.number("feature_groups"), op.number("batch_groups")
    groups = max(features, batches)
    if groups == 1:
        layout = layout_of(op.result)
        result_forms = [dim(layout.order.index(d)) for d in range(len(shape))]
        group, memory_shape = constant(0), shape
        outputs = result_forms[-1]
    else:
        # result channel o = (g, o'): memory keeps the two apart, the nest's loops are n, s.., g, o', k.., c
        per_group = cast("int", shape[-1]) // groups
        memory_shape = (*shape[:-1], groups, per_group) if per_group != 1 else shape
        layout = Layout(tuple(range(len(memory_shape))))
        result_forms = list(dims(*range(len(memory_shape))))
        group = result_forms[len(shape) - 1]
        outputs = result_forms[-1] if per_group != 1 else constant(0)
        rhs = reshape_view(lowering, rhs, rhs_shape, (*rhs_shape[:-1], groups, per_group))
        if features > 1:
            channels = cast("int", lhs_shape[-1]) // groups
            lhs = reshape_view(lowering, lhs, lhs_shape, (*lhs_shape[:-1], groups, channels))
        else:
            lhs = reshape_view(lowering, lhs, lhs_shape, (groups, cast("int", lhs_shape[0]) // groups, *lhs_shape[1:]))
    kernel, channel = _reduction_forms(rhs_shape, spatial, len(memory_shape))
    at = [_window(result_forms[1 + d], op.numbers("strides")[d], kernel[d], op.numbers("rhs_dilation")[d]) for d in range(spatial)]
    split = [group] if groups > 1 else []
    lhs_forms = [result_forms[0], *at, *(split if features > 1 else []), channel]
    if batches > 1:
        lhs_forms = [group, *lhs_forms]
    lhs = lhs.over(lhs_forms)
    rhs = rhs.over([*kernel, channel, *split, outputs])
    reductions = sum(1 for form in (*kernel, channel) if form.terms)
    result = multiply_add(lowering, lhs, rhs, element_of(op.result), layout, memory_shape, reductions=reductions)
    return reshape_view(lowering, result, memory_shape, shape) if groups > 1 else result


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
    view = pad_view(lowering, lowering.view(op.lhs), shape, zero, padded, low, high, interior)
    return _in_memory(lowering, view, padded)


def _in_memory(lowering: Lowering, view: View, shape: Shape) -> tuple[View, Shape]:
    """The view, copied unless it walks every dimension of a tensor."""
    if view.is_tensor and all(view.uses(d) for d, n in enumerate(shape) if n != 1):
        return view, shape
    return lowering.whole(lowering.materialized(view, shape), view.element), shape


def _reduction_forms(rhs_shape: Shape, spatial: int, first: int) -> tuple[list[Linear], Linear]:
    """Loops of the kernel's spatial dimensions and of the channels; none for those of size 1, but one in all, to add over."""
    forms: list[Linear] = []
    for n in rhs_shape[: spatial + 1]:
        forms.append(constant(0) if n == 1 else dim(first + sum(1 for f in forms if f.terms)))
    channel = forms[-1] if any(f.terms for f in forms) else dim(first)
    return forms[:-1], channel


def _window(position: Linear, stride: int, offset: Linear, dilation: int) -> Linear:
    scaled = Linear(tuple((d, c * stride) for d, c in position.terms), position.const * stride)
    return scaled.plus(Linear(tuple((d, c * dilation) for d, c in offset.terms), offset.const * dilation))


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
    forms = [_window(dim(d), strides[d], dim(rank + moving.index(d)) if d in moving else constant(0), dilations[d]) for d in range(rank)]
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
