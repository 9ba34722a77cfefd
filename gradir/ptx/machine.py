"""Runs one batch of resident blocks: gangs of warps step by step until all have ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, TypeAlias

import numpy as np

from gradir.errors import GradirError
from gradir.ptx.bulk import READERS, WRITERS, Bulk, Layout
from gradir.ptx.flow import EXIT
from gradir.ptx.mbarriers import Mbarriers
from gradir.ptx.paths import Finished
from gradir.ptx.pending import CELL, Pending
from gradir.ptx.state import Gang, united
from gradir.ptx.syntax import Function
from gradir.ptx.tensor_maps import PIECE
from gradir.ptx.waiting import Cause, Parked, Waiting

Array = np.ndarray[Any, np.dtype[Any]]
Step: TypeAlias = Callable[["Machine", Gang, Array], None]
"""One instruction, ready to run: for the lanes of the mask (all that are active and whose predicate holds)."""

GENERATIONS, STEPS = 1 << 22, 1 << 24
"""Turns of gangs, and instructions in all, after which a launch is taken to run for ever."""
TURN = 1 << 10
"""Instructions of a gang until it is somebody else's turn, where warps run in order."""
ROUNDS, SHUFFLED_ROUNDS = 8, 512
"""How often all gangs ask in vain whether something happened, until it is sure that nothing will."""


def agents_of(function: Function) -> int:
    """Agents of bulk copies that a kernel needs: none where it does nothing behind its warps' backs."""
    found = any(op.opcode[0] in ("wgmma", "mbarrier") or "bulk" in op.opcode for op in function.body)
    return WRITERS + READERS if found else 0


class Machine(Waiting):
    """The state of a batch, and the order in which its gangs run."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.pending = Pending(self.warps, -(-self.blocks.shared.size // CELL))
        self.mbarriers = Mbarriers(self.blocks.count, self.history)
        layout = Layout(-(-self.blocks.shared.size // PIECE)) if self.agents else None
        self.bulk = Bulk(self.warps, self.history.columns - self.history.peers - self.agents, layout)
        self.cluster_arrivals = np.zeros((self.warps, 2), np.int64)
        """Of each warp, how often it has arrived at, and waited for, the barrier of its cluster."""
        self.asking: list[Gang] = []
        """Gangs that only asked for something in their last turn, and changed nothing."""
        self.rounds, self.seen, self.taken = 0, 0, 0

        self._told: dict[tuple[int, int], Array] = {}

    def cluster_told(self, warp: int, *, relaxed: bool) -> None:
        """A warp has arrived at the barrier of its cluster: what it knows will be known to all that wait."""
        if relaxed:
            return
        key = (warp // self.history.peers, int(self.cluster_arrivals[warp, 0]))
        clocks = self.history.clocks[warp]
        before = self._told.get(key)
        self._told[key] = clocks.copy() if before is None else np.maximum(before, clocks)

    def cluster_seen(self, warp: int) -> None:
        """A warp has waited at the barrier of its cluster."""
        told = self._told.get((warp // self.history.peers, int(self.cluster_arrivals[warp, 1]) + 1))
        if told is not None:
            self.history.learn(np.array([warp]), told[None])

    def lanes_ended(self) -> None:
        super().lanes_ended()
        if self.parked["cluster"]:
            self.wake("cluster", np.arange(self.blocks.count))

    def run(self) -> None:
        """Until every warp has ended; gangs that wait for one another for ever are reported."""
        everyone = np.flatnonzero(self.alive.any(1))
        self.put(Gang(everyone, self.alive[everyone].copy(), 0))
        for _ in range(GENERATIONS):
            gang = self._next()
            if gang is None:
                self._ended()
                return
            self._advance(gang)
        self._for_ever()

    def _next(self) -> Gang | None:
        if not self.runnable and self.asking:
            self.rounds = self.rounds + 1 if self.seen == self.changes else 0
            self.seen = self.changes
            if self.rounds > (SHUFFLED_ROUNDS if self.shuffle else ROUNDS):
                for gang in self.asking:
                    self.position = gang.position
                    self.report("deadlock", gang, gang.mask, "asks again and again, and nobody changes anything")
                self.asking = []
            for gang in self.asking:
                self.put(gang)
            self.asking = []
        if not self.runnable and not self.expire():
            self.report_stuck()
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

    def _ended(self) -> None:
        self.bulk.finish(self)
        for key, flying in self.mbarriers.copies.items():
            if flying:
                block = key % self.blocks.count
                self.position = int(self.mbarriers.made_place[divmod(key, self.blocks.count)])
                warp = np.array([block * self.blocks.per_block])
                what = f"{len(flying)} copies that count at the mbarrier were never waited for"
                self.report_of("unwaited copy", warp, np.zeros(1, np.int64), what)

    def describe(self, cause: Cause, entry: Parked) -> str:
        if cause != "mbarrier":
            return entry.what
        key = int(entry.keys.max())
        return f"{entry.what} {self.mbarriers.state(*divmod(key, self.blocks.count))}"

    def _advance(self, gang: Gang) -> None:
        """Run a gang until it parts, waits or ends; in shuffled order, for a few instructions only."""
        budget = int(self.random.integers(1, 24)) if self.shuffle else TURN
        changes, polls = self.changes, self.polls
        body, steps = self.function.body, self.steps
        try:
            while budget:
                budget -= 1
                self.taken += 1
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
        if self.taken > STEPS:
            self._for_ever()
        if self.changes == changes and self.polls > polls:
            self.asking.append(gang)
        else:
            self.put(gang)

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
