"""`cp.async`: copies from global to shared memory that threads wait for in groups (`gradir.ptx.pending` keeps what is on its way)."""

from __future__ import annotations

import numpy as np

from gradir.ptx.instructions.accesses import addresses, checked_shared, in_space, load_global
from gradir.ptx.instructions.forms import Array, has
from gradir.ptx.machine import Machine, Step
from gradir.ptx.memory import BIAS, OFFSET_BITS, Allocation
from gradir.ptx.pending import Copy
from gradir.ptx.state import Gang
from gradir.ptx.syntax import Immediate, Instruction, Operand, Register
from gradir.ptx.types import WIDTHS

_LOW = (1 << OFFSET_BITS) - 1


def compile_cp(op: Instruction) -> Step | None:
    """`cp.async.{ca,cg}.shared.global [to], [from], bytes[, source bytes | ignore source][, policy]` and its groups; no bulk copies."""
    if op.opcode[1] != "async" or has(op, "bulk", "mbarrier"):
        return None
    if has(op, "commit_group"):
        return lambda machine, gang, mask: machine.pending.commit(gang, mask)
    if has(op, "wait_all"):
        return lambda machine, gang, mask: machine.pending.wait(machine, gang, mask, -1)
    if has(op, "wait_group"):
        (count,) = op.operands
        assert isinstance(count, Immediate)
        keep = int(count.value)
        return lambda machine, gang, mask: machine.pending.wait(machine, gang, mask, keep)
    size = op.operands[2]
    if not isinstance(size, Immediate) or size.value not in ((16,) if has(op, "cg") else (4, 8, 16)):
        return None
    return _copy(op, int(size.value))


def _copy(op: Instruction, size: int) -> Step:
    to, source, _, *more = op.operands
    policies = 1 if any("cache_hint" in part for part in op.opcode) else 0
    narrower = more[0] if len(more) > policies else None

    def step(machine: Machine, gang: Gang, mask: Array) -> None:
        where = np.broadcast_to(in_space(addresses(machine, gang, to)), mask.shape)
        origin = addresses(machine, gang, source)
        good = checked_shared(machine, gang, mask, where, size)
        sizes = np.broadcast_to(_source_bytes(machine, gang, narrower, size), mask.shape)
        beyond = good & (sizes > size)
        machine.report("out of bounds", gang, beyond, f"the source has more than the {size} bytes that are copied")
        sizes = np.minimum(sizes, size)
        words = load_global(machine, gang, good & (sizes == size), origin, min(size, 8), max(1, size // 8))
        data = np.ascontiguousarray(np.moveaxis(words, 0, -1)).view(np.uint8)
        for byte in range(size if (good & (sizes > 0) & (sizes < size)).any() else 0):
            some = good & (sizes < size) & (byte < sizes)
            data[..., byte] = np.where(some, load_global(machine, gang, some, origin + byte, 1, 1)[0], data[..., byte])
        rows, lanes = np.nonzero(good)
        warps = gang.warps[rows]
        flat = machine.blocks.block_of(warps) * machine.blocks.shared.shape[1] + where[good]
        group = machine.pending.opened[warps, lanes]
        sources = _sources(machine, origin[good], sizes[good] == size)
        machine.pending.issue(machine, Copy(machine.position, warps, lanes, flat, data[good], group, sources))

    return step


def _source_bytes(machine: Machine, gang: Gang, operand: Operand | None, size: int) -> Array:
    """How many bytes are read, zeros follow: a number, or none of them where a predicate says to ignore the source."""
    if operand is None:
        return np.full((1, 1), size, np.int64)
    if isinstance(operand, Register) and WIDTHS[machine.function.registers.get(operand.name, "b32")] == 1:
        return np.where(machine.read(gang, operand, "pred"), 0, size)
    return machine.read(gang, operand, "u32").astype(np.int64)


def _sources(machine: Machine, origin: Array, whole: Array) -> tuple[tuple[Allocation, Array, Array], ...]:
    numbers = origin >> OFFSET_BITS
    found: list[tuple[Allocation, Array, Array]] = []
    for number in np.unique(numbers[whole]):
        allocation = machine.memory.allocations.get(int(number))
        if allocation is None:
            continue
        offsets = (origin & _LOW) - BIAS
        inside = (offsets >= 0) & (offsets + 16 <= allocation.data.size)
        found.append((allocation, offsets, whole & (numbers == number) & inside))
    return tuple(found)


COMPILERS = {"cp": compile_cp}
