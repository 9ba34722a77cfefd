"""Barriers of blocks: gangs that wait, until as many threads have come as are wanted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gradir.ptx.calls import Calls
from gradir.ptx.paths import Finished
from gradir.ptx.state import LANES, Gang

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass
class Barrier:
    """One of a block batch's sixteen barriers: gangs that wait, and per block how many threads have come and are wanted."""

    waiting: list[Gang] = field(default_factory=list[Gang])
    arrived: Array = field(default_factory=lambda: np.zeros(0, np.int64))
    wanted: Array = field(default_factory=lambda: np.zeros(0, np.int64))
    told: dict[int, Array] = field(default_factory=dict[int, Array])
    """Block -> clocks of warps that arrived and went on."""


class Barriers(Calls):
    """The sixteen barriers of every block of the batch."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.barriers = [self._barrier() for _ in range(16)]

    def _barrier(self) -> Barrier:
        return Barrier(arrived=np.zeros(self.blocks.count, np.int64), wanted=np.zeros(self.blocks.count, np.int64))

    def lanes_ended(self) -> None:
        self.check_barriers()

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

    def report_stuck(self) -> None:
        """Report whoever still waits."""
        for number, barrier in enumerate(self.barriers):
            for gang in barrier.waiting:
                self.position = gang.position - 1
                self.report("deadlock", gang, gang.mask, f"waits at barrier {number}, and nobody comes")
