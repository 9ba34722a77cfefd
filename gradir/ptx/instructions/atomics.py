"""Atomic operations and reductions on global and shared memory: one lane after the other, in the order of warps and lanes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradir.ptx.bits import bits_of
from gradir.ptx.instructions.accesses import (
    SET,
    addresses,
    all_set,
    checked,
    checked_shared,
    flat,
    report_some,
    space_of,
    synchronise,
    warps_of,
)
from gradir.ptx.instructions.forms import Array, types_of
from gradir.ptx.machine import Machine, Step
from gradir.ptx.memory import BIAS, OFFSET_BITS, SHARED_WINDOW, parts_of, scatter
from gradir.ptx.state import Gang
from gradir.ptx.syntax import Instruction
from gradir.ptx.types import DTYPES, WIDTHS, storage

_LOW = (1 << OFFSET_BITS) - 1
OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda old, new: old + new, "min": min, "max": max, "and": lambda old, new: old & new, "or": lambda old, new: old | new,
    "xor": lambda old, new: old ^ new, "exch": lambda old, new: new,
    "inc": lambda old, new: type(old)(0) if old >= new else old + type(old)(1),
    "dec": lambda old, new: new if old == 0 or old > new else old - type(old)(1),
}  # fmt: skip


def compile_atom(op: Instruction) -> Step | None:
    """`atom` (returns what was there) and `red` (does not)."""
    kind = types_of(op)[-1]
    name = next((part for part in op.opcode[1:] if part in OPERATIONS or part == "cas"), "")
    if not name or kind in ("f16x2", "bf16x2") or WIDTHS[kind] > 64:
        return None
    returns = op.opcode[0] == "atom"
    address, *sources = op.operands[1:] if returns else op.operands
    space = space_of(op)
    dtype, width = DTYPES[kind], WIDTHS[kind] // 8

    def step(machine: Machine, gang: Gang, mask: Array) -> None:
        where = addresses(machine, gang, address)
        values = [np.broadcast_to(machine.read(gang, source, kind), mask.shape) for source in sources]
        old = np.zeros(mask.shape, dtype)
        numbers = np.full(mask.shape, SHARED_WINDOW) if space == "shared" else where >> OFFSET_BITS
        offsets = where if space == "shared" else (where & _LOW) - BIAS
        for number, lanes in parts_of(numbers, mask):
            if number == SHARED_WINDOW:
                good = checked_shared(machine, gang, lanes, offsets, width)
                warps, block, at = flat(machine, gang, good, offsets)
                for access in (machine.history.read, machine.history.write):
                    races, others = access(warps, block, at, width, machine.position, strong=True)
                    report_some("race", machine, gang, good, races, others, "an atomic where another warp may still read or write")
                at = block * machine.blocks.shared.shape[1] + at
                data, written = machine.blocks.shared.reshape(-1), machine.blocks.defined.reshape(-1)
                busy, copies = machine.pending.touched(at, width)
                report_some("unwaited copy", machine, gang, good, busy, copies, "an asynchronous copy still goes there")
            else:
                allocation = machine.memory.allocations.get(number)
                if allocation is None:
                    machine.report("out of bounds", gang, lanes, "no allocation has this address")
                    continue
                good = checked(machine, gang, lanes, offsets, allocation, width, 1)
                data, at = allocation.data, offsets[good]
                if good.any():
                    warps = warps_of(gang, good)
                    races, others = machine.accesses.write(number, data.size, warps, at, width, machine.position, True)
                    what = f"an atomic on {allocation.name}, where another warp may still read or write"
                    report_some("race", machine, gang, good, races, others, what)
                written = allocation.written
            if written is not None and good.any():
                unknown = ~all_set(written, at, width)
                report_some("uninitialised read", machine, gang, good, unknown, None, "an atomic on bytes that nobody wrote")
                scatter(written.view(np.uint8), at, SET[width], width)
            whole = data[: data.size // width * width].view(dtype)
            old[good] = _apply(name, whole, at // width, [value[good] for value in values])
            machine.changes += bool((whole[at // width].view(np.uint8) != old[good].view(np.uint8)).any())
        synchronise(machine, gang, mask, op, where, reads=True, writes=True)
        if returns:
            machine.write(gang, mask, op.operands[0], bits_of(old, storage(f"b{8 * width}")))

    return step


def _apply(name: str, whole: Array, at: Array, values: list[Array]) -> Array:
    """Do the operation for every lane in turn; what each found there."""
    old = np.empty(at.shape, whole.dtype)
    with np.errstate(all="ignore"):
        if len(np.unique(at)) == len(at):
            old = whole[at].copy()
            whole[at] = _together(name, old, values)
            return old
        for k, place in enumerate(at):
            found = whole[place]
            old[k] = found
            if name == "cas":
                whole[place] = values[1][k] if found == values[0][k] else found
            else:
                whole[place] = OPERATIONS[name](found, values[0][k])
    return old


def _together(name: str, old: Array, values: list[Array]) -> Array:
    if name == "cas":
        return np.where(old == values[0], values[1], old)
    new = values[0]
    functions: dict[str, Callable[[], Array]] = {
        "add": lambda: old + new, "min": lambda: np.minimum(old, new), "max": lambda: np.maximum(old, new), "and": lambda: old & new,
        "or": lambda: old | new, "xor": lambda: old ^ new, "exch": lambda: new,
        "inc": lambda: np.where(old >= new, np.zeros_like(old), old + np.ones_like(old)),
        "dec": lambda: np.where((old == 0) | (old > new), new, old - np.ones_like(old)),
    }  # fmt: skip
    return functions[name]()


COMPILERS = {"atom": compile_atom, "red": compile_atom}
