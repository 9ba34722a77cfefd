"""Slices whose rows do not follow each other, where sizes are known to the run alone: their type must not look like a whole buffer's."""

from __future__ import annotations

from typing import Any, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerAttr, TensorType
from xdsl.ir import SSAValue

from gradir.dialects.slices import kept_dims
from gradir.dialects.types import ints, shape_of
from gradir.dialects.upstream import arith, tensor
from gradir.lowering.bufferize.layouts import MemRef, contiguous_strides, layout_of, strided, subview_type


def exact_type(source: MemRef, op: tensor.ExtractSliceOp | tensor.InsertSliceOp) -> MemRef:
    """Type of the subview that is the slice of `op` in memory of type `source`."""
    small = op.result if isinstance(op, tensor.ExtractSliceOp) else op.source
    shape = cast("TensorType[Any]", small.type).get_shape()
    return subview_type(source, ints(op.static_offsets), ints(op.static_sizes), ints(op.static_strides), shape)


def slice_type(source: MemRef, op: tensor.ExtractSliceOp | tensor.InsertSliceOp) -> MemRef:
    """What passes for the slice of `op` in memory of type `source`: the subview's type, with no stride known where it has gaps.

    `strided<[?, ?, 1]>` may be a whole buffer or a window in the middle of its rows. Whoever joins dimensions takes it for the first, so
    the second is cast to `strided<[?, ?, ?]>`.
    """
    exact = exact_type(source, op)
    strides, shape = layout_of(exact)[0], exact.get_shape()
    if None not in strides or strides != contiguous_strides(shape) or _is_one_stretch(op):
        return exact
    return strided(exact.element_type, shape, (None,) * len(shape), None)


def _is_one_stretch(op: tensor.ExtractSliceOp | tensor.InsertSliceOp) -> bool:
    """Single places of the outer dimensions, a range of the next one, all of the inner ones, as far as sizes and names tell."""
    large, small = (op.source, op.result) if isinstance(op, tensor.ExtractSliceOp) else (op.dest, op.source)
    sizes, steps = ints(op.static_sizes), ints(op.static_strides)
    wholes, parts = shape_of(large.type), shape_of(small.type)
    kept = kept_dims(sizes, cast("TensorType[Any]", small.type).get_shape())
    given = iter(op.sizes)
    operands = [next(given) if n == DYNAMIC_INDEX else None for n in sizes]

    def is_whole(d: int) -> bool:
        if sizes[d] != DYNAMIC_INDEX:
            return sizes[d] == wholes[d]
        name = parts[kept.index(d)] if d in kept else None
        return (name is not None and name == wholes[d]) or _is_size_of(operands[d], large, d)

    inner = len(sizes) - 1
    while inner > 0 and is_whole(inner) and steps[inner] == 1:
        inner -= 1
    return (steps[inner] == 1 or sizes[inner] == 1) and all(n == 1 for n in sizes[:inner])


def _is_size_of(value: SSAValue | None, large: SSAValue, dim: int) -> bool:
    """Whether `value` is computed as the size of that dimension."""
    owner = None if value is None else value.owner
    if not isinstance(owner, tensor.DimOp) or owner.source is not large:
        return False
    index = owner.index.owner
    return isinstance(index, arith.ConstantOp) and isinstance(index.value, IntegerAttr) and index.value.value.data == dim
