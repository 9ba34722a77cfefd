"""Accesses of lanes to each space, all checked: bounds of the allocation, alignment, defined bytes, races, copies on their way.

An access is (machine, gang, active lanes, addresses, bytes per element, elements); values are [elements, warp, lane].
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gradir.ptx.advice import global_traffic, shared_traffic
from gradir.ptx.instructions.forms import Array, types_of
from gradir.ptx.machine import Machine
from gradir.ptx.memory import BIAS, LOCAL_WINDOW, OFFSET_BITS, SHARED_WINDOW, Allocation, gather, parts_of, scatter
from gradir.ptx.reports import Kind
from gradir.ptx.state import LANES, Gang
from gradir.ptx.syntax import Address, Immediate, Instruction, Operand, Register, Vector
from gradir.ptx.types import WIDTHS

SPACES = ("param", "shared", "global", "const", "local")
_LOW = (1 << OFFSET_BITS) - 1
RANK_BITS = 24
"""Addresses in the shared memory of the block with rank r of a cluster have r + 1 above so many bits; those of one's own block may
have 0."""
SET = {width: int.from_bytes(b"\1" * width, "little") for width in (1, 2, 4, 8)}
"""Flags of so many bytes, all set, as one integer."""


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
        base = machine.address_of(gang, address.base)
    return np.broadcast_to(base + address.offset, gang.mask.shape)


def targets_of(operand: Operand) -> Sequence[Operand]:
    """The registers of a vector, or the one register."""
    return operand.elements if isinstance(operand, Vector) else (operand,)


def in_space(where: Array) -> Array:
    """Addresses of a space, from addresses of the space or generic ones of variables there."""
    return np.where(where >> OFFSET_BITS != 0, (where & _LOW) - BIAS, where)


def load_global(machine: Machine, gang: Gang, mask: Array, where: Array, width: int, count: int, *, strong: bool = False) -> Array:
    """Elements at generic addresses, of whatever space those lie in."""
    found = np.zeros((count, *mask.shape), f"u{width}")
    for number, lanes in parts_of(where >> OFFSET_BITS, mask):
        if number == SHARED_WINDOW:
            _merge(found, lanes, load_shared(machine, gang, lanes, (where & _LOW) - BIAS, width, count, strong=strong))
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
        if not good.any():
            continue
        if machine.reports.traffic is not None:
            machine.reports.moved("global", machine.position, machine.now, global_traffic(offsets, good, width * count))
        if not allocation.readonly:
            at, warps = offsets[good], warps_of(gang, good)
            size = width * count
            races, others = machine.accesses.read(number, allocation.data.size, warps, at, size, machine.position, strong)
            report_some("race", machine, gang, good, races, others, f"reads {allocation.name}, which another warp may still write")
        if allocation.written is not None:
            known = np.ones(int(good.sum()), np.bool_)
            for k in range(count):
                known &= all_set(allocation.written, offsets[good] + k * width, width)
            report_some("uninitialised read", machine, gang, good, ~known, None, f"nobody wrote these bytes of {allocation.name}")
    return found


def all_set(flags: Array, offsets: Array, width: int) -> Array:
    """Are the flags of all `width` bytes at each offset set?"""
    return gather(flags.view(np.uint8), offsets, width) == SET[width]


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


def store_global(machine: Machine, gang: Gang, mask: Array, where: Array, values: Array, width: int, *, strong: bool = False) -> None:
    """Store `values` [elements, warp, lane] at generic addresses."""
    count = len(values)
    machine.changes += 1
    for number, lanes in parts_of(where >> OFFSET_BITS, mask):
        if number == SHARED_WINDOW:
            store_shared(machine, gang, lanes, (where & _LOW) - BIAS, values, width, strong=strong)
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
        if not good.any():
            continue
        at, warps, size = offsets[good], warps_of(gang, good), width * count
        if machine.reports.traffic is not None:
            machine.reports.moved("global", machine.position, machine.now, global_traffic(offsets, good, size))
        races, others = machine.accesses.write(number, allocation.data.size, warps, at, size, machine.position, strong)
        report_some("race", machine, gang, good, races, others, f"writes {allocation.name}, which another warp may still read or write")
        if allocation.reading is not None:
            busy = np.any([allocation.reading[at // 4 + k] > 0 for k in range(max(1, width * count // 4))], axis=0)
            report_some("race", machine, gang, good, busy, None, "writes what an asynchronous copy still reads")
        for k in range(count):
            scatter(allocation.data, at + k * width, values[k][good], width)
            if allocation.written is not None:
                scatter(allocation.written.view(np.uint8), at + k * width, SET[width], width)


def load_shared(machine: Machine, gang: Gang, mask: Array, where: Array, width: int, count: int, *, strong: bool = False) -> Array:
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
    known = np.ones(at.shape, np.bool_)
    for k in range(count):
        known &= all_set(blocks.defined.reshape(-1), base + at + k * width, width)
    busy, copies = machine.pending.touched(base + at, width * count)
    report_some("unwaited copy", machine, gang, good, busy, copies, "an asynchronous copy still goes there")
    if not known.all():
        report_some("uninitialised read", machine, gang, good, ~known & ~busy, None, "nobody wrote these bytes of shared memory")
    races, others = machine.history.read(warps, block, at, width * count, machine.position, strong=strong)
    report_some("race", machine, gang, good, races, others, "reads what another warp may still write")
    return found


def store_shared(machine: Machine, gang: Gang, mask: Array, where: Array, values: Array, width: int, *, strong: bool = False) -> None:
    """Store into the blocks' shared memory."""
    blocks, count = machine.blocks, len(values)
    machine.changes += 1
    good = checked_shared(machine, gang, mask, where, width * count)
    if not good.any():
        return
    warps, block, at = flat(machine, gang, good, where)
    races, others = machine.history.write(warps, block, at, width * count, machine.position, strong=strong)
    report_some("race", machine, gang, good, races, others, "writes what another warp may still read or write")
    whole = blocks.shared.reshape(-1)
    base = block * blocks.shared.shape[1]
    busy, copies = machine.pending.touched(base + at, width * count)
    report_some("race", machine, gang, good, busy, copies, "writes to where an asynchronous copy still goes")
    if machine.bulk.layout is not None:
        machine.bulk.layout.forget(base + at, width * count)
    for k in range(count):
        scatter(whole, base + at + k * width, np.broadcast_to(values[k], mask.shape)[good], width)
        scatter(blocks.defined.reshape(-1).view(np.uint8), base + at + k * width, SET[width], width)


def warps_of(gang: Gang, lanes: Array) -> Array:
    """Of each lane that is set, the number of its warp."""
    return np.broadcast_to(gang.warps[:, None], lanes.shape)[lanes]


STRONG = ("volatile", "relaxed", "acquire", "release", "acq_rel", "mmio")


def is_strong(op: Instruction) -> bool:
    """Does the access take part in synchronisation (the PTX memory model's strong operations)?"""
    return op.opcode[0] in ("atom", "red") or any(part in STRONG for part in op.opcode[1:])


def synchronise(machine: Machine, gang: Gang, mask: Array, op: Instruction, where: Array, *, reads: bool, writes: bool) -> None:
    """What a strong access at `where` (addresses of the opcode's space) hears from others and tells them, warp by warp."""
    machine.polls += reads
    if not machine.order.active:
        return
    everywhere = "cta" not in op.opcode
    acquire, release = (any(part in op.opcode for part in (name, "acq_rel")) for name in ("acquire", "release"))
    shared = space_of(op) == "shared"
    done: set[tuple[int, int]] = set()
    for row, lane in np.argwhere(mask):
        warp, address = int(gang.warps[row]), int(where[row, lane])
        if (warp, address) in done:
            continue
        done.add((warp, address))
        number: int | str = address >> OFFSET_BITS
        if shared or number == SHARED_WINDOW:  # a place of the block's own
            number, address = f"shared {warp // machine.blocks.per_block}", (address & _LOW) - (0 if shared else BIAS)
        if reads:
            machine.order.listen(warp, number, address & _LOW, acquire=acquire, everywhere=everywhere)
        if writes:
            machine.order.tell(warp, number, address & _LOW, release=release, everywhere=everywhere, replace=not reads)
    if writes and release:
        machine.order.tick(gang.warps[mask.any(1)])


def flat(machine: Machine, gang: Gang, lanes: Array, where: Array) -> tuple[Array, Array, Array]:
    """Of each lane that is set: its warp, the block whose shared memory its address is in, the address there."""
    rows = np.nonzero(lanes)[0]
    warps = gang.warps[rows]
    blocks, at = machine.blocks.block_of(warps), where[lanes]
    if machine.blocks.cluster_size > 1:
        ranks = at >> RANK_BITS
        first = blocks // machine.blocks.cluster_size * machine.blocks.cluster_size
        blocks = np.where(ranks > 0, first + ranks - 1, blocks)
        at = at & ((1 << RANK_BITS) - 1)
    return warps, blocks, at


def checked_shared(machine: Machine, gang: Gang, mask: Array, where: Array, size: int) -> Array:
    """Lanes whose access is within the block's shared memory and aligned; the others are reported."""
    limit = machine.blocks.shared_bytes
    if machine.blocks.cluster_size > 1:  # addresses of other blocks of the cluster have their rank above
        inside = (where >= 0) & (where >> RANK_BITS <= machine.blocks.cluster_size)
        where = np.where(inside, where & ((1 << RANK_BITS) - 1), where)
    bad = mask & ((where < 0) | (where + size > limit))
    if bad.any():
        machine.report(
            "out of bounds", gang, bad, f"{size} bytes at {int(where[bad].flat[0])} of shared memory, of which there are {limit}"
        )
    good = mask & ~bad
    good &= ~misaligned(machine, gang, good, where, size)
    if machine.reports.traffic is not None and good.any():
        machine.reports.moved("shared", machine.position, machine.now, shared_traffic(np.broadcast_to(where, good.shape), good, size))
    return good


def report_some(kind: Kind, machine: Machine, gang: Gang, lanes: Array, bad: Array, others: Array | None, what: str) -> None:
    """Report some of the lanes that are set in `lanes`, with the instruction of the other access."""
    if bad.any():
        places = np.zeros(lanes.shape, np.bool_)
        places[lanes] = bad
        machine.report(kind, gang, places, what, None if others is None else int(others[bad][0]))


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
