"""Barriers of blocks: gangs that wait, until as many threads have come as are wanted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from gradir.ptx.calls import Calls
from gradir.ptx.paths import Finished
from gradir.ptx.state import LANES, Gang

Array = np.ndarray[Any, np.dtype[Any]]


Vote: TypeAlias = Callable[[Gang, Array, Array], None]
"""What a gang does when its barrier lets it go: (gang, of each warp's block how many threads said yes, how many came)."""


@dataclass
class Barrier:
    """One of a block batch's sixteen barriers: gangs that wait, and per block how many threads have come and are wanted."""

    waiting: list[tuple[Gang, Vote | None]] = field(default_factory=list[tuple[Gang, Vote | None]])
    arrived: Array = field(default_factory=lambda: np.zeros(0, np.int64))
    wanted: Array = field(default_factory=lambda: np.zeros(0, np.int64))
    told: dict[int, Array] = field(default_factory=dict[int, Array])
    """Block -> clocks of warps that arrived and went on."""
    votes: Array = field(default_factory=lambda: np.zeros((0, 2), np.int64))
    """Per block, for `bar.red`: threads that said yes, threads that came."""


class Barriers(Calls):
    """The sixteen barriers of every block of the batch."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.barriers = [self._barrier() for _ in range(16)]

    def _barrier(self) -> Barrier:
        count = self.blocks.count
        return Barrier(arrived=np.zeros(count, np.int64), wanted=np.zeros(count, np.int64), votes=np.zeros((count, 2), np.int64))

    def lanes_ended(self) -> None:
        self.check_barriers()

    def wait_at(self, gang: Gang, number: int, threads: Array, wanted: int, vote: tuple[Array, Vote] | None = None) -> None:
        """`bar.sync`: wait until `wanted` threads (0: all that are alive) of the block have come; each warp counts for `threads` of them.

        For `bar.red`, which lanes say yes, and what to do with all that was said.
        """
        barrier = self.barriers[number]
        self._count(barrier, gang, threads, wanted)
        if vote is not None:
            np.add.at(barrier.votes, self.blocks.block_of(gang.warps), np.stack([(vote[0] & gang.mask).sum(1), gang.mask.sum(1)], 1))
        gang.position += 1
        barrier.waiting.append((gang, vote[1] if vote is not None else None))
        self.check_barriers()
        raise Finished

    def arrive_at(self, gang: Gang, number: int, threads: Array, wanted: int) -> None:
        """`bar.arrive`: be counted and go on."""
        barrier = self.barriers[number]
        self._count(barrier, gang, threads, wanted)
        for block in np.unique(self.blocks.block_of(gang.warps)):
            mine = gang.warps[self.blocks.block_of(gang.warps) == block]
            clocks = self.history.clocks[mine].max(0)
            before = barrier.told.get(int(block))
            barrier.told[int(block)] = clocks if before is None else np.maximum(before, clocks)
        self.history.tick(gang.warps)
        self.check_barriers()

    def _count(self, barrier: Barrier, gang: Gang, threads: Array, wanted: int) -> None:
        blocks = self.blocks.block_of(gang.warps)
        np.add.at(barrier.arrived, blocks, threads)
        barrier.wanted[blocks] = wanted

    def check_barriers(self) -> None:
        """Let those go whose barrier is full."""
        living = self.alive.reshape(self.blocks.count, -1).sum(1)
        for barrier in self.barriers:
            if not barrier.waiting:
                continue
            wanted = np.where(barrier.wanted > 0, -(-barrier.wanted // LANES) * LANES, living)
            full = (barrier.arrived >= wanted) & (barrier.arrived > 0)
            if not full.any():
                continue
            released: list[tuple[Gang, Vote | None]] = []
            kept: list[tuple[Gang, Vote | None]] = []
            for gang, vote in barrier.waiting:
                free = full[self.blocks.block_of(gang.warps)]
                released += [(gang.part(np.flatnonzero(free)), vote)] if free.any() else []
                kept += [(gang.part(np.flatnonzero(~free)), vote)] if not free.all() else []
            barrier.waiting = kept
            self.changes += 1
            everyone = np.concatenate([gang.warps for gang, _ in released])
            self._join(everyone, barrier)
            for gang, vote in released:
                if vote is not None:
                    yes, came = barrier.votes[self.blocks.block_of(gang.warps)].T
                    vote(gang, yes, came)
                self.put(gang)
            barrier.arrived[full], barrier.wanted[full], barrier.votes[full] = 0, 0, 0
            for block in np.flatnonzero(full):
                barrier.told.pop(int(block), None)

    def _join(self, warps: Array, barrier: Barrier) -> None:
        blocks = self.blocks.block_of(warps)
        if len(warps) == self.warps and not barrier.told:
            per_block = self.history.clocks.reshape(self.blocks.count, self.blocks.per_block, -1)
            per_block[:] = per_block.max(1, keepdims=True)
            self.history.tick(np.arange(self.warps))
            for block in range(self.blocks.count if self.order.active else 0):
                self.order.share(np.arange(block * self.blocks.per_block, (block + 1) * self.blocks.per_block))
            return
        for block in np.unique(blocks):
            self.history.join(warps[blocks == block], barrier.told.get(int(block)))
            self.order.share(warps[blocks == block])

    def report_stuck(self) -> None:
        """Report whoever still waits."""
        for number, barrier in enumerate(self.barriers):
            for gang, _ in barrier.waiting:
                self.position = gang.position - 1
                self.report("deadlock", gang, gang.mask, f"waits at barrier {number}, and nobody comes")
