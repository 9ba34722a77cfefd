"""How well accesses use the memory: what they move beside what they need. Advice, not mistakes.

A warp's access to global memory moves sectors of 32 bytes; fewest where its lanes lie side by side. An access to shared memory goes in
phases of 128 bytes (a warp of 4 bytes a lane, half a warp of 8, a quarter of 16), and each phase takes as many turns as the bank that most
of its words lie in has different ones of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gradir.ptx.syntax import Source

Array = np.ndarray[Any, np.dtype[Any]]
SECTOR, BANKS, WORD = 32, 32, 4


@dataclass
class Traffic:
    """All that one instruction moved: `moved` sectors or turns, of which `least` would do."""

    space: str
    instruction: str
    source: Source
    warps: int = 0
    moved: int = 0
    least: int = 0

    @property
    def excess(self) -> int:
        """What a better order of the lanes would save."""
        return self.moved - self.least

    def __str__(self) -> str:
        what = "sectors of 32 bytes" if self.space == "global" else "turns at the banks"
        times = f"{self.moved / self.least:.1f} times the least" if self.least else "nothing needed"
        return f"{self.source}: {self.instruction}: {self.moved} {what} in {self.warps} accesses of warps, {times}"


def _distinct(values: Array, active: Array) -> tuple[Array, Array]:
    """Along the last axis, sorted values and which of them are the first of their kind; only active ones count."""
    ordered = np.sort(np.where(active, values, -1), -1)
    first = np.ones(ordered.shape, np.bool_)
    first[..., 1:] = ordered[..., 1:] != ordered[..., :-1]
    return ordered, first & (ordered >= 0)


def global_traffic(addresses: Array, active: Array, size: int) -> tuple[int, int, int]:
    """Warps, sectors, fewest sectors of an access at [warp, lane] addresses of `size` bytes a lane."""
    rows = active.any(1)
    addresses, active = addresses[rows], active[rows]
    _, sectors = _distinct(addresses // SECTOR, active)
    _, places = _distinct(addresses, active)
    pieces = max(1, size // SECTOR)
    return int(rows.sum()), int(sectors.sum()) * pieces, int((-(-places.sum(1) * size // SECTOR)).sum())


def shared_traffic(offsets: Array, active: Array, size: int) -> tuple[int, int, int]:
    """Warps, turns, fewest turns of an access to shared memory."""
    rows = active.any(1)
    offsets, active = offsets[rows], active[rows]
    words = max(1, size // WORD)
    lanes = min(32, 128 // max(size, WORD))
    each = (offsets // WORD)[..., None] + np.arange(words)
    phases = each.reshape(-1, lanes * words)
    taken = np.broadcast_to(active[..., None], each.shape).reshape(phases.shape)
    ordered, first = _distinct(phases, taken)
    row = np.broadcast_to(np.arange(len(phases))[:, None], phases.shape)
    turns = np.bincount((row * BANKS + ordered % BANKS)[first], minlength=len(phases) * BANKS).reshape(-1, BANKS).max(1)
    least = -(-first.sum(1) // BANKS)
    return int(rows.sum()), int(turns.sum()), int(least.sum())
