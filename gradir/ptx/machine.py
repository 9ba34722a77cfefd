"""Runs one batch of resident blocks: gangs of warps step by step until all have ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, TypeAlias

import numpy as np

from gradir.errors import GradirError
from gradir.ptx.barriers import Barriers
from gradir.ptx.flow import EXIT
from gradir.ptx.paths import Finished
from gradir.ptx.pending import CELL, Pending
from gradir.ptx.state import Gang, united

Array = np.ndarray[Any, np.dtype[Any]]
Step: TypeAlias = Callable[["Machine", Gang, Array], None]
"""One instruction, ready to run: for the lanes of the mask (all that are active and whose predicate holds)."""

GENERATIONS, STEPS = 1 << 22, 1 << 24
"""Turns of gangs, and instructions in all, after which a launch is taken to run for ever."""
TURN = 1 << 10
"""Instructions of a gang until it is somebody else's turn, where warps run in order."""
ROUNDS, SHUFFLED_ROUNDS = 8, 512
"""How often all gangs ask in vain whether something happened, until it is sure that nothing will."""


class Machine(Barriers):
    """The state of a batch, and the order in which its gangs run."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.pending = Pending(self.warps, -(-self.blocks.shared.size // CELL))
        self.asking: list[Gang] = []
        """Gangs that only asked for something in their last turn, and changed nothing."""
        self.rounds, self.seen, self.taken = 0, 0, 0

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
        if not self.runnable:
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
