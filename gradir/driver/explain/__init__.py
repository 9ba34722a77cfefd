"""`explain`: what runs, why so, how long, and how far that is from the machine's limits.

The program is compiled once more with marks around every kernel call (`instrument`) and run with real arguments, interleaved with the
program without marks (`measure`). Costs come from the kernels' text and the sizes of the run (`costs`), bounds from the machine's measured
limits (`rooflines`). The result is data (`explanation`), a trace (`trace`) and a page (`page`).
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from os import PathLike
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import ModuleOp, StringAttr

from gradir.dialects.kernel import KERNEL_ATTRIBUTE, LIBRARY_ATTRIBUTE, REASON_ATTRIBUTE, Schedule
from gradir.dialects.target import CpuTargetAttr, is_cuda, target_of
from gradir.dialects.upstream.func import FuncOp
from gradir.driver.cache import Cache
from gradir.driver.compile import compile_module, compile_watched
from gradir.driver.explain.costs import KernelCost, Shape, cost_of_kernel, cost_of_op
from gradir.driver.explain.explanation import Event, Explanation, KernelRow
from gradir.driver.explain.instrument import Marks, instrument
from gradir.driver.explain.measure import Measure, SiteTimes, Span, measure_runs, read_runs
from gradir.driver.explain.page import save_page
from gradir.driver.explain.rooflines import LimitsFile, bound_of
from gradir.driver.explain.sample_inputs import sample_inputs
from gradir.driver.explain.trace import trace_json
from gradir.driver.limits import Limits
from gradir.driver.notes import choice_of
from gradir.driver.options import Hooks
from gradir.runtime.donation import spared
from gradir.runtime.module import Function, Module
from gradir.runtime.profile import SITES

if TYPE_CHECKING:
    from gradir.driver.explain.cuda import CudaExplanation

IMPOSSIBLE = 1.05
"""A kernel that is so many times as fast as its bound shows that the limits were measured badly."""


def explain(
    module: ModuleOp,
    inputs: Sequence[Any] | None = None,
    *,
    entry: str | None = None,
    target: str = "host",
    threads: int | None = None,
    optimize: int = 2,
    cache: bool | str | PathLike[str] | Cache = True,
    limits: Limits | None = None,
    measure: Measure | None = None,
    outlined: Callable[[ModuleOp], None] | None = None,
) -> Explanation:
    """Run `entry` (default: the only public function) of a module of any level on `inputs` and say what each kernel does and costs.

    `inputs` are flat arrays, of which those that the program would take over are copied first; without them random ones of the types that
    the function declares (GradirError RT060 where only a call knows a size). `limits`: those of this machine, measured once and kept,
    unless given. `measure` runs the program (`measure_runs`). With `outlined`, which sees the kernels at level 2, decisions of the tuner
    are not used.
    """
    seen = _Seen()
    options: dict[str, Any] = {"target": target, "threads": threads, "optimize": optimize, "cache": cache, "entry": entry}
    marked = _function(compile_watched(module, Hooks(outlined, seen.planned), **options), entry)
    plain = compile_module(module, **options) if outlined is None else compile_watched(module, Hooks(lambda _: None), **options)
    unmarked = _function(plain, entry)
    arrays = spared(marked.spec, inputs) if inputs is not None else sample_inputs(marked.spec)
    try:
        measured = (measure or measure_runs())(lambda: marked.flat(*arrays), lambda: unmarked.flat(*arrays))
        times, spans = read_runs(seen.marks, measured.runs)
    finally:
        for place in seen.marks.places:
            SITES.pop((seen.marks.program, place.number), None)
    seconds = statistics.median(run.seconds for run in measured.runs)
    file = LimitsFile.of(seen.machine)
    found = limits if limits is not None else file.limits()
    rows = _rows(seen, times, found, seconds)
    if limits is None and any((row.of_bound or 0.0) > IMPOSSIBLE for row in rows):
        found = file.measured_again()
        rows = _rows(seen, times, found, seconds)
    return Explanation(
        marked.name,
        str(seen.machine),
        seen.machine.threads,
        tuple(sorted(rows, key=lambda row: -(row.seconds or 0.0))),
        len(measured.runs),
        seconds,
        statistics.median(measured.plain) if measured.plain else None,
        found,
        _events(seen.marks, spans, measured.runs[-1].begin),
        sum(run.recording.dropped for run in measured.runs),
    )


def explain_target(
    module: ModuleOp, inputs: Sequence[Any] | None, *, target: str, gpu: str = "h200", **options: Any
) -> Explanation | CudaExplanation:
    """`explain` for any target; the launches of a program for CUDA are held to the limits of the card `gpu`."""
    if is_cuda(target):
        return import_module("gradir.driver.explain.cuda").explain_cuda(module, inputs, target=target, gpu_card=gpu, **options)
    return explain(module, inputs, target=target, **options)


def describe(
    module: ModuleOp, *, entry: str | None = None, target: str = "host", threads: int | None = None, optimize: int = 2
) -> Explanation:
    """`explain` without running anything: kernels, schedules, reasons, and what static sizes tell of the costs."""
    seen = _Seen()
    compiled = compile_watched(module, Hooks(planned=seen.planned), target=target, threads=threads, optimize=optimize, entry=entry)
    for place in seen.marks.places:
        SITES.pop((seen.marks.program, place.number), None)
    rows = _rows(seen, {place.number: SiteTimes() for place in seen.marks.places}, None, None)
    return Explanation(_function(compiled, entry).name, str(seen.machine), seen.machine.threads, tuple(rows))


class _Seen:
    """What the level-3 module tells before it goes on."""

    marks: Marks
    machine: CpuTargetAttr

    def __init__(self) -> None:
        self.kernels: dict[str, _Kernel] = {}
        self.costs: dict[int, KernelCost] = {}

    def planned(self, module: ModuleOp) -> None:
        """Note kernels and sites, then put the marks in."""
        machine = target_of(module)
        assert isinstance(machine, CpuTargetAttr)
        self.machine = machine
        functions = {op.sym_name.data: op for op in module.body.block.ops if isinstance(op, FuncOp)}
        self.marks = instrument(module)
        for place in self.marks.places:
            function = functions.get(place.kernel)
            if function is None:
                self.costs[place.number] = cost_of_op(place.op)
                continue
            if place.kernel not in self.kernels:
                self.kernels[place.kernel] = _kernel(function)
            self.costs[place.number] = self.kernels[place.kernel].cost


@dataclass(frozen=True)
class _Kernel:
    kind: str
    schedule: dict[str, Sequence[int]]
    choice: str
    reason: str
    cost: KernelCost


def _kernel(function: FuncOp) -> _Kernel:
    schedule = function.attributes[KERNEL_ATTRIBUTE]
    assert isinstance(schedule, Schedule)
    fields: dict[str, Sequence[int]] = {name: schedule.field(name) for name in schedule.FIELDS}
    library = function.attributes.get(LIBRARY_ATTRIBUTE)
    reason = function.attributes.get(REASON_ATTRIBUTE)
    text = reason.data if isinstance(reason, StringAttr) else ""
    if isinstance(library, StringAttr):
        text = f"@{library.data}" + (f"; {text}" if text else "")
    elif schedule.kind == "template":
        text = text or "loops as the lowering wrote them"
    return _Kernel(schedule.kind, fields, choice_of(function), text, cost_of_kernel(function))


def _rows(seen: _Seen, times: dict[int, SiteTimes], limits: Limits | None, total: float | None) -> list[KernelRow]:
    """One row per kernel: its sites together."""
    rows: dict[str, KernelRow] = {}
    for place in seen.marks.places:
        time, cost = times[place.number], seen.costs[place.number]
        shapes: list[Shape | None] = list(place.shapes)
        for k, shape in zip(place.measured, time.shapes):
            shapes[k] = shape
        kernel = seen.kernels.get(place.kernel)
        row = KernelRow(
            place.kernel,
            kernel.kind if kernel is not None else place.kernel,
            kernel.schedule if kernel is not None else {},
            kernel.choice if kernel is not None else "heuristic",
            kernel.reason if kernel is not None else "outside of kernels",
            (place.location,) if place.location else (),
            threads=time.threads,
            dtype=cost.dtype,
        )
        calls = time.calls if total is not None else 1
        flops, moved = cost.flops(shapes), cost.bytes(shapes)
        if total is not None:
            row = replace(row, calls=calls, seconds=time.median, share=time.median / total if total else 0.0)
        bound = bound_of(flops, *moved, cost.dtype, time.threads, limits) if limits is not None and moved is not None else None
        row = replace(
            row,
            flops=None if flops is None else flops * calls,
            bytes_read=None if moved is None else moved[0] * calls,
            bytes_written=None if moved is None else moved[1] * calls,
            bound=None if bound is None or flops is None else bound.seconds * calls,
            bound_by="" if bound is None or flops is None else bound.by,
        )
        old = rows.get(place.kernel)
        rows[place.kernel] = row if old is None else _together(old, row)
    return list(rows.values())


def _together(a: KernelRow, b: KernelRow) -> KernelRow:
    """Two sites of one kernel as one row; what one of them does not know, the row does not."""

    def sum_of(name: str) -> Any:
        x, y = getattr(a, name), getattr(b, name)
        return None if x is None or y is None else x + y

    summed = {name: sum_of(name) for name in ("calls", "flops", "bytes_read", "bytes_written", "bound", "seconds", "share")}
    places = tuple(dict.fromkeys((*a.locations, *b.locations)))
    longer = a if (a.bound or 0.0) >= (b.bound or 0.0) else b
    return replace(a, locations=places, threads=max(a.threads, b.threads), bound_by=longer.bound_by, **summed)


def _events(marks: Marks, spans: Sequence[Span], begin: int) -> tuple[Event, ...]:
    """Threads numbered by their first chunk; the thread of the calls is 0."""
    caller = next((span.thread for span in spans if not span.chunk), 0)
    numbers: dict[int, int] = {caller: 0}
    events: list[Event] = []
    for span in spans:
        place = marks.places[span.site]
        thread = numbers.setdefault(span.thread, len(numbers))
        events.append(Event(place.kernel, thread, (span.begin - begin) * 1e-3, (span.end - span.begin) * 1e-3, place.location, span.chunk))
    return tuple(events)


def _function(module: Module, entry: str | None) -> Function:
    return module[entry if entry is not None else module.functions[0]]


__all__ = ["Event", "Explanation", "KernelRow", "describe", "explain", "explain_target", "measure_runs", "save_page", "trace_json"]
