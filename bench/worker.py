"""One system in a process of its own, driven by JSON lines on stdin.

{"do": "load", "workload": NAME}        -> {"first", "first_cpu": seconds, "outputs": PATH, "once": seconds, "rise": bytes, "note"}
{"do": "burst", "seconds": S}           -> {"wall": [seconds, ...], "cpu": [seconds, ...]}, each the mean of some calls in a row
{"do": "memory"}                        -> {"temporary", "output": bytes} as the system plans them, or {}
{"do": "drop"}                          -> {}
{"do": "reference", "workload": NAME}   -> {"outputs": PATH}, in f64
Instead of these {"missing": why} for what a system cannot do, {"failed": text} for what it should.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bench.systems import SYSTEMS, Cell, NotAvailable
from bench.workloads import WORKLOADS

SAMPLE = 2e-4
"""Seconds that one sample lasts at least: as many calls in a row."""
HOPELESS = 2.0
"""A call that takes longer is timed once."""


def peak_memory() -> int:
    """Greatest resident size so far, or since `forget_peak`, in bytes; 0 where /proc has none."""
    try:
        found = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    except OSError:
        return 0
    return int(found[1]) * 1024 if found else 0


def forget_peak() -> None:
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def save(outputs: list[np.ndarray]) -> str:
    path = os.path.join(tempfile.gettempdir(), f"bench-{os.getpid()}.npz")
    np.savez(path, *(x.astype(np.float32) if x.dtype.name == "bfloat16" else x for x in outputs))
    return path


class Worker:
    """The state between orders: the system and the workload that is loaded."""

    def __init__(self, system: Any) -> None:
        self.system = system
        self.cell: Cell | None = None
        self.once = 0.0

    def load(self, workload: str) -> dict[str, Any]:
        self.drop()
        self.cell = cell = self.system.prepare(WORKLOADS[workload])
        forget_peak()
        base = peak_memory()
        cpu, began = time.process_time(), time.perf_counter()
        cell.call()
        first, first_cpu = time.perf_counter() - began, time.process_time() - cpu
        path = save(cell.outputs())
        for _ in range(2):
            began = time.perf_counter()
            cell.call()
            self.once = time.perf_counter() - began
            if self.once > HOPELESS:
                break
        rise = peak_memory() - base
        return {"first": first, "first_cpu": first_cpu, "outputs": path, "once": self.once, "rise": rise, "note": cell.note}

    def burst(self, seconds: float) -> dict[str, Any]:
        assert self.cell is not None
        call, calls = self.cell.call, max(1, min(2000, int(SAMPLE / max(self.once, 1e-7))))
        wall: list[float] = []
        cpu: list[float] = []
        if self.once < 0.3:
            call()  # the caches belong to another system
        until = time.perf_counter() + seconds
        while not wall or (time.perf_counter() < until and len(wall) < 500):
            c, t = time.process_time(), time.perf_counter()
            for _ in range(calls):
                call()
            wall.append((time.perf_counter() - t) / calls)
            cpu.append((time.process_time() - c) / calls)
        return {"wall": wall, "cpu": cpu}

    def memory(self) -> dict[str, Any]:
        assert self.cell is not None
        return dict(self.cell.memory())

    def drop(self) -> dict[str, Any]:
        if self.cell is not None:
            self.cell.close()
        self.cell = None
        gc.collect()
        return {}

    def reference(self, workload: str) -> dict[str, Any]:
        self.drop()
        cell = self.system.prepare(WORKLOADS[workload], np.float64)
        cell.call()
        return {"outputs": save(cell.outputs())}


def serve(name: str, threads: int) -> None:
    """Until stdin closes."""
    module, _, attribute = SYSTEMS[name].partition(":")
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints goes to stderr

    def answer(fields: dict[str, Any]) -> None:
        out.write(json.dumps(fields) + "\n")
        out.flush()

    began = time.perf_counter()
    try:
        worker = Worker(getattr(importlib.import_module(module), attribute)(threads))
    except ImportError as error:
        answer({"missing": f"not installed: {error}"})
        return
    answer({"version": worker.system.version(), "import": time.perf_counter() - began, "resident": peak_memory()})
    for line in sys.stdin:
        order = json.loads(line)
        do: Callable[..., dict[str, Any]] = getattr(worker, order.pop("do"))
        try:
            answer(do(**order))
        except NotAvailable as error:
            answer({"missing": str(error)})
        except Exception as error:  # a failing system is a cell of the table, not the end of the run
            first = str(error).splitlines()[0][:200] if str(error) else ""
            answer({"failed": f"{type(error).__name__}: {first}"})


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
