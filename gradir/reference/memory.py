"""`memref` and `bufferization`: allocations, views and element accesses on the checked memory of `buffers`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from math import prod
from typing import Any, NoReturn

import numpy as np
from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, DenseArrayBase, IntegerAttr, MemRefType, UnitAttr
from xdsl.ir import Operation

from gradir.dialects.slices import kept_dims
from gradir.dialects.upstream import bufferization, memref
from gradir.reference.buffers import View, allocate, check_type, holding, layout_of, overlap, read, row_major, write
from gradir.reference.machine import Machine, Value, evaluates
from gradir.reference.values import constant, dtype_of, whole


def sizes_of(type_: Any, dynamic: Sequence[Value]) -> tuple[int, ...]:
    """Sizes of a shaped type, with `dynamic` in place of its `?`."""
    given = iter(dynamic)
    return tuple(int(next(given)) if size == DYNAMIC_INDEX else size for size in type_.get_shape())


def mixed(static: DenseArrayBase[Any], dynamic: Sequence[Value]) -> list[int]:
    """The numbers of a list that is partly an attribute, partly operands."""
    given = iter(dynamic)
    return [int(next(given)) if value == DYNAMIC_INDEX else int(value) for value in static.get_values()]


@evaluates(memref.AllocOp, memref.AllocaOp)
def _alloc(machine: Machine, op: memref.AllocOp, *dynamic: Value) -> View:
    type_ = op.memref.type
    shape = sizes_of(type_, dynamic)
    if any(size < 0 for size in shape):
        machine.fail(op, "OP102", "a size is negative", found=str(list(shape)))
    return allocate(shape, dtype_of(type_), f"the buffer %{op.memref.name_hint or '?'} of {op.name}")


@evaluates(memref.DeallocOp)
def _dealloc(machine: Machine, op: Operation, view: View) -> None:
    if not view.allocation.alive:
        machine.fail(op, "OP106", f"frees {view.allocation.name} twice")
    view.allocation.alive = False


@evaluates(memref.GetGlobalOp)
def _get_global(machine: Machine, op: memref.GetGlobalOp) -> View:
    name = op.name_.string_value()
    if name not in machine.globals:
        declared = machine.symbol(op, op.name_)
        assert isinstance(declared, memref.GlobalOp)
        initial, type_ = declared.initial_value, declared.type
        if initial is None or isinstance(initial, UnitAttr):
            machine.globals[name] = allocate(type_.get_shape(), dtype_of(type_), f"the global @{name}")
        else:
            array = np.asarray(constant(initial)).reshape(type_.get_shape())
            machine.globals[name] = holding(array, f"the global @{name}", writable=declared.constant is None)
    return check_type(machine, op, machine.globals[name], op.memref.type)


@evaluates(memref.LoadOp)
def _load(machine: Machine, op: Operation, view: View, *index: Value) -> Value:
    return read(machine, op, view, [whole(machine, op, i) for i in index])


@evaluates(memref.StoreOp)
def _store(machine: Machine, op: Operation, value: Value, view: View, *index: Value) -> None:
    write(machine, op, view, index, value)


@evaluates(memref.DimOp)
def _dim(machine: Machine, op: Operation, view: View, dim: Value) -> Value:
    if not 0 <= int(dim) < len(view.shape):
        machine.fail(op, "OP102", f"no dim {int(dim)} in rank {len(view.shape)}")
    return np.int64(view.shape[int(dim)])


@evaluates(memref.PrefetchOp)
def _prefetch(_machine: Machine, _op: Operation, _view: View, *_index: Value) -> None:
    """Nothing happens, wherever it points."""


@evaluates(memref.ExtractAlignedPointerAsIndexOp)
def _address(_machine: Machine, _op: Operation, view: View) -> Value:
    """A number that a program may only ask for its alignment: some buffers start at multiples of 64 bytes, some do not."""
    return np.int64(64 + 16 * (prod(view.shape) // 16 % 2))


@evaluates(memref.CastOp)
def _cast(machine: Machine, op: memref.CastOp, view: View) -> View:
    return check_type(machine, op, view, op.dest.type) if isinstance(op.dest.type, MemRefType) else view


@evaluates(memref.CopyOp)
def _copy(machine: Machine, op: Operation, source: View, destination: View) -> None:
    if source.shape != destination.shape:
        shapes = {"expected": str(destination.shape), "found": str(source.shape)}
        machine.fail(op, "OP111", "source and destination differ in shape", **shapes)
    same = (source.start, source.strides) == (destination.start, destination.strides)
    if not same and overlap(source, destination):
        machine.fail(op, "OP109", "source and destination overlap")
    everywhere = source.everywhere()
    write(machine, op, destination, everywhere, read(machine, op, source, everywhere))


def _exceeds(machine: Machine, op: Operation, size: int, low: int, high: int) -> NoReturn:
    machine.fail(op, "OP102", "the view exceeds its buffer", expected=f"at most {size} bytes", found=f"bytes {low} to {high}")


@evaluates(memref.ViewOp)
def _view(machine: Machine, op: memref.ViewOp, source: View, shift: Value, *dynamic: Value) -> View:
    """A place in the arena; each `memref.view` op at each offset is its own live value (`tag`)."""
    dtype, shape = dtype_of(op.result.type), sizes_of(op.result.type, dynamic)
    start, size = int(shift), int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    if start < 0 or start + size > source.shape[0]:
        _exceeds(machine, op, source.shape[0], start, start + size)
    strides, tag = row_major(shape, dtype.itemsize), hash((id(op), start)) | 1
    return View(source.allocation, dtype, source.start + start, shape, strides, tag, source.writable)


@evaluates(memref.SubviewOp)
def _subview(machine: Machine, op: memref.SubviewOp, source: View, *dynamic: Value) -> View:
    first, second = len(op.offsets), len(op.offsets) + len(op.sizes)
    offsets = mixed(op.static_offsets, dynamic[:first])
    sizes = mixed(op.static_sizes, dynamic[first:second])
    steps = mixed(op.static_strides, dynamic[second:])
    for dim, (offset, size, step) in enumerate(zip(offsets, sizes, steps)):
        last = offset + (size - 1) * step
        if size < 0 or (size and not (0 <= offset < source.shape[dim] and 0 <= last < source.shape[dim])):
            message = f"dim {dim} of the subview is out of bounds"
            machine.fail(op, "OP102", message, expected=f"within {source.shape[dim]}", found=f"{offset} to {last}")
    start = source.start + sum(offset * stride for offset, stride in zip(offsets, source.strides))
    strides = [step * stride for step, stride in zip(steps, source.strides)]
    kept = kept_dims(op.static_sizes.get_values(), op.result.type.get_shape())
    shape = tuple(sizes[dim] for dim in kept)
    return replace(source, start=start, shape=shape, strides=tuple(strides[dim] for dim in kept))


@evaluates(memref.ReinterpretCastOp)
def _reinterpret(machine: Machine, op: memref.ReinterpretCastOp, source: View, *dynamic: Value) -> View:
    first, second = len(op.offsets), len(op.offsets) + len(op.sizes)
    (offset,) = mixed(op.static_offsets, dynamic[:first])
    sizes = mixed(op.static_sizes, dynamic[first:second])
    steps = mixed(op.static_strides, dynamic[second:])
    item = source.dtype.itemsize
    base, _ = layout_of(op.source.type) if isinstance(op.source.type, MemRefType) else (0, [])
    origin = source.start - (base or 0) * item
    result = replace(source, start=origin + offset * item, shape=tuple(sizes), strides=tuple(step * item for step in steps))
    low, high = result.extent()
    if low < 0 or high > source.allocation.data.size:
        _exceeds(machine, op, source.allocation.data.size, low, high)
    return result


def groups_of(reassociation: ArrayAttr[ArrayAttr[IntegerAttr[Any]]]) -> list[list[int]]:
    """`[[0, 1], [2]]` as numbers."""
    return [[int(dim.value.data) for dim in group] for group in reassociation]


@evaluates(memref.CollapseShapeOp)
def _collapse(machine: Machine, op: memref.CollapseShapeOp, source: View) -> View:
    shape: list[int] = []
    strides: list[int] = []
    for group in groups_of(op.reassociation):
        shape.append(int(np.prod([source.shape[dim] for dim in group], dtype=np.int64)))
        real = [dim for dim in group if source.shape[dim] != 1] or group[-1:]
        strides.append(source.strides[real[-1]])
        for outer, inner in pairwise(real):
            if source.strides[outer] != source.strides[inner] * source.shape[inner]:
                machine.fail(op, "OP111", f"dims {outer} and {inner} are not contiguous", found=str(source.strides))
    return replace(source, shape=tuple(shape), strides=tuple(strides))


@evaluates(memref.ExpandShapeOp)
def _expand(machine: Machine, op: memref.ExpandShapeOp, source: View, *dynamic: Value) -> View:
    sizes = mixed(op.static_output_shape, dynamic)
    strides = [0] * len(sizes)
    for outer, group in enumerate(groups_of(op.reassociation)):
        step = source.strides[outer]
        for dim in reversed(group):
            strides[dim] = step
            step *= sizes[dim]
        if int(np.prod([sizes[dim] for dim in group], dtype=np.int64)) != source.shape[outer]:
            machine.fail(op, "OP111", f"sizes {[sizes[dim] for dim in group]} do not make {source.shape[outer]}")
    return replace(source, shape=tuple(sizes), strides=tuple(strides))


@evaluates(bufferization.ToTensorOp)
def _to_tensor(machine: Machine, op: Operation, view: View) -> Value:
    return np.asarray(read(machine, op, view, view.everywhere()))


@evaluates(bufferization.MaterializeInDestinationOp)
def _materialize(machine: Machine, op: Operation, source: Value, destination: Value) -> Value | None:
    array = whole(machine, op, source)
    if not isinstance(destination, View):
        return array
    write(machine, op, destination, destination.everywhere(), array)
    return None
