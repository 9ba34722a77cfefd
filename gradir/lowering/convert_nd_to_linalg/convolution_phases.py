"""Convolutions of an input with gaps (`lhs_dilation`): the gradient of the input of a strided convolution, transposed convolutions.

Between two elements of the input lie zeros. Positions of the result that are `period` apart meet the same part of the window on
elements, the rest of it on zeros: each such phase is a convolution without gaps, with every `step`-th element of the window. No product
with a zero is computed; a phase that meets no element is zero. The phases are slices of one result.

    y[o] = sum over k of x[(o * stride + k * dilation - low) / gap] w[k]        where the division leaves no rest
    o = period * q + r,  k = k0 + step * t:   the index is  q * (period * stride / gap) + t * (step * dilation / gap) + base
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import gcd, prod
from typing import cast

from gradir.dialects import nd
from gradir.dialects.types import Shape, element_of, rank_of, shape_of
from gradir.lowering.convert_nd_to_linalg.convolution_nests import Geometry, in_memory, sum_of_windows
from gradir.lowering.convert_nd_to_linalg.elements import lowered, number
from gradir.lowering.convert_nd_to_linalg.function import Lowering
from gradir.lowering.convert_nd_to_linalg.layouts import plain
from gradir.lowering.convert_nd_to_linalg.shape import pad_view
from gradir.lowering.convert_nd_to_linalg.slices import slice_view
from gradir.lowering.convert_nd_to_linalg.views import View

MOST_PHASES = 16
"""Each phase is a kernel; with more of them the zeros are multiplied."""


@dataclass(frozen=True)
class Phase:
    """One phase along one dimension: `count` positions of the result from `first` on, `period` apart; `taps` elements of the window."""

    first: int
    count: int
    taps: int
    window_start: int
    window_step: int
    base: int
    """Where in the input, without its padding, the first position meets the first tap."""
    reach: int
    """Elements of the input between the first and the last that the phase reads, both included."""


@dataclass(frozen=True)
class Dimension:
    """The phases of one dimension and the convolution that all of them are."""

    period: int
    stride: int
    dilation: int
    phases: tuple[Phase, ...]


def dimension(window: int, positions: int, stride: int, dilation: int, gap: int, low: int) -> Dimension:
    """The phases of a window of `window` elements, `dilation` apart, at `positions` places, `stride` apart, over an input with gaps."""
    period, step = gap // gcd(stride, gap), gap // gcd(dilation, gap)
    inner_stride, inner_dilation = period * stride // gap, step * dilation // gap
    phases: list[Phase] = []
    for first in range(min(period, positions)):
        met = [k for k in range(window) if (first * stride + k * dilation - low) % gap == 0]
        count = -(-(positions - first) // period)
        base = (first * stride + met[0] * dilation - low) // gap if met else 0
        reach = (count - 1) * inner_stride + (len(met) - 1) * inner_dilation + 1 if met else 0
        phases.append(Phase(first, count, len(met), met[0] if met else 0, step, base, reach))
    return Dimension(period, inner_stride, inner_dilation, tuple(phases))


def by_phases(lowering: Lowering, op: nd.ConvGeneralOp, geometry: Geometry, rhs: View, rhs_shape: Shape) -> View | None:
    """The convolution by phases; None where it has no gaps, sizes that only the run knows, or nothing to compute."""
    gaps, shape, lhs_shape = op.numbers("lhs_dilation"), shape_of(op.result), shape_of(op.lhs)
    spatial = rank_of(op.lhs) - 2
    sizes = (*lhs_shape[1:-1], *shape[1:-1], *rhs_shape[:spatial])
    if set(gaps) <= {1} or not all(isinstance(n, int) and n > 0 for n in sizes):
        return None
    low = op.numbers("padding")[0::2]
    found = [
        dimension(cast("int", rhs_shape[d]), cast("int", shape[1 + d]), geometry.strides[d], geometry.dilations[d], gaps[d], low[d])
        for d in range(spatial)
    ]
    if prod(len(d.phases) for d in found) > MOST_PHASES:
        return None
    frame, frame_shape, origin = _frame(lowering, op, found)
    if rhs.index and not all(form.dim is not None or not form.terms for form in rhs.index):  # read backwards: phases are slices of it
        rhs = lowering.whole(lowering.materialized(rhs, rhs_shape), rhs.element)
    inner = Geometry(tuple(d.stride for d in found), tuple(d.dilation for d in found), geometry.features, geometry.batches)
    phases = list(product(*(d.phases for d in found)))
    element = element_of(op.result)
    if all(p.taps for phase in phases for p in phase):
        result = lowering.nests.empty(element, shape)
    else:
        zero = View(number(0, lowered(element)), (), element)
        result = lowering.materialized(zero, shape)
    for phase in phases:
        if not all(p.taps for p in phase):
            continue
        starts = [0, *(p.base + o for p, o in zip(phase, origin)), 0]
        taken = (frame_shape[0], *(p.reach for p in phase), frame_shape[-1])
        part = slice_view(lowering, frame, frame_shape, starts, taken, [1] * len(taken))
        window = (*(p.taps for p in phase), *rhs_shape[spatial:])
        first = [*(p.window_start for p in phase), 0, 0]
        taps = slice_view(lowering, rhs, rhs_shape, first, window, [*(p.window_step for p in phase), 1, 1])
        counts = (shape[0], *(p.count for p in phase), shape[-1])
        value = sum_of_windows(lowering, part, taken, taps, window, inner, counts, element, plain(len(counts)))
        at = [0, *(p.first for p in phase), 0]
        steps = [1, *(d.period for d in found), 1]
        result = lowering.nests.insert_slice(lowering.materialized(value, counts), result, at, counts, steps)
    return lowering.whole(result, element)


def _frame(lowering: Lowering, op: nd.ConvGeneralOp, found: list[Dimension]) -> tuple[View, Shape, tuple[int, ...]]:
    """The input with the zeros around it that some phase reads, its shape, and where the input begins."""
    shape, element = shape_of(op.lhs), element_of(op.lhs)
    low, high = [0], [0]
    for n, d in zip(shape[1:-1], found):
        read = [p for p in d.phases if p.taps]
        low.append(max((-p.base for p in read), default=0))
        high.append(max((p.base + p.reach - cast("int", n) for p in read), default=0))
    low.append(0)
    high.append(0)
    low, high = [max(0, v) for v in low], [max(0, v) for v in high]
    padded = tuple(n + a + b if isinstance(n, int) else n for n, a, b in zip(shape, low, high))
    zero = View(number(0, lowered(element)), (), element)
    view = pad_view(lowering, lowering.view(op.lhs), shape, zero, padded, low, high, [0] * len(shape))
    frame, _ = in_memory(lowering, view, padded)
    return frame, padded, tuple(low[1:-1])
