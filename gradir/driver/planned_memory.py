"""The report of a program's memory, from the module at level 3 before `plan-memory` and, for what kernels allocate, at level 4."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import replace

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from gradir.dialects.donation import donation_notes
from gradir.dialects.types import type_text
from gradir.dialects.upstream import memref
from gradir.dialects.upstream.func import CallOp, FuncOp
from gradir.driver.memory import Buffer, FunctionMemory, MemoryReport, Step
from gradir.ir.passes import location_text
from gradir.lowering.plan_memory import RESULTS, Interval, peak, plan_of
from gradir.lowering.plan_memory.scratch import scratch_of


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
