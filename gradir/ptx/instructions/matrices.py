"""Matrices of 8 x 8 halves between shared memory and the registers of a warp: `ldmatrix`, `stmatrix`, `movmatrix`.

Lane l holds of each matrix the elements (l / 4, 2 * (l % 4)) and the one right of it; with `.trans` those of the transposed matrix.
"""

from __future__ import annotations

import numpy as np

from gradir.ptx.instructions.accesses import addresses, in_space, load_shared, store_shared, targets_of
from gradir.ptx.instructions.forms import Array, has, types_of
from gradir.ptx.machine import Machine, Step
from gradir.ptx.state import LANES, Gang
from gradir.ptx.syntax import Instruction

ROW_BYTES = 16


def whole_warps(machine: Machine, gang: Gang, mask: Array) -> Array:
    """The lanes of an instruction that every lane of a warp has to execute; those that miss one are reported."""
    full = machine.alive[gang.warps].all(1, keepdims=True) & mask.all(1, keepdims=True)
    if not full.all():
        machine.report("divergent sync", gang, mask & ~full, "some lanes of the warp are elsewhere, or are no threads")
    return mask


def _count(op: Instruction) -> int:
    return next((int(part[1:]) for part in op.opcode if part in ("x1", "x2", "x4")), 1)


def _known(op: Instruction) -> bool:
    return has(op, "m8n8") and types_of(op)[-1] == "b16"


def compile_ldmatrix(op: Instruction) -> Step | None:
    """`ldmatrix.sync.aligned.m8n8.{x1,x2,x4}[.trans].shared.b16 {d...}, [row of each lane]`."""
    if not _known(op):
        return None
    count, transposed = _count(op), has(op, "trans")
    destinations = targets_of(op.operands[0])

    def step(machine: Machine, gang: Gang, mask: Array) -> None:
        whole_warps(machine, gang, mask)
        lanes = mask & (np.arange(LANES) < 8 * count)
        where = in_space(addresses(machine, gang, op.operands[1]))
        words = load_shared(machine, gang, lanes, where, 8, 2)
        rows = np.ascontiguousarray(words[..., : 8 * count].transpose(1, 2, 0)).view(np.uint16).reshape(-1, count, 8, 8)
        for k, destination in enumerate(destinations):
            machine.write(gang, mask, destination, _to_lanes(rows[:, k], transposed))

    return step


def _to_lanes(matrices: Array, transposed: bool) -> Array:
    """[warp, 8, 8] halves as [warp, lane] pairs."""
    turned = matrices.transpose(0, 2, 1) if transposed else matrices
    return np.ascontiguousarray(turned).view(np.uint32).reshape(-1, LANES)


def _from_lanes(pairs: Array, transposed: bool) -> Array:
    """[warp, lane] pairs as [warp, 8, 8] halves."""
    matrices = np.ascontiguousarray(pairs).view(np.uint16).reshape(-1, 8, 8)
    return np.ascontiguousarray(matrices.transpose(0, 2, 1)) if transposed else matrices


def compile_stmatrix(op: Instruction) -> Step | None:
    """`stmatrix.sync.aligned.m8n8.{x1,x2,x4}[.trans].shared.b16 [row of each lane], {a...}`."""
    if not _known(op):
        return None
    count, transposed = _count(op), has(op, "trans")
    sources = targets_of(op.operands[1])

    def step(machine: Machine, gang: Gang, mask: Array) -> None:
        whole_warps(machine, gang, mask)
        lanes = mask & (np.arange(LANES) < 8 * count)
        where = in_space(addresses(machine, gang, op.operands[0]))
        words = np.zeros((2, *mask.shape), np.uint64)
        for k, source in enumerate(sources):
            rows = _from_lanes(np.broadcast_to(machine.read(gang, source, "u32"), mask.shape), transposed)
            words[:, :, 8 * k : 8 * k + 8] = rows.view(np.uint64).reshape(-1, 8, 2).transpose(2, 0, 1)
        store_shared(machine, gang, lanes, where, words, 8)

    return step


def compile_movmatrix(op: Instruction) -> Step | None:
    """`movmatrix.sync.aligned.m8n8.trans.b16 d, a`."""
    if not _known(op):
        return None
    destination, source = op.operands

    def step(machine: Machine, gang: Gang, mask: Array) -> None:
        whole_warps(machine, gang, mask)
        pairs = np.broadcast_to(machine.read(gang, source, "u32"), mask.shape)
        machine.write(gang, mask, destination, _to_lanes(_from_lanes(pairs, transposed=True), transposed=False))

    return step


COMPILERS = {"ldmatrix": compile_ldmatrix, "stmatrix": compile_stmatrix, "movmatrix": compile_movmatrix}
