"""Runs one batch of resident blocks: gangs of warps step by step, parting at branches, meeting at post-dominators, waiting at barriers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeAlias

import numpy as np

from gradir.errors import GradirError
from gradir.ptx.bits import bits_of, literal, read_as
from gradir.ptx.flow import EXIT, meeting_points
from gradir.ptx.memory import GlobalMemory
from gradir.ptx.races import SharedHistory
from gradir.ptx.reports import Kind, Report, Reports
from gradir.ptx.special import special
from gradir.ptx.state import LANES, Blocks, Frame, Gang, united
from gradir.ptx.syntax import Function, Immediate, Instruction, Name, Negated, Operand, PtxModule, Register
from gradir.ptx.types import DTYPES, storage

Array = np.ndarray[Any, np.dtype[Any]]
Step: TypeAlias = Callable[["Machine", Gang, Array], None]
"""One instruction, ready to run: for the lanes of the mask (all that are active and whose predicate holds)."""

GENERATIONS, STEPS = 1 << 22, 1 << 24
"""Turns of gangs, and instructions of one turn, after which a launch is taken to run for ever."""


class Finished(Exception):
    """The gang that was being run is gone from its place: it waits, ended or parted."""


@dataclass
class Barrier:
    """One of a block batch's sixteen barriers: gangs that wait, and per block how many threads have come and are wanted."""

    waiting: list[Gang] = field(default_factory=list[Gang])
    arrived: Array = field(default_factory=lambda: np.zeros(0, np.int64))
    wanted: Array = field(default_factory=lambda: np.zeros(0, np.int64))
    told: dict[int, Array] = field(default_factory=dict[int, Array])
    """Block -> clocks of warps that arrived and went on."""


@dataclass
class Machine:
    """The state of a batch. `steps` are the instructions of `function`, compiled by `gradir.ptx.instructions`."""

    module: PtxModule
    function: Function
    steps: tuple[Step, ...]
    blocks: Blocks
    memory: GlobalMemory
    parameters: Mapping[str, int]
    """Of each parameter its offset in `parameter_bytes`."""
    parameter_bytes: Array
    symbols: Mapping[str, tuple[str, int]]
    """Of each variable its space and its address there."""
    reports: Reports
    random: np.random.Generator
    local_bytes: int = 0
    shuffle: bool = False
    granule: int = 4

    def __post_init__(self) -> None:
        warps = self.blocks.count * self.blocks.per_block
        self.warps = warps
        self.registers: dict[str, Array] = {}
        self.alive = self.blocks.alive()
        self.local = (
            np.full((warps, LANES, self.local_bytes), 0xCD, np.uint8) if self.local_bytes else np.zeros((warps, LANES, 0), np.uint8)
        )
        self.history = SharedHistory(self.blocks.count, self.blocks.per_block, max(self.blocks.shared.shape[1], 1), self.granule)
        self.meet = meeting_points(self.function)
        self.runnable: dict[tuple[Any, ...], list[Gang]] = {}
        self.barriers = [self._barrier() for _ in range(16)]
        self.carry = np.zeros((warps, LANES), np.bool_)
        """The condition code of each lane: the carry of `add.cc` and its kin."""
        self.position = 0

    def _barrier(self) -> Barrier:
        return Barrier(arrived=np.zeros(self.blocks.count, np.int64), wanted=np.zeros(self.blocks.count, np.int64))

    # Operands

    def index(self, gang: Gang) -> Any:
        """How the gang's warps are picked out of an array over all: a slice where it is all of them."""
        return slice(None) if len(gang.warps) == self.warps else gang.warps

    def read(self, gang: Gang, operand: Operand, kind: str) -> Array:
        """[warp, lane] values of an operand as the type `kind`; literals and uniform values have one element in each direction."""
        dtype = DTYPES[kind]
        if isinstance(operand, Register):
            if operand.special:
                value = special(self.blocks, gang.warps, self.position, operand.name)
                if value is None:
                    raise self.unknown(f"the special register {operand.name}")
                return value.astype(dtype)
            bits = self.registers.get(operand.name)
            if bits is None:
                bits = self._undefined(operand.name)
            found = bits[self.index(gang)]
            return found if found.dtype == dtype else read_as(found, dtype)
        if isinstance(operand, Immediate):
            return literal(operand, dtype)
        if isinstance(operand, Negated):
            return ~self.read(gang, operand.operand, "pred")
        if isinstance(operand, Name):
            return np.full((1, 1), self.address_of(operand), dtype)
        raise self.unknown(f"an operand {operand}")

    def _undefined(self, name: str) -> Array:
        kind = self.function.registers.get(name)
        if kind is None:
            raise self.unknown(f"register {name}, which is not declared")
        found = np.zeros((self.warps, LANES), storage(kind))
        self.registers[name] = found
        return found

    def write(self, gang: Gang, mask: Array, operand: Operand, values: Array) -> None:
        """Set a register where the mask holds; the bits of `values` are stretched or cut to its width."""
        if isinstance(operand, Name) and operand.name == "_":
            return
        assert isinstance(operand, Register), operand
        kind = self.function.registers.get(operand.name)
        if kind is None:
            raise self.unknown(f"register {operand.name}, which is not declared")
        bits = bits_of(values, storage(kind))
        old = self.registers.get(operand.name)
        if len(gang.warps) == self.warps and mask.all():
            whole = bits.shape == (self.warps, LANES) and bits.flags.writeable
            self.registers[operand.name] = bits if whole else np.broadcast_to(bits, (self.warps, LANES)).copy()
            return
        if old is None:
            old = self._undefined(operand.name)
        if len(gang.warps) == self.warps:
            np.copyto(old, bits, where=mask)
        else:
            old[gang.warps] = np.where(mask, bits, old[gang.warps])

    def address_of(self, name: Name) -> int:
        """The generic address of a variable, the offset of a parameter."""
        if name.name in self.parameters:
            return self.parameters[name.name] + name.offset
        found = self.symbols.get(name.name)
        if found is None:
            raise self.unknown(f"the name {name.name}")
        return found[1] + name.offset

    # Findings

    @property
    def now(self) -> Instruction:
        return self.function.body[self.position]

    def unknown(self, what: str) -> GradirError:
        """The instruction, or a part of it, that the emulator has no meaning for."""
        return GradirError(
            f"the emulator does not know {what}",
            part="operator",
            code="OP061",
            op=self.now.name,
            function=f"@{self.function.name}",
            location=str(self.now.source),
            expected="an instruction of the subset in docs/ptx.md",
            found=self.now.name,
        )

    def report(self, kind: Kind, gang: Gang, lanes: Array, message: str, other: int | None = None) -> None:
        """Note that something is wrong (or slow) with the lanes that are set in `lanes` [warp, lane]."""
        where = np.argwhere(lanes)
        if not len(where):
            return
        warp, lane = int(gang.warps[where[0][0]]), int(where[0][1])
        block = tuple(int(c) for c in self.blocks.coordinates[warp // self.blocks.per_block])
        also = None
        if other is not None and other >= 0:
            op = self.function.body[other]
            also = (other, op.name, op.source)
        thread = self.blocks.thread_of(warp, lane)
        op = self.now
        self.reports.add(
            Report(kind, self.function.name, self.position, op.name, op.source, message, (block[0], block[1], block[2]), thread, also),
            len(where),
        )

    # Running

    def run(self) -> None:
        """Until every warp has ended; gangs that wait for one another for ever are reported."""
        everyone = np.flatnonzero(self.alive.any(1))
        self.put(Gang(everyone, self.alive[everyone].copy(), 0))
        for _ in range(GENERATIONS):
            gang = self._next()
            if gang is None:
                return
            self._advance(gang)
        self._for_ever()

    def put(self, gang: Gang) -> None:
        """The gang can run on from where it is."""
        if len(gang.warps):
            self.runnable.setdefault(gang.shape(), []).append(gang)

    def _next(self) -> Gang | None:
        if not self.runnable:
            self._report_stuck()
            return None
        shapes = list(self.runnable)
        if self.shuffle:
            shape = shapes[int(self.random.integers(len(shapes)))]
        else:
            shape = min(shapes, key=lambda s: s[0] if s[0] >= 0 else 1 << 30)
        gang = united(self.runnable.pop(shape))
        order = np.argsort(gang.warps)
        if (order[1:] < order[:-1]).any():
            gang = gang.part(order)
        if self.shuffle and len(gang.warps) > 1 and self.random.random() < 0.5:
            chosen = self.random.random(len(gang.warps)) < 0.5
            if chosen.any() and not chosen.all():
                self.put(gang.part(np.flatnonzero(~chosen)))
                gang = gang.part(np.flatnonzero(chosen))
        return gang

    def _advance(self, gang: Gang) -> None:
        """Run a gang until it parts, waits or ends; in shuffled order, for a few instructions only."""
        budget = int(self.random.integers(1, 24)) if self.shuffle else STEPS
        body, steps = self.function.body, self.steps
        try:
            while budget:
                budget -= 1
                while gang.frames and gang.position == gang.frames[-1].meet:
                    gang = self._meet(gang)
                if gang.position == EXIT or gang.position >= len(body):
                    self.end(gang, gang.mask)
                self.position = gang.position
                op = body[gang.position]
                mask = gang.mask
                if op.predicate is not None and op.opcode[0] != "bra":
                    mask = mask & (self.read(gang, op.predicate, "pred") ^ op.negated)
                    if not mask.any():
                        gang.position += 1
                        continue
                steps[gang.position](self, gang, mask)
                gang.position += 1
                if len(self.runnable) > 8 and not self.shuffle:
                    break  # others wait near by: become one with them
        except Finished:
            return
        if not self.shuffle and not budget:
            self._for_ever()
        self.put(gang)

    def _meet(self, gang: Gang) -> Gang:
        """Lanes have come to where their branch ends: the others have their turn, or all go on together."""
        frame = gang.frames[-1]
        frame.joined |= gang.mask
        if frame.pending is not None:
            gang.mask, gang.position, frame.pending, frame.other = frame.pending, frame.other, None, -1
            return gang
        gang.frames.pop()
        gang.mask = frame.joined
        return gang

    def branch(self, gang: Gang, taken: Array, goal: int) -> None:
        """Go on at `goal` with the lanes `taken`, behind the branch with the others."""
        yes = gang.mask & taken
        no = gang.mask & ~taken
        some_yes, some_no = yes.any(1), no.any(1)
        if not some_no.any():
            gang.position = goal - 1
            return
        if not some_yes.any():
            return
        behind = gang.position + 1
        for chosen, position in ((some_yes & ~some_no, goal), (some_no & ~some_yes, behind)):
            if chosen.any():
                part = gang.part(np.flatnonzero(chosen))
                part.position = position
                self.put(part)
        both = np.flatnonzero(some_yes & some_no)
        if len(both):
            part = gang.part(both)
            self._part(part, yes[both], no[both], goal, behind, self.meet[gang.position])
            self.put(part)
        raise Finished

    def branch_many(self, gang: Gang, ways: Sequence[tuple[Array, int]]) -> NoReturn:
        """Lanes of a gang go to several places: one way at a time, those that are left come back to the same instruction."""
        taken, goal = ways[0]
        meet = self.meet[gang.position]
        yes, no = gang.mask & taken, gang.mask & ~taken
        for chosen, position in ((yes.any(1) & ~no.any(1), goal), (~yes.any(1), gang.position)):
            if chosen.any():
                part = gang.part(np.flatnonzero(chosen))
                part.position = position
                self.put(part)
        both = np.flatnonzero(yes.any(1) & no.any(1))
        if len(both):
            part = gang.part(both)
            self._part(part, yes[both], no[both], goal, gang.position, meet)
            self.put(part)
        raise Finished

    def _part(self, gang: Gang, yes: Array, no: Array, goal: int, behind: int, meet: int) -> None:
        top = gang.frames[-1] if gang.frames else None
        if top is None or top.meet != meet or top.pending is not None:
            top = Frame(meet, np.zeros_like(yes))
            gang.frames.append(top)
        if goal == meet:
            top.joined |= yes
            gang.mask, gang.position = no, behind
        elif behind == meet:
            top.joined |= no
            gang.mask, gang.position = yes, goal
        else:
            top.pending, top.other = yes, goal
            gang.mask, gang.position = no, behind

    def end(self, gang: Gang, lanes: Array) -> None:
        """These lanes are done; others of their warps go on."""
        self.alive[gang.warps] &= ~lanes
        rest = gang.mask & ~lanes
        some = rest.any(1)
        if some.any():
            part = gang.part(np.flatnonzero(some))
            part.mask = rest[some]
            part.position += 1
            self.put(part)
        if not some.all():
            self._unwind(gang.part(np.flatnonzero(~some)))
        self.check_barriers()
        raise Finished

    def _unwind(self, gang: Gang) -> None:
        """No lane of these warps is active: whoever waits on their stacks goes on."""
        while gang.frames and len(gang.warps):
            frame = gang.frames[-1]
            if frame.pending is not None:
                gang.mask, gang.position, frame.pending, frame.other = frame.pending, frame.other, None, -1
                self.put(gang)
                return
            gang.frames.pop()
            some = frame.joined.any(1)
            if some.any():
                part = gang.part(np.flatnonzero(some))
                part.mask, part.position = frame.joined[some], frame.meet
                self.put(part)
            gang = gang.part(np.flatnonzero(~some))

    # Waiting

    def concerned(self, gang: Gang, mask: Array) -> tuple[Gang, Array]:
        """The warps some lane of which executes the instruction; the others go on behind it."""
        some = mask.any(1)
        if some.all():
            return gang, mask
        others = gang.part(np.flatnonzero(~some))
        others.position += 1
        self.put(others)
        return gang.part(np.flatnonzero(some)), mask[some]

    def pass_on(self, gang: Gang) -> NoReturn:
        """These warps go on behind the instruction, apart from those of their gang that were not concerned."""
        gang.position += 1
        self.put(gang)
        raise Finished

    def wait_at(self, gang: Gang, number: int, wanted: int) -> None:
        """`bar.sync`: wait until `wanted` threads (0: all that are alive) of the block have come."""
        barrier = self.barriers[number]
        self._count(barrier, gang, wanted)
        gang.position += 1
        barrier.waiting.append(gang)
        self.check_barriers()
        raise Finished

    def arrive_at(self, gang: Gang, number: int, wanted: int) -> None:
        """`bar.arrive`: be counted and go on."""
        barrier = self.barriers[number]
        self._count(barrier, gang, wanted)
        for block in np.unique(self.blocks.block_of(gang.warps)):
            mine = gang.warps[self.blocks.block_of(gang.warps) == block]
            clocks = self.history.clocks[mine].max(0)
            before = barrier.told.get(int(block))
            barrier.told[int(block)] = clocks if before is None else np.maximum(before, clocks)
        self.history.tick(gang.warps)
        self.check_barriers()

    def _count(self, barrier: Barrier, gang: Gang, wanted: int) -> None:
        blocks = self.blocks.block_of(gang.warps)
        np.add.at(barrier.arrived, blocks, LANES)
        barrier.wanted[blocks] = wanted

    def check_barriers(self) -> None:
        """Let those go whose barrier is full."""
        living = self.alive.any(1).reshape(self.blocks.count, -1).sum(1) * LANES
        for barrier in self.barriers:
            if not barrier.waiting:
                continue
            wanted = np.where(barrier.wanted > 0, -(-barrier.wanted // LANES) * LANES, living)
            full = (barrier.arrived >= wanted) & (barrier.arrived > 0)
            if not full.any():
                continue
            released: list[Gang] = []
            kept: list[Gang] = []
            for gang in barrier.waiting:
                free = full[self.blocks.block_of(gang.warps)]
                released += [gang.part(np.flatnonzero(free))] if free.any() else []
                kept += [gang.part(np.flatnonzero(~free))] if not free.all() else []
            barrier.waiting = kept
            everyone = np.concatenate([gang.warps for gang in released])
            self._join(everyone, barrier)
            for block in np.flatnonzero(full):
                barrier.arrived[block], barrier.wanted[block] = 0, 0
                barrier.told.pop(int(block), None)
            for gang in released:
                self.put(gang)

    def _join(self, warps: Array, barrier: Barrier) -> None:
        blocks = self.blocks.block_of(warps)
        if len(warps) == self.warps and not barrier.told:
            per_block = self.history.clocks.reshape(self.blocks.count, self.blocks.per_block, -1)
            per_block[:] = per_block.max(1, keepdims=True)
            self.history.tick(np.arange(self.warps))
            return
        for block in np.unique(blocks):
            self.history.join(warps[blocks == block], barrier.told.get(int(block)))

    def _report_stuck(self) -> None:
        """Report whoever still waits."""
        for number, barrier in enumerate(self.barriers):
            for gang in barrier.waiting:
                self.position = gang.position - 1
                self.report("deadlock", gang, gang.mask, f"waits at barrier {number}, and nobody comes")

    def _for_ever(self) -> NoReturn:
        raise GradirError(
            "the launch does not end",
            part="operator",
            code="OP063",
            function=f"@{self.function.name}",
            location=str(self.now.source),
            expected="an end",
            found=f"still running at {self.now.name}",
        )
