"""What this machine can do at most: multiply-adds per second, and bytes per second of copies, reads and writes by level of the memory.

Measured, not looked up: loops in LLVM IR that do nothing else, compiled by the road of every kernel (`targets.cpu`), on one thread and on
several at once. Rooflines and the benchmark take their percentages of these numbers. A byte counts once per touch: a copy of n bytes
moves 2 n (the lines that a plain store reads before it overwrites them are not counted).
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from gradir.dialects.target import CpuTargetAttr, host_target
from gradir.runtime.loader import Library, load_object
from gradir.targets.cpu import compile_object

KINDS = ("copy", "stream_copy", "read", "write", "stream_write")
"""Traffic that is measured; `stream` means non-temporal stores."""

PLACES = ("L1", "L2", "L3", "memory")
ACCUMULATORS = {16: 12, 32: 24}
"""Independent sums by the number of vector registers: more than latency times units (8 to 10), fewer than registers."""
UNROLL = 8
"""Vectors per step of the memory loops."""
BURSTS = 7
BURST_SECONDS = 0.02


@dataclass(frozen=True)
class Limits:
    """`flops["f32", 1]`: FMA operations (two each) per second on one thread; `bandwidth["copy", "memory", 2]`: bytes per second on two."""

    cpu: str
    vector_bits: int
    sizes: dict[str, int]
    """Bytes that the memory loops touched, per thread, by place."""
    flops: dict[tuple[str, int], float]
    bandwidth: dict[tuple[str, str, int], float]

    def __str__(self) -> str:
        """Two tables of text."""
        threads = sorted({t for _, t in self.flops})
        head = "".join(f"{f'{t} thread' + 's' * (t > 1):>12}" for t in threads)
        lines = [f"{self.cpu}, vectors of {self.vector_bits} bits", f"{'GF/s, multiply-add':26}{head}"]
        for dtype in sorted({d for d, _ in self.flops}):
            lines.append(f"  {dtype:24}" + "".join(f"{self.flops[dtype, t] / 1e9:12.1f}" for t in threads))
        lines.append(f"{'GB/s':26}{head}")
        for place, size in self.sizes.items():
            for kind in KINDS:
                cells = "".join(f"{self.bandwidth[kind, place, t] / 1e9:12.1f}" for t in threads)
                lines.append(f"  {f'{kind}, {place} ({_size(size)})':24}{cells}")
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """A JSON value that `from_json` reads back: `{"flops": {"f32 1": ...}, "bandwidth": {"copy memory 1": ...}, ...}`."""
        tables = {name: {" ".join(map(str, key)): rate for key, rate in getattr(self, name).items()} for name in ("flops", "bandwidth")}
        return {"cpu": self.cpu, "vector_bits": self.vector_bits, "sizes": dict(self.sizes), **tables}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Limits:
        """The inverse of `to_json`; raises KeyError, TypeError or ValueError for something else."""
        flops = {(dtype, int(threads)): float(rate) for (dtype, threads), rate in _rows(value["flops"])}
        bandwidth = {(kind, place, int(threads)): float(rate) for (kind, place, threads), rate in _rows(value["bandwidth"])}
        return cls(str(value["cpu"]), int(value["vector_bits"]), dict(value["sizes"]), flops, bandwidth)


def _rows(table: Any) -> list[tuple[list[str], Any]]:
    return [(str(key).split(), rate) for key, rate in dict(table).items()]


def _size(count: int) -> str:
    return f"{count >> 20} MB" if count >= 1 << 20 else f"{count >> 10} KB"


class Meter:
    """The loops of one target, ready to be timed again and again: what a benchmark takes turns with."""

    def __init__(self, target: CpuTargetAttr | None = None, *, seconds: float = BURST_SECONDS) -> None:
        self.target = target or host_target()
        self._seconds = seconds
        self._loops = _Loops(self.target)
        self._buffers: dict[tuple[str, int], list[Any]] = {}

    def sizes(self) -> dict[str, int]:
        """Bytes per thread that the memory loops touch, by place."""
        return {place: _footprint(place, self.target) for place in PLACES if place != "L3" or self.target.l3}

    def flops(self, dtype: str = "f32", threads: int = 1, bursts: int = BURSTS) -> float:
        """Operations per second of multiply-adds, two each: the best of the bursts."""
        return _best(threads, lambda _: self._loops.fma(dtype), self._seconds, bursts)

    def bandwidth(self, kind: str = "copy", place: str = "memory", threads: int = 1, bursts: int = BURSTS) -> float:
        """Bytes per second of one kind of traffic (`KINDS`) to one level (`PLACES`): the best of the bursts."""
        size = self.sizes()[place] // (threads if place == "L3" else 1)
        buffers = self._buffers.setdefault((place, threads), [])
        if not buffers:
            buffers.extend(_aligned(size) for _ in range(threads))
        return _best(threads, lambda k: self._loops.traffic(kind, buffers[k]), self._seconds, bursts)


def measure_limits(target: CpuTargetAttr | None = None, threads: tuple[int, ...] = (), *, seconds: float = BURST_SECONDS) -> Limits:
    """Measure this machine, some two seconds a thread count. `target` defaults to the host; `threads` to one and all that it has."""
    meter = Meter(target, seconds=seconds)
    counts = threads or tuple(sorted({1, meter.target.threads}))
    flops = {(dtype, n): meter.flops(dtype, n) for dtype in ("f32", "f64") for n in counts}
    bandwidth = {(kind, place, n): meter.bandwidth(kind, place, n) for n in counts for place in meter.sizes() for kind in KINDS}
    return Limits(meter.target.cpu, 32 * meter.target.vector, meter.sizes(), flops, bandwidth)


@cache
def machine_limits(threads: tuple[int, ...] = ()) -> Limits:
    """`measure_limits()` of this machine, once per process."""
    return measure_limits(threads=threads)


def _footprint(place: str, target: CpuTargetAttr) -> int:
    """Half of a cache, so that nothing else pushes the loop's bytes out; eight times the largest cache for memory, 256 MB at least."""
    if place == "memory":
        return max(256 << 20, 8 * max(target.l2, target.l3))
    return {"L1": target.l1, "L2": target.l2, "L3": target.l3}[place] // 2


def _aligned(count: int) -> Any:
    """`count` bytes at a multiple of 4096, touched."""
    whole = np.ones(count + 4096, np.uint8)
    start = -whole.ctypes.data % 4096
    return whole[start : start + count].view(np.float32)


_Job = Callable[[int], float]
"""A call with a number of repetitions: how much work they are."""


def _best(threads: int, job_of: Callable[[int], _Job], seconds: float, bursts: int) -> float:
    """Work per second of `threads` jobs that start together: the best of several bursts."""
    jobs = [job_of(k) for k in range(threads)]
    once = jobs[0]
    repeats = 1
    while True:
        began = time.perf_counter()
        once(repeats)
        took = time.perf_counter() - began
        if took >= seconds / 2:
            break
        repeats = min(repeats * 8, max(repeats + 1, round(repeats * seconds / max(took, 1e-7))))
    return max(_burst(jobs, repeats) for _ in range(bursts))


def _burst(jobs: list[_Job], repeats: int) -> float:
    """One burst: all work over the time from the first start to the last end."""
    spans: list[tuple[float, float, float]] = []
    gate = threading.Barrier(len(jobs))

    def run(job: _Job) -> None:
        gate.wait()
        began = time.perf_counter()
        work = job(repeats)
        spans.append((began, time.perf_counter(), work))

    others = [threading.Thread(target=run, args=(job,)) for job in jobs[1:]]
    for thread in others:
        thread.start()
    run(jobs[0])
    for thread in others:
        thread.join()
    return sum(work for *_, work in spans) / (max(end for _, end, _ in spans) - min(begin for begin, *_ in spans))


class _Loops:
    """The compiled loops of one target, as jobs."""

    def __init__(self, target: CpuTargetAttr) -> None:
        self._target = target
        names = ["fma_f32", "fma_f64", *KINDS]
        self._library: Library = load_object(compile_object(limits_ir(target), target), names)
        kernel = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
        self._kernels: dict[str, Any] = {name: kernel(self._library.address(name)) for name in names}

    def fma(self, dtype: str) -> _Job:
        kernel, sums = self._kernels[f"fma_{dtype}"], ACCUMULATORS[_registers(self._target)]
        lanes = self._target.vector // (2 if dtype == "f64" else 1)
        out = _aligned(4096)

        def job(repeats: int) -> float:
            kernel(repeats * 1000, out.ctypes.data, out.ctypes.data, 0)
            return 2.0 * lanes * sums * repeats * 1000

        return job

    def traffic(self, kind: str, buffer: Any) -> _Job:
        """A copy goes from one half of the buffer to the other; everything else touches all of it."""
        kernel, step = self._kernels[kind], 4 * self._target.vector * UNROLL
        half = "copy" in kind
        count = buffer.nbytes // (2 if half else 1) // step * step
        source = buffer.ctypes.data
        target = source + (buffer.nbytes // 2 // step * step if half else 0)

        def job(repeats: int) -> float:
            kernel(repeats, source, target, count)
            return float(repeats * count * (2 if half else 1))

        return job


def _registers(target: CpuTargetAttr) -> int:
    return 32 if target.registers >= 32 else 16


def limits_ir(target: CpuTargetAttr) -> str:
    """The loops as LLVM IR: every function is `(repeats, source, destination, bytes)`."""
    lanes, sums = target.vector, ACCUMULATORS[_registers(target)]
    text = [_fma_ir("f32", f"<{lanes} x float>", sums), _fma_ir("f64", f"<{max(1, lanes // 2)} x double>", sums)]
    x86 = not target.triple or target.triple.startswith("x86_64")
    fence = "call void @llvm.x86.sse.sfence()" if x86 else ""
    text += [_traffic_ir(kind, f"<{lanes} x float>", 4 * lanes, fence) for kind in KINDS]
    return "\n".join([*text, "declare void @llvm.x86.sse.sfence()" if x86 else "", "!0 = !{i32 1}"])


def _fma_ir(dtype: str, vector: str, sums: int) -> str:
    """acc[k] = acc[k] * x + y, `sums` chains side by side; x = 1 - 2^-9 and y = 2^-10: sums stay in (0.5, 1]."""
    scalar = "float" if dtype == "f32" else "double"
    lanes = vector[1:].split()[0]
    name = f"@llvm.fmuladd.v{lanes}{dtype}"
    phis = [f"  %a{k} = phi {vector} [%start, %entry], [%n{k}, %loop]" for k in range(sums)]
    steps = [f"  %n{k} = call {vector} {name}({vector} %a{k}, {vector} %x, {vector} %y)" for k in range(sums)]
    adds, last = [], "%n0"
    for k in range(1, sums):
        adds.append(f"  %s{k} = fadd {vector} {last}, %n{k}")
        last = f"%s{k}"

    def splat(name: str, value: str) -> str:
        first = f"  %{name}.0 = insertelement {vector} poison, {scalar} {value}, i32 0\n"
        return first + f"  %{name} = shufflevector {vector} %{name}.0, {vector} poison, <{lanes} x i32> zeroinitializer"

    return "\n".join(
        [
            f"declare {vector} {name}({vector}, {vector}, {vector})",
            f"define void @fma_{dtype}(i64 %repeats, ptr %source, ptr %destination, i64 %bytes) {{",
            "entry:",
            splat("start", "1.0"),
            splat("x", "0x3FEFF00000000000"),
            splat("y", "0x3F50000000000000"),
            "  br label %loop",
            "loop:",
            "  %i = phi i64 [0, %entry], [%i.next, %loop]",
            *phis,
            *steps,
            "  %i.next = add i64 %i, 1",
            "  %more = icmp ult i64 %i.next, %repeats",
            "  br i1 %more, label %loop, label %done",
            "done:",
            *adds,
            f"  store {vector} {last}, ptr %destination, align 64",
            "  ret void",
            "}",
        ]
    )


def _traffic_ir(kind: str, vector: str, width: int, fence: str) -> str:
    """One pass over `bytes` in steps of `UNROLL` vectors, `repeats` times over."""
    reads, writes = "copy" in kind or kind == "read", kind != "read"
    body: list[str] = []
    for k in range(UNROLL):
        body.append(f"  %o{k} = add i64 %i, {k * width}")
        if reads:
            body.append(f"  %p{k} = getelementptr i8, ptr %source, i64 %o{k}")
            body.append(f"  %v{k} = load {vector}, ptr %p{k}, align {width}")
        if kind == "read":
            body.append(f"  %n{k} = fadd {vector} %a{k}, %v{k}")
        if writes:
            value, hint = (f"%v{k}" if reads else "zeroinitializer"), ", !nontemporal !0" if "stream" in kind else ""
            body.append(f"  %q{k} = getelementptr i8, ptr %destination, i64 %o{k}")
            body.append(f"  store {vector} {value}, ptr %q{k}, align {width}{hint}")
    sums = [f"  %a{k} = phi {vector} [%b{k}, %pass], [%n{k}, %loop]" for k in range(UNROLL)] if kind == "read" else []
    kept = [f"  %b{k} = phi {vector} [zeroinitializer, %entry], [%n{k}, %again]" for k in range(UNROLL)] if kind == "read" else []
    adds, last = [], "%n0"
    for k in range(1, UNROLL if kind == "read" else 1):
        adds.append(f"  %s{k} = fadd {vector} {last}, %n{k}")
        last = f"%s{k}"
    # the sum is kept where the loop's work cannot be told to be useless: a store that never happens, for a count that is never negative
    result = (
        [
            *adds,
            "  %never = icmp slt i64 %repeats, 0",
            "  br i1 %never, label %keep, label %out",
            "keep:",
            f"  store {vector} {last}, ptr %destination, align {width}",
            "  br label %out",
            "out:",
            "  ret void",
        ]
        if kind == "read"
        else ["  ret void"]
    )
    return "\n".join(
        [
            f"define void @{kind}(i64 %repeats, ptr %source, ptr %destination, i64 %bytes) {{",
            "entry:",
            "  br label %pass",
            "pass:",
            "  %r = phi i64 [0, %entry], [%r.next, %again]",
            *kept,
            "  br label %loop",
            "loop:",
            "  %i = phi i64 [0, %pass], [%i.next, %loop]",
            *sums,
            *body,
            f"  %i.next = add i64 %i, {UNROLL * width}",
            "  %more = icmp ult i64 %i.next, %bytes",
            "  br i1 %more, label %loop, label %again",
            "again:",
            f"  {fence}" if "stream" in kind else "",
            "  %r.next = add i64 %r, 1",
            "  %rest = icmp ult i64 %r.next, %repeats",
            "  br i1 %rest, label %pass, label %done",
            "done:",
            *result,
            "}",
        ]
    )


__all__ = ["KINDS", "PLACES", "Limits", "Meter", "limits_ir", "machine_limits", "measure_limits"]
