"""The paths of lanes: gangs of warps part at branches, meet at post-dominators, end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from gradir.ptx.flow import meeting_points
from gradir.ptx.operands import Operands
from gradir.ptx.state import Frame, Gang

Array = np.ndarray[Any, np.dtype[Any]]


class Finished(Exception):
    """The gang that was being run is gone from its place: it waits, ended or parted."""


class Paths(Operands):
    """Gangs that can run, by their shapes, and how they part and become one again."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.meet = meeting_points(self.function)
        self.runnable: dict[tuple[Any, ...], list[Gang]] = {}

    def lanes_ended(self) -> None:
        """Lanes are done: whoever waits for all that are left may go on."""

    def put(self, gang: Gang) -> None:
        """The gang can run on from where it is."""
        if len(gang.warps):
            self.runnable.setdefault(gang.shape(), []).append(gang)

    def _meet(self, gang: Gang) -> Gang:
        """Lanes have come to where their branch ends: the others have their turn, or all go on together."""
        frame = gang.frames[-1]
        frame.joined |= gang.mask
        if frame.pending is not None:
            gang.mask, gang.position, frame.pending, frame.other = frame.pending, frame.other, None, -1
            return gang
        gang.frames.pop()
        gang.mask = frame.joined
        return gang

    def branch(self, gang: Gang, taken: Array, goal: int) -> None:
        """Go on at `goal` with the lanes `taken`, behind the branch with the others."""
        yes = gang.mask & taken
        no = gang.mask & ~taken
        some_yes, some_no = yes.any(1), no.any(1)
        if not some_no.any():
            gang.position = goal - 1
            return
        if not some_yes.any():
            return
        behind = gang.position + 1
        for chosen, position in ((some_yes & ~some_no, goal), (some_no & ~some_yes, behind)):
            if chosen.any():
                part = gang.part(np.flatnonzero(chosen))
                part.position = position
                self.put(part)
        both = np.flatnonzero(some_yes & some_no)
        if len(both):
            part = gang.part(both)
            self._part(part, yes[both], no[both], goal, behind, self.meet[gang.position])
            self.put(part)
        raise Finished

    def branch_many(self, gang: Gang, ways: Sequence[tuple[Array, int]]) -> NoReturn:
        """Lanes of a gang go to several places: one way at a time, those that are left come back to the same instruction."""
        taken, goal = ways[0]
        meet = self.meet[gang.position]
        yes, no = gang.mask & taken, gang.mask & ~taken
        for chosen, position in ((yes.any(1) & ~no.any(1), goal), (~yes.any(1), gang.position)):
            if chosen.any():
                part = gang.part(np.flatnonzero(chosen))
                part.position = position
                self.put(part)
        both = np.flatnonzero(yes.any(1) & no.any(1))
        if len(both):
            part = gang.part(both)
            self._part(part, yes[both], no[both], goal, gang.position, meet)
            self.put(part)
        raise Finished

    def _part(self, gang: Gang, yes: Array, no: Array, goal: int, behind: int, meet: int) -> None:
        top = gang.frames[-1] if gang.frames else None
        if top is None or top.meet != meet or top.pending is not None:
            top = Frame(meet, np.zeros_like(yes))
            gang.frames.append(top)
        if goal == meet:
            top.joined |= yes
            gang.mask, gang.position = no, behind
        elif behind == meet:
            top.joined |= no
            gang.mask, gang.position = yes, goal
        else:
            top.pending, top.other = yes, goal
            gang.mask, gang.position = no, behind

    def end(self, gang: Gang, lanes: Array) -> None:
        """These lanes are done; others of their warps go on."""
        self.alive[gang.warps] &= ~lanes
        self.changes += 1
        self.leave(gang, lanes)
        self.lanes_ended()
        raise Finished

    def leave(self, gang: Gang, lanes: Array) -> None:
        """The other lanes go on behind this instruction; warps that have none go on with whoever waits on their stacks."""
        rest = gang.mask & ~lanes
        some = rest.any(1)
        if some.any():
            part = gang.part(np.flatnonzero(some))
            part.mask = rest[some]
            part.position += 1
            self.put(part)
        if not some.all():
            self.unwind(gang.part(np.flatnonzero(~some)))

    def unwind(self, gang: Gang) -> None:
        """No lane of these warps is active: whoever waits on their stacks goes on."""
        while gang.frames and len(gang.warps):
            frame = gang.frames[-1]
            if frame.pending is not None:
                gang.mask, gang.position, frame.pending, frame.other = frame.pending, frame.other, None, -1
                self.put(gang)
                return
            gang.frames.pop()
            some = frame.joined.any(1)
            if some.any():
                chosen = np.flatnonzero(some)
                self.go_on(gang.part(chosen), frame.part(chosen))
            gang = gang.part(np.flatnonzero(~some))

    def go_on(self, gang: Gang, frame: Frame) -> None:
        """Lanes that waited on the stack run again from where they meet."""
        gang.mask, gang.position = frame.joined, frame.meet
        self.put(gang)

    def keep(self, gang: Gang, chosen: Array) -> Gang:
        """Some of the gang's warps; the others run on from where they are."""
        self.put(gang.part(np.flatnonzero(~chosen)))
        return gang.part(np.flatnonzero(chosen))

    def concerned(self, gang: Gang, mask: Array) -> tuple[Gang, Array]:
        """The warps some lane of which executes the instruction; the others go on behind it."""
        some = mask.any(1)
        if some.all():
            return gang, mask
        others = gang.part(np.flatnonzero(~some))
        others.position += 1
        self.put(others)
        return gang.part(np.flatnonzero(some)), mask[some]

    def pass_on(self, gang: Gang) -> NoReturn:
        """These warps go on behind the instruction, apart from those of their gang that were not concerned."""
        gang.position += 1
        self.put(gang)
        raise Finished
