"""`cp.async.bulk.tensor` and `cp.reduce.async.bulk.tensor`: boxes of tensors to and from shared memory (`gradir.ptx.tensor_maps`)."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from gradir.ptx.instructions.accesses import addresses, in_space
from gradir.ptx.instructions.bulk import REDUCTIONS, Issuer, from_shared, issuers, place_in_shared, to_shared
from gradir.ptx.instructions.forms import Array, has
from gradir.ptx.instructions.mbarriers import located
from gradir.ptx.machine import Machine, Step
from gradir.ptx.memory import BIAS, OFFSET_BITS, PARAMETERS, Allocation
from gradir.ptx.state import Gang
from gradir.ptx.syntax import Address, Instruction
from gradir.ptx.tensor_maps import MAP_BYTES, PIECE, TensorMap, decoded, swizzled

_LOW = (1 << OFFSET_BITS) - 1
BOX_ALIGNMENT = 128
_MODES = ("im2col", "im2col::w", "im2col::w::128", "tile::gather4", "tile::scatter4", "im2col_no_offs")


def map_at(issuer: Issuer, where: int) -> tuple[TensorMap, Allocation] | None:
    """The tensor map at a generic address, or at an address of the parameters; None, after a report, where there is none."""
    machine, number = issuer.machine, where >> OFFSET_BITS
    offset = where if number == 0 else (where & _LOW) - BIAS
    if number in (0, PARAMETERS):
        data = machine.parameter_bytes
    else:
        allocation = machine.memory.allocations.get(number)
        data = allocation.data if allocation is not None else np.zeros(0, np.uint8)
    name = decoded(bytes(data[offset : offset + MAP_BYTES])) if offset >= 0 else None
    if name is None or name not in machine.memory.maps:
        issuer.report("out of bounds", f"there is no tensor map at {where:#x}")
        return None
    if offset % 64:
        issuer.report("misaligned", f"a tensor map at offset {offset}; it has to be a multiple of 64")
    return machine.memory.maps[name], machine.memory.allocations[name]


class Box:
    """The elements of a box: where they are in the array, and which are inside of the tensor."""

    def __init__(self, tensor: TensorMap, coordinates: list[int]) -> None:
        self.tensor = tensor
        self.size = np.dtype(tensor.dtype).itemsize
        rows, good = np.zeros(1, np.int64), np.ones(1, np.bool_)
        positions = [c + np.arange(n) * s for c, n, s in zip(coordinates, tensor.pieces, tensor.element_strides)]
        for at, size, pitch in list(zip(positions, tensor.shape, tensor.pitches))[:0:-1]:  # the outermost first
            rows = (rows[:, None] + at * pitch).reshape(-1)
            good = (good[:, None] & (at >= 0) & (at < size)).reshape(-1)
        inside = (positions[0] >= 0) & (positions[0] < tensor.shape[0])
        self.inside = good[:, None] & inside
        self.whole = bool(self.inside.all())
        offsets = rows[:, None] + positions[0] * self.size
        self.elements = (offsets if self.whole else np.where(self.inside, offsets, 0)) // self.size

    def values(self, allocation: Allocation) -> Array:
        return allocation.data[: allocation.data.size // self.size * self.size].view(f"u{self.size}")

    def load(self, allocation: Allocation) -> Array:
        """Pieces of 16 bytes, elements outside filled."""
        found = self.values(allocation)[self.elements]
        if not self.whole:
            fill = np.full(1, np.nan, self.tensor.dtype).view(found.dtype)[0] if self.tensor.fill == "nan" else found.dtype.type(0)
            found = np.where(self.inside, found, fill)
        return np.ascontiguousarray(found).view(np.uint8).reshape(-1, PIECE)

    def words(self) -> Array:
        """Words of four bytes that hold the elements that are inside."""
        step = max(1, 4 // self.size)
        found = (self.elements[:, ::step] * self.size >> 2)[self.inside[:, ::step]]
        return found if self.whole and self.tensor.element_strides[0] == 1 else np.unique(found)

    def written(self, flags: Array) -> bool:
        """Has somebody written all elements that are inside?"""
        used = self.elements[self.inside] * self.size
        return all(bool(flags[used + k].all()) for k in range(self.size))

    def store(self, allocation: Allocation, reduction: str, data: Array) -> None:
        """The pieces arrive in the elements that are inside."""
        new = np.ascontiguousarray(data).reshape(-1).view(f"u{self.size}").reshape(self.elements.shape)[self.inside]
        at, values = self.elements[self.inside], self.values(allocation)
        if reduction:
            old = np.ascontiguousarray(values[at]).view(self.tensor.dtype)
            with np.errstate(all="ignore"):
                joined = REDUCTIONS[reduction](old, new.view(self.tensor.dtype)).astype(self.tensor.dtype)
            new = joined.view(f"u{self.size}")
        values[at] = new
        if allocation.written is not None:
            for k in range(self.size):
                allocation.written[at * self.size + k] = True


def pieces_of(tensor: TensorMap, base: int) -> Array:
    """Addresses in shared memory of the pieces of a box that begins at `base`."""
    return swizzled(base + PIECE * np.arange(tensor.bytes // PIECE), tensor.swizzle)


def _boxes(op: Instruction, position: int) -> Any:
    """Reads address and coordinates of the operand that names a map."""
    operand = op.operands[position]
    assert isinstance(operand, Address)

    def read(machine: Machine, gang: Gang, mask: Array) -> tuple[Array, Array]:
        where = addresses(machine, gang, operand)
        coordinates = np.stack([np.broadcast_to(machine.read(gang, c, "s32"), mask.shape) for c in operand.coordinates])
        return np.broadcast_to(where, mask.shape), coordinates

    return read


def _map(issuer: Issuer, where: int, coordinates: Array) -> tuple[TensorMap, Allocation, Box] | None:
    found = map_at(issuer, where)
    if found is None:
        return None
    tensor, allocation = found
    if len(coordinates) != len(tensor.shape):
        issuer.report("out of bounds", f"{len(coordinates)} coordinates of a tensor with {len(tensor.shape)} dimensions")
        return None
    return tensor, allocation, Box(tensor, [int(c) for c in coordinates])


def compile_tensor_copy(op: Instruction) -> Step | None:
    """Tile mode, 1 to 5 dimensions."""
    if op.opcode[0] != "cp" or "bulk" not in op.opcode or not has(op, "tensor") or has(op, *_MODES):
        return None
    if has(op, "prefetch"):
        return lambda machine, gang, mask: None
    if has(op, "bulk_group"):
        return _store(op)
    return _load(op) if has(op, "mbarrier::complete_tx::bytes") and op.opcode[1] != "reduce" else None


def _load(op: Instruction) -> Step:
    to, _, barrier, *more = op.operands
    multicast = has(op, "multicast::cluster")
    boxes = _boxes(op, 1)

    def step(machine: Machine, gang: Gang, mask: Array) -> None:
        where = np.broadcast_to(in_space(addresses(machine, gang, to)), mask.shape)
        maps, coordinates = boxes(machine, gang, mask)
        masks = np.broadcast_to(machine.read(gang, more[0], "u16"), mask.shape) if multicast else None
        places = located(machine, gang, mask, in_space(addresses(machine, gang, barrier)))
        for row, lane, slot, owner in zip(places.rows, places.lanes, places.slots, places.blocks):
            issuer = Issuer(machine, int(gang.warps[row]), int(lane))
            found = _map(issuer, int(maps[row, lane]), coordinates[:, row, lane])
            if found is None:
                continue
            tensor, allocation, box = found
            goal = place_in_shared(issuer, int(where[row, lane]), tensor.bytes, BOX_ALIGNMENT)
            if goal is None:
                continue
            if allocation.written is not None and not box.written(allocation.written):
                issuer.report("uninitialised read", f"copies elements of {allocation.name} that nobody wrote")
            data, offsets = box.load(allocation), pieces_of(tensor, goal[1])
            reading = (allocation, box.words())
            blocks = [(goal[0], int(owner))] if masks is None else [(b, b) for b in issuer.ranks(int(masks[row, lane]))]
            for block, object_ in blocks:
                to_shared(issuer, block, offsets, data, (int(slot), object_), reading)
                reading = None
                _lay_out(machine, tensor, block, offsets)

    return step


def _lay_out(machine: Machine, tensor: TensorMap, block: int, offsets: Array) -> None:
    layout = machine.bulk.layout
    assert layout is not None
    width = tensor.pieces[0] * np.dtype(tensor.dtype).itemsize // PIECE
    rows, columns = np.divmod(np.arange(len(offsets)), width)
    layout.written(block * machine.blocks.shared.shape[1] + offsets, rows, columns, tensor.swizzle)


def _store(op: Instruction) -> Step:
    source = op.operands[1]
    reduction = next((part for part in op.opcode if part in REDUCTIONS), "") if op.opcode[1] == "reduce" else ""
    boxes = _boxes(op, 0)

    def step(machine: Machine, gang: Gang, mask: Array) -> None:
        origin = np.broadcast_to(in_space(addresses(machine, gang, source)), mask.shape)
        maps, coordinates = boxes(machine, gang, mask)
        for row, issuer in issuers(machine, gang, mask):
            found = _map(issuer, int(maps[row, issuer.lane]), coordinates[:, row, issuer.lane])
            if found is None:
                continue
            tensor, allocation, box = found
            place = place_in_shared(issuer, int(origin[row, issuer.lane]), tensor.bytes, BOX_ALIGNMENT)
            if place is None:
                continue
            if allocation.readonly:
                issuer.report("out of bounds", f"{allocation.name} is read-only")
                continue
            from_shared(issuer, place[0], pieces_of(tensor, place[1]), partial(box.store, allocation, reduction))

    return step


COMPILERS = {"cp": compile_tensor_copy}
