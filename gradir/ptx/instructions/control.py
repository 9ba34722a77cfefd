"""Branches, ends and barriers of a block."""

from __future__ import annotations

import numpy as np

from gradir.ptx.flow import EXIT
from gradir.ptx.instructions.forms import Array, has
from gradir.ptx.machine import Machine, Step
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
    """`bar.sync`, `bar.arrive`, `barrier[.cta].sync[.aligned]`, `bar.warp.sync`; none of those that reduce or join clusters."""
    if has(op, "warp"):
        return _nothing
    if has(op, "cluster", "red"):
        return None
    aligned = op.opcode[0] == "bar" or has(op, "aligned")
    operands = op.operands

    def step(machine: Machine, gang: Gang, mask: Array) -> None:
        count = len(gang.warps)
        gang, mask = machine.concerned(gang, mask)
        number = _number(machine, gang, operands[0])
        wanted = _number(machine, gang, operands[1]) if len(operands) > 1 else 0
        if not 0 <= number < 16:
            machine.report("bad barrier", gang, mask, f"there is no barrier {number}")
            number = 0
        if wanted % LANES:
            machine.report("bad barrier", gang, mask, f"{wanted} threads are no whole number of warps")
        missing = machine.alive[gang.warps] & ~mask
        if aligned and missing.any():
            machine.report("divergent sync", gang, mask & missing.any(1, keepdims=True), "some lanes of the warp are elsewhere")
        if has(op, "arrive"):
            machine.arrive_at(gang, number, wanted)
            if len(gang.warps) < count:
                machine.pass_on(gang)
        else:
            machine.wait_at(gang, number, wanted)

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
