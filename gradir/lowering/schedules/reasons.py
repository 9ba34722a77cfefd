"""Why a kernel has the schedule that it has, in one line for people: `gradir.reason` of a kernel, shown by `explain`.

A reason is a pure function of the group, the machine and the schedule, so that it also describes a schedule that somebody else chose.
One function per kind; a strategy that has more to say adds it where the decision is made and is asked from here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gradir.dialects.kernel import Schedule
from gradir.dialects.target import CudaTargetAttr
from gradir.lowering.groups import Group
from gradir.lowering.schedules.chain import traffic_of
from gradir.lowering.schedules.gpu_attention import reason_gpu_chain
from gradir.lowering.schedules.gpu_contraction import reason_gpu_contraction
from gradir.lowering.schedules.gpu_elementwise import reason_gpu_elementwise
from gradir.lowering.schedules.gpu_rows import reason_gpu_rows
from gradir.lowering.schedules.machine import Machine, bytes_of

Reason = Callable[[Group, Machine, Schedule], str]


def reason_contraction(group: Group, machine: Machine, schedule: Schedule) -> str:
    """`6 x 16 accumulators in 12 of 16 registers; operand 1 copied into panels; blocks of 96 rows by 256 columns; ...`"""
    assert group.contraction is not None
    size = bytes_of(group.ops[group.contraction.index].output)
    rows, columns = (*schedule.field("tile"), 1, 1)[:2]
    used = rows * -(-columns // machine.lanes_of(size))
    parts = [f"{rows} x {columns} accumulators in {used} of {machine.registers} registers"]
    parts += [f"operand {k} copied into panels" for k in schedule.field("pack")]
    block = (*schedule.field("block"), 0, 0, 0)[:3]
    sides = [f"{count} {name}" for count, name in zip(block, ("rows", "columns")) if count]
    parts += [f"blocks of {' by '.join(sides)}"] if sides else []
    parts += [f"results visited every {block[2]} steps of k"] if block[2] else []
    return "; ".join([*parts, *_threads(schedule)])


def reason_elementwise(group: Group, machine: Machine, schedule: Schedule) -> str:
    """`one pass, 16 elements a step`"""
    return "; ".join([f"one pass, {_last_tile(schedule)} elements a step", *_streams(schedule), *_threads(schedule)])


def reason_rows(group: Group, machine: Machine, schedule: Schedule) -> str:
    """`rows swept 2 times, 4 accumulators of 8 lanes`"""
    assert group.rows is not None
    count, lanes = (*schedule.field("tile"), 1, 1)[:2]
    sweeps = group.rows.sweeps
    parts = [f"rows swept {sweeps} time{'s' * (sweeps != 1)}, {count} accumulators of {lanes} lanes"]
    return "; ".join([*parts, *_streams(schedule), *_threads(schedule)])


def reason_loops(group: Group, machine: Machine, schedule: Schedule) -> str:
    """`no other kind takes this nest: plain loops, vectors of 8`"""
    return f"no other kind takes this nest: plain loops, vectors of {_last_tile(schedule)}"


def reason_chain(group: Group, machine: Machine, schedule: Schedule) -> str:
    """`3 stages over blocks of 64 rows, strips of 128 KiB instead of 12.0 MiB; threads share dimension 1`"""
    assert group.chain is not None
    traffic = traffic_of(group)
    rows = (*schedule.field("block"), 1)[0]
    strips, saved = rows * traffic.strip_row / 1024, traffic.saved / (1 << 20)
    parts = [f"{len(group.chain.stages)} stages over blocks of {rows} rows, strips of {strips:.0f} KiB instead of {saved:.1f} MiB"]
    return "; ".join([*parts, *_threads(schedule)])


def _last_tile(schedule: Schedule) -> int:
    return (1, *schedule.field("tile"))[-1]


def _streams(schedule: Schedule) -> list[str]:
    return [f"result {k} is too large for the caches: stored past them" for k in schedule.field("stream")]


def _threads(schedule: Schedule) -> list[str]:
    return [f"threads share dimension {d}" for d in schedule.field("parallel")]


REASONS: Mapping[str, Reason] = {
    "contraction": reason_contraction,
    "elementwise": reason_elementwise,
    "rows": reason_rows,
    "loops": reason_loops,
    "chain": reason_chain,
}
"""Kind -> why; asked by `schedule-kernels` for every schedule that a heuristic wrote."""

GPU_REASONS: Mapping[str, Callable[[Group, CudaTargetAttr, Any], str]] = {
    "contraction": reason_gpu_contraction,
    "elementwise": reason_gpu_elementwise,
    "rows": reason_gpu_rows,
    "chain": reason_gpu_chain,
}
"""The same for schedules of `GPU_HEURISTICS`."""
