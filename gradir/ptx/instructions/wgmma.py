"""`wgmma`: d = a * b + d by four warps together, a from registers or shared memory, b from shared memory; and `setmaxnreg`.

The product is computed when it is issued. Until `wgmma.wait_group` its registers and what it reads of shared memory are its own: whoever
touches them is reported. Sums as in `mma.sync`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gradir.ptx.instructions.accesses import targets_of
from gradir.ptx.instructions.descriptors import agents_of, read_matrix
from gradir.ptx.instructions.forms import Array, has
from gradir.ptx.instructions.fragments import ELEMENTS, matrix_a, numbers_of, registers_of
from gradir.ptx.instructions.mma import accumulated, shape_of
from gradir.ptx.machine import Machine, Step
from gradir.ptx.paths import Finished
from gradir.ptx.state import LANES, Gang
from gradir.ptx.syntax import Immediate, Instruction, Operand, Register, Vector
from gradir.ptx.warpgroups import WARPS

ROWS = 64
_BYTES = {"f16": 2, "bf16": 2, "tf32": 4, "e4m3": 1, "e5m2": 1, "s8": 1, "u8": 1}
_RESULTS = {"f32": np.float32, "f16": np.float16, "s32": np.int32}


def whole_groups(machine: Machine, gang: Gang, mask: Array) -> tuple[Gang, bool]:
    """The warps of the gang, and of those that wait here, whose warpgroups are complete; the others wait. Is it more than the gang?"""
    alive = machine.alive[gang.warps]
    missing: Array = np.any(~mask | ~alive, axis=1)
    machine.report("divergent sync", gang, mask & missing[:, None], "some lanes of the warp are elsewhere, or are no threads")
    here = [entry for entry in machine.parked["warpgroup"] if entry.gang.position == gang.position]
    present = np.concatenate([gang.warps, *(entry.gang.warps for entry in here)])
    groups = _group(machine, present)
    names, counts = np.unique(groups, return_counts=True)
    full = names[counts == WARPS]
    mine = np.isin(_group(machine, gang.warps), full)
    if not mine.all():
        what = "waits for the other warps of its warpgroup"
        late = gang.part(np.flatnonzero(~mine))
        machine.hold("warpgroup", late, _keys(machine, late), what)
    warps = np.sort(present[np.isin(groups, full)])
    return Gang(warps, np.ones((len(warps), LANES), np.bool_), gang.position), bool(mine.all()) and len(warps) == len(gang.warps)


def _group(machine: Machine, warps: Array) -> Array:
    per_block = machine.blocks.per_block
    return warps // per_block * (-(-per_block // WARPS)) + warps % per_block // WARPS


def _keys(machine: Machine, gang: Gang) -> Array:
    return np.broadcast_to(_group(machine, gang.warps)[:, None], gang.mask.shape)


def go_on(machine: Machine, gang: Gang, together: Gang) -> None:
    """The warps of whole warpgroups are done with their instruction; those that waited go on too."""
    behind: list[Gang] = []
    for entry in machine.parked["warpgroup"]:
        if entry.gang.position != together.position:
            continue
        done = np.isin(entry.gang.warps, together.warps)
        if done.any():
            behind.append(entry.gang.part(np.flatnonzero(done)))
    entries = machine.parked["warpgroup"]
    machine.parked["warpgroup"] = []
    for entry in entries:
        left = (
            ~np.isin(entry.gang.warps, together.warps) if entry.gang.position == together.position else np.ones(len(entry.gang.warps), bool)
        )
        if left.any():
            machine.hold("warpgroup", entry.gang.part(np.flatnonzero(left)), entry.keys[left], entry.what)
    for part in behind:
        part.position += 1
        machine.put(part)
    machine.pass_on(gang.part(np.flatnonzero(np.isin(gang.warps, together.warps))))


def uniform(machine: Machine, gang: Gang, operand: Operand) -> Array:
    """[group] values of an operand that has to be the same for all lanes of a warpgroup."""
    found = np.broadcast_to(machine.read(gang, operand, "u64"), gang.mask.shape).reshape(-1, WARPS * LANES)
    differ = (found != found[:, :1]).any(1)
    machine.report("divergent sync", gang, np.repeat(differ, WARPS)[:, None] & gang.mask, "the warpgroup does not agree about a descriptor")
    return found[:, 0].copy()


def compile_wgmma(op: Instruction) -> Step | None:
    """`fence`, `commit_group`, `wait_group` and `mma_async`, dense."""
    if op.opcode[1] == "fence":
        return _fence
    if op.opcode[1] == "commit_group":
        return _commit
    if op.opcode[1] == "wait_group":
        (count,) = op.operands
        assert isinstance(count, Immediate)
        keep = int(count.value)
        return lambda machine, gang, mask: _wait(machine, gang, mask, keep)
    return _product(op) if op.opcode[1] == "mma_async" and not has(op, "sp") else None


def _fence(machine: Machine, gang: Gang, mask: Array) -> None:
    machine.warpgroups.unfenced[:, gang.warps[mask.any(1)]] = False


def _commit(machine: Machine, gang: Gang, mask: Array) -> None:
    cluster = machine.blocks.block_of(gang.warps) // machine.blocks.cluster_size
    machine.warpgroups.commit(gang.warps, machine.history.times[cluster, agents_of(machine, gang.warps)])


def _wait(machine: Machine, gang: Gang, mask: Array, keep: int) -> None:
    times = machine.warpgroups.wait(gang.warps, keep)
    machine.history.told(gang.warps, agents_of(machine, gang.warps), times)


def _product(op: Instruction) -> Step | None:
    m, n, k = shape_of(op)
    to, left, right = op.opcode[-3:] if op.opcode[-1] != "satfinite" else op.opcode[-4:-1]
    destination, a, b, scale, *signs = op.operands
    if m != ROWS or n % 8 or left not in _BYTES or right not in _BYTES or to not in _RESULTS or k * _BYTES[left] != 32:
        return None
    if not isinstance(destination, Vector) or len(destination.elements) != n * (16 if to == "f16" else 32) // 64:
        return None
    flags = [int(s.value) for s in signs if isinstance(s, Immediate)]
    floats = left not in ("s8", "u8")
    sign = flags[0] * flags[1] if floats else 1
    turns = flags[2:] if left in ("f16", "bf16") else []
    turned_a, turned_b = (bool(turns[0]) if len(turns) > 1 else False), bool(turns[-1]) if turns else False
    names = [element.name for element in destination.elements if isinstance(element, Register)]
    factors = [element.name for element in targets_of(a) if isinstance(element, Register)] if isinstance(a, Vector) else []

    def step(machine: Machine, gang: Gang, mask: Array) -> None:
        together, all_here = whole_groups(machine, gang, mask)
        if len(together.warps):
            run(machine, together)
        if not all_here:
            go_on(machine, gang, together)

    def run(machine: Machine, gang: Gang) -> None:
        _own(machine, gang, names, factors)
        cluster = machine.blocks.block_of(gang.warps[::WARPS]) // machine.blocks.cluster_size
        agents = agents_of(machine, gang.warps[::WARPS])
        np.add.at(machine.history.times, (cluster, agents), 1)
        times = machine.history.times[cluster, agents]
        columns = _matrix(machine, gang, b, right, n, k, turned_b, times)
        rows = _rows(machine, gang, a, left, k, turned_a, times)
        groups = len(rows)
        keeps = np.broadcast_to(machine.read(gang, scale, "pred"), gang.mask.shape).reshape(groups, -1)[:, 0]
        c = _sums(machine, gang, names, n, to).reshape(groups, ROWS, n)
        if not keeps.all():
            c = np.where(keeps[:, None, None], c, c.dtype.type(0))
        found = accumulated(rows if sign == 1 else -rows, columns.transpose(0, 2, 1), c, to, has(op, "satfinite"))
        everyone = np.ones((len(gang.warps), LANES), np.bool_)
        for name, bits in zip(names, _spread(found.reshape(-1, 16, n), to)):
            machine.set_register(gang, everyone, name, bits)

    return step


def _own(machine: Machine, gang: Gang, names: Sequence[str], factors: Sequence[str]) -> None:
    """The product takes its registers; they have to be fenced, and not be on their way for a product of another shape."""
    state = machine.warpgroups
    numbers = np.array([state.names[name] for name in names], np.int64)
    sources = np.array([state.names[name] for name in factors], np.int64)
    open_group = state.committed[gang.warps] + 1
    for chosen in (numbers, sources):
        if len(chosen):
            loose: Array = np.any(state.unfenced[np.ix_(chosen, gang.warps)], axis=0)
            what = "no wgmma.fence between writes to registers of the product and the product"
            machine.report("missing fence", gang, gang.mask & loose[:, None], what)
    busy: Array = np.any(state.results[np.ix_(sources, gang.warps)], axis=0)
    machine.report("unwaited wgmma", gang, gang.mask & busy[:, None], "a factor is the result of a product on its way")
    state.results[np.ix_(numbers, gang.warps)] = open_group
    state.places[np.ix_(numbers, gang.warps)] = machine.position
    if len(sources):
        state.factors[np.ix_(sources, gang.warps)] = open_group
        state.places[np.ix_(sources, gang.warps)] = machine.position


def _matrix(machine: Machine, gang: Gang, operand: Operand, kind: str, extent: int, k: int, turned: bool, times: Array) -> Array:
    """[group, extent, k] numbers of a matrix in shared memory."""
    descriptors = uniform(machine, gang, operand)
    data = read_matrix(machine, gang, descriptors, extent, k if turned else 2, turned, times)
    bits = np.ascontiguousarray(data).reshape(*data.shape[:2], -1).view({1: np.uint8, 2: np.uint16, 4: np.uint32}[_BYTES[kind]])
    numbers = ELEMENTS[kind][1](bits)
    return numbers.transpose(0, 2, 1) if turned else numbers


def _rows(machine: Machine, gang: Gang, a: Operand, kind: str, k: int, turned: bool, times: Array) -> Array:
    """[group, 64, k] numbers of the left factor."""
    if not isinstance(a, Vector):
        return _matrix(machine, gang, a, kind, ROWS, k, turned, times)
    watched, machine.watched = machine.watched, {}
    registers = registers_of(machine, gang, targets_of(a), 32)
    machine.watched = watched
    return matrix_a(numbers_of(registers, kind), 2).reshape(-1, ROWS, k)


def _sums(machine: Machine, gang: Gang, names: Sequence[str], n: int, to: str) -> Array:
    """[warp, 16, n] accumulators."""
    chosen = machine.index(gang)
    zeros = np.zeros((machine.warps, LANES), np.uint32)
    bits = np.stack([machine.registers.get(name, zeros)[chosen] for name in names])
    warps = len(gang.warps)
    if to == "f16":
        split = np.ascontiguousarray(bits).view(np.float16).reshape(n // 8, 2, warps, 8, 4, 2)
        return split.transpose(2, 1, 3, 0, 4, 5).reshape(warps, 16, n)
    split = bits.view(_RESULTS[to]).reshape(n // 8, 2, 2, warps, 8, 4)
    return split.transpose(3, 1, 4, 0, 5, 2).reshape(warps, 16, n)


def _spread(sums: Array, to: str) -> Array:
    """[register, warp, lane] bits of accumulators [warp, 16, n]."""
    warps, _, n = sums.shape
    split = sums.reshape(warps, 2, 8, n // 8, 4, 2)
    if to == "f16":
        return np.ascontiguousarray(split.transpose(3, 1, 0, 2, 4, 5)).view(np.uint32).reshape(n // 4, warps, LANES)
    return np.ascontiguousarray(split.transpose(3, 1, 5, 0, 2, 4)).view(np.uint32).reshape(n // 2, warps, LANES)


def compile_setmaxnreg(op: Instruction) -> Step | None:
    """`setmaxnreg.{inc,dec}.sync.aligned.u32 n`: all warps of a warpgroup give registers back, or wait until there are enough."""
    (operand,) = op.operands
    if not isinstance(operand, Immediate):
        return None
    wanted, more = int(operand.value), has(op, "inc")

    def step(machine: Machine, gang: Gang, mask: Array) -> None:
        state = machine.warpgroups
        if wanted % 8 or not 24 <= wanted <= 256:
            machine.report("bad registers", gang, mask, f"{wanted} registers: a multiple of 8 from 24 to 256")
        if more:
            _wait_for_registers(machine, gang, wanted)
        together, all_here = whole_groups(machine, gang, mask)
        if len(together.warps):
            have = state.registers[together.warps]
            wrong = have > wanted if more else have < wanted
            if wrong.any():
                what = f"asks for {'more' if more else 'fewer'} registers, {wanted}, and has {int(have[wrong][0])}"
                machine.report("bad registers", together, together.mask & wrong[:, None], what)
            state.registers[together.warps] = wanted
            machine.wake("registers", np.unique(machine.blocks.block_of(together.warps)))
        if not all_here:
            go_on(machine, gang, together)

    return step


def _wait_for_registers(machine: Machine, gang: Gang, wanted: int) -> None:
    """Warps of blocks that do not have so many registers left wait until others give some back."""
    state, blocks = machine.warpgroups, machine.blocks.block_of(gang.warps)
    after = state.registers.copy()
    everyone = np.arange(machine.warps)
    mine = np.isin(_group(machine, everyone), _group(machine, gang.warps))
    after[mine] = np.maximum(after[mine], wanted)
    short = after.reshape(machine.blocks.count, -1).sum(1) > state.share * machine.blocks.per_block
    late = short[blocks]
    if late.any():
        what = f"waits for {wanted} registers a thread, of which the block has {state.share} in all"
        keys = np.broadcast_to(blocks[:, None], gang.mask.shape)
        if late.all():
            machine.park("registers", gang, keys, what)
        machine.hold("registers", gang.part(np.flatnonzero(late)), keys[late], what)
        machine.put(gang.part(np.flatnonzero(~late)))
        raise Finished


COMPILERS = {"wgmma": compile_wgmma, "setmaxnreg": compile_setmaxnreg}
