"""What four warps do together: registers that `wgmma` still reads or writes, its groups, and how many registers each warp has.

`wgmma.fence` makes what a warp has written to registers visible to the products that follow; until `wgmma.wait_group` their results, and
the registers that they read, belong to the products. Other instructions that touch them are reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gradir.ptx.syntax import Function, Operand, Register, Vector

Array = np.ndarray[Any, np.dtype[Any]]
WARPS = 4
"""Of a warpgroup."""
REGISTERS = 1 << 16
"""Of a multiprocessor."""


def watched_registers(function: Function) -> dict[str, int]:
    """Registers that `wgmma` reads or writes anywhere in a function, numbered."""
    names: dict[str, int] = {}
    for op in function.body:
        if op.opcode[:2] == ("wgmma", "mma_async"):
            for name in register_names(op.operands[:2]):
                names.setdefault(name, len(names))
    return names


def register_names(operands: Sequence[Operand]) -> list[str]:
    """Names of the registers of operands that are vectors of them."""
    vectors = [operand for operand in operands if isinstance(operand, Vector)]
    return [element.name for vector in vectors for element in vector.elements if isinstance(element, Register)]


@dataclass
class Warpgroups:
    """State of the warps of a batch; arrays are [register, warp] or [warp]."""

    warps: int
    threads: int
    """Of a block."""
    names: dict[str, int]
    closed_at: list[Array] = field(default_factory=list[Array])
    """Of each number of a group and each warp, the clock of its agent when it was committed."""

    def __post_init__(self) -> None:
        shape = (len(self.names), self.warps)
        self.unfenced = np.ones(shape, np.bool_)
        """Written by other instructions since the warp's last `wgmma.fence`."""
        self.results, self.factors = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
        """Number of the group (from 1) that still writes, that still reads the register; 0: none."""
        self.places = np.zeros(shape, np.int32)
        self.committed = np.zeros(self.warps, np.int32)
        self.share = min(256, REGISTERS // max(1, self.threads) // 8 * 8)
        """Registers of a thread when the block begins, which is all there are."""
        self.registers = np.full(self.warps, self.share, np.int32)
        """Of a thread of each warp, as many as it may use."""

    def commit(self, warps: Array, times: Array) -> None:
        """The open group of these warps is closed; `times` are the clocks of their agents."""
        self.committed[warps] += 1
        while len(self.closed_at) <= int(self.committed[warps].max()):
            self.closed_at.append(np.zeros(self.warps, np.int32))
        for number in np.unique(self.committed[warps]):
            mine = self.committed[warps] == number
            self.closed_at[int(number)][warps[mine]] = times[mine]

    def wait(self, warps: Array, keep: int) -> Array:
        """All groups but the `keep` last of these warps are done; up to which clocks of their agents."""
        last = np.maximum(self.committed[warps] - keep, 0)
        for owed in (self.results, self.factors):
            mine = owed[:, warps]
            mine[mine <= last] = 0
            owed[:, warps] = mine
        return np.array([self.closed_at[n][w] if n else 0 for n, w in zip(last, warps)], np.int32)
