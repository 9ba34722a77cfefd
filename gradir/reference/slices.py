"""`tensor`: values with slices. Elements that nothing has written stay undefined until they are read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.ir import Operation

from gradir.dialects.slices import kept_dims
from gradir.dialects.upstream import tensor
from gradir.reference.buffers import check_index
from gradir.reference.machine import Machine, Value, evaluates
from gradir.reference.memory import groups_of, mixed, sizes_of
from gradir.reference.values import Partial, dtype_of, partial, parts, require_defined, undefined, whole


@evaluates(tensor.EmptyOp)
def _empty(_machine: Machine, op: tensor.EmptyOp, *dynamic: Value) -> Value:
    return undefined(sizes_of(op.tensor.type, dynamic), dtype_of(op.tensor.type))


@evaluates(tensor.SplatOp)
def _splat(machine: Machine, op: tensor.SplatOp, value: Value, *dynamic: Value) -> Value:
    return np.full(sizes_of(op.result.type, dynamic), whole(machine, op, value))


@evaluates(tensor.FromElementsOp)
def _from_elements(_machine: Machine, op: tensor.FromElementsOp, *elements: Value) -> Value:
    type_: Any = op.result.type
    return np.asarray(elements, dtype_of(type_)).reshape(type_.get_shape())


@evaluates(tensor.ExtractOp)
def _extract(machine: Machine, op: Operation, source: Value, *index: Value) -> Value:
    array, defined = parts(source)
    check_index(machine, op, array.shape, index)
    if isinstance(source, Partial):
        require_defined(machine, op, np.asarray(defined[index]))
    return array[index]


@evaluates(tensor.InsertOp)
def _insert(machine: Machine, op: Operation, value: Value, dest: Value, *index: Value) -> Value:
    array, defined = (each.copy() for each in parts(dest))
    check_index(machine, op, array.shape, index)
    array[index], defined[index] = whole(machine, op, value), True
    return partial(array, defined)


def _window(machine: Machine, op: Any, shape: Sequence[int], dynamic: Sequence[Value]) -> tuple[tuple[slice, ...], list[int]]:
    """The slices and sizes that an extract_slice or insert_slice names."""
    first, second = len(op.offsets), len(op.offsets) + len(op.sizes)
    offsets = mixed(op.static_offsets, dynamic[:first])
    sizes = mixed(op.static_sizes, dynamic[first:second])
    strides = mixed(op.static_strides, dynamic[second:])
    slices: list[slice] = []
    for dim, (offset, size, stride) in enumerate(zip(offsets, sizes, strides, strict=True)):
        last = offset + (size - 1) * stride
        if size < 0 or (size and not (0 <= offset < shape[dim] and 0 <= last < shape[dim])) or not 0 <= offset <= shape[dim]:
            message = f"dim {dim} of the slice is out of bounds"
            machine.fail(op, "OP102", message, expected=f"within {shape[dim]}", found=f"{offset} to {last}")
        if stride < 1:
            machine.fail(op, "OP102", f"dim {dim} of the slice has stride {stride}", expected="at least 1")
        slices.append(slice(offset, offset + max(size - 1, 0) * stride + (size > 0), stride))
    return tuple(slices), sizes


@evaluates(tensor.ExtractSliceOp)
def _extract_slice(machine: Machine, op: tensor.ExtractSliceOp, source: Value, *dynamic: Value) -> Value:
    array, defined = parts(source)
    window, sizes = _window(machine, op, array.shape, dynamic)
    type_: Any = op.result.type
    shape = [sizes[dim] for dim in kept_dims(op.static_sizes.get_values(), type_.get_shape())]
    return partial(array[window].reshape(shape).copy(), defined[window].reshape(shape))


@evaluates(tensor.InsertSliceOp)
def _insert_slice(machine: Machine, op: tensor.InsertSliceOp, source: Value, dest: Value, *dynamic: Value) -> Value:
    array, defined = (each.copy() for each in parts(dest))
    window, sizes = _window(machine, op, array.shape, dynamic)
    elements, known = parts(source)
    if elements.size != int(np.prod(sizes, dtype=np.int64)):
        machine.fail(op, "OP111", "the source does not fill the slice", expected=str(sizes), found=str(list(elements.shape)))
    array[window], defined[window] = elements.reshape(sizes), known.reshape(sizes)
    return partial(array, defined)


@evaluates(tensor.DimOp)
def _dim(machine: Machine, op: Operation, source: Value, dim: Value) -> Value:
    shape = source.shape
    if not 0 <= int(dim) < len(shape):
        machine.fail(op, "OP102", f"no dim {int(dim)} in rank {len(shape)}")
    return np.int64(shape[int(dim)])


@evaluates(tensor.CastOp)
def _cast(machine: Machine, op: tensor.CastOp, source: Value) -> Value:
    type_: Any = op.dest.type
    for dim, (found, expected) in enumerate(zip(source.shape, type_.get_shape(), strict=True)):
        if expected >= 0 and found != expected:
            machine.fail(op, "OP111", f"dim {dim} has another size than the result's type says", expected=str(expected), found=str(found))
    return source


def _reshaped(source: Value, shape: Sequence[int]) -> Value:
    array, defined = parts(source)
    return partial(array.reshape(shape), defined.reshape(shape))


@evaluates(tensor.CollapseShapeOp)
def _collapse(_machine: Machine, op: tensor.CollapseShapeOp, source: Value) -> Value:
    groups = groups_of(op.reassociation)
    return _reshaped(source, [int(np.prod([source.shape[dim] for dim in group], dtype=np.int64)) for group in groups])


@evaluates(tensor.ExpandShapeOp)
def _expand(machine: Machine, op: tensor.ExpandShapeOp, source: Value, *dynamic: Value) -> Value:
    sizes = mixed(op.static_output_shape, dynamic)
    if int(np.prod(sizes, dtype=np.int64)) != int(np.prod(source.shape, dtype=np.int64)):
        machine.fail(op, "OP111", "numbers of elements differ", expected=str(list(source.shape)), found=str(sizes))
    return _reshaped(source, sizes)


@evaluates(tensor.ReshapeOp)
def _reshape(machine: Machine, op: Operation, source: Value, shape: Value) -> Value:
    return _reshaped(source, [int(size) for size in whole(machine, op, shape)])


@evaluates(tensor.ConcatOp)
def _concat(_machine: Machine, op: tensor.ConcatOp, *inputs: Value) -> Value:
    axis = op.dim.value.data
    pairs = [parts(value) for value in inputs]
    return partial(np.concatenate([array for array, _ in pairs], axis), np.concatenate([known for _, known in pairs], axis))


@evaluates(tensor.PadOp)
def _pad(machine: Machine, op: tensor.PadOp, source: Value, *dynamic: Value) -> Value:
    low = mixed(op.static_low, dynamic[: len(op.low)])
    high = mixed(op.static_high, dynamic[len(op.low) :])
    array, defined = parts(source)
    shape = [before + size + after for before, size, after in zip(low, array.shape, high, strict=True)]
    if any(n < 0 for n in (*low, *high, *shape)):
        machine.fail(op, "OP102", "negative padding", found=f"low {low}, high {high}")
    padded, known = np.zeros(shape, array.dtype), np.ones(shape, np.bool_)
    for point in np.ndindex(*shape):
        if any(not before <= i < before + size for i, before, size in zip(point, low, array.shape)):
            (padded[point],) = machine.enter(op.region, [np.int64(i) for i in point])
    inside = tuple(slice(before, before + size) for before, size in zip(low, array.shape))
    padded[inside], known[inside] = array, defined
    return partial(padded, known)
