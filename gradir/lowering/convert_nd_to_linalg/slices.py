"""Slices of views: of the base in memory where the view walks it plainly, else by the index map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.ir import SSAValue

from gradir.dialects.types import Shape, shape_of
from gradir.lowering.convert_nd_to_linalg.function import Lowering
from gradir.lowering.convert_nd_to_linalg.nests import Offset
from gradir.lowering.convert_nd_to_linalg.views import Linear, View, constant, dim


def slice_view(
    lowering: Lowering, view: View, shape: Shape, offsets: Sequence[Offset], sizes: Shape, strides: Sequence[int], drop: Sequence[int] = ()
) -> View:
    """`value[offset + i * stride]` per dimension, for a value of `shape`; the dimensions `drop` get size 1 and disappear."""
    if view.is_splat:
        return view
    if 0 in sizes:
        kept = tuple(n for d, n in enumerate(sizes) if d not in drop)
        return lowering.whole(lowering.nests.empty(view.element, kept), view.element)
    touched = [d for d in range(len(shape)) if d in drop or not _is_whole(shape[d], offsets[d], sizes[d], strides[d])]
    places = [view.position_of(d) for d in touched]
    unused = [d for d, place in zip(touched, places) if place is None and not view.uses(d)]
    plain = [(d, place) for d, place in zip(touched, places) if place is not None]
    if not view.is_tensor or len(plain) + len(unused) < len(touched):
        if all(isinstance(offsets[d], int) for d in touched):
            return view.over(_forms(offsets, strides, len(shape), drop))
        view = lowering.whole(lowering.materialized(view, shape), view.element)
        plain = [(d, d) for d in touched]
    if plain:
        view = _slice_base(lowering, view, plain, offsets, sizes, strides, drop)
    return view.over(_forms([0] * len(shape), [1] * len(shape), len(shape), drop))


def _is_whole(size: object, offset: Offset, taken: object, stride: int) -> bool:
    return isinstance(offset, int) and offset == 0 and stride == 1 and size == taken and size is not None


def _forms(offsets: Sequence[Offset], strides: Sequence[int], rank: int, drop: Sequence[int]) -> list[Linear]:
    """Old dimensions in terms of the new ones."""
    forms: list[Linear] = []
    position = 0
    for d in range(rank):
        offset = cast("int", offsets[d])  # the caller checked
        if d in drop:
            forms.append(constant(offset))
        else:
            forms.append(dim(position, strides[d], offset))
            position += 1
    return forms


def _slice_base(
    lowering: Lowering,
    view: View,
    plain: Sequence[tuple[int, int]],
    offsets: Sequence[Offset],
    sizes: Shape,
    strides: Sequence[int],
    drop: Sequence[int],
) -> View:
    base = cast("SSAValue", view.base)
    base_sizes = list(shape_of(base))
    base_offsets: list[Offset] = [0] * len(base_sizes)
    base_strides = [1] * len(base_sizes)
    dropped: list[int] = []
    for d, place in plain:
        base_offsets[place], base_sizes[place], base_strides[place] = offsets[d], 1 if d in drop else sizes[d], strides[d]
        if d in drop:
            dropped.append(place)
    part = lowering.nests.extract_slice(base, base_offsets, tuple(base_sizes), base_strides, dropped)
    return View(part, tuple(form for place, form in enumerate(view.index) if place not in dropped), view.element)
