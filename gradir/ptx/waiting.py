"""Gangs that wait for something else than a barrier of their block: mbarriers, the other warps of a warpgroup or cluster, registers.

A gang is parked at its instruction under a key for every lane; whoever makes true what it waits for wakes it, and it runs again.
Waits for mbarriers may end early, as in hardware: those warps go on when nothing else can.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NoReturn, TypeAlias

import numpy as np

from gradir.ptx.barriers import Barriers
from gradir.ptx.paths import Finished
from gradir.ptx.state import Gang

Array = np.ndarray[Any, np.dtype[Any]]
Cause: TypeAlias = Literal["mbarrier", "warpgroup", "cluster", "registers"]
PATIENCE = 2
"""How often a wait for an mbarrier ends early without any mbarrier having moved, before warps count as stuck."""


@dataclass
class Parked:
    """Warps that wait, with the keys of what each of their lanes waits for (-1: nothing)."""

    gang: Gang
    keys: Array
    what: str


class Waiting(Barriers):
    """The parked gangs of a batch."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.parked: dict[Cause, list[Parked]] = {"mbarrier": [], "warpgroup": [], "cluster": [], "registers": []}
        self.expired = np.zeros(self.warps, np.bool_)
        """Warps whose wait for an mbarrier has ended without it."""
        self.early = 0

    def park(self, cause: Cause, gang: Gang, keys: Array, what: str) -> NoReturn:
        """The gang waits at its instruction."""
        self.hold(cause, gang, keys, what)
        raise Finished

    def hold(self, cause: Cause, gang: Gang, keys: Array, what: str) -> None:
        """Some warps of the running gang wait; the others go on."""
        self.parked[cause].append(Parked(gang, keys, what))

    def wake(self, cause: Cause, keys: Array) -> None:
        """What these keys stand for has happened."""
        self.early = 0
        kept: list[Parked] = []
        for entry in self.parked[cause]:
            awake = np.isin(entry.keys, keys).any(1)
            if awake.any():
                self.put(entry.gang.part(np.flatnonzero(awake)))
            if not awake.all():
                asleep = np.flatnonzero(~awake)
                kept.append(Parked(entry.gang.part(asleep), entry.keys[asleep], entry.what))
        self.parked[cause] = kept

    def expire(self) -> bool:
        """Nobody can run: waits for mbarriers end with nothing, a few times."""
        entries = self.parked["mbarrier"]
        if not entries or self.early >= PATIENCE:
            return False
        self.early += 1
        self.parked["mbarrier"] = []
        for entry in entries:
            self.expired[entry.gang.warps] = True
            self.put(entry.gang)
        return True

    def describe(self, cause: Cause, entry: Parked) -> str:
        """What the entry waits for, as it stands now."""
        return entry.what

    def report_stuck(self) -> None:
        super().report_stuck()
        for cause, entries in self.parked.items():
            for entry in entries:
                self.position = entry.gang.position
                self.report("deadlock", entry.gang, entry.gang.mask, self.describe(cause, entry))
