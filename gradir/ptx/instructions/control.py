"""Branches, ends and barriers of a block."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gradir.ptx.barriers import Vote
from gradir.ptx.flow import EXIT
from gradir.ptx.instructions.forms import Array, has
from gradir.ptx.instructions.warp import members
from gradir.ptx.machine import Machine, Step
from gradir.ptx.paths import Finished
from gradir.ptx.state import LANES, Gang
from gradir.ptx.syntax import Immediate, Instruction, Name, Operand


def _goal(machine: Machine, name: str) -> int:
    found = machine.function.labels[name]
    return found if found < len(machine.function.body) else EXIT


def compile_bra(op: Instruction) -> Step | None:
    (target,) = op.operands
    assert isinstance(target, Name)

    def step(machine: Machine, gang: Gang, mask: Array) -> None:
        goal = _goal(machine, target.name)
        if op.predicate is None:
            gang.position = goal - 1 if goal != EXIT else len(machine.function.body) - 1
            return
        taken = np.broadcast_to(machine.read(gang, op.predicate, "pred") ^ op.negated, gang.mask.shape)
        machine.branch(gang, taken, goal if goal != EXIT else len(machine.function.body))

    return step


def compile_brx(op: Instruction) -> Step | None:
    """`brx.idx`: one of the targets of a table; lanes with equal targets go together."""
    index, table = op.operands
    assert isinstance(table, Name)
    if op.predicate is not None:
        return None

    def step(machine: Machine, gang: Gang, mask: Array) -> None:
        goals = [_goal(machine, name) for name in machine.function.tables[table.name]]
        chosen = np.broadcast_to(machine.read(gang, index, "u32"), gang.mask.shape)
        beyond = gang.mask & (chosen >= len(goals))
        if beyond.any():
            machine.report("trap", gang, beyond, f"the table of targets has {len(goals)}")
            machine.end(gang, gang.mask)
        used = np.unique(chosen[gang.mask])
        if len(used) == 1:
            gang.position = goals[int(used[0])] - 1
            return
        machine.branch_many(gang, [(chosen == k, goals[int(k)]) for k in used])

    return step


def compile_exit(op: Instruction) -> Step | None:
    def step(machine: Machine, gang: Gang, mask: Array) -> None:
        machine.end(gang, mask)

    return step


def compile_ret(op: Instruction) -> Step | None:
    def step(machine: Machine, gang: Gang, mask: Array) -> None:
        machine.returns(gang, mask)

    return step


def compile_trap(op: Instruction) -> Step | None:
    def step(machine: Machine, gang: Gang, mask: Array) -> None:
        machine.report("trap", gang, mask, "the kernel gave up")
        machine.end(gang, mask)

    return step


def _number(machine: Machine, gang: Gang, operand: Operand) -> int:
    if isinstance(operand, Immediate):
        return int(operand.value)
    values = np.unique(np.broadcast_to(machine.read(gang, operand, "u32"), gang.mask.shape)[gang.mask])
    if len(values) != 1:
        machine.report("bad barrier", gang, gang.mask, f"the lanes name barriers {values.tolist()[:4]}")
    return int(values[0])


def compile_barrier(op: Instruction) -> Step | None:
    """`bar.{sync,arrive,red}`, `barrier[.cta].{sync,arrive,red}[.aligned]`, `bar.warp.sync`; none of those of clusters."""
    if has(op, "warp"):
        return _warp_barrier(op)
    if has(op, "cluster"):
        return None
    aligned = op.opcode[0] == "bar" or has(op, "aligned")
    votes = has(op, "red")
    first = 1 if votes else 0
    numbers = op.operands[first:-1] if votes else op.operands

    def step(machine: Machine, gang: Gang, mask: Array) -> None:
        count = len(gang.warps)
        gang, mask = machine.concerned(gang, mask)
        parts = _by_number(machine, gang, mask, numbers)
        if len(parts) == 1:
            one(machine, gang, mask, whole=len(gang.warps) == count)
            return
        for rows in parts:
            try:
                one(machine, gang.part(rows), mask[rows], whole=False)
            except Finished:
                continue
        raise Finished

    def one(machine: Machine, gang: Gang, mask: Array, *, whole: bool) -> None:
        number = _number(machine, gang, numbers[0])
        wanted = _number(machine, gang, numbers[1]) if len(numbers) > 1 else 0
        if not 0 <= number < 16:
            machine.report("bad barrier", gang, mask, f"there is no barrier {number}")
            number = 0
        if wanted % LANES:
            machine.report("bad barrier", gang, mask, f"{wanted} threads are no whole number of warps")
        missing = machine.alive[gang.warps] & ~mask
        if aligned and missing.any():
            machine.report("divergent sync", gang, mask & missing.any(1, keepdims=True), "some lanes of the warp are elsewhere")
        threads = (machine.alive[gang.warps] if aligned else mask).sum(1)
        if wanted and aligned:
            threads = np.full(len(gang.warps), LANES)
        if has(op, "arrive"):
            machine.arrive_at(gang, number, threads, wanted)
            if not whole:
                machine.pass_on(gang)
        elif votes:
            said = np.broadcast_to(machine.read(gang, op.operands[-1], "pred"), mask.shape) & mask
            machine.wait_at(gang, number, threads, wanted, (said, _counted(machine, op)))
        else:
            machine.wait_at(gang, number, threads, wanted)

    return step


def _by_number(machine: Machine, gang: Gang, mask: Array, numbers: Sequence[Operand]) -> list[Array]:
    """Places in the gang of warps that name the same barrier: they need not agree with other warps."""
    first = mask.argmax(1)
    named = [np.broadcast_to(machine.read(gang, n, "u32"), mask.shape) for n in numbers if not isinstance(n, Immediate)]
    if not named:
        return [np.arange(len(mask))]
    values = np.stack([found[np.arange(len(mask)), first] for found in named], 1)
    _, which = np.unique(values, axis=0, return_inverse=True)
    return [np.flatnonzero(which.reshape(-1) == k) for k in range(int(which.max()) + 1)]


def _counted(machine: Machine, op: Instruction) -> Vote:
    """`bar.red.{and,or}.pred p, ...` and `bar.red.popc.u32 d, ...`: what all threads of the barrier said."""

    def vote(gang: Gang, yes: Array, came: Array) -> None:
        found = yes.astype(np.uint32) if has(op, "popc") else (yes == came if has(op, "and") else yes > 0)
        machine.write(gang, gang.mask, op.operands[0], np.broadcast_to(found[:, None], gang.mask.shape))

    return vote


def _warp_barrier(op: Instruction) -> Step:
    """`bar.warp.sync mask`: lanes of a warp run in step, so all that can go wrong is that one of those named is elsewhere."""

    def step(machine: Machine, gang: Gang, mask: Array) -> None:
        members(machine, gang, mask, op.operands[0])

    return step


def _nothing(machine: Machine, gang: Gang, mask: Array) -> None:
    """Lanes of a warp run in step."""


def compile_brkpt(op: Instruction) -> Step | None:
    """Nobody debugs here."""
    return _nothing


COMPILERS = {
    "bra": compile_bra, "brx": compile_brx, "ret": compile_ret, "exit": compile_exit, "trap": compile_trap, "brkpt": compile_brkpt,
    "bar": compile_barrier, "barrier": compile_barrier,
}  # fmt: skip
