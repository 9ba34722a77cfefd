"""The plan of a program's memory: which buffer lies where, for how long, what made it, and what kernels take beside it.

Filled by `gradir.driver.planned_memory`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from gradir.driver.memory_page import page_text, table_text


@dataclass(frozen=True)
class Buffer:
    """One buffer: `begin` and `end` are the first and last step (kernel call or copy) that touches it.

    `place` is "arena", or "result K" for one that lies at the beginning of the memory of result number K before that is written.
    """

    type: str
    bytes: int
    offset: int
    begin: int
    end: int
    made_by: str
    location: str
    place: str = "arena"


@dataclass(frozen=True)
class Step:
    """One kernel call or copy of the function, in order. `scratch`: bytes that the kernel allocates while it runs."""

    kernel: str
    location: str
    scratch: int = 0


@dataclass(frozen=True)
class FunctionMemory:
    """The memory of one function beside its arguments and results.

    `peak` is the greatest number of bytes of the arena that are live at once: no arena for these buffers is smaller. `unshared` is what all
    buffers would take without sharing, `results` what the caller's arrays for the results take. `run_time` counts buffers whose sizes only
    the run knows.
    """

    function: str
    arena: int
    peak: int
    unshared: int
    results: int
    run_time: int
    work: tuple[Step, ...]
    buffers: tuple[Buffer, ...]
    donated: tuple[str, ...] = ()
    """What became of each argument whose memory was given away: `w: result 1`, or why it is kept."""

    @property
    def steps(self) -> int:
        """How many kernel calls and copies there are."""
        return len(self.work)

    @property
    def scratch(self) -> int:
        """The most bytes that a kernel allocates while it runs."""
        return max((step.scratch for step in self.work), default=0)

    @property
    def planned(self) -> int:
        """The most bytes that a call takes beside arguments and results, but for buffers whose sizes only the run knows."""
        return self.arena + self.scratch

    def live_at(self, step: int) -> int:
        """Bytes of the arena that are live at one step."""
        return sum(b.bytes for b in self.buffers if b.place == "arena" and b.begin <= step <= b.end)

    @property
    def timeline(self) -> tuple[int, ...]:
        """Bytes of the arena that are live at each step."""
        changes = [0] * (self.steps + 1)
        for b in self.buffers:
            if b.place == "arena" and self.steps:
                changes[b.begin] += b.bytes
                changes[b.end + 1] -= b.bytes
        live: list[int] = []
        for change in changes[: self.steps]:
            live.append((live[-1] if live else 0) + change)
        return tuple(live)

    def dict(self) -> Mapping[str, Any]:
        """The same as plain numbers, texts and lists, with the sums."""
        return {**asdict(self), "scratch": self.scratch, "planned": self.planned, "timeline": list(self.timeline)}


@dataclass(frozen=True)
class MemoryReport:
    """The plans of all functions. `str(report)` is a table with a timeline, largest buffers first; `html()` a page with a picture."""

    functions: tuple[FunctionMemory, ...] = ()

    def __str__(self) -> str:
        return "\n".join(table_text(function) for function in self.functions) or "no functions\n"

    def dict(self) -> Mapping[str, Any]:
        """The same as plain numbers, texts and lists."""
        return {"functions": [function.dict() for function in self.functions]}

    def json(self) -> str:
        """`dict()` as JSON."""
        return json.dumps(self.dict(), indent=1)

    def html(self) -> str:
        """A page of its own: for each function the buffers as boxes over time and offset, the live bytes at each step, the table."""
        return page_text(self.functions)
