"""The nest of a convolution: its loops, how they read the input, and how groups split them.

The input needs no padding any more. Groups become a loop of their own by splitting dimensions in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.ir import Attribute

from gradir.dialects.types import Shape
from gradir.lowering.convert_nd_to_linalg.contraction import multiply_add
from gradir.lowering.convert_nd_to_linalg.function import Lowering
from gradir.lowering.convert_nd_to_linalg.layouts import Layout
from gradir.lowering.convert_nd_to_linalg.reshape import reshape_view
from gradir.lowering.convert_nd_to_linalg.views import Linear, View, constant, dim


@dataclass(frozen=True)
class Geometry:
    """Distances of windows, of positions in a window; groups of channels, or of images."""

    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    features: int = 1
    batches: int = 1


def sum_of_windows(
    lowering: Lowering,
    lhs: View,
    lhs_shape: Shape,
    rhs: View,
    rhs_shape: Shape,
    geometry: Geometry,
    shape: Shape,
    element: Attribute,
    layout: Layout,
) -> View:
    """The nest of a convolution over an input that needs no padding.

    Loops: the result's dimensions in memory order (o split into group and rest where there are groups), then k and c in the order in
    which the input lies in memory.
    """
    spatial = len(shape) - 2
    features, batches = geometry.features, geometry.batches
    places = [_place(lhs, d) for d in range(1, spatial + 2)]
    groups = max(features, batches)
    if groups == 1:
        result_forms = list(layout.loops())
        group, memory_shape = constant(0), shape
        outputs = result_forms[-1]
    else:
        # result channel o = (g, o'): memory keeps the two apart, o' next to g
        per_group = cast("int", shape[-1]) // groups
        if per_group != 1:
            last = len(shape) - 1
            layout = Layout(tuple(e for d in layout.order for e in ((d, d + 1) if d == last else (d,))))
        memory_shape = (*shape[:-1], groups, per_group) if per_group != 1 else shape
        result_forms = list(layout.loops())
        group = result_forms[len(shape) - 1]
        outputs = result_forms[-1] if per_group != 1 else constant(0)
        rhs = reshape_view(lowering, rhs, rhs_shape, (*rhs_shape[:-1], groups, per_group))
        rhs_shape = (*rhs_shape[:-1], groups, per_group)
        if features > 1:
            channels = cast("int", lhs_shape[-1]) // groups
            lhs = reshape_view(lowering, lhs, lhs_shape, (*lhs_shape[:-1], groups, channels))
        else:
            lhs = reshape_view(lowering, lhs, lhs_shape, (groups, cast("int", lhs_shape[0]) // groups, *lhs_shape[1:]))
    kernel, channel = _reduction_forms(rhs_shape, places, len(memory_shape))
    at = [window_form(result_forms[1 + d], geometry.strides[d], kernel[d], geometry.dilations[d]) for d in range(spatial)]
    split = [group] if groups > 1 else []
    lhs_forms = [result_forms[0], *at, *(split if features > 1 else []), channel]
    if batches > 1:
        lhs_forms = [group, *lhs_forms]
    lhs, rhs_forms = lhs.over(lhs_forms), [*kernel, channel, *split, outputs]
    loops = [d for form in (*kernel, channel) for d, _ in form.terms]
    taps = rhs.over(rhs_forms)
    if not all(lhs.uses(d) or taps.uses(d) for d in loops):
        # neither memory has the loop of size 1 that the sum goes over
        taps = lowering.whole(lowering.materialized(rhs, rhs_shape), rhs.element).over(rhs_forms)
    result = multiply_add(lowering, lhs, taps, element, layout, memory_shape, reductions=len(loops))
    return reshape_view(lowering, result, memory_shape, shape) if groups > 1 else result


def in_memory(lowering: Lowering, view: View, shape: Shape) -> tuple[View, Shape]:
    """The view, copied unless it walks every dimension of a tensor."""
    if view.is_tensor and all(view.uses(d) for d, n in enumerate(shape) if n != 1):
        return view, shape
    return lowering.whole(lowering.materialized(view, shape), view.element), shape


def _place(view: View, d: int) -> int:
    """Where the base of a view holds dimension `d` of its value."""
    return next((k for k, form in enumerate(view.index) if any(e == d for e, _ in form.terms)), -1)


def _reduction_forms(rhs_shape: Shape, places: Sequence[int], first: int) -> tuple[list[Linear], Linear]:
    """Loops of the kernel's spatial dimensions and of the channels, those of inner dimensions of the input (`places`) innermost.

    None for those of size 1, but one in all, to add over.
    """
    long = [d for d, n in enumerate(rhs_shape[: len(places)]) if n != 1] or [len(places) - 1]
    order = sorted(long, key=lambda d: places[d])
    forms = [dim(first + order.index(d)) if d in order else constant(0) for d in range(len(places))]
    return forms[:-1], forms[-1]


def window_form(position: Linear, stride: int, offset: Linear, dilation: int) -> Linear:
    scaled = Linear(tuple((d, c * stride) for d, c in position.terms), position.const * stride)
    return scaled.plus(Linear(tuple((d, c * dilation) for d, c in offset.terms), offset.const * dilation))
