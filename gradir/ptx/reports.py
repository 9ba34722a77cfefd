"""What the emulator has to say about a launch: mistakes, each with its place, and the error that they become."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from gradir.errors import GradirError
from gradir.ptx.advice import Traffic
from gradir.ptx.syntax import Instruction, Source

Kind: TypeAlias = Literal[
    "race",
    "out of bounds",
    "misaligned",
    "uninitialised read",
    "unwaited copy",
    "unwaited wgmma",
    "missing fence",
    "bad mbarrier",
    "bad layout",
    "bad registers",
    "divergent sync",
    "deadlock",
    "bad barrier",
    "trap",
    "assertion",
]


@dataclass(frozen=True, slots=True)
class Report:
    """One finding: its kind, the instruction (position, text, source), the lane, what was found, and of a race the other access."""

    kind: Kind
    kernel: str
    position: int
    instruction: str
    source: Source
    message: str
    block: tuple[int, int, int] | None = None
    thread: tuple[int, int, int] | None = None
    other: tuple[int, str, Source] | None = None

    def __str__(self) -> str:
        where = f"@{self.kernel} {self.source}: {self.instruction}"
        who = f" [block {self.block}, thread {self.thread}]" if self.thread is not None else ""
        also = f"\n  with {self.other[2]}: {self.other[1]}" if self.other is not None else ""
        return f"{self.kind}: {self.message}\n  at {where}{who}{also}"


@dataclass
class Reports:
    """The findings of a launch, each place once per kind: how often it happened is counted."""

    found: dict[tuple[str, int, int], Report] = field(default_factory=dict[tuple[str, int, int], Report])
    counts: dict[tuple[str, int, int], int] = field(default_factory=dict[tuple[str, int, int], int])
    printed: list[str] = field(default_factory=list[str])
    """What the kernel printed, one call after the other."""
    traffic: dict[int, Traffic] | None = None
    """What each instruction moved, where advice was asked for."""

    def add(self, report: Report, times: int = 1) -> None:
        """Keep the first of its kind at its place."""
        key = (report.kind, report.position, report.other[0] if report.other is not None else -1)
        self.found.setdefault(key, report)
        self.counts[key] = self.counts.get(key, 0) + times

    def moved(self, space: str, position: int, op: Instruction, found: tuple[int, int, int]) -> None:
        """Count an access of warps: (warps, moved, least)."""
        if self.traffic is not None:
            entry = self.traffic.setdefault(position, Traffic(space, op.name, op.source))
            entry.warps, entry.moved, entry.least = (a + b for a, b in zip((entry.warps, entry.moved, entry.least), found))

    @property
    def advice(self) -> list[Traffic]:
        """Instructions that move more than they need to, the worst first."""
        wasteful = [entry for entry in (self.traffic or {}).values() if entry.excess > 0]
        return sorted(wasteful, key=lambda entry: -entry.excess)

    @property
    def mistakes(self) -> list[Report]:
        """Findings that make the launch wrong."""
        return list(self.found.values())


def launch_failed(reports: Iterable[Report]) -> GradirError:
    """The error of a launch with mistakes."""
    listed = list(reports)
    first = listed[0]
    return GradirError(
        f"{first.kind} in @{first.kernel}: {first.message}",
        part="operator",
        code="OP062",
        function=f"@{first.kernel}",
        location=str(first.source),
        expected="a launch that nothing is reported of",
        found="\n".join(str(report) for report in listed[:8]) + (f"\n... and {len(listed) - 8} more" if len(listed) > 8 else ""),
        hint="`launch(..., check=False)` runs on and returns the reports",
    )
