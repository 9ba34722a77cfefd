"""`mma.sync`: d = a * b + c on the tensor cores, by all lanes of a warp together; all warps of a gang in one batched product.

Products of the narrow types are exact in f32, and sums are of f32 (of f64 for f64, whole numbers for integers): the hardware's order and
rounding of sums are not specified, so results agree with it within the error of the sum.
"""

from __future__ import annotations

import re

import numpy as np

from gradir.ptx.instructions.accesses import targets_of
from gradir.ptx.instructions.forms import Array, has
from gradir.ptx.instructions.fragments import ELEMENTS, fragment_c, matrix_a, matrix_b, matrix_c, numbers_of, registers_of
from gradir.ptx.instructions.matrices import whole_warps
from gradir.ptx.machine import Machine, Step
from gradir.ptx.state import Gang
from gradir.ptx.syntax import Instruction

_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)$")
WIDE = {"f64": 64}


def shape_of(op: Instruction) -> tuple[int, int, int]:
    """m, n, k of an opcode; zeros where it has none."""
    for part in op.opcode:
        found = _SHAPE.match(part)
        if found:
            return int(found[1]), int(found[2]), int(found[3])
    return 0, 0, 0


def accumulated(a: Array, b: Array, c: Array, kind: str, saturated: bool = False) -> Array:
    """a @ b + c with accumulators of the type `kind`."""
    with np.errstate(all="ignore"):
        product = np.matmul(a, b)
        if kind == "s32":
            total = product.astype(np.int64) + c
            return (np.clip(total, -(2**31), 2**31 - 1) if saturated else total).astype(np.int32)
        if kind == "f16":
            return (product + c.astype(np.float32)).astype(np.float16)
        return product + c


def compile_mma(op: Instruction) -> Step | None:
    """`mma.sync.aligned.m{16,8}n8k*.row.col...`, all types but bits, and the four small products of `m8n8k4` halves."""
    m, n, k = shape_of(op)
    if op.opcode[1] != "sync" or n != 8 or has(op, "sp", "block_scale", "popc"):
        return None
    to, left, right, start = op.opcode[-4:]
    if left not in ELEMENTS or right not in ELEMENTS or to != start or to not in ("f16", "f32", "f64", "s32"):
        return None
    if (m, k, left) == (8, 4, "f16"):
        return _quads(op, to)
    if not has(op, "row") or not has(op, "col"):
        return None
    destinations, *sources = (targets_of(operand) for operand in op.operands)
    bits = WIDE.get(left, 32)
    per = ELEMENTS[left][0]
    rows = m // 8
    if [len(s) for s in (destinations, *sources)] != [_results(m, to), m * k // (32 * per), 8 * k // (32 * per), _results(m, to)]:
        return None

    def step(machine: Machine, gang: Gang, mask: Array) -> None:
        whole_warps(machine, gang, mask)
        a = matrix_a(numbers_of(registers_of(machine, gang, sources[0], bits), left), rows)
        b = matrix_b(numbers_of(registers_of(machine, gang, sources[1], bits), right))
        c = matrix_c(registers_of(machine, gang, sources[2], bits), to)
        found = fragment_c(accumulated(a, b, c, to, has(op, "satfinite")), to)
        for destination, values in zip(destinations, found):
            machine.write(gang, mask, destination, values)

    return step


def _results(m: int, kind: str) -> int:
    return m * 8 // 32 // (2 if kind == "f16" else 1)


def _quads(op: Instruction, to: str) -> Step:
    """Four products of 8 x 4 and 4 x 8 halves: of lanes 0 to 3 and 16 to 19, of the next four of each half, and so on."""
    destinations, *sources = (targets_of(operand) for operand in op.operands)
    layouts = [part for part in op.opcode if part in ("row", "col")]

    def step(machine: Machine, gang: Gang, mask: Array) -> None:
        whole_warps(machine, gang, mask)
        warps = len(gang.warps)
        parts: list[Array] = []
        for operands, layout, rows in zip(sources[:2], layouts, ("hri", "rhi")):
            numbers = numbers_of(registers_of(machine, gang, operands, 32), "f16")  # [warp, register, lane, element]
            split = numbers.transpose(0, 2, 1, 3).reshape(warps, 2, 4, 4, 4)  # warp, half, quad, r, i
            names = rows if layout == "row" else rows.translate(str.maketrans("ri", "ir"))
            order = [{"h": 1, "r": 3, "i": 4}[name] for name in names]
            shape = (4 * warps, 8, 4) if rows == "hri" else (4 * warps, 4, 8)
            parts.append(split.transpose(0, 2, *order).reshape(shape))
        bits = registers_of(machine, gang, sources[2], 32)
        if to == "f16":
            c = np.ascontiguousarray(bits.transpose(0, 2, 1)).view(np.float16).reshape(warps, 2, 4, 4, 8).transpose(0, 2, 1, 3, 4)
            found = accumulated(parts[0], parts[1], c.reshape(-1, 8, 8), to)
            back = found.reshape(warps, 4, 2, 4, 8).transpose(0, 2, 1, 3, 4)
            registers = np.ascontiguousarray(back).view(np.uint32).reshape(warps, 32, 4).transpose(2, 0, 1)
        else:
            # lane = half, quad, r1, r0; element = i2, i1, i0; row = half, i1, r0; column = i2, r1, i0
            split = bits.view(np.float32).transpose(0, 2, 1).reshape(warps, 2, 4, 2, 2, 2, 2, 2)
            c = split.transpose(0, 2, 1, 6, 4, 5, 3, 7).reshape(-1, 8, 8)
            found = accumulated(parts[0], parts[1], c, to).reshape(warps, 4, 2, 2, 2, 2, 2, 2)
            back = found.transpose(0, 2, 1, 6, 4, 5, 3, 7).reshape(warps, 32, 8)
            registers = np.ascontiguousarray(back.transpose(2, 0, 1)).view(np.uint32)
        for destination, values in zip(destinations, registers):
            machine.write(gang, mask, destination, np.ascontiguousarray(values))

    return step


COMPILERS = {"mma": compile_mma}
