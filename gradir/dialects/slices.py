"""`tensor.extract_slice` and `tensor.insert_slice` from offsets, sizes and strides that are numbers or index values; sums of such."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase, TensorType, i32, i64
from xdsl.ir import Attribute, SSAValue

from gradir.dialects.linear import INDEX, arithmetic, index
from gradir.dialects.types import element_of, shape_of, tensor
from gradir.dialects.upstream import arith, tensor as tensors
from gradir.ir.builder import Builder

Number = int | SSAValue
"""An index known now, or at run time."""


def slice_properties(parts: Sequence[Sequence[Number]], leading: Sequence[int]) -> tuple[list[SSAValue], dict[str, Attribute]]:
    """Operands and properties for (offsets, sizes, strides); `leading`: the numbers of operands in front."""
    properties: dict[str, Attribute] = {}
    operands: list[SSAValue] = []
    counts = list(leading)
    for name, numbers in zip(("static_offsets", "static_sizes", "static_strides"), parts):
        given = [n for n in numbers if not isinstance(n, int)]
        properties[name] = DenseArrayBase.from_list(i64, [n if isinstance(n, int) else DYNAMIC_INDEX for n in numbers])
        operands += given
        counts.append(len(given))
    properties["operandSegmentSizes"] = DenseArrayBase.from_list(i32, counts)
    return operands, properties


def sliced_type(source: SSAValue, sizes: Sequence[Number], dropped: frozenset[int]) -> TensorType[Any]:
    """The type of a slice without the dimensions in `dropped`, which have size 1."""
    return tensor(element_of(source), [n if isinstance(n, int) else None for d, n in enumerate(sizes) if d not in dropped])


def kept_dims(sizes: Sequence[int], shape: Sequence[int]) -> tuple[int, ...]:
    """Which dimensions of a slice of static `sizes` remain in the `shape` of its result: the leftmost that match; the rest have size 1."""
    kept: list[int] = []
    for dim, size in enumerate(sizes):
        if len(kept) < len(shape) and shape[len(kept)] == size:
            kept.append(dim)
    return tuple(kept)


def dropped_dims(static_sizes: Any, part: SSAValue) -> frozenset[int]:
    """The dimensions of size 1 that a slice leaves out in `part`."""
    sizes = [int(n) for n in static_sizes.get_values()]
    assert isinstance(part.type, TensorType)
    return frozenset(range(len(sizes))) - frozenset(kept_dims(sizes, part.type.get_shape()))


def extract_slice(
    builder: Builder,
    source: SSAValue,
    offsets: Sequence[Number],
    sizes: Sequence[Number],
    strides: Sequence[Number],
    dropped: frozenset[int] = frozenset(),
) -> SSAValue:
    """The slice of `source`, without the dimensions in `dropped`."""
    operands, properties = slice_properties((offsets, sizes, strides), (1,))
    return builder(tensors.ExtractSliceOp, [source, *operands], [sliced_type(source, sizes, dropped)], properties)


def insert_slice(
    builder: Builder, part: SSAValue, into: SSAValue, offsets: Sequence[Number], sizes: Sequence[Number], strides: Sequence[Number]
) -> SSAValue:
    """`into` with that slice replaced by `part`."""
    operands, properties = slice_properties((offsets, sizes, strides), (1, 1))
    return builder(tensors.InsertSliceOp, [part, into, *operands], [into.type], properties)


def sizes_of(builder: Builder, x: SSAValue) -> list[Number]:
    """The sizes of a tensor."""
    return [n if isinstance(n, int) else builder(tensors.DimOp, [x, index(builder, d)], [INDEX]) for d, n in enumerate(shape_of(x))]


def added(builder: Builder, x: Number, y: Number) -> Number:
    """x + y"""
    if isinstance(x, int) and isinstance(y, int):
        return x + y
    return arithmetic(builder, arith.AddiOp, index(builder, x), index(builder, y))


def mixed(static: Any, given: Sequence[SSAValue]) -> list[Number]:
    """Numbers and index values of one of the three lists of an op, in order."""
    rest = iter(given)
    return [n if n != DYNAMIC_INDEX else next(rest) for n in (int(k) for k in static.get_values())]
