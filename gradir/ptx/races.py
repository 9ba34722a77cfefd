"""Races in shared memory, by vector clocks: an access that nothing orders after an earlier one of another warp, whatever ran first.

Every warp has a clock for each warp of its block (of its cluster, where there are clusters): how much of that warp's past is known to be
over. A barrier joins the clocks of those that take part. An access is compared with the last writes and reads of its bytes; bytes are
grouped by the narrowest access of the kernel.

What is done behind the warps' backs (bulk copies, `wgmma`) is done by agents, which have clocks as warps have: nobody knows that their
accesses are over but who has waited for them. The second half of a warp's clocks says how much of the others' past is known with a proxy
fence on the way: agents may only count on that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class Found:
    """Of every access of an agent: does it race, or is there no fence between it and a write; and the instruction of the other access."""

    races: Array
    unfenced: Array
    others: Array


class SharedHistory:
    """Who accessed which part of the shared memory of every block last, and what every warp knows to be over."""

    def __init__(self, blocks: int, per_block: int, size: int, granule: int, *, cluster: int = 1, agents: int = 0) -> None:
        self.granule = granule
        self.peers = per_block * cluster
        self.columns = self.peers + agents
        self.clocks = np.zeros((blocks * per_block, 2 * self.columns), np.int32)
        everyone = np.arange(blocks * per_block)
        self.clocks[everyone, everyone % self.peers] = 1
        self.times = np.zeros((-(-blocks // cluster), agents), np.int32)
        """Of each cluster, the clocks of its agents."""
        count = -(-size // 16) * 16 // granule
        self._writer = np.full((blocks, count), -1, np.int16)
        self._written_at = np.zeros((blocks, count), np.int32)
        self._write_place = np.zeros((blocks, count), np.int32)
        self._strong = np.zeros((blocks, count), np.bool_)
        self._read_at = np.zeros((blocks, count, self.columns), np.int32)
        self._read_place = np.zeros((blocks, count), np.int32)

    # What warps know

    def join(self, warps: Array, arrived: Array | None = None) -> None:
        """A barrier of one block: all of `warps` know what each of them, and `arrived` (clocks of warps that went on), knows."""
        known = self.clocks[warps].max(0)
        if arrived is not None:
            known = np.maximum(known, arrived)
        self.clocks[warps] = known
        self.tick(warps)

    def tick(self, warps: Array) -> None:
        """What these warps do from now on is later than what others have been told of."""
        self.clocks[warps, warps % self.peers] += 1

    def fence(self, warps: Array) -> None:
        """A proxy fence: agents may count on all that these warps know to be over, and have done."""
        known = self.clocks[warps]
        known[:, self.columns :] = known[:, : self.columns]
        self.clocks[warps] = known
        self.tick(warps)

    def learn(self, warps: Array, clocks: Array) -> None:
        """These warps get to know what the clocks say."""
        self.clocks[warps] = np.maximum(self.clocks[warps], clocks)

    def told(self, warps: Array, agent: Array, times: Array) -> None:
        """These warps know that what an agent has done until then is over."""
        column = self.peers + agent
        self.clocks[warps, column] = np.maximum(self.clocks[warps, column], times)
        self.clocks[warps, self.columns + column] = np.maximum(self.clocks[warps, self.columns + column], times)

    # Accesses of warps

    def write(self, warps: Array, blocks: Array, offsets: Array, width: int, place: int, *, strong: bool = False) -> tuple[Array, Array]:
        """Lanes whose write races, and the instruction of the other access; arguments are flat, one entry per lane."""
        return self._access(warps, blocks, offsets, width, place, writes=True, strong=strong)

    def read(self, warps: Array, blocks: Array, offsets: Array, width: int, place: int, *, strong: bool = False) -> tuple[Array, Array]:
        """Lanes whose read races with a write, and the instruction of that."""
        return self._access(warps, blocks, offsets, width, place, writes=False, strong=strong)

    def _access(
        self, warps: Array, blocks: Array, offsets: Array, width: int, place: int, *, writes: bool, strong: bool
    ) -> tuple[Array, Array]:
        races = np.zeros(warps.shape, np.bool_)
        others = np.full(warps.shape, -1, np.int32)
        mine = warps % self.peers
        known = self.clocks[warps, : self.columns]
        now = known[np.arange(len(warps)), mine]
        writer, written_at, write_place, read_place = (
            kept.reshape(-1) for kept in (self._writer, self._written_at, self._write_place, self._read_place)
        )
        first = blocks * self._writer.shape[1] + offsets // self.granule
        for cell in (first + k for k in range(max(1, width // self.granule))):
            self._with_writer(known, mine, cell, races, others, strong)
            if not writes:
                if not strong:
                    self._read_at.reshape(-1)[cell * self.columns + mine] = now
                    read_place[cell] = place
                continue
            self._with_readers(known, mine, cell, races, others)
            writer[cell] = mine
            written_at[cell] = now
            write_place[cell] = place
            self._strong.reshape(-1)[cell] = strong
            if not strong:
                twice = (writer[cell] != mine) & ~races  # another warp in the same step
                others[twice] = place
                races |= twice
        return races, others

    # Accesses of agents

    def by_agent(
        self, clocks: Array, agent: Array, times: Array, blocks: Array, offsets: Array, width: int, place: int, *, writes: bool
    ) -> Found:
        """Accesses that agents do for warps with these `clocks`, one row per access; they are over when somebody is told of `times`."""
        known, fenced = clocks[:, : self.columns], clocks[:, self.columns :]
        mine, rows = self.peers + agent, np.arange(len(agent))[:, None]
        per = max(1, width // self.granule)
        at = blocks, offsets // (self.granule * per)  # all cells of an access together
        writer, written, place_of = (self._by(per, kept)[at] for kept in (self._writer, self._written_at, self._write_place))
        named = np.maximum(writer, 0)
        late: Array = np.logical_and(writer >= 0, written > known[rows, named])
        missing: Array = (writer >= 0) & (writer < self.peers) & (written > fenced[rows, named]) & ~late
        others = np.where(late | missing, place_of, -1).max(1)
        races: Array = np.asarray(late.any(axis=1))
        if not writes:
            self._by(per, self._read_at)[(*at, slice(None), mine)] = times[:, None]
            self._by(per, self._read_place)[at] = place
            return Found(races, missing.any(1) & ~races, others)
        unknown: Array = np.any(self._by(per, self._read_at)[at] > known[:, None], axis=2)
        if unknown.any():
            first = ~races & unknown.any(1)
            others = np.where(first, np.where(unknown, self._by(per, self._read_place)[at], -1).max(1), others)
            races = races | first
        for kept, value in ((self._writer, mine), (self._written_at, times), (self._write_place, np.full(len(mine), place))):
            self._by(per, kept)[at] = value[:, None]
        self._by(per, self._strong)[at] = False
        return Found(races, missing.any(1) & ~races, others)

    @staticmethod
    def _by(per: int, kept: Array) -> Array:
        """What is kept of every cell, so many cells together."""
        return kept.reshape(kept.shape[0], -1, per, *kept.shape[2:])

    def _with_readers(self, known: Array, mine: Array, cell: Array, races: Array, others: Array) -> None:
        unknown = self._read_at.reshape(-1, self.columns).take(cell, 0) > known
        unknown[np.arange(len(mine)), mine] &= mine >= self.peers
        if unknown.any():
            bad = unknown.any(1) & ~races
            others[bad] = self._read_place.reshape(-1)[cell[bad]]
            races |= bad

    def _with_writer(self, known: Array, mine: Array, cell: Array, races: Array, others: Array, strong: bool) -> None:
        writer = self._writer.reshape(-1)[cell]
        told = known.reshape(-1)[np.arange(len(mine)) * known.shape[1] + np.maximum(writer, 0)]
        own = (writer == mine) & (mine < self.peers)
        bad = (writer >= 0) & ~own & (self._written_at.reshape(-1)[cell] > told) & ~races
        if strong:
            bad &= ~self._strong.reshape(-1)[cell]
        if bad.any():
            others[bad] = self._write_place.reshape(-1)[cell[bad]]
            races |= bad
