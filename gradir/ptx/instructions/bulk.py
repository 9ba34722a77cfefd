"""`cp.async.bulk` and `cp.reduce.async.bulk` of bytes in a row, their groups, and the fences between the two ways to memory.

A copy is issued by every lane that executes the instruction. What copies of boxes of tensors do differently is in `tensor_copies`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from gradir.ptx.bulk import WRITERS, Arrival, Store
from gradir.ptx.instructions.accesses import RANK_BITS, addresses, in_space
from gradir.ptx.instructions.forms import Array, has, types_of
from gradir.ptx.instructions.mbarriers import Places, located
from gradir.ptx.machine import Machine, Step
from gradir.ptx.memory import BIAS, OFFSET_BITS, Allocation
from gradir.ptx.state import Gang
from gradir.ptx.syntax import Immediate, Instruction
from gradir.ptx.tensor_maps import PIECE
from gradir.ptx.types import DTYPES

_LOW = (1 << OFFSET_BITS) - 1
REDUCTIONS: dict[str, Callable[..., Array]] = {
    "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Issuer:
    """The thread that issues a copy."""

    machine: Machine
    warp: int
    lane: int

    def report(self, kind: Any, message: str, other: int | None = None) -> None:
        """Something is wrong with the copy."""
        self.machine.report_of(kind, np.array([self.warp]), np.array([self.lane]), message, other)

    @property
    def block(self) -> int:
        return self.warp // self.machine.blocks.per_block

    def ranks(self, mask: int) -> list[int]:
        """The blocks of the cluster that a mask names."""
        size = self.machine.blocks.cluster_size
        if mask >> size:
            self.report("out of bounds", f"the mask {mask:#x} names blocks that the cluster of {size} does not have")
        return [self.block // size * size + rank for rank in range(size) if mask >> rank & 1]


def issuers(machine: Machine, gang: Gang, mask: Array) -> list[tuple[int, Issuer]]:
    """The threads that execute the instruction, each with its row in the gang."""
    return [(int(row), Issuer(machine, int(gang.warps[row]), int(lane))) for row, lane in np.argwhere(mask)]


def place_in_shared(issuer: Issuer, where: int, size: int, align: int) -> tuple[int, int] | None:
    """Block and offset of an address of shared memory; None where the bytes are not all there, which is reported."""
    blocks = issuer.machine.blocks
    rank, offset = (where >> RANK_BITS, where & ((1 << RANK_BITS) - 1)) if where >= 0 else (0, where)
    if rank > blocks.cluster_size or offset < 0 or offset + size > blocks.shared_bytes:
        issuer.report("out of bounds", f"{size} bytes at {offset} of shared memory, of which there are {blocks.shared_bytes}")
        return None
    if offset % align:
        issuer.report("misaligned", f"a copy of {size} bytes at offset {offset} of shared memory; it has to be a multiple of {align}")
        return None
    block = issuer.block
    return (block // blocks.cluster_size * blocks.cluster_size + rank - 1 if rank else block), offset


def to_shared(issuer: Issuer, block: int, offsets: Array, data: Array, mbarrier: tuple[int, int], reading: Any) -> None:
    """Pieces of 16 bytes are on their way to `offsets`, and count at an mbarrier (slot, block) of the block that they go to."""
    machine, (slot, owner) = issuer.machine, mbarrier
    history, bulk = machine.history, machine.bulk
    agent = bulk.first_agent + slot % WRITERS
    cluster = block // machine.blocks.cluster_size
    history.times[cluster, agent] += 1
    time = int(history.times[cluster, agent])
    count = len(offsets)
    at = block * machine.blocks.shared.shape[1] + offsets
    busy, others = machine.pending.touched(at, PIECE)
    if busy.any():
        issuer.report("race", "copies to where another asynchronous copy still goes", int(others[busy][0]))
    _by_agent(issuer, agent, time, block, offsets, writes=True)
    arrival = Arrival(machine.position, at, data, reading)
    bulk.start(machine, machine.pending, arrival)
    _visible(issuer, slot, owner)
    landing = partial(bulk.land, machine, machine.pending, arrival)
    machine.wake("mbarrier", machine.mbarriers.bring(slot, owner, count * PIECE, agent, time, landing))


def _visible(issuer: Issuer, slot: int, block: int) -> None:
    """Copies have to see the initialisation of the mbarrier: a fence has to be between."""
    objects, history = issuer.machine.mbarriers, issuer.machine.history
    maker = objects.made_by[slot, block]
    if not objects.live[slot, block]:
        issuer.report("bad mbarrier", "there is no mbarrier in the block that the copy goes to")
    elif history.clocks[issuer.warp, maker] < objects.made_at[slot, block] and maker != issuer.warp % history.peers:
        what = "a copy counts at an mbarrier that another block may not have initialised yet"
        issuer.report("race", what, int(objects.made_place[slot, block]))
        return
    counted = history.clocks[issuer.warp, history.columns + maker]
    if not objects.fenced[slot, block] and counted < objects.made_at[slot, block]:
        what = "no fence.mbarrier_init or fence.proxy.async makes the initialisation of the mbarrier visible to copies"
        issuer.report("missing fence", what, int(objects.made_place[slot, block]))


def _by_agent(issuer: Issuer, agent: int, time: int, block: int, offsets: Array, *, writes: bool) -> None:
    machine, count = issuer.machine, len(offsets)
    clocks = np.broadcast_to(machine.history.clocks[issuer.warp], (count, machine.history.clocks.shape[1]))
    same = np.full(count, agent), np.full(count, time), np.full(count, block)
    found = machine.history.by_agent(clocks, *same, offsets, PIECE, machine.position, writes=writes)
    if found.races.any():
        what = "copies to where others may still read or write" if writes else "copies what others may still write"
        issuer.report("race", what, int(found.others[found.races][0]))
    if found.unfenced.any():
        what = "no fence.proxy.async between a store to shared memory and the copy"
        issuer.report("missing fence", what, int(found.others[found.unfenced][0]))


def from_shared(issuer: Issuer, block: int, offsets: Array, land: Callable[[Array], None]) -> None:
    """Pieces of 16 bytes at `offsets` are being read; `land` gets them when the thread's open group is waited for."""
    machine, bulk = issuer.machine, issuer.machine.bulk
    at = block * machine.blocks.shared.shape[1] + offsets
    bytes_ = at[:, None] + np.arange(PIECE)
    busy, others = machine.pending.touched(at, PIECE)
    if busy.any():
        issuer.report("unwaited copy", "copies bytes to which another copy is still on its way", int(others[busy][0]))
    elif not machine.blocks.defined.reshape(-1)[bytes_].all():
        issuer.report("uninitialised read", "copies bytes of shared memory that nobody wrote")
    agent = bulk.first_agent + WRITERS + issuer.warp % WRITERS
    cluster = block // machine.blocks.cluster_size
    machine.history.times[cluster, agent] += 1
    time = int(machine.history.times[cluster, agent])
    _by_agent(issuer, agent, time, block, offsets, writes=False)
    data = machine.blocks.shared.reshape(-1)[bytes_]
    group = int(bulk.opened[issuer.warp, issuer.lane])
    bulk.stores.append(Store(issuer.warp, issuer.lane, group, agent, time, machine.position, lambda: land(data)))


def global_place(issuer: Issuer, where: int, size: int) -> tuple[Allocation, int] | None:
    """The allocation and the offset of a global address that a copy names; None, after a report, where its bytes are not all there."""
    allocation = issuer.machine.memory.allocations.get(where >> OFFSET_BITS)
    offset = (where & _LOW) - BIAS
    if allocation is None:
        issuer.report("out of bounds", f"no allocation has the address {where:#x}")
        return None
    if offset < 0 or offset + size > allocation.data.size:
        issuer.report("out of bounds", f"{size} bytes at offset {offset} of {allocation.name}, which has {allocation.data.size}")
        return None
    if offset % PIECE:
        issuer.report("misaligned", f"a copy at offset {offset} of {allocation.name}; it has to be a multiple of {PIECE}")
        return None
    return allocation, offset


def store_bytes(allocation: Allocation, offset: int, reduction: tuple[str, str] | None, data: Array) -> None:
    """Bytes arrive in global memory, maybe joined with what is there."""
    target = allocation.data[offset : offset + data.size]
    flat = np.ascontiguousarray(data).reshape(-1)
    if reduction is None:
        target[:] = flat
    else:
        name, kind = reduction
        dtype = DTYPES[kind]
        with np.errstate(all="ignore"):
            target[:] = REDUCTIONS[name](target.view(dtype), flat.view(dtype)).astype(dtype).view(np.uint8)
    if allocation.written is not None:
        allocation.written[offset : offset + data.size] = True


def compile_bulk(op: Instruction) -> Step | None:
    """Copies of bytes in a row, and groups of all bulk copies; those of tensors are elsewhere."""
    if op.opcode[0] != "cp" or "bulk" not in op.opcode or has(op, "tensor"):
        return None
    if has(op, "commit_group"):
        return lambda machine, gang, mask: machine.bulk.commit(gang, mask)
    if has(op, "wait_group"):
        (count,) = op.operands
        assert isinstance(count, Immediate)
        keep, read = int(count.value), has(op, "read")
        return lambda machine, gang, mask: machine.bulk.wait(machine, gang, mask, keep, read=read)
    if has(op, "prefetch"):
        return lambda machine, gang, mask: None
    if has(op, "bulk_group"):
        return _out(op)
    if has(op, "mbarrier::complete_tx::bytes") and op.opcode[1] != "reduce":
        return _into(op)
    return None


def _size(machine: Machine, gang: Gang, op: Instruction, mask: Array) -> Array:
    sizes = np.broadcast_to(machine.read(gang, op.operands[2], "u32"), mask.shape).astype(np.int64)
    bad = mask & (sizes % PIECE != 0)
    machine.report("misaligned", gang, bad, "the size of a copy has to be a multiple of 16 bytes")
    return np.where(bad, 0, sizes)


def _into(op: Instruction) -> Step:
    """From global memory, or from the block's own shared memory to another block's."""
    to, source, _, barrier, *more = op.operands
    multicast, local = has(op, "multicast::cluster"), "global" not in op.opcode

    def step(machine: Machine, gang: Gang, mask: Array) -> None:
        where, origin = np.broadcast_to(in_space(addresses(machine, gang, to)), mask.shape), addresses(machine, gang, source)
        if local:
            origin = in_space(origin)
        origin = np.broadcast_to(origin, mask.shape)
        sizes = _size(machine, gang, op, mask)
        masks = np.broadcast_to(machine.read(gang, more[0], "u16"), mask.shape) if multicast else None
        places = located(machine, gang, mask, in_space(addresses(machine, gang, barrier)))
        for (row, issuer), slot, owner in zip(_threads(machine, gang, places), places.slots, places.blocks):
            size = int(sizes[row, issuer.lane])
            goal = place_in_shared(issuer, int(where[row, issuer.lane]), size, PIECE)
            found = _bytes(issuer, int(origin[row, issuer.lane]), size, local)
            if goal is None or found is None:
                continue
            data, reading = found
            goals = [(goal[0], int(owner))] if masks is None else [(block, block) for block in issuer.ranks(int(masks[row, issuer.lane]))]
            for block, object_ in goals:
                offsets = goal[1] + PIECE * np.arange(size // PIECE)
                to_shared(issuer, block, offsets, data, (int(slot), object_), reading)
                reading = None

    return step


def _threads(machine: Machine, gang: Gang, places: Places) -> list[tuple[int, Issuer]]:
    return [(int(row), Issuer(machine, int(gang.warps[row]), int(lane))) for row, lane in zip(places.rows, places.lanes)]


def _bytes(issuer: Issuer, origin: int, size: int, local: bool) -> tuple[Array, Any] | None:
    """The bytes to copy as pieces of 16, and what of global memory is being read."""
    machine = issuer.machine
    if local:
        place = place_in_shared(issuer, origin, size, PIECE)
        if place is None:
            return None
        taken: list[Array] = []
        from_shared(issuer, place[0], place[1] + PIECE * np.arange(size // PIECE), lambda data: taken.append(data))
        store = machine.bulk.stores.pop()  # it is over when the mbarrier says so
        store.land()
        return taken[0], None
    found = global_place(issuer, origin, size)
    if found is None:
        return None
    allocation, offset = found
    if allocation.written is not None and not allocation.written[offset : offset + size].all():
        issuer.report("uninitialised read", f"copies bytes of {allocation.name} that nobody wrote")
    data = allocation.data[offset : offset + size].reshape(-1, PIECE).copy()
    return data, (allocation, offset // 4 + np.arange(size // 4))


def _out(op: Instruction) -> Step:
    """To global memory, as it is or joined with what is there."""
    to, source = op.operands[:2]
    name = next((part for part in op.opcode if part in REDUCTIONS), "")
    reduction = (name, types_of(op)[-1]) if op.opcode[1] == "reduce" else None

    def step(machine: Machine, gang: Gang, mask: Array) -> None:
        where = np.broadcast_to(addresses(machine, gang, to), mask.shape)
        origin = np.broadcast_to(in_space(addresses(machine, gang, source)), mask.shape)
        sizes = _size(machine, gang, op, mask)
        for row, issuer in issuers(machine, gang, mask):
            size = int(sizes[row, issuer.lane])
            place = place_in_shared(issuer, int(origin[row, issuer.lane]), size, PIECE)
            goal = global_place(issuer, int(where[row, issuer.lane]), size)
            if place is None or goal is None:
                continue
            allocation, offset = goal
            if allocation.readonly:
                issuer.report("out of bounds", f"{allocation.name} is read-only")
                continue
            land = partial(store_bytes, allocation, offset, reduction)
            from_shared(issuer, place[0], place[1] + PIECE * np.arange(size // PIECE), land)

    return step


def compile_fence(op: Instruction) -> Step | None:
    """`fence.proxy.async`, `fence.mbarrier_init`; other fences say nothing that the emulator does not do anyway."""
    if has(op, "mbarrier_init"):
        return _init_fence
    if op.opcode[1:3] == ("proxy", "async") and not has(op, "global"):
        return lambda machine, gang, mask: machine.history.fence(gang.warps[mask.any(1)])
    return None


def _init_fence(machine: Machine, gang: Gang, mask: Array) -> None:
    objects, size = machine.mbarriers, machine.blocks.cluster_size
    for warp in gang.warps[mask.any(1)]:
        first = warp // machine.blocks.per_block // size * size
        mine = slice(first, first + size)
        objects.fenced[:, mine] |= objects.live[:, mine] & (objects.made_by[:, mine] == warp % machine.history.peers)


COMPILERS = {"cp": compile_bulk, "fence": compile_fence}
