"""Decisions into programs: between outlining and scheduling, each kernel that the tuner has decided about gets its choice.

`schedule-kernels` leaves a schedule that has fields alone; a library's call takes the kernel's place. No clock is read: equal decisions,
equal code.
"""

from __future__ import annotations

from collections.abc import Collection

from xdsl.dialects.builtin import ModuleOp, StringAttr

from gradir.dialects.kernel import KERNEL_ATTRIBUTE, KINDS, REASON_ATTRIBUTE, Schedule
from gradir.dialects.target import CpuTargetAttr, target_of
from gradir.dialects.upstream.func import FuncOp
from gradir.driver.cache import digest
from gradir.driver.kernels import Structure
from gradir.driver.tuning.records import Record, Records
from gradir.lowering.library_contraction import call_library, library_form


def tuning_key(kernel: FuncOp) -> str:
    """The key of a level-2 kernel: its structure, whatever its schedule."""
    schedule = kernel.attributes[KERNEL_ATTRIBUTE]
    assert isinstance(schedule, Schedule)
    kernel.attributes[KERNEL_ATTRIBUTE] = KINDS[schedule.kind].of()
    try:
        return digest("tune", Structure().of(kernel))[:32]
    finally:
        kernel.attributes[KERNEL_ATTRIBUTE] = schedule


def is_open(function: object) -> bool:
    """Is it a kernel with a body whose schedule nobody has chosen by hand?"""
    if not isinstance(function, FuncOp) or not function.body.blocks:
        return False
    schedule = function.attributes.get(KERNEL_ATTRIBUTE)
    return isinstance(schedule, Schedule) and bool(schedule.FIELDS) and not any(schedule.field(name) for name in schedule.FIELDS)


def apply_records(module: ModuleOp, records: Records, keys: Collection[str] | None = None) -> list[Record]:
    """Put the decisions for the kernels of a level-2 module in (of those `keys` alone where they are given); those that were used."""
    target = target_of(module)
    if not isinstance(target, CpuTargetAttr) or not records.known(str(target)):
        return []
    used: list[Record] = []
    for kernel in list(module.body.block.ops):
        if not is_open(kernel):
            continue
        assert isinstance(kernel, FuncOp)
        key = tuning_key(kernel)
        record = records.find(str(target), key) if keys is None or key in keys else None
        if record is not None and put(module, kernel, record, target.threads):
            used.append(record)
    return used


def put(module: ModuleOp, kernel: FuncOp, record: Record, threads: int) -> bool:
    """One decision for one kernel; false where this version cannot follow it."""
    if record.choice.library:
        spec = library_form(kernel)
        if spec is None:
            return False
        call_library(module, kernel, spec, threads, record.reason)
        return True
    schedule = record.choice.schedule()
    if schedule is None:
        return False
    if record.changed:
        kernel.attributes[KERNEL_ATTRIBUTE] = schedule
    kernel.attributes[REASON_ATTRIBUTE] = StringAttr(record.reason)
    return True


__all__ = ["apply_records", "is_open", "put", "tuning_key"]
