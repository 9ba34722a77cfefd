"""Memref types: the layouts that subviews, reshapes and pointers have. Types are interned, since equal ones recur at every op."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache, reduce
from itertools import pairwise
from math import prod
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, StridedLayoutAttr, TensorType
from xdsl.ir import Attribute, SSAValue

from gradir.dialects.slices import kept_dims

MemRef: TypeAlias = MemRefType[Any]
Stride: TypeAlias = int | None
"""None where only the run knows."""


@lru_cache(maxsize=1 << 14)
def memref_of(type_: Attribute) -> Attribute:
    """The contiguous memref type of a tensor type; any other type as it is."""
    if not isinstance(type_, TensorType):
        return type_
    return MemRefType(type_.element_type, type_.get_shape())


def type_of(memref: SSAValue) -> MemRef:
    """The memref type of a value that is one."""
    return cast("MemRef", memref.type)


@lru_cache(maxsize=1 << 14)
def contiguous_strides(shape: tuple[int, ...]) -> tuple[Stride, ...]:
    """Strides of a row-major buffer; a size known only to the run makes the strides left of it so."""
    strides: list[Stride] = []
    step: Stride = 1
    for size in reversed(shape):
        strides.append(step)
        step = None if step is None or size == DYNAMIC_INDEX else step * size
    return tuple(reversed(strides))


@lru_cache(maxsize=1 << 14)
def layout_of(type_: MemRef) -> tuple[tuple[Stride, ...], Stride]:
    """(strides, offset) of a memref type."""
    if isinstance(type_.layout, StridedLayoutAttr):
        return tuple(type_.layout.get_strides()), type_.layout.get_offset()
    return contiguous_strides(type_.get_shape()), 0


@lru_cache(maxsize=1 << 14)
def strided(element: Attribute, shape: tuple[int, ...], strides: tuple[Stride, ...], offset: Stride) -> MemRef:
    """The memref type with that layout; the plain type when the layout is the contiguous one."""
    if offset == 0 and strides == contiguous_strides(shape):
        return MemRefType(element, shape)
    return MemRefType(element, shape, StridedLayoutAttr(strides, offset))


def anywhere(type_: MemRef) -> MemRef:
    """`type_` with any offset: what a pointer that moves, or a kernel shared by several callers, takes."""
    return strided(type_.element_type, type_.get_shape(), layout_of(type_)[0], None)


def join(types: Iterable[MemRef]) -> MemRef:
    """The most exact type that memrefs of all of `types` (of one shape) can be cast to."""

    def two(a: MemRef, b: MemRef) -> MemRef:
        if a == b:
            return a
        (strides, offset), (others, other) = layout_of(a), layout_of(b)
        common = tuple(s if s == o else None for s, o in zip(strides, others))
        return strided(a.element_type, a.get_shape(), common, offset if offset == other and common == strides else None)

    return reduce(two, types)


def subview_type(source: MemRef, offsets: Sequence[int], sizes: Sequence[int], steps: Sequence[int], shape: Sequence[int]) -> MemRef:
    """Type of the subview; `DYNAMIC_INDEX` stands for what only the run knows."""
    strides, offset = layout_of(source)
    for start, stride in zip(offsets, strides):
        if start == 0:
            continue
        offset = None if offset is None or stride is None or start == DYNAMIC_INDEX else offset + start * stride
    scaled = [None if s is None or step == DYNAMIC_INDEX else s * step for s, step in zip(strides, steps)]
    kept = kept_dims(sizes, shape)
    return strided(source.element_type, tuple(sizes[d] for d in kept), tuple(scaled[d] for d in kept), offset)


def collapsed_type(source: MemRef, groups: Sequence[Sequence[int]]) -> MemRef | None:
    """Type of `source` with each group of dimensions as one; None when a group is not (known to be) evenly spaced."""
    shape, (strides, offset) = source.get_shape(), layout_of(source)
    contiguous = strides == contiguous_strides(shape)
    sizes: list[int] = []
    steps: list[Stride] = []
    for group in groups:
        real = [d for d in group if shape[d] != 1]
        sizes.append(DYNAMIC_INDEX if any(shape[d] == DYNAMIC_INDEX for d in group) else prod(shape[d] for d in group))
        steps.append(strides[real[-1]] if real else strides[group[-1]] if group else 1)
        if contiguous:
            continue
        for a, b in pairwise(real):
            inner, size = strides[b], shape[b]
            if inner is None or size == DYNAMIC_INDEX or strides[a] != inner * size:
                return None
    if not groups and any(n != 1 for n in shape):
        return None
    return strided(source.element_type, tuple(sizes), tuple(steps), offset)


def expanded_type(source: MemRef, groups: Sequence[Sequence[int]], shape: Sequence[int]) -> MemRef:
    """Type of `source` with each dimension split into a group of dimensions of `shape`."""
    strides, offset = layout_of(source)
    steps: list[Stride] = []
    for stride, group in zip(strides, groups):
        inner: list[Stride] = []
        step = stride
        for dim in reversed(group):
            inner.append(step)
            step = None if step is None or shape[dim] == DYNAMIC_INDEX else step * shape[dim]
        steps += reversed(inner)
    if not groups:
        steps = [1] * len(shape)
    return strided(source.element_type, tuple(shape), tuple(steps), offset)
