"""What `explain` found: one row per kernel, as a table for people, a dict, JSON, and the events of one run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from gradir.driver.limits import Limits

if TYPE_CHECKING:
    from rich.table import Table

COLUMNS = ("kernel", "at", "strategy", "thr", "calls", "flop", "bytes", "flop/B", "bound", "time", "share", "of bound", "why")
_RIGHT = frozenset(COLUMNS) - {"kernel", "at", "strategy", "why"}


@dataclass(frozen=True)
class KernelRow:
    """One kernel in one run of the program: all its calls together. Seconds are medians over runs; None: not measured, or not known.

    `schedule` has the fields of the kernel's attribute, `choice` says who wrote it: the heuristic, the tuner, or by hand. `bound` are the
    least seconds of all calls, `bound_by` what takes them (compute, or a place in memory).
    """

    name: str
    kind: str
    schedule: Mapping[str, Sequence[int]]
    choice: str
    reason: str
    locations: tuple[str, ...]
    calls: int | None = None
    threads: int = 1
    flops: int | None = None
    bytes_read: int | None = None
    bytes_written: int | None = None
    dtype: str = "f32"
    bound: float | None = None
    bound_by: str = ""
    seconds: float | None = None
    share: float | None = None

    @property
    def bytes(self) -> int | None:
        return None if self.bytes_read is None or self.bytes_written is None else self.bytes_read + self.bytes_written

    @property
    def intensity(self) -> float | None:
        """Operations per byte."""
        return self.flops / self.bytes if self.flops is not None and self.bytes else None

    @property
    def of_bound(self) -> float | None:
        """The part of the possible speed that was reached: bound over time."""
        return self.bound / self.seconds if self.bound is not None and self.seconds else None

    @property
    def strategy(self) -> str:
        """`contraction tile 6x16 pack 1`"""
        fields = (f"{name} {'x'.join(map(str, values))}" for name, values in self.schedule.items() if values)
        return " ".join([self.kind, *fields])

    def to_dict(self) -> dict[str, Any]:
        """All fields and what follows from them, as a JSON value."""
        return {**asdict(self), "bytes": self.bytes, "intensity": self.intensity, "of_bound": self.of_bound, "strategy": self.strategy}


@dataclass(frozen=True)
class Event:
    """Something of one run: a call of a kernel (on the thread 0) or a chunk of its parallel loop; microseconds since the run began."""

    name: str
    thread: int
    begin: float
    duration: float
    location: str
    chunk: bool = False


@dataclass(frozen=True)
class Explanation:
    """What runs in one function, why so, and how far it is from the machine's limits. Print it for a table."""

    function: str
    target: str
    threads: int
    rows: tuple[KernelRow, ...]
    runs: int = 0
    seconds: float | None = None
    """Median of a run with marks."""
    plain_seconds: float | None = None
    """Median of a run without: what the marks cost is the difference."""
    limits: Limits | None = None
    events: tuple[Event, ...] = field(default=(), repr=False)
    dropped: int = 0

    @property
    def rest(self) -> float | None:
        """Seconds of a run outside of all kernels: the call, loops around kernels, the marks."""
        if self.seconds is None:
            return None
        return max(0.0, self.seconds - sum(row.seconds or 0.0 for row in self.rows))

    def to_dict(self) -> dict[str, Any]:
        """A JSON value: totals, kernels, limits. Events are in `trace`."""
        return {
            "function": self.function,
            "target": self.target,
            "threads": self.threads,
            "runs": self.runs,
            "seconds": self.seconds,
            "plain_seconds": self.plain_seconds,
            "rest": self.rest,
            "kernels": [row.to_dict() for row in self.rows],
            "limits": None if self.limits is None else self.limits.to_json(),
            "dropped_events": self.dropped,
        }

    def to_json(self) -> str:
        """`to_dict` as text."""
        return json.dumps(self.to_dict(), indent=1)

    def title(self) -> str:
        """One line: what was measured."""
        ran = "not run" if self.seconds is None else f"{duration_text(self.seconds)} a run (median of {self.runs})"
        if self.plain_seconds is not None:
            ran += f", {duration_text(self.plain_seconds)} without marks"
        return f"@{self.function} on {self.target}, {self.threads} thread{'s' * (self.threads != 1)}: {ran}"

    def cells(self) -> list[tuple[str, ...]]:
        """The table's rows as text, the most time first; the last is what lies outside of kernels."""
        rows = [_cells(row) for row in self.rows]
        if self.rest is not None and self.seconds:
            rest: dict[str, str] = dict.fromkeys(COLUMNS, "")
            rest |= {"kernel": "(between kernels)", "time": duration_text(self.rest), "share": f"{self.rest / self.seconds:.1%}"}
            rows.append(tuple(rest.values()))
        return rows

    def __str__(self) -> str:
        table = [COLUMNS, *self.cells()]
        widths = [max(len(row[k]) for row in table) for k in range(len(COLUMNS))]
        lines = [self.title()]
        for row in table:
            cells = (c.rjust(w) if name in _RIGHT else c.ljust(w) for name, c, w in zip(COLUMNS, row, widths))
            lines.append("  " + "  ".join(cells).rstrip())
        if self.dropped:
            lines.append(f"  {self.dropped} events did not fit into the recording: times of kernels are too small")
        return "\n".join(lines) + "\n"

    def __rich__(self) -> Table:
        from rich.table import Table  # 60 ms, only for a terminal

        table = Table(title=self.title(), title_justify="left", header_style="bold")
        for name in COLUMNS:
            table.add_column(name, justify="right" if name in _RIGHT else "left", no_wrap=name in _RIGHT, overflow="fold")
        for row in self.cells():
            table.add_row(*row)
        return table


def _cells(row: KernelRow) -> tuple[str, ...]:
    more = f" +{len(row.locations) - 1}" if len(row.locations) > 1 else ""
    share, part, intensity = row.share, row.of_bound, row.intensity
    return (
        row.name,
        (short_place(row.locations[0]) + more) if row.locations else "",
        row.strategy,
        str(row.threads),
        "" if row.calls is None else str(row.calls),
        "?" if row.flops is None else count_text(row.flops),
        "?" if row.bytes is None else count_text(row.bytes),
        "" if intensity is None else f"{intensity:.3g}",
        "" if row.bound is None else f"{duration_text(row.bound)} {row.bound_by}",
        "" if row.seconds is None else duration_text(row.seconds),
        "" if share is None else f"{share:.1%}",
        "" if part is None else f"{part:.0%}",
        row.reason or row.choice,
    )


def short_place(location: str) -> str:
    """`model.py:12` of a path with line and column."""
    path, _, rest = location.rpartition("/")
    place = rest if path else location
    head, colon, last = place.rpartition(":")
    return head if colon and last.isdigit() and ":" in head else place


def count_text(number: float) -> str:
    """Three digits and a unit: 12.6M"""
    for size, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g}{unit}"
    return f"{number:.0f}"


def duration_text(seconds: float) -> str:
    """Three digits and a unit: 12.6 us"""
    for size, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.0f} ns"


__all__ = ["COLUMNS", "Event", "Explanation", "KernelRow", "count_text", "duration_text", "short_place"]
