"""`nd.reshape` without copies where the elements allow it: dimensions of the base are split and merged in place.

A reshape falls into runs of dimensions with equal products. A run of one dimension on each side renames it; a run that splits one
dimension or merges neighbours of the base is `tensor.expand_shape` or `tensor.collapse_shape` of the base; anything else first
puts the value into memory in its own order, where the same two ops always suffice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.ir import SSAValue

from gradir.dialects.types import Dim, Shape, shape_of
from gradir.lowering.convert_nd_to_linalg.function import Lowering
from gradir.lowering.convert_nd_to_linalg.reassociation import Run, reshape_in_memory, runs_without_units, total
from gradir.lowering.convert_nd_to_linalg.views import Linear, View, constant, dim


def reshape_view(lowering: Lowering, view: View, before: Shape, after: Shape) -> View:
    """The elements of a view of shape `before` in shape `after`."""
    if view.is_splat or before == after:
        return view
    if 0 in before:
        return lowering.whole(lowering.nests.empty(view.element, after), view.element)
    found = runs_without_units(before, after)
    reshaped = _through_base(lowering, view, found, before, after) if found is not None else None
    if reshaped is not None:
        return reshaped
    base = reshape_in_memory(lowering.nests, lowering.materialized(view, before), before, after)
    return lowering.whole(base, view.element)


def _through_base(lowering: Lowering, view: View, found: Sequence[Run], before: Shape, after: Shape) -> View | None:
    """The reshape as a reshape of the base; None when the view does not walk the base plainly."""
    forms: dict[int, Linear] = {d: constant(0) for d, n in enumerate(before) if n == 1}
    split: dict[int, tuple[int, ...]] = {}  # base dimension (after merging: its first one) -> new dimensions
    merged: dict[int, int] = {}  # first base dimension of neighbours that become one -> how many
    for run in found:
        if len(run.before) == len(run.after) == 1:
            forms[run.before[0]] = dim(run.after[0])
            continue
        if not any(view.uses(d) for d in run.before):
            continue
        places = [view.position_of(d) for d in run.before]
        first = places[0]
        if first is None or places != list(range(first, first + len(places))):
            return None
        merged[first] = len(places)
        split[first] = run.after
    if not merged:
        return view.over({**{d: constant(0) for d in range(len(before))}, **forms})
    if not view.is_tensor:
        return None
    return _rebuild(lowering, view, forms, merged, split, after)


def _rebuild(
    lowering: Lowering, view: View, forms: dict[int, Linear], merged: dict[int, int], split: dict[int, tuple[int, ...]], after: Shape
) -> View:
    """Collapse, then expand the base; the index of the new base in terms of the new dimensions."""
    base = cast("SSAValue", view.base)
    sizes = shape_of(base)
    middle: list[Dim] = []
    shape: list[Dim] = []
    collapse: list[list[int]] = []
    expand: list[list[int]] = []
    index: list[Linear] = []
    place = 0
    while place < len(sizes):
        count = merged.get(place, 1)
        collapse.append(list(range(place, place + count)))
        new = split.get(place)
        expand.append(list(range(len(shape), len(shape) + (len(new) if new is not None else 1))))
        if new is None:
            index.append(view.index[place].over(forms))
            middle.append(sizes[place])
            shape.append(sizes[place])
        else:
            index += [dim(d) for d in new]
            middle.append(after[new[0]] if len(new) == 1 else sizes[place] if count == 1 else total(sizes[place : place + count]))
            shape += [after[d] for d in new]
        place += count
    if len(middle) < len(sizes):
        base = lowering.nests.collapse(base, collapse, tuple(middle))
    if len(shape) > len(middle):
        base = lowering.nests.expand(base, expand, tuple(shape))
    return View(base, tuple(index), view.element)
