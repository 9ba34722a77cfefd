"""`nvgpu`: fragments that a warp holds together, copies to workgroup memory that end when somebody waits for them.

A copy takes its elements when it is issued; its destination is poison until the thread waits for the copy's group, and the bytes count as
written then, too: a thread that reads them without a barrier behind the wait races. Layouts of fragments are those of the PTX ISA.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects.builtin import VectorType
from xdsl.ir import Operation

from gradir.dialects.upstream import nvgpu, nvgpu_hopper
from gradir.dialects.upstream.nvgpu_types import TensorMapType
from gradir.reference.buffers import View, read, write
from gradir.reference.device import WARP, Thread, here
from gradir.reference.machine import Machine, Value, evaluates
from gradir.reference.values import dtype_of, whole

Array = np.ndarray[Any, Any]
_TOKEN = np.int64(0)


@dataclass(frozen=True)
class Described:
    """The value of a tensor map: a buffer, the sizes of a box in its order of dimensions, and the type that says the rest."""

    view: View
    box: tuple[int, ...]
    type: TensorMapType


@evaluates(nvgpu_hopper.TmaCreateDescriptorOp)
def _describe(machine: Machine, op: nvgpu_hopper.TmaCreateDescriptorOp, view: View, *sizes: Value) -> Described:
    type_ = op.tensorMap.type
    assert isinstance(type_, TensorMapType)
    box = tuple(int(whole(machine, op, size)) for size in sizes)
    if box != type_.tensor.get_shape() or len(box) != len(view.shape):
        expected = f"{list(type_.tensor.get_shape())} for a buffer with as many dimensions"
        machine.fail(
            op, "OP111", "the box is not that of the tensor map's type", expected=expected, found=f"{list(box)} of {list(view.shape)}"
        )
    return Described(view, box, type_)


_LANES = np.arange(WARP)
GROUP, IN_GROUP = _LANES // 4, _LANES % 4
"""PTX's `groupID` and `threadID_in_group` of every lane."""


def together(thread: Thread, value: Any, compute: Callable[[list[Any]], Sequence[Any]]) -> Any:
    """What `compute` gives this lane of the values of all lanes of its warp."""
    thread.value = value
    thread.pause("shuffle")
    first = thread.number // WARP * WARP
    warp = thread.block.threads[first : first + WARP]
    results = compute([t.value for t in warp])
    mine = results[thread.number - first]
    thread.pause("shuffled")  # nobody gives the next value before all have read this one
    return mine


@evaluates(nvgpu.LdMatrixOp)
def _ldmatrix(machine: Machine, op: nvgpu.LdMatrixOp, view: View, *index: Value) -> Value:
    thread = here(machine, op)
    count = op.numTiles.value.data
    lane = thread.number % WARP
    elements = 16 // view.dtype.itemsize
    row: Array | None = None
    if lane < 8 * count:
        start = int(view.positions([whole(machine, op, i) for i in index]))
        if start % 16:
            machine.fail(op, "OP102", "a row of a matrix does not start at a multiple of 16 bytes", found=f"byte {start}")
        row = np.asarray(read(machine, op, view, [*index[:-1], np.int64(index[-1]) + np.arange(elements)]))
    transpose = bool(op.transpose)

    def compute(rows: list[Any]) -> Sequence[Any]:
        matrices = np.stack([np.stack(rows[8 * k : 8 * k + 8]) for k in range(count)])
        if transpose:
            matrices = matrices.transpose(0, 2, 1)
        width = elements // 4
        return [matrices[:, lane // 4, lane % 4 * width : (lane % 4 + 1) * width] for lane in range(WARP)]

    return np.ascontiguousarray(together(thread, row, compute))


def _left(fragments: Array) -> Array:
    """(lane, 4, w) to the 16 x 8w matrix: rows g and g + 8, columns of the first and the second half."""
    width = fragments.shape[2]
    found = np.zeros((16, 8 * width), fragments.dtype)
    for part, (down, right) in enumerate(((0, 0), (8, 0), (0, 1), (8, 1))):
        for k in range(width):
            found[GROUP + down, IN_GROUP * width + k + right * 4 * width] = fragments[:, part, k]
    return found


def _right(fragments: Array) -> Array:
    """(lane, 2, w) to the 8w x 8 matrix."""
    width = fragments.shape[2]
    found = np.zeros((8 * width, 8), fragments.dtype)
    for part in range(2):
        for k in range(width):
            found[IN_GROUP * width + k + part * 4 * width, GROUP] = fragments[:, part, k]
    return found


@evaluates(nvgpu.MmaSyncOp)
def _mma(machine: Machine, op: nvgpu.MmaSyncOp, a: Value, b: Value, c: Value) -> Value:
    def compute(warp: list[Any]) -> Sequence[Any]:
        left, right = _left(np.stack([v[0] for v in warp])), _right(np.stack([v[1] for v in warp]))
        sums = np.stack([v[2] for v in warp])
        accumulators = np.zeros((16, 8), sums.dtype)
        for part in range(2):
            for k in range(2):
                accumulators[GROUP + 8 * part, 2 * IN_GROUP + k] = sums[:, part, k]
        if op.tf32Enabled is not None:
            left, right = _tf32(left), _tf32(right)
        wide = np.int64 if sums.dtype.kind == "i" else np.float64
        product = left.astype(wide) @ right.astype(wide) + accumulators
        product = product.astype(sums.dtype)
        return [product[[g, g + 8], 2 * t : 2 * t + 2] for g, t in zip(GROUP, IN_GROUP)]

    values = tuple(np.asarray(whole(machine, op, v)) for v in (a, b, c))
    assert isinstance(op.res.type, VectorType)
    return np.asarray(together(here(machine, op), values, compute), dtype_of(op.res.type))


def _tf32(values: Array) -> Array:
    """Ten bits of mantissa: the hardware ignores the others."""
    return (np.ascontiguousarray(values, np.float32).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


@evaluates(nvgpu.DeviceAsyncCopyOp)
def _copy(machine: Machine, op: nvgpu.DeviceAsyncCopyOp, *values: Value) -> Value:
    thread = here(machine, op)
    split = 1 + len(op.dstIndices)
    target, target_index = values[0], list(values[1:split])
    source, source_index = values[split], list(values[split + 1 : split + 1 + len(op.srcIndices)])
    count = op.dstElements.value.data
    given = int(values[-1]) if op.srcElements is not None else count
    if not 0 <= given <= count:
        machine.fail(op, "OP102", "srcElements is out of range", expected=f"0 to {count}", found=str(given))
    elements = np.zeros(count, target.dtype)
    if given:
        _aligned(machine, op, source, source_index)
        elements[:given] = read(machine, op, source, [*source_index[:-1], np.int64(source_index[-1]) + np.arange(given)])
    _aligned(machine, op, target, target_index)
    index = [*target_index[:-1], np.int64(target_index[-1]) + np.arange(count)]
    write(machine, op, target, index, elements)
    bytes_ = np.asarray(target.positions(index))[..., None] + np.arange(target.dtype.itemsize)
    target.allocation.defined[bytes_] = False
    thread.copies.append((op, target, index, elements))
    return _TOKEN


def _aligned(machine: Machine, op: nvgpu.DeviceAsyncCopyOp, view: View, index: Sequence[Value]) -> None:
    start = int(view.positions(list(index)))
    if start % op.bytes:
        machine.fail(op, "OP102", "a copy does not start at a multiple of its size", expected=f"of {op.bytes} bytes", found=f"byte {start}")


@evaluates(nvgpu.DeviceAsyncCreateGroupOp)
def _group(machine: Machine, op: Operation, *tokens: Value) -> Value:
    thread = here(machine, op)
    thread.groups.append(thread.copies)
    thread.copies = []
    return _TOKEN


@evaluates(nvgpu.DeviceAsyncWaitOp)
def _wait(machine: Machine, op: nvgpu.DeviceAsyncWaitOp, token: Value) -> None:
    thread = here(machine, op)
    while len(thread.groups) > op.groups:
        for copy, view, index, elements in thread.groups.pop(0):
            write(machine, copy, view, index, elements)
