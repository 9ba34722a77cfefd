"""Tuning a program: its hot kernels one by one, then the whole of it with all decisions against none."""

from __future__ import annotations

import math
import re
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from gradir.dialects.kernel import KERNEL_ATTRIBUTE
from gradir.dialects.target import is_cuda, target_of
from gradir.dialects.upstream.func import FuncOp
from gradir.driver.cache import Cache, open_cache
from gradir.driver.compile import compile_watched
from gradir.driver.explain import Explanation, explain
from gradir.driver.explain.explanation import KernelRow, duration_text, short_place
from gradir.driver.explain.measure import Measure as Profile
from gradir.driver.explain.sample_inputs import sample_inputs, sizes_of_call
from gradir.driver.limits import Limits
from gradir.driver.options import Hooks
from gradir.driver.tuning.alternatives import Subject, subject_of
from gradir.driver.tuning.apply import apply_records, is_open, tuning_key
from gradir.driver.tuning.records import Record, Records
from gradir.driver.tuning.search import FINAL, Found, Tell, search
from gradir.driver.tuning.trials import Job, Measure, measure_in_child
from gradir.errors import GradirError
from gradir.runtime.donation import spared
from gradir.runtime.module import Function

SECONDS = 60.0
"""Default budget."""
LEAST_SHARE = 0.01
"""Kernels with less of the time are left alone."""
FOOTPRINT = 64 << 20
"""Bytes that copies of a kernel's inputs take at most: beyond, they are as cold as can be."""
MOST_SETS = 32
HARM = 1.01
"""A program that takes so many times as long with the decisions as without loses them."""


@dataclass(frozen=True)
class TunedKernel:
    """One kernel: its part of the time, what was decided, or why nothing was; forms that were refused, with the reason."""

    name: str
    location: str
    share: float
    record: Record | None = None
    skipped: str = ""
    refused: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class TuningReport:
    """What tuning did. `before` and `after` are seconds of the whole program; None where no decision changed anything."""

    function: str
    target: str
    kernels: tuple[TunedKernel, ...]
    before: float | None = None
    after: float | None = None
    withdrawn: bool = False
    """The decisions made the program as a whole slower, and were dropped."""

    @property
    def changed(self) -> tuple[TunedKernel, ...]:
        return tuple(kernel for kernel in self.kernels if kernel.record is not None and kernel.record.changed)

    def to_json(self) -> dict[str, Any]:
        """A JSON value."""
        kernels = [
            {
                "name": kernel.name,
                "location": kernel.location,
                "share": kernel.share,
                "record": None if kernel.record is None else kernel.record.to_json(),
                "skipped": kernel.skipped,
                "refused": kernel.refused,
            }
            for kernel in self.kernels
        ]
        times = {"before": self.before, "after": self.after, "withdrawn": self.withdrawn}
        return {"function": self.function, "target": self.target, "kernels": kernels, **times}

    def __str__(self) -> str:
        head = ("kernel", "at", "share", "before", "after", "gain", "tried", "refused", "now")
        rows = [head, *map(_cells, self.kernels)]
        widths = [max(len(row[k]) for row in rows) for k in range(len(head))]
        lines = [f"@{self.function} on {self.target}"]
        lines += ["  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
        if self.before is not None and self.after is not None:
            what = ": slower as a whole, so the decisions were dropped" if self.withdrawn else ""
            lines.append(f"  the program: {duration_text(self.before)} before, {duration_text(self.after)} after{what}")
        return "\n".join(lines) + "\n"


def _cells(kernel: TunedKernel) -> tuple[str, ...]:
    start = (kernel.name, short_place(kernel.location), f"{kernel.share:.1%}")
    record = kernel.record
    if record is None:
        return (*start, "", "", "", "", "", f"left alone: {kernel.skipped}")
    times = (duration_text(record.default_seconds), duration_text(record.seconds), f"{record.gain:.2f}x")
    return (*start, *times, str(record.tried), str(record.refused), str(record.choice) if record.changed else "as it was")


def tune(
    module: ModuleOp,
    inputs: Sequence[Any] | None = None,
    *,
    entry: str | None = None,
    target: str = "host",
    threads: int | None = None,
    optimize: int = 2,
    cache: bool | str | PathLike[str] | Cache = True,
    seconds: float = SECONDS,
    again: bool = False,
    measure: Measure = measure_in_child,
    profile: Profile | None = None,
    limits: Limits | None = None,
    tell: Tell | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> TuningReport:
    """Search schedules for the hot kernels of `entry` (default: the only public function) for about `seconds`, and keep what is faster.

    `inputs` are flat arrays (default: random ones, GradirError RT060 where only a call knows a size). Kernels that were tuned before keep
    their decisions unless `again`. Later compilations with this `cache` use them; GradirError RT064 without one. `measure` and `profile`
    look at the clock for kernels and for the program.
    """
    if is_cuda(target):
        raise GradirError(
            "schedules of a GPU are not tuned",
            part="runtime",
            code="RT069",
            expected="target host, cpu or cpu:NAME",
            found=target,
            hint="leave tune= out: schedules for GPUs come from tables of the architecture",
        )
    store = open_cache(cache)
    if store is None:
        raise no_cache()
    records = Records(store.directory)
    began = clock()
    outlined: list[ModuleOp] = []
    settings: dict[str, Any] = {"target": target, "threads": threads, "optimize": optimize, "entry": entry, "cache": store}
    plain = compile_watched(module, Hooks(lambda found: outlined.append(found.clone())), **settings)
    function = plain[entry if entry is not None else plain.functions[0]]
    arrays = spared(function.spec, inputs) if inputs is not None else sample_inputs(function.spec)
    found = explain(module, arrays, measure=profile, limits=limits, outlined=lambda _: None, **settings)
    level2 = outlined[0]
    sizes = sizes_of_call(function.spec, arrays)
    footprint = _footprint(function, arrays)
    kernels: list[TunedKernel] = []
    rest = sum(share for _, share in _hot(level2, found))
    for kernel, share in _hot(level2, found):
        name = kernel.sym_name.data
        location = _location(found, name)
        left = seconds - (clock() - began)
        old = None if again else records.find(str(target_of(level2)), tuning_key(kernel))
        if old is not None:
            kernels.append(TunedKernel(name, location, share, old))
        elif left <= 0:
            kernels.append(TunedKernel(name, location, share, skipped="no time was left"))
        else:
            subject = subject_of(level2, kernel, sizes)
            if isinstance(subject, str):
                kernels.append(TunedKernel(name, location, share, skipped=subject))
            else:
                sets = _sets(subject, footprint)
                result = search(subject, measure, seconds=left * share / rest, sets=sets, location=location, tell=tell)
                records.put(str(target_of(level2)), result.record)
                kernels.append(_tuned(name, location, share, result))
        rest -= share
    report = TuningReport(found.function, found.target, tuple(kernels))
    return _whole(report, module, records, str(target_of(level2)), arrays, measure, settings) if report.changed else report


def _tuned(name: str, location: str, share: float, result: Found) -> TunedKernel:
    return TunedKernel(name, location, share, result.record, refused=result.refused)


def _hot(module: ModuleOp, found: Explanation) -> list[tuple[FuncOp, float]]:
    """Kernels whose schedule is open, with their part of the time, the largest first."""
    kernels = {op.sym_name.data: op for op in module.body.block.ops if isinstance(op, FuncOp) and KERNEL_ATTRIBUTE in op.attributes}
    shares: dict[str, float] = {}
    for row in found.rows:
        name = _base(row, kernels)
        if name is not None:
            shares[name] = shares.get(name, 0.0) + (row.share or 0.0)
    hot = [(kernels[name], share) for name, share in shares.items() if share >= LEAST_SHARE and is_open(kernels[name])]
    return sorted(hot, key=lambda pair: -pair[1])


def _base(row: KernelRow, kernels: dict[str, FuncOp]) -> str | None:
    """The level-2 kernel of a level-3 one: bufferize makes variants of a kernel for its layouts, `name_s1`."""
    if row.name in kernels:
        return row.name
    base = re.sub(r"_s\d+$", "", row.name)
    return base if base in kernels else None


def _location(found: Explanation, name: str) -> str:
    return next((row.locations[0] for row in found.rows if row.name == name and row.locations), "")


def _footprint(function: Function, arrays: Sequence[Any]) -> int:
    """Bytes that a run of the program touches: what has passed through the caches before a kernel runs again."""
    outputs = sum(np.asarray(value).nbytes for value in function.flat(*arrays))
    return function.spec.arena_bytes + outputs + sum(np.asarray(x).nbytes for x in arrays)


def _sets(subject: Subject, footprint: int) -> int:
    """How many copies of the kernel's inputs take turns, so that they are about as cold as in the program."""
    own = sum(np.asarray(x).nbytes for x in subject.inputs)
    return max(1, min(MOST_SETS, math.ceil(min(footprint, FOOTPRINT) / max(1, own))))


def _whole(
    report: TuningReport,
    module: ModuleOp,
    records: Records,
    target: str,
    arrays: Sequence[Any],
    measure: Measure,
    settings: dict[str, Any],
) -> TuningReport:
    """The program with the decisions against the program without. Kernels that are faster alone may harm what comes next (threads of a
    library that go on spinning, results that left the caches): then the program without library calls is tried, then all decisions go."""
    changed = {kernel.record.key: kernel.record for kernel in report.changed if kernel.record is not None}
    libraries = {key for key, record in changed.items() if record.choice.library}
    kept = [set(changed), *([set(changed) - libraries] if libraries and set(changed) - libraries else [])]
    before = compile_watched(module, Hooks(lambda _: None), **settings)
    after = [compile_watched(module, Hooks(_using(records, keys)), **settings) for keys in kept]
    old, *new = measure(Job([lambda made=made: made for made in (before, *after)], arrays, 1, FINAL, entry=report.function))
    ratios = [statistics.median(b / a for a, b in zip(old.seconds, o.seconds)) if not o.refused else math.inf for o in new]
    best = min(range(len(new)), key=lambda k: ratios[k])
    worse = ratios[best] > HARM
    for key in set(changed) - (set() if worse else kept[best]):
        records.drop(target, key)
    dropped = set(changed) if worse else set(changed) - kept[best]
    kernels = tuple(
        replace(kernel, record=None, skipped="faster alone, but the program is slower")
        if kernel.record is not None and kernel.record.key in dropped
        else kernel
        for kernel in report.kernels
    )
    now = statistics.median(new[best].seconds) if new[best].seconds else None
    was = statistics.median(old.seconds) if old.seconds else None
    return replace(report, kernels=kernels, before=was, after=now, withdrawn=worse)


def _using(records: Records, keys: set[str]) -> Callable[[ModuleOp], None]:
    """A hook that puts in the decisions for the kernels of those keys alone, and confirmations."""

    def hook(module: ModuleOp) -> None:
        apply_records(module, records, keys)

    return hook


def no_cache() -> GradirError:
    """The error for a search whose result nobody could keep."""
    return GradirError(
        "tuning needs a cache: its decisions are kept there",
        part="runtime",
        code="RT064",
        expected="cache=True or a directory",
        found="cache=False, or an empty GRADIR_CACHE_DIR",
        hint="leave cache= out, or name a directory",
    )


__all__ = ["SECONDS", "TunedKernel", "TuningReport", "no_cache", "tune"]
