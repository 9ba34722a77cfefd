"""Memory of levels 3 and 4: bytes that know whether they were written, through which view, and whether their buffer is alive.

Every access computes the byte positions of its elements, then checks: alive, in bounds, initialised (poison), not stale (no other view
of the arena wrote there since), writable (no input, no constant, no operand declared `read`), and free of races inside `scf.parallel`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, IntegerAttr, MemRefType, NoneAttr, StridedLayoutAttr, StringAttr
from xdsl.ir import Attribute, Operation

from gradir.dialects.upstream.func import FuncOp
from gradir.reference.machine import Machine, Value

Array = np.ndarray[Any, Any]


class Allocation:
    """One buffer. `owner` holds, per byte, the tag of the view that wrote it last."""

    def __init__(self, size: int, name: str, *, writable: bool = True) -> None:
        self.data = np.zeros(size, np.uint8)
        self.defined = np.zeros(size, np.bool_)
        self.owner = np.zeros(size, np.int64)
        self.name = name
        self.writable = writable
        self.alive = True
        self.race = 0  # the `scf.parallel` that the two arrays below belong to
        self.writer: Array = np.empty(0, np.int64)
        self.reader: Array = np.empty(0, np.int64)


class Race:
    """The running outermost `scf.parallel`; allocations remember which of its iterations touched each byte."""

    NOBODY, MANY = -1, -2

    def __init__(self, key: int) -> None:
        self.key = key
        self.iteration = 0

    def attach(self, allocation: Allocation) -> None:
        """Start afresh on a buffer that this loop has not touched yet."""
        if allocation.race != self.key:
            allocation.race = self.key
            allocation.writer = np.full(allocation.data.size, self.NOBODY)
            allocation.reader = np.full(allocation.data.size, self.NOBODY)


@dataclass(frozen=True)
class View:
    """A memref: `shape` elements of `dtype` at byte `start + sum(index * strides)` of `allocation`."""

    allocation: Allocation
    dtype: np.dtype[Any]
    start: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    tag: int = 0
    writable: bool = True

    def positions(self, index: Sequence[Any]) -> Any:
        """Byte positions of the elements at `index`, one array or number per dimension."""
        total: Any = np.int64(self.start)
        for i, stride in zip(index, self.strides):
            total = total + np.asarray(i, np.int64) * stride
        return total

    def everywhere(self) -> list[Array]:
        """The index of every element, as open grids."""
        rank = len(self.shape)
        return [np.arange(size).reshape([-1 if k == dim else 1 for k in range(rank)]) for dim, size in enumerate(self.shape)]

    def extent(self) -> tuple[int, int]:
        """First byte and one past the last."""
        if 0 in self.shape:
            return self.start, self.start
        spans = [(size - 1) * stride for size, stride in zip(self.shape, self.strides)]
        return self.start + sum(s for s in spans if s < 0), self.start + sum(s for s in spans if s > 0) + self.dtype.itemsize


def row_major(shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """Byte strides of a dense row-major buffer."""
    strides: list[int] = []
    step = itemsize
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


def allocate(shape: Sequence[int], dtype: np.dtype[Any], name: str, *, writable: bool = True) -> View:
    """A fresh buffer whose elements are poison."""
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    return View(Allocation(size, name, writable=writable), dtype, 0, tuple(shape), row_major(shape, dtype.itemsize))


def holding(array: Array, name: str, *, writable: bool) -> View:
    """A buffer with the elements of `array`."""
    array = np.ascontiguousarray(array).reshape(array.shape)  # of rank 0 too
    view = allocate(array.shape, array.dtype, name, writable=writable)
    view.allocation.data[:] = np.frombuffer(array.tobytes(), np.uint8)
    view.allocation.defined[:] = True
    return view


def check_index(machine: Machine, op: Operation, shape: Sequence[int], index: Sequence[Any], mask: Any = None) -> None:
    """Every coordinate lies inside `shape`, where `mask` holds."""
    for dim, (i, size) in enumerate(zip(index, shape, strict=True)):
        i = np.asarray(i)
        if i.size == 0 or (i.min() >= 0 and i.max() < size):
            continue
        outside = (i < 0) | (i >= size)
        if mask is not None:
            outside = outside & mask
        if outside.any():
            found = np.broadcast_to(i, outside.shape)[outside].reshape(-1)[0]
            machine.fail(op, "OP102", f"index of dim {dim} is out of bounds", expected=f"0 <= index < {size}", found=str(int(found)))


def _bytes_of(view: View, positions: Any) -> Array:
    return np.asarray(positions)[..., None] + np.arange(view.dtype.itemsize)


def read(machine: Machine, op: Operation, view: View, index: Sequence[Any]) -> Any:
    """The elements at `index`, in the shape that the coordinates broadcast to."""
    check_index(machine, op, view.shape, index)
    memory = view.allocation
    if not memory.alive:
        machine.fail(op, "OP106", f"reads {memory.name} after it was freed")
    where = _bytes_of(view, view.positions(index))
    if not memory.defined[where].all():
        missing = int(np.count_nonzero(~memory.defined[where].all(axis=-1)))
        first = _first(view, where, ~memory.defined)
        machine.fail(op, "OP101", f"reads {missing} elements of {memory.name} that were never written, the first at {first}")
    if view.tag and not (memory.owner[where] == view.tag).all():
        stale = memory.owner != view.tag
        machine.fail(
            op,
            "OP105",
            f"reads elements of {memory.name} that another view has overwritten, the first at {_first(view, where, stale)}",
            hint="the two views hold values that are live at the same time: check the plan and the order of the kernels",
        )
    if machine.race is not None:
        _check_race(machine, op, memory, where, writes=False)
    return np.ascontiguousarray(memory.data[where]).view(view.dtype)[..., 0][()]


def write(machine: Machine, op: Operation, view: View, index: Sequence[Any], values: Any, mask: Any = None) -> None:
    """Store `values` at `index` where `mask` holds."""
    check_index(machine, op, view.shape, index, mask)
    memory = view.allocation
    if not memory.alive:
        machine.fail(op, "OP106", f"writes {memory.name} after it was freed")
    if not memory.writable or not view.writable:
        reason = "is declared `read` here" if memory.writable else "is not ours to change"
        machine.fail(op, "OP104", f"writes to {memory.name}, which {reason}")
    positions, values = np.broadcast_arrays(view.positions(index), np.asarray(values, view.dtype))
    if mask is not None:
        chosen = np.broadcast_to(mask, positions.shape)
        positions, values = positions[chosen], values[chosen]
    where = _bytes_of(view, positions)
    if machine.race is not None:
        _check_race(machine, op, memory, where, writes=True)
    memory.data[where] = np.frombuffer(np.ascontiguousarray(values).tobytes(), np.uint8).reshape(where.shape)
    memory.defined[where] = True
    memory.owner[where] = view.tag


def _first(view: View, where: Array, bad: Array) -> str:
    positions = where[bad[where].any(axis=-1)].reshape(-1, view.dtype.itemsize)
    return f"byte {int(positions[0, 0])}"


def _check_race(machine: Machine, op: Operation, memory: Allocation, where: Array, *, writes: bool) -> None:
    race: Race = machine.race
    race.attach(memory)
    here = race.iteration
    others = (memory.writer[where] != Race.NOBODY) & (memory.writer[where] != here)
    if writes:
        others |= (memory.reader[where] != Race.NOBODY) & (memory.reader[where] != here)
    if others.any():
        verb = "writes" if writes else "reads"
        first = int(where[others][0])
        message = f"an iteration of scf.parallel {verb} bytes of {memory.name} that another touches, the first at byte {first}"
        machine.fail(op, "OP107", message)
    if writes:
        memory.writer[where] = here
        return
    seen = memory.reader[where]
    memory.reader[where] = np.where((seen == Race.NOBODY) | (seen == here), here, Race.MANY)


def layout_of(type_: MemRefType) -> tuple[int | None, list[int | None]]:
    """Offset and strides, in elements, that the type promises; None where it says nothing."""
    if isinstance(type_.layout, NoneAttr):
        shape = type_.get_shape()
        if DYNAMIC_INDEX not in shape[1:]:
            return 0, list(row_major(shape, 1))
        known: list[int | None] = [None] * len(shape)
        step = 1
        for dim in reversed(range(len(shape))):
            known[dim] = step
            if shape[dim] == DYNAMIC_INDEX:
                break
            step *= shape[dim]
        return 0, known
    if isinstance(type_.layout, StridedLayoutAttr):
        return type_.get_offset(), list(type_.get_strides() or ())
    return None, [None] * type_.get_num_dims()


def check_type(machine: Machine, op: Operation, view: View, type_: MemRefType) -> View:
    """`view` has the sizes and strides that `type_` promises."""
    for dim, (found, expected) in enumerate(zip(view.shape, type_.get_shape(), strict=True)):
        if expected not in (DYNAMIC_INDEX, found):
            message = f"dim {dim} of a memref has another size than its type says"
            machine.fail(op, "OP111", message, expected=str(expected), found=str(found))
    _, strides = layout_of(type_)
    for dim, (found, expected) in enumerate(zip(view.strides, strides)):
        if expected is not None and view.shape[dim] > 1 and found != expected * view.dtype.itemsize:
            message = f"dim {dim} of a memref has another stride than its type says"
            machine.fail(op, "OP111", message, expected=str(expected), found=str(found // view.dtype.itemsize))
    return view


def overlap(a: View, b: View) -> bool:
    """Whether the two share a byte."""
    if a.allocation is not b.allocation:
        return False
    (a_low, a_high), (b_low, b_high) = a.extent(), b.extent()
    if a_low >= b_high or b_low >= a_high or 0 in a.shape or 0 in b.shape:
        return False
    touched = np.zeros(a.allocation.data.size, np.bool_)
    touched[_bytes_of(a, a.positions(a.everywhere()))] = True
    return bool(touched[_bytes_of(b, b.positions(b.everywhere()))].any())


def argument_attributes(function: FuncOp) -> list[dict[str, Attribute]]:
    """The attributes of each argument."""
    empty: list[dict[str, Attribute]] = [{} for _ in function.body.block.args]
    if not isinstance(function.arg_attrs, ArrayAttr):
        return empty
    return [dict(each.data) for each in function.arg_attrs]


def _access(attributes: dict[str, Attribute]) -> str:
    value = attributes.get("gradir.access")
    return value.data if isinstance(value, StringAttr) else ""


def _aliases(attributes: dict[str, Attribute]) -> set[int]:
    value = attributes.get("gradir.alias")
    return {int(i.value.data) for i in value if isinstance(i, IntegerAttr)} if isinstance(value, ArrayAttr) else set()


def check_call(machine: Machine, op: Operation, function: FuncOp, arguments: Sequence[Value]) -> list[Value]:
    """A kernel's operands as the kernel may use them: `read` ones are not writable, and overlaps must be declared."""
    attributes = argument_attributes(function)
    views: list[Value] = []
    for argument, block_argument, named in zip(arguments, function.body.block.args, attributes, strict=True):
        if isinstance(argument, View):
            assert isinstance(block_argument.type, MemRefType)
            check_type(machine, op, argument, block_argument.type)
            argument = replace(argument, writable=argument.writable and _access(named) != "read")
        views.append(argument)
    if any(_access(named) for named in attributes):
        for i, j in combinations(range(len(views)), 2):
            if not isinstance(views[i], View) or not isinstance(views[j], View):
                continue
            if _access(attributes[i]) == _access(attributes[j]) == "read":
                continue
            if j not in _aliases(attributes[i]) and i not in _aliases(attributes[j]) and overlap(views[i], views[j]):
                machine.fail(op, "OP108", f"operands {i} and {j} of @{function.sym_name.data} overlap, which no gradir.alias says")
    return views
