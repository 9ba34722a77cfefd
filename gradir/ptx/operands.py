"""Registers, addresses and findings of a batch of resident blocks: what an instruction reads, writes and reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gradir.errors import GradirError
from gradir.ptx.bits import bits_of, literal, read_as
from gradir.ptx.global_races import GlobalHistory
from gradir.ptx.memory import POISON, GlobalMemory
from gradir.ptx.races import SharedHistory
from gradir.ptx.reports import Kind, Report, Reports
from gradir.ptx.special import special
from gradir.ptx.state import LANES, Blocks, Gang
from gradir.ptx.syntax import Function, Immediate, Instruction, Name, Negated, Operand, PtxModule, Register
from gradir.ptx.types import DTYPES, storage
from gradir.ptx.warpgroups import WARPS, Warpgroups, watched_registers

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass
class Operands:
    """The memory of a batch, its registers, and the reports on it."""

    module: PtxModule
    function: Function
    steps: tuple[Callable[[Any, Gang, Array], None], ...]
    """The instructions of `function`, compiled by `gradir.ptx.instructions`."""
    blocks: Blocks
    memory: GlobalMemory
    parameters: Mapping[str, int]
    """Of each parameter its offset in `parameter_bytes`."""
    parameter_bytes: Array
    symbols: Mapping[str, tuple[str, int]]
    """Of each variable its space and its address there."""
    accesses: GlobalHistory
    reports: Reports
    random: np.random.Generator
    frames: Mapping[str, int] = field(default_factory=dict[str, int])
    """Bytes of local memory of an activation of each device function; of the kernel under the empty name."""
    shuffle: bool = False
    granule: int = 4
    agents: int = 0
    """Agents of bulk copies (`gradir.ptx.bulk`); 0 for a kernel that does nothing asynchronously but `cp.async`."""

    def __post_init__(self) -> None:
        warps = self.blocks.count * self.blocks.per_block
        self.warps = warps
        self.registers: dict[str, Array] = {}
        self.alive = self.blocks.alive()
        self.local = np.full((warps, LANES, self.frames.get("", 0)), POISON, np.uint8)
        self.stack = np.zeros((warps, LANES), np.int64)
        """Of each lane, where in its local memory the running activation has its variables."""
        threads = self.blocks.threads[0] * self.blocks.threads[1] * self.blocks.threads[2]
        self.warpgroups = Warpgroups(warps, threads, watched_registers(self.function))
        self.watched = self.warpgroups.names
        size, cluster = max(self.blocks.shared.shape[1], 1), self.blocks.cluster_size
        agents = self.agents + (-(-self.blocks.per_block // WARPS) * cluster if self.agents else 0)
        self.history = SharedHistory(self.blocks.count, self.blocks.per_block, size, self.granule, cluster=cluster, agents=agents)
        self.order = self.accesses.order
        self.order.begin(self.blocks.first * self.blocks.per_block // self.order.peers, self.history.clocks)
        self.carry = np.zeros((warps, LANES), np.bool_)
        """The condition code of each lane: the carry of `add.cc` and its kin."""
        self.position = 0
        self.changes, self.polls = 0, 0
        """How often memory changed or a warp was let go, and how often one asked whether something happened: for those that spin."""

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
            if self.watched and operand.name in self.watched:
                self._in_flight(gang, gang.mask, operand.name, writes=False)
            found = bits[self.index(gang)]
            return found if found.dtype == dtype else read_as(found, dtype)
        if isinstance(operand, Immediate):
            return literal(operand, dtype)
        if isinstance(operand, Negated):
            return ~self.read(gang, operand.operand, "pred")
        if isinstance(operand, Name):
            return self.address_of(gang, operand).astype(dtype)
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
        if self.watched and operand.name in self.watched:
            self._in_flight(gang, mask, operand.name, writes=True)
        self.set_register(gang, mask, operand.name, bits_of(values, storage(kind)))

    def set_register(self, gang: Gang, mask: Array, name: str, bits: Array) -> None:
        """Set the bits of a register, whoever else is at it."""
        old = self.registers.get(name)
        if len(gang.warps) == self.warps and mask.all():
            whole = bits.shape == (self.warps, LANES) and bits.flags.writeable
            self.registers[name] = bits if whole else np.broadcast_to(bits, (self.warps, LANES)).copy()
            return
        if old is None:
            old = self._undefined(name)
        if len(gang.warps) == self.warps:
            np.copyto(old, bits, where=mask)
        else:
            old[gang.warps] = np.where(mask, bits, old[gang.warps])

    def _in_flight(self, gang: Gang, mask: Array, name: str, *, writes: bool) -> None:
        """A register that `wgmma` uses is read or written by another instruction."""
        state, number = self.warpgroups, self.watched[name]
        busy = state.results[number, gang.warps]
        if writes:
            state.unfenced[number, gang.warps[mask.any(1)]] = True
            busy = np.maximum(busy, state.factors[number, gang.warps])
        if busy.any():
            lanes = mask & (busy > 0)[:, None]
            what = "writes a register that" if writes else "reads a register that"
            other = int(state.places[number, gang.warps[busy > 0]][0])
            self.report("unwaited wgmma", gang, lanes, f"{what} a product on its way still uses: {name}", other)

    def address_of(self, gang: Gang, name: Name) -> Array:
        """The address of a variable in its space, the offset of a parameter; of one element where all lanes have the same."""
        if name.name in self.parameters:
            return np.full((1, 1), self.parameters[name.name] + name.offset, np.int64)
        found = self.symbols.get(name.name)
        if found is None:
            raise self.unknown(f"the name {name.name}")
        if found[0] == "local" and self.function.callees:
            return self.stack[gang.warps] + (found[1] + name.offset)
        return np.full((1, 1), found[1] + name.offset, np.int64)

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

    def report_of(self, kind: Kind, warps: Array, lanes: Array, message: str, other: int | None = None) -> None:
        """The same of threads that are given one by one, of whatever gang."""
        if len(warps):
            gang = Gang(warps, lanes, self.position)
            self.report(kind, gang, lanes[:, None] == np.arange(LANES), message, other)

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
