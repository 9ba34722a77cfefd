"""What a launch consists of while it runs: warps with registers, blocks with shared memory, gangs of warps that run in step.

Arrays are indexed `[warp, lane]`; a gang holds the numbers of its warps (`warps`), which of their lanes are active, and where it is. All
warps of a gang have had the same history of branches, so one frame on its stack stands for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

LANES = 32
Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(slots=True)
class Call:
    """Lanes that called a function, and registers of it that an outer activation still needs."""

    name: str
    lanes: Array
    saved: dict[str, Array]

    def part(self, chosen: Array) -> Call:
        """The call of some of the warps."""
        return Call(self.name, self.lanes[chosen], {name: bits[chosen] for name, bits in self.saved.items()})


@dataclass(slots=True)
class Frame:
    """Lanes that parted at a branch: `joined` have come to `meet`; those of `pending` wait at `other` for their turn.

    With `call`, lanes that called a function: `joined` have returned (or did not call), and all go on at `other`. Nothing is at `meet`.
    """

    meet: int
    joined: Array
    other: int = -1
    pending: Array | None = None
    call: Call | None = None

    def part(self, chosen: Array) -> Frame:
        """The frame of some of the warps."""
        return Frame(
            self.meet,
            self.joined[chosen],
            self.other,
            None if self.pending is None else self.pending[chosen],
            None if self.call is None else self.call.part(chosen),
        )


@dataclass(slots=True)
class Gang:
    """Warps at one instruction with one history."""

    warps: Array
    mask: Array
    position: int
    frames: list[Frame] = field(default_factory=list[Frame])

    def part(self, chosen: Array) -> Gang:
        """Some of the warps, by their places in the gang."""
        return Gang(self.warps[chosen], self.mask[chosen], self.position, [frame.part(chosen) for frame in self.frames])

    def shape(self) -> tuple[Any, ...]:
        """What has to agree for two gangs to become one."""
        return (self.position, *((f.meet, f.other, f.pending is None) for f in self.frames))


def united(gangs: list[Gang]) -> Gang:
    """One gang of several with equal shapes."""
    if len(gangs) == 1:
        return gangs[0]
    frames = [_united(first, [gang.frames[k] for gang in gangs]) for k, first in enumerate(gangs[0].frames)]
    return Gang(np.concatenate([g.warps for g in gangs]), np.concatenate([g.mask for g in gangs]), gangs[0].position, frames)


def _united(first: Frame, frames: list[Frame]) -> Frame:
    pending = [frame.pending for frame in frames if frame.pending is not None]
    return Frame(
        first.meet,
        np.concatenate([frame.joined for frame in frames]),
        first.other,
        np.concatenate(pending) if pending else None,
        None if first.call is None else _united_calls(first.call.name, [frame.call for frame in frames if frame.call is not None]),
    )


def _united_calls(name: str, calls: list[Call]) -> Call:
    """A register that one of the activations had not written yet is zero there."""
    dtypes = {register: bits.dtype for call in calls for register, bits in call.saved.items()}
    saved = {
        register: np.concatenate([c.saved[register] if register in c.saved else np.zeros(c.lanes.shape, dtype) for c in calls])
        for register, dtype in dtypes.items()
    }
    return Call(name, np.concatenate([call.lanes for call in calls]), saved)


@dataclass
class Blocks:
    """The blocks that are resident together: their coordinates, shared memory, which warps are theirs."""

    coordinates: Array
    """[block, 3]"""
    threads: tuple[int, int, int]
    grid: tuple[int, int, int]
    cluster: tuple[int, int, int]
    shared: Array
    """[block, bytes]: `shared_bytes` of a block and what fills them up to a whole number of the widest accesses."""
    defined: Array
    """[block, bytes]: was the byte of shared memory written?"""
    per_block: int
    """Warps of a block."""
    shared_bytes: int
    first: int = 0
    """How many blocks of the grid come before these."""
    workspace: int = 0
    """The address of what the driver gives to a cooperative launch; 0 in other launches."""

    @property
    def count(self) -> int:
        """Resident blocks."""
        return len(self.coordinates)

    @property
    def cluster_size(self) -> int:
        """Blocks of a cluster; those of one stand one behind the other."""
        return self.cluster[0] * self.cluster[1] * self.cluster[2]

    def block_of(self, warps: Array) -> Array:
        """Of each warp, the number of its block among the resident ones."""
        return warps // self.per_block

    def thread_of(self, warp: int, lane: int) -> tuple[int, int, int]:
        """(x, y, z) of a lane within its block."""
        linear = (warp % self.per_block) * LANES + lane
        x, y, _ = self.threads
        return linear % x, linear // x % y, linear // (x * y)

    def alive(self) -> Array:
        """[warp, lane]: threads there are; the last warp of a block may have fewer than 32."""
        total = self.threads[0] * self.threads[1] * self.threads[2]
        linear = np.arange(self.per_block * LANES).reshape(self.per_block, LANES)
        return np.tile(linear < total, (self.count, 1))
