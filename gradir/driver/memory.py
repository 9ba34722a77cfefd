"""The plan of a program's memory: which buffer lies where in the arena, for how long, and what made it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from gradir.dialects.types import type_text
from gradir.dialects.upstream import memref
from gradir.dialects.upstream.func import CallOp, FuncOp
from gradir.ir.passes import location_text
from gradir.lowering.plan_memory import RESULTS, Interval, peak, plan_of

BARS = 48
"""Columns of the timeline."""


@dataclass(frozen=True)
class Buffer:
    """One buffer of the arena: `begin` and `end` are the first and last step (kernel call or copy) that touches it."""

    type: str
    bytes: int
    offset: int
    begin: int
    end: int
    made_by: str
    location: str


@dataclass(frozen=True)
class FunctionMemory:
    """The arena of one function. `peak` is the greatest number of bytes that are live at once: no arena is smaller.

    `unshared` is what the buffers would take without sharing, `run_time` counts buffers whose sizes only the run knows.
    """

    function: str
    arena: int
    peak: int
    unshared: int
    steps: int
    run_time: int
    buffers: tuple[Buffer, ...]

    def live_at(self, step: int) -> int:
        """Bytes that are live at one step."""
        return sum(b.bytes for b in self.buffers if b.begin <= step <= b.end)


@dataclass(frozen=True)
class MemoryReport:
    """The plans of all functions. `str(report)` is a table with a timeline, largest buffers first."""

    functions: tuple[FunctionMemory, ...] = ()

    def __str__(self) -> str:
        return "\n".join(_table(function) for function in self.functions) or "no functions\n"


def memory_of(module: ModuleOp) -> MemoryReport:
    """What `plan-memory` makes of a module at level 3."""
    entries = [op for op in module.body.block.ops if isinstance(op, FuncOp) and RESULTS in op.attributes]
    return MemoryReport(tuple(_memory_of(entry) for entry in entries))


def _memory_of(entry: FuncOp) -> FunctionMemory:
    plan = plan_of(entry)
    intervals, offsets, total, run_time = plan.in_arena, plan.offsets, plan.total, plan.lifetimes.run_time_count
    time = plan.lifetimes.time
    work = sorted((time.start[op], op) for op in time.start if isinstance(op, CallOp | memref.CopyOp))
    starts = [start for start, _ in work]

    def buffer(i: Interval) -> Buffer:
        begin = min(bisect_left(starts, i.start), len(work) - 1)
        end = max(begin, bisect_right(starts, i.end) - 1)
        maker = work[begin][1] if work else i.alloc
        made_by = maker.callee.string_value() if isinstance(maker, CallOp) else maker.name
        return Buffer(type_text(i.alloc.memref.type), i.bytes, offsets[i], begin, end, made_by, location_text(maker.location))

    buffers = tuple(buffer(i) for i in intervals if i.bytes)
    unshared = sum(i.bytes for i in intervals)
    return FunctionMemory(entry.sym_name.data, total, peak(intervals), unshared, len(work), run_time, buffers)


def _table(plan: FunctionMemory) -> str:
    """One buffer a line, the largest first, with the steps in which it lives; then the totals."""
    head = ("bytes", "offset", "type", "made by", "at", f"steps 0 to {plan.steps - 1}")
    ordered = sorted(plan.buffers, key=lambda b: (-b.bytes, b.begin, b.offset))
    rows = [head, *((str(b.bytes), str(b.offset), b.type, f"@{b.made_by}", b.location, _bar(b, plan.steps)) for b in ordered)]
    widths = [max(len(row[k]) for row in rows) for k in range(len(head))]
    lines = [f"memory of @{plan.function}: arena {plan.arena} bytes, at most {plan.peak} live at once, {plan.unshared} without sharing"]
    for row in rows:
        cells = [cell.rjust(width) if k < 2 else cell.ljust(width) for k, (cell, width) in enumerate(zip(row, widths, strict=True))]
        lines.append("  " + "  ".join(cells).rstrip())
    if plan.run_time:
        lines.append(f"  and {plan.run_time} buffers whose sizes only the run knows")
    return "\n".join(lines) + "\n"


def _bar(buffer: Buffer, steps: int) -> str:
    """The life of a buffer on a line of `BARS` columns."""
    columns = min(BARS, steps)
    first, last = buffer.begin * columns // steps, buffer.end * columns // steps
    return "." * first + "#" * (last - first + 1) + "." * (columns - 1 - last)


__all__ = ["Buffer", "FunctionMemory", "MemoryReport", "memory_of"]
