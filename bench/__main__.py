"""`python -m bench [--threads N] [--systems a,b] [--workloads gemm*,mlp*] [--out FILE.md]`: the table, as ratios in one run.

Every system runs in its own process; for each workload they take turns in short bursts, round after round, so that a noisy
neighbour hits all alike. A cell is the 10th percentile of a call; in brackets, relative to gradir (above 1: gradir is faster).
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from bench.systems import SYSTEMS
from bench.systems.numpy_system import NumpySystem
from bench.workloads import WORKLOADS, Workload

ROOT = Path(__file__).resolve().parent.parent
PEERS = ROOT / "build" / "peers"
ROUNDS, BURST = 5, 0.15


@dataclass
class Peer:
    """A worker process."""

    name: str
    process: subprocess.Popen[str]
    version: str

    @classmethod
    def start(cls, name: str, threads: int) -> Peer | None:
        """None when the system is not installed."""
        python = PEERS / name.removesuffix("_compile") / "bin" / "python"
        limits = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NPROC"), str(threads))
        env = {
            **os.environ,
            **limits,
            "PYTHONPATH": str(ROOT),
            "XLA_FLAGS": f"--xla_cpu_multi_thread_eigen={'true' if threads > 1 else 'false'}",
        }
        command = [str(python) if python.exists() else sys.executable, "-m", "bench.worker", name, str(threads)]
        if threads == 1 and name == "jax" and hasattr(os, "sched_getaffinity"):
            command = ["taskset", "-c", str(min(os.sched_getaffinity(0))), *command]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env, cwd=ROOT
        )
        peer = cls(name, process, "")
        hello = peer.answer()
        if "version" not in hello:
            return None
        peer.version = hello["version"]
        return peer

    def ask(self, **order: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(order) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return {"error": "the process ended"}
        return self.answer()

    def answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"error": "the process ended"}


@dataclass
class Row:
    """What one workload showed, per system."""

    workload: Workload
    times: dict[str, list[float]] = field(default_factory=dict)
    first: dict[str, float] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)

    def p10(self, name: str) -> float | None:
        return float(np.percentile(self.times[name], 10)) if self.times.get(name) else None


def measure(w: Workload, peers: list[Peer], expected: list[np.ndarray] | None) -> Row:
    """All systems on one workload, in turns; results are checked against f64 where numpy can give them, else against each other."""
    row = Row(w)
    ready: list[Peer] = []
    for peer in peers:
        got = peer.ask(do="load", workload=w.name)
        if "error" in got:
            row.errors[peer.name] = got["error"]
            continue
        outputs = [np.load(got["outputs"])[k] for k in np.load(got["outputs"]).files]
        expected = expected if expected is not None else outputs
        worst = max((relative(a, b) for a, b in zip(outputs, expected)), default=0.0)
        if len(outputs) != len(expected) or not worst <= w.tolerance:
            row.errors[peer.name] = f"wrong: error {worst:.1e}"
            continue
        row.first[peer.name] = got["first"]
        ready.append(peer)
    for _ in range(ROUNDS):
        for peer in ready:
            got = peer.ask(do="burst", seconds=BURST)
            row.times.setdefault(peer.name, []).extend(got.get("times", []))
    return row


def relative(a: np.ndarray, b: np.ndarray) -> float:
    if a.shape != b.shape:
        return float("inf")
    return float(np.max(np.abs(a.astype(np.float64) - b), initial=0.0) / max(float(np.max(np.abs(b), initial=0.0)), 1e-30))


def seconds(t: float | None) -> str:
    if t is None:
        return ""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if t >= scale:
            return f"{t / scale:.3g} {unit}"
    return f"{t * 1e9:.0f} ns"


def cell(row: Row, name: str) -> str:
    mine, theirs = row.p10("gradir"), row.p10(name)
    if theirs is None:
        return f"({row.errors.get(name, 'n/a')[:28]})"
    return seconds(theirs) + (f" [{theirs / mine:.2f}]" if mine and name != "gradir" else "")


def work(row: Row) -> str:
    t = row.p10("gradir")
    if not t:
        return ""
    return (
        f"{row.workload.flops / t / 1e9:.1f} GF/s"
        if row.workload.flops
        else f"{row.workload.bytes / t / 1e9:.1f} GB/s"
        if row.workload.bytes
        else ""
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--workloads", default="*")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    console = Console(width=180)
    peers = [p for name in options.systems.split(",") if (p := Peer.start(name, options.threads)) is not None]
    names = [p.name for p in peers]
    load = os.getloadavg()[0]
    rows: list[Row] = []
    for w in WORKLOADS.values():
        if not any(fnmatch.fnmatch(w.name, pattern) for pattern in options.workloads.split(",")):
            continue
        expected = None
        if w.kind == "forward":
            reference = NumpySystem(1).prepare(w, np.float64)
            reference.call()
            expected = reference.outputs()
        rows.append(measure(w, peers, expected))
        console.print(f"{w.name:22}", *(f"{n}: {cell(rows[-1], n)}" for n in names), work(rows[-1]), sep="  ")
    title = f"time per call (10th percentile), {options.threads} thread(s), load {load:.1f} at start; in brackets relative to gradir"
    table = Table("workload", *(f"{p.name} {p.version}" for p in peers), "gradir does", title=title)
    for row in rows:
        table.add_row(row.workload.name, *(cell(row, n) for n in names), work(row))
    console.print(table)
    if options.out:
        options.out.write_text(markdown(title, peers, rows), encoding="utf-8")


def markdown(title: str, peers: list[Peer], rows: list[Row]) -> str:
    """The table and the first calls as a page."""
    names = [p.name for p in peers]
    out = [
        "# Benchmark",
        "",
        title.capitalize() + ".",
        "",
        "| workload | " + " | ".join(f"{p.name} {p.version}" for p in peers) + " | gradir does |",
    ]
    out.append("|" + "---|" * (len(names) + 2))
    out += ["| " + " | ".join([r.workload.name, *(cell(r, n) for n in names), work(r)]) + " |" for r in rows]
    out += [
        "",
        "First call (trace, compile, run), caches off:",
        "",
        "| workload | " + " | ".join(names) + " |",
        "|" + "---|" * (len(names) + 1),
    ]
    out += ["| " + " | ".join([r.workload.name, *(seconds(r.first.get(n)) for n in names)]) + " |" for r in rows]
    return "\n".join(out) + "\n"


if __name__ == "__main__":
    main()
