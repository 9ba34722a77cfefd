"""`explain` for programs for CUDA: what each kernel launches, needs and moves, and the least time that a named card could take for it.

Registers, shared memory and spills are the assembler's, occupancy is NVIDIA's formula on them, operations and bytes are counted as for the
CPU (`costs`), limits are those of the card's data sheet. With arguments the program runs, and events of the device time each launch.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, cast

from xdsl.dialects.builtin import IntegerAttr, MemRefType, ModuleOp, StringAttr
from xdsl.ir import Operation, SSAValue

from gradir.dialects.kernel import KERNEL_ATTRIBUTE, REASON_ATTRIBUTE, Schedule
from gradir.dialects.target import cuda_place
from gradir.dialects.target.cuda_facts import CARDS, Card
from gradir.dialects.upstream import arith, gpu, scf
from gradir.dialects.upstream.func import CallOp, FuncOp
from gradir.driver.cache import Cache
from gradir.driver.compile import compile_watched
from gradir.driver.explain.costs import KernelCost, Shape, cost_of_kernel
from gradir.driver.explain.explanation import count_text, duration_text, short_place
from gradir.driver.explain.sample_inputs import sample_inputs
from gradir.driver.options import Hooks
from gradir.errors import GradirError
from gradir.ir.passes import location_text
from gradir.lowering.schedules.occupancy import occupancy
from gradir.runtime.cuda.device import device_named
from gradir.runtime.cuda.profile import recorded
from gradir.runtime.donation import spared
from gradir.runtime.module import Module
from gradir.targets.nvptx import KernelReport, assemble, find_ptxas

DEFAULT_CARD = "h200"
IN_THE_UNIT = (arith.ExtFOp, arith.ExtSIOp)
"""What units that multiply narrow elements do on the way."""
RUNS = 5
COLUMNS = ("kernel", "at", "kind", "calls", "flop", "bytes", "bound", "time", "of bound", "launch", "regs", "shared", "spills", "occupancy")
_LEFT = frozenset({"kernel", "at", "kind", "launch", "occupancy"})


@dataclass(frozen=True)
class LaunchRow:
    """One launch of a kernel; what is not known is None: sizes that only a run tells, registers without the assembler."""

    function: str
    grid: tuple[int | None, ...]
    block: tuple[int | None, ...]
    dynamic_shared: int = 0
    registers: int | None = None
    shared: int | None = None
    spills: int | None = None
    occupancy: float | None = None
    limit: str = ""
    seconds: float | None = None

    @property
    def blocks(self) -> int | None:
        total = 1
        for n in self.grid:
            if n is None:
                return None
            total *= n
        return total


@dataclass(frozen=True)
class CudaRow:
    """One kernel of level 3 in one call of the program: all its calls together, and what it launches each time."""

    name: str
    kind: str
    reason: str
    location: str
    calls: int | None
    flops: int | None
    bytes_read: int | None
    bytes_written: int | None
    element: str
    bound: float | None
    bound_by: str
    launches: tuple[LaunchRow, ...]

    @property
    def bytes(self) -> int | None:
        return None if self.bytes_read is None or self.bytes_written is None else self.bytes_read + self.bytes_written

    @property
    def seconds(self) -> float | None:
        """Of all calls."""
        times = [launch.seconds for launch in self.launches]
        return None if not times or None in times else sum(cast("list[float]", times))


@dataclass(frozen=True)
class CudaExplanation:
    """What runs on the GPU in one function. Print it for a table."""

    function: str
    target: str
    card: str
    rows: tuple[CudaRow, ...]
    device: str = ""
    runs: int = 0
    copies: int = 0
    scratch: int = 0
    arena: int = 0
    notes: tuple[str, ...] = field(default=())
    ptx: str = field(default="", repr=False)
    """The text of all kernels."""

    def to_dict(self) -> dict[str, Any]:
        """A JSON value."""
        return {
            **asdict(self),
            "kernels": [{**asdict(row), "bytes": row.bytes, "seconds": row.seconds} for row in self.rows],
            "rows": None,
            "ptx": None,
        }

    def to_json(self) -> str:
        """`to_dict` as text."""
        return json.dumps(self.to_dict(), indent=1)

    @property
    def bound(self) -> float:
        """The least seconds of all kernels that are known."""
        return sum(row.bound or 0.0 for row in self.rows)

    def title(self) -> str:
        """One line: for what, on what."""
        ran = f"; times on {self.device} (median of {self.runs})" if self.runs else ""
        return (
            f"@{self.function} for {self.target}, bounds of a {self.card}: {duration_text(self.bound)} in all{ran}; "
            f"arena {count_text(self.arena)}B, temporaries {count_text(self.scratch)}B"
        )

    def cells(self) -> list[tuple[str, ...]]:
        """The table's rows: a line for each launch, the kernel's own cells in its first."""
        found: list[tuple[str, ...]] = []
        for row in self.rows:
            for k, launch in enumerate(row.launches or (LaunchRow("", (), ()),)):
                found.append((*(_kernel_cells(row) if k == 0 else ("",) * 9), *_launch_cells(launch)))
        return found

    def __str__(self) -> str:
        table = [COLUMNS, *self.cells()]
        widths = [max(len(row[k]) for row in table) for k in range(len(COLUMNS))]
        lines = [self.title()]
        for row in table:
            cells = (c.ljust(w) if name in _LEFT else c.rjust(w) for name, c, w in zip(COLUMNS, row, widths))
            lines.append("  " + "  ".join(cells).rstrip())
        return "\n".join([*lines, *(f"  {note}" for note in self.notes)]) + "\n"


def card_named(name: str) -> Card:
    """A card of the table. GradirError RT068 for another name."""
    found = CARDS.get(str(name).lower())
    if found is None:
        raise GradirError(
            "no card of that name",
            part="runtime",
            code="RT068",
            expected=", ".join(CARDS),
            found=str(name),
            hint="the table is gradir/dialects/target/cuda_facts.py",
        )
    return found


def explain_cuda(
    module: ModuleOp,
    inputs: Sequence[Any] | None = None,
    *,
    entry: str | None = None,
    target: str = "cuda",
    threads: int | None = None,
    optimize: int = 2,
    cache: bool | str | PathLike[str] | Cache = True,
    gpu_card: str = DEFAULT_CARD,
    run: bool = True,
) -> CudaExplanation:
    """What `entry` (default: the only public function) launches on a GPU; with `run` it is called with `inputs` (without them: random ones)
    and every launch timed. `gpu_card` is the card whose limits are the bounds."""
    card = card_named(gpu_card)
    seen = _Seen()
    options: dict[str, Any] = {"target": target, "threads": threads, "optimize": optimize, "cache": cache, "entry": entry}
    compiled = compile_watched(module, Hooks(planned=seen.planned, lowered=seen.lowered), **options)
    name = entry if entry is not None else compiled.functions[0]
    function: Any = compiled[name]
    device = compiled.manifest.device
    assert device is not None
    known, notes = _assembled(compiled, device.arch)
    if run and (missing := _missing(target)):
        run, notes = False, [*notes, missing]
    rows = [_row(kernel, seen, known, card, device.arch) for kernel in seen.order]
    runs, on = 0, ""
    if run:
        arrays = spared(function.spec, inputs) if inputs is not None else sample_inputs(function.spec)
        rows, runs = _timed(rows, function, arrays), RUNS
        on = f"{function.device.name} ({function.device.limits.name})"
    return CudaExplanation(
        name,
        f"cuda:{device.arch}",
        card.name,
        tuple(sorted(rows, key=lambda row: -((row.seconds or row.bound) or 0.0))),
        on,
        runs,
        seen.copies,
        device.scratch,
        function.spec.arena_bytes,
        tuple(notes),
        compiled.objects[device.ptx].decode(),
    )


def _missing(target: str) -> str:
    """Why the program cannot run here; empty if it can."""
    try:
        device_named(cuda_place(target)[0])
    except GradirError as error:
        return f"not run: {error.message} ({error.found})"
    return ""


def save_json(found: CudaExplanation, folder: str | PathLike[str]) -> Path:
    """Write the explanation to `explain.json` in a folder, which is made; its path."""
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    path = place / "explain.json"
    path.write_text(found.to_json(), encoding="utf-8")
    return path


@dataclass
class _Level3:
    cost: KernelCost
    kind: str
    reason: str
    location: str
    element: str
    shapes: list[Shape | None]


class _Seen:
    """What levels 3 and 4 tell."""

    def __init__(self) -> None:
        self.kernels: dict[str, _Level3] = {}
        self.launches: dict[str, list[LaunchRow]] = {}
        self.calls: dict[str, int | None] = {}
        self.order: list[str] = []
        self.copies = 0

    def planned(self, module: ModuleOp) -> None:
        """Kernels with their schedules and costs, and how often they are called."""
        for op in module.body.block.ops:
            if isinstance(op, FuncOp) and KERNEL_ATTRIBUTE in op.attributes:
                self.kernels[op.sym_name.data] = _level3(op)
        for op in module.walk():
            if op.name == "memref.copy":
                self.copies += 1
            if isinstance(op, CallOp) and (name := op.callee.root_reference.data) in self.kernels:
                times = _trips(op)
                if name not in self.calls:
                    self.order.append(name)
                    self.calls[name] = 0
                before = self.calls[name]
                self.calls[name] = None if before is None or times is None else before + times

    def lowered(self, module: ModuleOp) -> None:
        """What the host functions launch."""
        for op in module.body.block.ops:
            if isinstance(op, FuncOp) and op.sym_name.data in self.kernels and op.body.blocks:
                self.launches[op.sym_name.data] = [_launch(inner) for inner in op.walk() if isinstance(inner, gpu.LaunchFuncOp)]


def _level3(function: FuncOp) -> _Level3:
    schedule = function.attributes[KERNEL_ATTRIBUTE]
    reason = function.attributes.get(REASON_ATTRIBUTE)
    memrefs = [cast("MemRefType[Any]", a) if isinstance(a, MemRefType) else None for a in function.function_type.inputs.data]
    shapes: list[Shape | None] = [None if m is None else tuple(None if n < 0 else n for n in m.get_shape()) for m in memrefs]
    kind = schedule.kind if isinstance(schedule, Schedule) else "library"
    products = kind in ("contraction", "chain")
    cost = cost_of_kernel(function, IN_THE_UNIT if products else ())
    element = next((str(m.element_type) for m in memrefs if m is not None), "f32") if products else cost.dtype
    return _Level3(cost, kind, reason.data if isinstance(reason, StringAttr) else "", location_text(function.location), element, shapes)


def _launch(op: gpu.LaunchFuncOp) -> LaunchRow:
    shared = op.dynamicSharedMemorySize
    return LaunchRow(
        op.kernel.nested_references.data[-1].data,
        tuple(map(_constant, op.gridSize)),
        tuple(map(_constant, op.blockSize)),
        (_constant(shared) or 0) if shared is not None else 0,
    )


def _constant(value: SSAValue) -> int | None:
    owner = value.owner
    found = owner.value if isinstance(owner, arith.ConstantOp) else None
    return found.value.data if isinstance(found, IntegerAttr) else None


def _trips(op: Operation) -> int | None:
    """How often an op of an entry runs; None where only the run knows."""
    total, at = 1, op.parent_op()
    while at is not None and not isinstance(at, FuncOp):
        if not isinstance(at, scf.ForOp):
            return None
        lower, upper, step = (_constant(v) for v in at.operands[:3])
        if lower is None or upper is None or not step:
            return None
        total *= max(0, -(-(upper - lower) // step))
        at = at.parent_op()
    return total


def _assembled(compiled: Module, arch: str) -> tuple[Mapping[str, KernelReport], list[str]]:
    """What the assembler says of each kernel."""
    device = compiled.manifest.device
    assert device is not None
    text = compiled.objects[device.ptx].decode()
    if not text:
        return {}, []
    if find_ptxas() is None:
        return {}, ["no ptxas here (pip install gradir[ptx]): registers, shared memory, spills and occupancy are not known"]
    return {row.name: row for row in assemble(text, arch)[1]}, []


def _row(name: str, seen: _Seen, known: Mapping[str, KernelReport], card: Card, arch: str) -> CudaRow:
    kernel, calls = seen.kernels[name], seen.calls[name]
    flops, moved = kernel.cost.flops(kernel.shapes), kernel.cost.bytes(kernel.shapes)
    times = 1 if calls is None else calls
    bound, by = None, ""
    if flops is not None and moved is not None:
        bound, by = roofline(card, flops, sum(moved), kernel.element)
    launches = tuple(_with_report(launch, known.get(launch.function), arch) for launch in seen.launches.get(name, ()))
    return CudaRow(
        name,
        kernel.kind,
        kernel.reason,
        kernel.location,
        calls,
        None if flops is None else flops * times,
        None if moved is None else moved[0] * times,
        None if moved is None else moved[1] * times,
        kernel.element,
        None if bound is None else bound * times,
        by,
        launches,
    )


def roofline(card: Card, flops: int, moved: int, element: str) -> tuple[float, str]:
    """The least seconds for so many operations on `element` and bytes of memory, and which of the two takes them."""
    compute, memory = flops / card.peak(element), moved / card.bandwidth
    return (compute, "compute") if compute > memory else (memory, "memory")


def _with_report(launch: LaunchRow, report: KernelReport | None, arch: str) -> LaunchRow:
    if report is None:
        return launch
    shared = report.shared + launch.dynamic_shared
    found = replace(launch, registers=report.registers, shared=shared, spills=report.spills)
    threads = 1
    for n in launch.block:
        if n is None:
            return found
        threads *= n
    fits = occupancy(arch, threads, report.registers, shared)
    return replace(found, occupancy=fits.share, limit=fits.limit)


def _timed(rows: Sequence[CudaRow], function: Any, arrays: Sequence[Any]) -> list[CudaRow]:
    """Rows with the time of their launches: medians over runs of the sum over calls."""
    function.flat(*arrays)
    function.device.synchronize_all()
    samples: dict[str, list[float]] = {}
    for _ in range(RUNS):
        with recorded(function.device) as recording:
            kept = function.flat(*arrays)
        del kept
        sums: dict[str, float] = {}
        for timed in recording.launches:
            sums[timed.kernel] = sums.get(timed.kernel, 0.0) + timed.seconds
        for name, seconds in sums.items():
            samples.setdefault(name, []).append(seconds)
    medians = {name: statistics.median(values) for name, values in samples.items()}
    return [
        replace(row, launches=tuple(replace(launch, seconds=medians.get(launch.function, 0.0)) for launch in row.launches)) for row in rows
    ]


def _kernel_cells(row: CudaRow) -> tuple[str, ...]:
    part = row.bound / row.seconds if row.bound is not None and row.seconds else None
    return (
        row.name,
        short_place(row.location),
        row.kind,
        "?" if row.calls is None else str(row.calls),
        "?" if row.flops is None else count_text(row.flops),
        "?" if row.bytes is None else count_text(row.bytes),
        "" if row.bound is None else f"{duration_text(row.bound)} {row.bound_by}",
        "" if row.seconds is None else duration_text(row.seconds),
        "" if part is None else f"{part:.0%}",
    )


def _launch_cells(launch: LaunchRow) -> tuple[str, ...]:
    def sizes(values: Sequence[int | None]) -> str:
        kept = list(values)
        while len(kept) > 1 and kept[-1] == 1:
            kept.pop()
        return "x".join("?" if n is None else str(n) for n in kept)

    return (
        f"{sizes(launch.grid)} of {sizes(launch.block)}" if launch.grid else "",
        "" if launch.registers is None else str(launch.registers),
        "" if launch.shared is None else count_text(launch.shared),
        "" if launch.spills is None else str(launch.spills),
        "" if launch.occupancy is None else f"{launch.occupancy:.0%} {launch.limit}",
    )
