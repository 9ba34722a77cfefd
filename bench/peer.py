"""A worker process (`bench.worker`) as an object: start it, ask it, end it. A hung one is killed and counts as failed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.systems import BUILD, PEERS

ROOT = Path(__file__).resolve().parent.parent
LIMIT = 300.0
"""Seconds that one answer may take."""


def python_of(system: str) -> Path:
    """The interpreter of a system's environment; ours where it has none."""
    python = PEERS / system.removesuffix("_compile") / "bin" / "python"
    return python if python.exists() else Path(sys.executable)


def environment(threads: int, *, caches: bool) -> dict[str, str]:
    """What keeps every library to `threads` threads; `caches`: may they use what earlier runs left on disk?"""
    limits = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NPROC", "NUMBA_NUM_THREADS"), str(threads))
    xla = f"--xla_cpu_multi_thread_eigen={'true' if threads > 1 else 'false'}"
    ours = {"PYTHONPATH": str(ROOT), "XLA_FLAGS": xla, "BENCH_CACHES": str(int(caches)), "TF_CPP_MIN_LOG_LEVEL": "3"}
    return {**os.environ, **limits, **ours}


def pinned(threads: int) -> list[str]:
    """The prefix of a command that keeps a process of one thread, and whatever it starts, on one processor."""
    if threads == 1 and hasattr(os, "sched_getaffinity"):
        return ["taskset", "-c", str(max(os.sched_getaffinity(0)))]
    return []


@dataclass
class Peer:
    """One system's process. `hello` is its first answer."""

    name: str
    threads: int
    process: subprocess.Popen[str]
    hello: dict[str, Any]

    @classmethod
    def start(cls, name: str, threads: int, *, caches: bool = False) -> Peer:
        command = [*pinned(threads), str(python_of(name)), "-m", "bench.worker", name, str(threads)]
        logs = BUILD / "bench" / "logs"
        logs.mkdir(parents=True, exist_ok=True)
        with (logs / f"{name}.txt").open("w") as log:
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, cwd=ROOT,
                env=environment(threads, caches=caches),
            )  # fmt: skip
        peer = cls(name, threads, process, {})
        peer.hello = peer.answer()
        return peer

    @property
    def ready(self) -> bool:
        return "version" in self.hello

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def ask(self, do: str, **order: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps({"do": do, **order}) + "\n")
            self.process.stdin.flush()
        except (OSError, ValueError):  # a broken pipe, a closed one
            return {"failed": "the process ended"}
        return self.answer()

    def answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        timer = threading.Timer(LIMIT, self.process.kill)
        timer.start()
        line = self.process.stdout.readline()
        timer.cancel()
        if line:
            return json.loads(line)
        self.process.wait()
        return {"failed": f"the process ended (status {self.process.returncode})"}

    def end(self) -> None:
        if self.process.stdin is not None:
            self.process.stdin.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
