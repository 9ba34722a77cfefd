"""Loads, stores, moves, addresses. Every access is checked: bounds of its allocation, alignment, defined bytes, races in shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradir.ptx.instructions.forms import Array, has, pointwise, types_of
from gradir.ptx.machine import Machine, Step
from gradir.ptx.memory import BIAS, LOCAL_WINDOW, OFFSET_BITS, SHARED_WINDOW, Allocation, gather, parts_of, scatter
from gradir.ptx.state import LANES, Gang
from gradir.ptx.syntax import Address, Immediate, Instruction, Name, Operand, Register, Vector
from gradir.ptx.types import WIDTHS, storage

SPACES = ("param", "shared", "global", "const", "local")
_LOW = (1 << OFFSET_BITS) - 1


def space_of(op: Instruction) -> str:
    """The state space that an opcode names; `generic` when it names none."""
    return next((part.partition("::")[0] for part in op.opcode[1:] if part.partition("::")[0] in SPACES), "generic")


def elements_of(op: Instruction) -> tuple[str, int]:
    """Type and number of the elements of an access."""
    count = next((int(part[1:]) for part in op.opcode if part in ("v2", "v4", "v8")), 1)
    return types_of(op)[-1], count


def addresses(machine: Machine, gang: Gang, address: Operand) -> Array:
    """[warp, lane] addresses as signed integers; an address that wraps around is negative or huge, and out of bounds."""
    assert isinstance(address, Address)
    if isinstance(address.base, Register):
        width = WIDTHS[machine.function.registers.get(address.base.name, "b64")]
        base = machine.read(gang, address.base, f"u{width}").astype(np.int64)
    elif isinstance(address.base, Immediate):
        base = np.full((1, 1), int(address.base.value), np.int64)
    else:
        base = np.full((1, 1), machine.address_of(address.base), np.int64)
    return np.broadcast_to(base + address.offset, gang.mask.shape)


def targets_of(operand: Operand) -> Sequence[Operand]:
    """The registers of a vector, or the one register."""
    return operand.elements if isinstance(operand, Vector) else (operand,)


# Access to each space: (machine, gang, active lanes, addresses, bytes per element, elements) -> [elements, warp, lane]


def load_global(machine: Machine, gang: Gang, mask: Array, where: Array, width: int, count: int) -> Array:
    """Elements at generic addresses, of whatever space those lie in."""
    found = np.zeros((count, *mask.shape), f"u{width}")
    for number, lanes in parts_of(where >> OFFSET_BITS, mask):
        if number == SHARED_WINDOW:
            _merge(found, lanes, load_shared(machine, gang, lanes, (where & _LOW) - BIAS, width, count))
            continue
        if number == LOCAL_WINDOW:
            _merge(found, lanes, load_local(machine, gang, lanes, (where & _LOW) - BIAS, width, count))
            continue
        allocation = machine.memory.allocations.get(number)
        if allocation is None:
            machine.report("out of bounds", gang, lanes, f"no allocation has the address {_hex(where, lanes)}")
            continue
        offsets = (where & _LOW) - BIAS
        good = checked(machine, gang, lanes, offsets, allocation, width, count)
        if good.all():
            for k in range(count):
                found[k] = gather(allocation.data, offsets + k * width, width)
        elif good.any():
            for k in range(count):
                found[k][good] = gather(allocation.data, offsets[good] + k * width, width)
        if allocation.written is not None and good.any():
            defined = np.ones(mask.shape, np.bool_)
            for byte in range(width * count):
                defined[good] &= allocation.written[offsets[good] + byte]
            machine.report("uninitialised read", gang, ~defined, f"nobody wrote these bytes of {allocation.name}")
    return found


def checked(machine: Machine, gang: Gang, lanes: Array, offsets: Array, allocation: Allocation, width: int, count: int) -> Array:
    """The lanes whose access is within the allocation and aligned; the others are reported."""
    size = width * count
    inside = (offsets >= 0) & (offsets + size <= allocation.data.size)
    bad = lanes & ~inside
    if bad.any():
        first = int(offsets[bad].flat[0])
        machine.report("out of bounds", gang, bad, f"{size} bytes at offset {first} of {allocation.name}, which has {allocation.data.size}")
    return lanes & inside & ~misaligned(machine, gang, lanes & inside, offsets, size)


def misaligned(machine: Machine, gang: Gang, lanes: Array, offsets: Array, size: int) -> Array:
    """Lanes whose address is no multiple of the size of the access; reported."""
    bad = lanes & (offsets & (size - 1) != 0)
    if bad.any():
        machine.report("misaligned", gang, bad, f"{size} bytes at offset {int(offsets[bad].flat[0])}")
    return bad


def _hex(where: Array, lanes: Array) -> str:
    return hex(int(where[lanes].flat[0]) & (1 << 64) - 1)


def _merge(found: Array, lanes: Array, values: Array) -> None:
    np.copyto(found, values, where=lanes[None])


def store_global(machine: Machine, gang: Gang, mask: Array, where: Array, values: Array, width: int) -> None:
    """Store `values` [elements, warp, lane] at generic addresses."""
    count = len(values)
    for number, lanes in parts_of(where >> OFFSET_BITS, mask):
        if number == SHARED_WINDOW:
            store_shared(machine, gang, lanes, (where & _LOW) - BIAS, values, width)
            continue
        if number == LOCAL_WINDOW:
            store_local(machine, gang, lanes, (where & _LOW) - BIAS, values, width)
            continue
        allocation = machine.memory.allocations.get(number)
        if allocation is None:
            machine.report("out of bounds", gang, lanes, f"no allocation has the address {_hex(where, lanes)}")
            continue
        if allocation.readonly:
            machine.report("out of bounds", gang, lanes, f"{allocation.name} is read-only")
            continue
        offsets = (where & _LOW) - BIAS
        good = checked(machine, gang, lanes, offsets, allocation, width, count)
        at = offsets[good]
        for k in range(count):
            scatter(allocation.data, at + k * width, values[k][good], width)
        if allocation.written is not None:
            for byte in range(width * count):
                allocation.written[at + byte] = True


def load_shared(machine: Machine, gang: Gang, mask: Array, where: Array, width: int, count: int) -> Array:
    """Elements of the blocks' shared memory."""
    blocks = machine.blocks
    found = np.zeros((count, *mask.shape), f"u{width}")
    good = checked_shared(machine, gang, mask, where, width * count)
    if not good.any():
        return found
    warps, block, at = flat(machine, gang, good, where)
    whole = blocks.shared.reshape(-1)
    base = block * blocks.shared.shape[1]
    for k in range(count):
        found[k][good] = gather(whole, base + at + k * width, width)
    defined = np.ones(mask.shape, np.bool_)
    known = np.ones(at.shape, np.bool_)
    for byte in range(width * count):
        known &= blocks.defined[block, at + byte]
    defined[good] = known
    machine.report("uninitialised read", gang, ~defined, "nobody wrote these bytes of shared memory")
    races, others = machine.history.read(warps, block, at, width * count, machine.position)
    report_races(machine, gang, good, races, others, "reads what another warp may still write")
    return found


def store_shared(machine: Machine, gang: Gang, mask: Array, where: Array, values: Array, width: int) -> None:
    """Store into the blocks' shared memory."""
    blocks, count = machine.blocks, len(values)
    good = checked_shared(machine, gang, mask, where, width * count)
    if not good.any():
        return
    warps, block, at = flat(machine, gang, good, where)
    races, others = machine.history.write(warps, block, at, width * count, machine.position)
    report_races(machine, gang, good, races, others, "writes what another warp may still read or write")
    whole = blocks.shared.reshape(-1)
    base = block * blocks.shared.shape[1]
    for k in range(count):
        scatter(whole, base + at + k * width, np.broadcast_to(values[k], mask.shape)[good], width)
    for byte in range(width * count):
        blocks.defined[block, at + byte] = True


def flat(machine: Machine, gang: Gang, lanes: Array, where: Array) -> tuple[Array, Array, Array]:
    """Of each lane that is set: its warp, its block, its address."""
    rows = np.nonzero(lanes)[0]
    warps = gang.warps[rows]
    return warps, machine.blocks.block_of(warps), where[lanes]


def checked_shared(machine: Machine, gang: Gang, mask: Array, where: Array, size: int) -> Array:
    """Lanes whose access is within the block's shared memory and aligned; the others are reported."""
    limit = machine.blocks.shared.shape[1]
    bad = mask & ((where < 0) | (where + size > limit))
    if bad.any():
        machine.report(
            "out of bounds", gang, bad, f"{size} bytes at {int(where[bad].flat[0])} of shared memory, of which there are {limit}"
        )
    good = mask & ~bad
    return good & ~misaligned(machine, gang, good, where, size)


def report_races(machine: Machine, gang: Gang, lanes: Array, races: Array, others: Array, what: str) -> None:
    """Report the lanes (of those set in `lanes`) that race."""
    if races.any():
        bad = np.zeros(lanes.shape, np.bool_)
        bad[lanes] = races
        machine.report("race", gang, bad, what, int(others[races][0]))


def load_local(machine: Machine, gang: Gang, mask: Array, where: Array, width: int, count: int) -> Array:
    """Elements of each thread's own memory."""
    found = np.zeros((count, *mask.shape), f"u{width}")
    good = _checked_local(machine, gang, mask, where, width * count)
    rows, lanes = np.nonzero(good)
    for k in range(count):
        whole = machine.local.reshape(-1)
        base = (gang.warps[rows] * LANES + lanes) * machine.local.shape[2]
        found[k][good] = gather(whole, base + where[good] + k * width, width)
    return found


def store_local(machine: Machine, gang: Gang, mask: Array, where: Array, values: Array, width: int) -> None:
    """Store into each thread's own memory."""
    good = _checked_local(machine, gang, mask, where, width * len(values))
    rows, lanes = np.nonzero(good)
    base = (gang.warps[rows] * LANES + lanes) * machine.local.shape[2]
    for k, value in enumerate(values):
        scatter(machine.local.reshape(-1), base + where[good] + k * width, np.broadcast_to(value, mask.shape)[good], width)


def _checked_local(machine: Machine, gang: Gang, mask: Array, where: Array, size: int) -> Array:
    limit = machine.local.shape[2]
    bad = mask & ((where < 0) | (where + size > limit))
    machine.report("out of bounds", gang, bad, f"{size} bytes of local memory, of which a thread has {limit}")
    good = mask & ~bad
    return good & ~misaligned(machine, gang, good, where, size)


def load_parameter(machine: Machine, gang: Gang, where: Array, width: int, count: int) -> Array:
    """Elements of the kernel's parameters, the same for all lanes."""
    flat_bytes = machine.parameter_bytes
    return np.stack([np.broadcast_to(gather(flat_bytes, where + k * width, width), gang.mask.shape) for k in range(count)])


# Instructions


def compile_ld(op: Instruction) -> Step | None:
    """`ld`, `ldu`, `ld.global.nc`, `ld.param`, vectors, all caching hints."""
    kind, count = elements_of(op)
    space, width = space_of(op), WIDTHS[kind] // 8
    destinations = targets_of(op.operands[0])
    if width > 8:
        return None

    def step(machine: Machine, gang: Gang, mask: Array) -> None:
        where = addresses(machine, gang, op.operands[1])
        place = space
        if place == "param" and isinstance(op.operands[1], Address) and isinstance(op.operands[1].base, Name):
            place = "param" if op.operands[1].base.name in machine.parameters else "local"
        if place == "param":
            values = load_parameter(machine, gang, where, width, count)
        elif place == "shared":
            values = load_shared(machine, gang, mask, _window(where), width, count)
        elif place == "local":
            values = load_local(machine, gang, mask, _window(where), width, count)
        else:
            values = load_global(machine, gang, mask, where, width, count)
        for destination, value in zip(destinations, values):
            machine.write(gang, mask, destination, _extended(value, kind))

    return step


def _window(where: Array) -> Array:
    """Addresses of a space, from addresses of the space or generic ones of variables there."""
    return np.where(where >> OFFSET_BITS != 0, (where & _LOW) - BIAS, where)


def _extended(value: Array, kind: str) -> Array:
    return value.view(f"i{value.dtype.itemsize}") if kind[0] == "s" else value


def compile_st(op: Instruction) -> Step | None:
    """`st`, vectors, all caching hints; `st.async` and `st.param` of calls are elsewhere."""
    kind, count = elements_of(op)
    space, width = space_of(op), WIDTHS[kind] // 8
    if width > 8 or has(op, "async"):
        return None
    sources = targets_of(op.operands[1])

    def step(machine: Machine, gang: Gang, mask: Array) -> None:
        where = addresses(machine, gang, op.operands[0])
        unsigned = f"u{8 * width}"
        values = np.stack([np.broadcast_to(machine.read(gang, source, unsigned), mask.shape) for source in sources[:count]])
        if space == "shared":
            store_shared(machine, gang, mask, _window(where), values, width)
        elif space in ("local", "param"):
            store_local(machine, gang, mask, _window(where), values, width)
        else:
            store_global(machine, gang, mask, where, values, width)

    return step


def compile_mov(op: Instruction) -> Step | None:
    """Registers, literals, addresses of variables; packing and unpacking of vectors."""
    kind = types_of(op)[-1]
    destination, source = op.operands
    if isinstance(source, Vector):
        return _packing(op, kind, source)
    if isinstance(destination, Vector):
        return _unpacking(op, kind, destination)
    if isinstance(source, Name):

        def address(machine: Machine, gang: Gang, mask: Array) -> None:
            machine.write(gang, mask, destination, np.full((1, 1), machine.address_of(source), np.uint64))

        return address
    return pointwise(op, np.copy, [kind if kind == "pred" or WIDTHS[kind] > 64 else f"u{WIDTHS[kind]}"] if not _float(source) else [kind])


def _float(source: Operand) -> bool:
    return isinstance(source, Immediate) and isinstance(source.value, float)


def _packing(op: Instruction, kind: str, source: Vector) -> Step:
    part = f"u{WIDTHS[kind] // len(source.elements)}"

    def step(machine: Machine, gang: Gang, mask: Array) -> None:
        whole = np.zeros((1, 1), storage(kind))
        for k, element in enumerate(source.elements):
            bits = machine.read(gang, element, part).astype(whole.dtype)
            whole = whole | bits << whole.dtype.type(k * WIDTHS[part])
        machine.write(gang, mask, op.operands[0], whole)

    return step


def _unpacking(op: Instruction, kind: str, destination: Vector) -> Step:
    width = WIDTHS[kind] // len(destination.elements)

    def step(machine: Machine, gang: Gang, mask: Array) -> None:
        whole = machine.read(gang, op.operands[1], f"u{WIDTHS[kind]}")
        for k, element in enumerate(destination.elements):
            machine.write(gang, mask, element, (whole >> whole.dtype.type(k * width)).astype(f"u{width // 8}"))

    return step


def compile_cvta(op: Instruction) -> Step | None:
    """Between generic addresses and those of a space: shared and local memory are reached through windows."""
    window = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW}.get(space_of(op))
    to = has(op, "to")

    def function(value: Array) -> Array:
        if window is None:
            return value.copy()  # registers share no memory
        start = np.uint64((window << OFFSET_BITS) + BIAS)
        through = value >= start
        if to:
            return np.where(through, value - start, value)
        return np.where(through, value, value + start)

    return pointwise(op, function, ["u64"])


def compile_isspacep(op: Instruction) -> Step | None:
    window = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW}.get(space_of(op))

    def function(value: Array) -> Array:
        number = value >> np.uint64(OFFSET_BITS)
        return number == window if window is not None else number > LOCAL_WINDOW

    return pointwise(op, function, ["u64"])


def compile_nothing(op: Instruction) -> Step | None:
    """Hints and fences: accesses take effect at once here; who may rely on that is what races are about."""

    def step(machine: Machine, gang: Gang, mask: Array) -> None:
        return

    return step


_HINTS = ("prefetch", "prefetchu", "applypriority", "discard", "membar", "fence", "nanosleep", "griddepcontrol", "createpolicy", "pmevent")
COMPILERS: dict[str, Any] = {
    "ld": compile_ld, "ldu": compile_ld, "st": compile_st, "mov": compile_mov, "cvta": compile_cvta, "isspacep": compile_isspacep,
    **dict.fromkeys(_HINTS, compile_nothing),
}  # fmt: skip
