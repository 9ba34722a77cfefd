"""`mbarrier.*`, `cp.async.mbarrier.arrive`, and the fence that follows initialisation (`gradir.ptx.mbarriers` keeps the objects)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gradir.ptx.instructions.accesses import addresses, checked_shared, flat, in_space, store_shared
from gradir.ptx.instructions.forms import Array, has
from gradir.ptx.machine import Machine, Step
from gradir.ptx.pending import Copy
from gradir.ptx.state import Gang
from gradir.ptx.syntax import Address, Instruction, Operand

BYTES = 8
_MOST = (1 << 20) - 1


@dataclass(frozen=True, slots=True)
class Places:
    """The mbarriers that lanes name, one entry per lane."""

    rows: Array
    lanes: Array
    warps: Array
    slots: Array
    blocks: Array


def located(machine: Machine, gang: Gang, mask: Array, where: Array) -> Places:
    """The mbarriers at these addresses; lanes that name none, or one that they cannot know of, are reported."""
    where = np.broadcast_to(where, mask.shape)
    good = checked_shared(machine, gang, mask, where, BYTES)
    rows, lanes = np.nonzero(good)
    warps, blocks, offsets = flat(machine, gang, good, where)
    state, history = machine.mbarriers, machine.history
    slots = np.array([state.slot(int(offset)) for offset in offsets], np.int64)
    live = state.live[slots, blocks]
    machine.report_of("bad mbarrier", warps[~live], lanes[~live], "there is no mbarrier: nobody has initialised one here")
    maker = state.made_by[slots, blocks]
    known = history.clocks[warps, maker] >= state.made_at[slots, blocks]
    early = live & ~known & (warps % history.peers != maker)
    if early.any():
        other = int(state.made_place[slots[early][0], blocks[early][0]])
        machine.report_of("race", warps[early], lanes[early], "uses an mbarrier that another warp may not have initialised yet", other)
    return Places(rows[live], lanes[live], warps[live], slots[live], blocks[live])


def _where(machine: Machine, gang: Gang, address: Operand) -> Array:
    return in_space(addresses(machine, gang, address))


def _values(machine: Machine, gang: Gang, operand: Operand | None, places: Places, kind: str = "u32") -> Array:
    """The value of an operand for each lane that names an mbarrier; 1 where there is no operand."""
    if operand is None:
        return np.ones(len(places.rows), np.int64)
    found = np.broadcast_to(machine.read(gang, operand, kind), gang.mask.shape)
    return found[places.rows, places.lanes].astype(np.int64)


def compile_mbarrier(op: Instruction) -> Step | None:
    """All forms on shared memory, of one's own block or of another one of the cluster."""
    kinds = {
        "init": _init, "inval": _inval, "expect_tx": _transactions, "complete_tx": _transactions, "arrive": _arrive, "arrive_drop": _arrive,
        "test_wait": _wait, "try_wait": _wait, "pending_count": _pending_count,
    }  # fmt: skip
    compiler = kinds.get(op.opcode[1])
    return compiler(op) if compiler is not None else None


def _init(op: Instruction) -> Step:
    address, count = op.operands

    def step(machine: Machine, gang: Gang, mask: Array) -> None:
        where = np.broadcast_to(_where(machine, gang, address), mask.shape)
        good = checked_shared(machine, gang, mask, where, BYTES)
        counts = np.broadcast_to(machine.read(gang, count, "u32"), mask.shape).astype(np.int64)
        bad = good & ((counts < 1) | (counts > _MOST))
        machine.report("bad mbarrier", gang, bad, f"a count has to be from 1 to {_MOST}")
        store_shared(machine, gang, good, where, np.zeros((1, *mask.shape), np.uint64), BYTES)
        warps, blocks, offsets = flat(machine, gang, good, where)
        slots = np.array([machine.mbarriers.slot(int(offset)) for offset in offsets], np.int64)
        machine.mbarriers.make(slots, blocks, counts[good], warps, machine.position)

    return step


def _inval(op: Instruction) -> Step:
    (address,) = op.operands

    def step(machine: Machine, gang: Gang, mask: Array) -> None:
        places = located(machine, gang, mask, _where(machine, gang, address))
        machine.mbarriers.live[places.slots, places.blocks] = False

    return step


def _transactions(op: Instruction) -> Step:
    """`expect_tx`, and `complete_tx`, which nothing but a simulation of a copy would use."""
    address, size = op.operands
    sign = 1 if op.opcode[1] == "expect_tx" else -1

    def step(machine: Machine, gang: Gang, mask: Array) -> None:
        places = located(machine, gang, mask, _where(machine, gang, address))
        sizes = _values(machine, gang, size, places)
        _expect(machine, places, sign * sizes)

    return step


def _expect(machine: Machine, places: Places, sizes: Array) -> None:
    machine.wake("mbarrier", machine.mbarriers.expect(places.slots, places.blocks, sizes))
    beyond = np.abs(machine.mbarriers.expected[places.slots, places.blocks]) > _MOST
    machine.report_of("bad mbarrier", places.warps[beyond], places.lanes[beyond], "more bytes than an mbarrier can count")


def _arrive(op: Instruction) -> Step:
    """`arrive`, `arrive_drop`, with `.expect_tx` and `.noComplete`; the state is the number of the phase and how many were missing."""
    state_operand, operands = (None, op.operands) if isinstance(op.operands[0], Address) else (op.operands[0], op.operands[1:])
    address, *more = operands
    expects = has(op, "expect_tx")

    def step(machine: Machine, gang: Gang, mask: Array) -> None:
        places = located(machine, gang, mask, _where(machine, gang, address))
        objects = machine.mbarriers
        before = objects.phase[places.slots, places.blocks] << 32 | objects.pending[places.slots, places.blocks]
        amount = _values(machine, gang, more[0] if more else None, places)
        if expects:
            _expect(machine, places, amount)
        counts = np.ones_like(amount) if expects else amount
        phase = objects.phase[places.slots, places.blocks].copy()
        clocks = machine.history.clocks[places.warps]
        if has(op, "relaxed"):
            clocks = np.zeros_like(clocks)
        over, too_many = objects.arrive(places.slots, places.blocks, counts, clocks, dropped=op.opcode[1] == "arrive_drop")
        if too_many.any():
            state = objects.state(int(places.slots[too_many][0]), int(places.blocks[too_many][0]))
            machine.report_of("bad mbarrier", places.warps[too_many], places.lanes[too_many], f"arrives once too often: {state}")
        if has(op, "noComplete"):
            done = objects.phase[places.slots, places.blocks] != phase
            machine.report_of("bad mbarrier", places.warps[done], places.lanes[done], "the phase is over, and .noComplete says it is not")
        machine.history.tick(np.unique(places.warps))
        if state_operand is not None:
            words = np.zeros(mask.shape, np.uint64)
            words[places.rows, places.lanes] = before
            machine.write(gang, mask, state_operand, words)
        machine.wake("mbarrier", over)

    return step


def _wait(op: Instruction) -> Step:
    """`test_wait` and `try_wait`, by state or `.parity`. A warp none of whose lanes may go on waits, for as long as others can run."""
    done, address, state, *_ = op.operands
    parity = has(op, "parity")

    def step(machine: Machine, gang: Gang, mask: Array) -> None:
        places = located(machine, gang, mask, _where(machine, gang, address))
        objects = machine.mbarriers
        phases = objects.phase[places.slots, places.blocks]
        wanted = _values(machine, gang, state, places, "u32" if parity else "u64")
        if parity:
            odd = (wanted < 0) | (wanted > 1)
            machine.report_of("bad mbarrier", places.warps[odd], places.lanes[odd], "a parity is 0 or 1")
        passed = (phases & 1) != (wanted & 1) if parity else phases != wanted >> 32
        through = np.zeros(mask.shape, np.bool_)
        through[places.rows[passed], places.lanes[passed]] = True
        asking = np.zeros(mask.shape, np.bool_)
        asking[places.rows, places.lanes] = True
        through |= mask & ~asking  # what is no mbarrier has been reported
        waits = asking.any(1) & ~through.any(1) & ~machine.expired[gang.warps]
        machine.expired[gang.warps[asking.any(1)]] = False
        if passed.any():
            objects.seen(places.slots[passed], places.blocks[passed], places.warps[passed])
        if not waits.any():
            machine.write(gang, mask, done, through)
            return
        keys = np.full(mask.shape, -1, np.int64)
        keys[places.rows, places.lanes] = objects.key(places.slots, places.blocks)
        stay = np.flatnonzero(waits)
        what = f"waits for phase {'with parity ' if parity else ''}{int((wanted if parity else wanted >> 32)[~passed][0])} of an mbarrier"
        parked = gang.part(stay)
        if waits.all():
            machine.park("mbarrier", parked, keys, what + ", which is")
        go = np.flatnonzero(~waits)
        machine.hold("mbarrier", parked, keys[stay], what + ", which is")
        rest = gang.part(go)
        machine.write(rest, mask[go], done, through[go])
        machine.pass_on(rest)

    return step


def _pending_count(op: Instruction) -> Step:
    count, state = op.operands

    def step(machine: Machine, gang: Gang, mask: Array) -> None:
        machine.write(gang, mask, count, (machine.read(gang, state, "u64") & np.uint64(0xFFFFFFFF)).astype(np.uint32))

    return step


def compile_async_arrive(op: Instruction) -> Step | None:
    """`cp.async.mbarrier.arrive[.noinc]`: the phase is over only when all copies that the thread has issued have come."""
    if op.opcode[:3] != ("cp", "async", "mbarrier"):
        return None
    (address,) = op.operands

    def step(machine: Machine, gang: Gang, mask: Array) -> None:
        places = located(machine, gang, mask, _where(machine, gang, address))
        objects, pending = machine.mbarriers, machine.pending
        of_lane = {(int(w), int(n)): k for k, (w, n) in enumerate(zip(places.warps, places.lanes))}
        kept: list[Copy] = []
        for copy in pending.copies:
            mine = np.array([of_lane.get((int(w), int(n)), -1) for w, n in zip(copy.warps, copy.lanes)])
            for k in np.unique(mine[mine >= 0]):
                part = copy.part(mine == k)
                key = int(objects.key(places.slots[k], places.blocks[k]))
                phase = int(objects.phase[places.slots[k], places.blocks[k]])
                objects.copies.setdefault(key, []).append((phase, lambda part=part: pending.deliver(machine, part)))
            if (mine < 0).any():
                kept.append(copy.part(mine < 0))
        pending.copies = kept
        if has(op, "noinc"):
            clocks = machine.history.clocks[places.warps]
            over, _ = objects.arrive(places.slots, places.blocks, np.ones(len(places.rows), np.int64), clocks)
            machine.history.tick(np.unique(places.warps))
            machine.wake("mbarrier", over)

    return step


COMPILERS = {"mbarrier": compile_mbarrier, "cp": compile_async_arrive}
