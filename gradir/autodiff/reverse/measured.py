"""What a trial run of reverse mode tells about loops and calls, for those who choose their policies (`gradir.autodiff.budget`)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation, SSAValue

from gradir.autodiff.reverse.report import bytes_of, sum_of
from gradir.size_algebra import Dim

SITE = "gradir.site"
"""In a trial alone: the number of a loop or call."""


@dataclass(frozen=True)
class Site:
    """A loop that runs `trips` times, saves `iteration` bytes each time, and could run again from `state` bytes."""

    trips: Dim
    iteration: Dim
    state: Dim


@dataclass
class Measured:
    """Sites by number; `counted` are the values that hold what a site saves: whoever saves them in turn does not count them again."""

    sites: dict[int, Site] = field(default_factory=dict[int, Site])
    counted: set[SSAValue] = field(default_factory=set[SSAValue])
    straight: Dim = 0
    """Bytes that the function keeps outside of its sites."""

    def own(self, values: Iterable[SSAValue]) -> Dim:
        """Bytes of those that no site holds."""
        return sum_of(bytes_of(v.type) for v in values if v not in self.counted)

    def add(self, op: Operation, trips: Dim, iteration: Dim, state: Dim) -> None:
        """What was found of a loop or call that has a number."""
        number = site_of(op)
        if number is not None:
            self.sites[number] = Site(trips, iteration, state)

    def hold(self, op: Operation, holders: Iterable[SSAValue]) -> None:
        """`holders` hold what the numbered `op` saves."""
        if site_of(op) is not None:
            self.counted.update(holders)


def site_of(op: Operation) -> int | None:
    """The number of a loop or call in a trial."""
    found = op.attributes.get(SITE)
    return found.value.data if isinstance(found, IntegerAttr) else None
