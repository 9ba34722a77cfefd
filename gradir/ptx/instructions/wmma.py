"""`wmma.load`, `wmma.mma`, `wmma.store`: matrices whose place in the registers is nobody's business.

The PTX ISA leaves the layout of these fragments open. Here lane l holds elements l * E to l * E + E - 1 of the matrix row by row (E per
lane), and begins anew where the fragment has more room than the matrix (halves of A and B are there twice).
"""

from __future__ import annotations

import numpy as np

from gradir.ptx.instructions.accesses import (
    addresses,
    in_space,
    load_global,
    load_shared,
    space_of,
    store_global,
    store_shared,
    targets_of,
)
from gradir.ptx.instructions.forms import Array, has
from gradir.ptx.instructions.fragments import ELEMENTS, numbers_of, registers_of
from gradir.ptx.instructions.matrices import whole_warps
from gradir.ptx.instructions.mma import accumulated, shape_of
from gradir.ptx.machine import Machine, Step
from gradir.ptx.state import LANES, Gang
from gradir.ptx.syntax import Instruction, Operand

_BYTES = {"f16": 2, "bf16": 2, "tf32": 4, "f32": 4, "s32": 4, "f64": 8, "s8": 1, "u8": 1}


def compile_wmma(op: Instruction) -> Step | None:
    """All shapes and types but those of less than a byte."""
    kinds = [part for part in op.opcode if part in _BYTES]
    if not kinds or not all(shape_of(op)):
        return None
    return {"load": _load, "store": _store, "mma": _mma}[op.opcode[1]](op, kinds)


def _size(op: Instruction, which: str) -> tuple[int, int]:
    m, n, k = shape_of(op)
    return {"a": (m, k), "b": (k, n), "c": (m, n), "d": (m, n)}[which]


def _elements(op: Instruction, kind: str, registers: int) -> tuple[int, int]:
    """Elements of a register, elements of a lane."""
    per = {"f32": 1, "s32": 1}.get(kind) or ELEMENTS[kind][0]
    return per, per * registers


def _places(machine: Machine, gang: Gang, op: Instruction, address: Operand, stride: Operand | None, which: str, per_lane: int) -> Array:
    """[element, warp, lane] addresses of the elements that lanes hold."""
    rows, columns = _size(op, which)
    kind = next(part for part in reversed(op.opcode) if part in _BYTES)
    linear = (np.arange(LANES) * per_lane + np.arange(per_lane)[:, None]) % (rows * columns)
    row, column = linear // columns, linear % columns
    outer, inner = (row, column) if has(op, "row") else (column, row)
    leading: Array = np.full((1, 1), columns if has(op, "row") else rows, np.int64)
    if stride is not None:
        leading = machine.read(gang, stride, "u32").astype(np.int64)
    offsets = (outer[:, None, :] * leading[None] + inner[:, None, :]) * _BYTES[kind]
    return addresses(machine, gang, address)[None] + offsets


def _load(op: Instruction, kinds: list[str]) -> Step | None:
    which, kind = op.opcode[2], kinds[-1]
    registers = targets_of(op.operands[0])
    address, *stride = op.operands[1:]
    per, lane_elements = _elements(op, kind, len(registers))
    width, shared = _BYTES[kind], space_of(op) == "shared"

    def step(machine: Machine, gang: Gang, mask: Array) -> None:
        whole_warps(machine, gang, mask)
        where = _places(machine, gang, op, address, stride[0] if stride else None, which, lane_elements)
        load = load_shared if shared else load_global
        parts = [load(machine, gang, mask, in_space(at) if shared else at, width, 1)[0] for at in where]
        for k, register in enumerate(registers):
            packed = np.ascontiguousarray(np.stack(parts[k * per : k * per + per], -1)).view(f"u{width * per}")[..., 0]
            machine.write(gang, mask, register, packed)

    return step


def _store(op: Instruction, kinds: list[str]) -> Step | None:
    kind = kinds[-1]
    registers = targets_of(op.operands[1])
    address, stride = op.operands[0], op.operands[2:]
    per, lane_elements = _elements(op, kind, len(registers))
    width, shared = _BYTES[kind], space_of(op) == "shared"

    def step(machine: Machine, gang: Gang, mask: Array) -> None:
        whole_warps(machine, gang, mask)
        where = _places(machine, gang, op, address, stride[0] if stride else None, "d", lane_elements)
        bits = registers_of(machine, gang, registers, 8 * width * per)  # [warp, register, lane]
        pieces = np.ascontiguousarray(bits.transpose(1, 0, 2)[..., None]).view(f"u{width}")  # [register, warp, lane, element]
        for at, values in zip(where, pieces.transpose(0, 3, 1, 2).reshape(lane_elements, *mask.shape)):
            if shared:
                store_shared(machine, gang, mask, in_space(at), values[None], width)
            else:
                store_global(machine, gang, mask, at, values[None], width)

    return step


def _mma(op: Instruction, kinds: list[str]) -> Step | None:
    to, left = (kinds[0], kinds[1]) if len(kinds) == 4 else (kinds[0], "f16")
    right, start = (kinds[2], kinds[3]) if len(kinds) == 4 else ("f16", kinds[1])
    destinations, *sources = (targets_of(operand) for operand in op.operands)

    def matrix(machine: Machine, gang: Gang, registers: tuple[Operand, ...], kind: str, which: str) -> Array:
        rows, columns = _size(op, which)
        bits = registers_of(machine, gang, registers, 64 if kind == "f64" else 32)
        plain = {"f32": np.float32, "s32": np.int32}.get(kind)
        numbers = bits.view(plain)[..., None] if plain is not None else numbers_of(bits, kind)
        lanes = numbers.transpose(0, 2, 1, 3).reshape(len(gang.warps), -1)
        return lanes[:, : rows * columns].reshape(-1, rows, columns)

    def step(machine: Machine, gang: Gang, mask: Array) -> None:
        whole_warps(machine, gang, mask)
        a, b = matrix(machine, gang, tuple(sources[0]), left, "a"), matrix(machine, gang, tuple(sources[1]), right, "b")
        c = matrix(machine, gang, tuple(sources[2]), start, "c")
        found = accumulated(a, b, c, to, has(op, "satfinite"))
        lanes = np.ascontiguousarray(found.reshape(len(gang.warps), LANES, -1))
        bits = lanes.view(np.uint64 if to == "f64" else np.uint32)
        for k, destination in enumerate(destinations):
            machine.write(gang, mask, destination, np.ascontiguousarray(bits[:, :, k]))

    return step


COMPILERS = {"wmma": compile_wmma}
