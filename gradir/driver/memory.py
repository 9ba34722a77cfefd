"""The plan of a program's memory: which buffer lies where, for how long, what made it, and what kernels take beside it.

Filled from the module at level 3 before `plan-memory` (`memory_of`), and from kernels at level 4 for their scratch memory (`with_scratch`).
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from gradir.dialects.donation import donation_notes
from gradir.dialects.types import type_text
from gradir.dialects.upstream import memref
from gradir.dialects.upstream.func import CallOp, FuncOp
from gradir.driver.memory_page import page_text, table_text
from gradir.ir.passes import location_text
from gradir.lowering.plan_memory import RESULTS, Interval, peak, plan_of
from gradir.lowering.plan_memory.scratch import scratch_of


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


def memory_of(module: ModuleOp) -> MemoryReport:
    """What `plan-memory` makes of a module at level 3."""
    entries = [op for op in module.body.block.ops if isinstance(op, FuncOp) and RESULTS in op.attributes]
    return MemoryReport(tuple(_memory_of(entry) for entry in entries))


def with_scratch(report: MemoryReport, module: ModuleOp, threads: int) -> MemoryReport:
    """`report` with what the kernels of `module` (level 4) allocate when `threads` run their parallel loops."""
    scratch = {f.sym_name.data: scratch_of(f, threads) for f in module.body.block.ops if isinstance(f, FuncOp)}
    return MemoryReport(
        tuple(
            replace(function, work=tuple(replace(step, scratch=scratch.get(step.kernel, 0)) for step in function.work))
            for function in report.functions
        )
    )


def _memory_of(entry: FuncOp) -> FunctionMemory:
    plan = plan_of(entry)
    time = plan.lifetimes.time
    work = sorted((time.start[op], op) for op in time.start if isinstance(op, CallOp | memref.CopyOp))
    starts = [start for start, _ in work]
    inputs = len(entry.body.block.args) - len(plan.destinations)

    def buffer(i: Interval) -> Buffer:
        begin = min(bisect_left(starts, i.start), len(work) - 1)
        end = max(begin, bisect_right(starts, i.end) - 1)
        maker = work[begin][1] if work else i.alloc
        where = f"result {plan.hosted[i].argument.index - inputs}" if i in plan.hosted else "arena"
        offset = plan.offsets.get(i, 0)
        return Buffer(type_text(i.alloc.memref.type), i.bytes, offset, begin, end, _name(maker), location_text(maker.location), where)

    return FunctionMemory(
        entry.sym_name.data,
        plan.total,
        peak(plan.in_arena),
        sum(i.bytes for i in plan.lifetimes.static),
        plan.result_bytes,
        plan.lifetimes.run_time_count,
        tuple(Step(_name(op), location_text(op.location)) for _, op in work),
        tuple(buffer(i) for i in plan.lifetimes.static if i.bytes),
        donation_notes(entry),
    )


def _name(op: Operation) -> str:
    return op.callee.string_value() if isinstance(op, CallOp) else op.name


__all__ = ["Buffer", "FunctionMemory", "MemoryReport", "Step", "memory_of", "with_scratch"]
