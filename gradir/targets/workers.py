"""Worker processes that compile LLVM IR texts while the compiler goes on writing the next ones.

LLVM's lock in llvmlite lets one thread of a process compile at a time, so a second processor is of use only to a second process. A
worker is started for the first program that is large enough, stays for the next one, and ends by itself when nobody asks. Losing one
(killed, out of memory) loses nothing: what it was given is compiled here.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence

from gradir.dialects.target import CpuTargetAttr

LIMIT = 3
"""Worker processes at most; beyond that the passes, not LLVM, decide how long a compilation takes."""


class Worker:
    """A process that makes objects; one request at a time."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "gradir.targets.object_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        )

    @property
    def alive(self) -> bool:
        """Can it be asked? It may still be gone when it is."""
        return self._process.poll() is None

    def compile(self, text: str, target: CpuTargetAttr) -> bytes | None:
        """The object of a text, or None when LLVM rejects it or the process is lost."""
        requests, answers = self._process.stdin, self._process.stdout
        assert requests is not None and answers is not None
        data = text.encode()
        request = {"triple": target.triple, "cpu": target.cpu, "features": target.features, "bytes": len(data)}
        try:
            requests.write(json.dumps(request).encode() + b"\n" + data)
            requests.flush()
            line = answers.readline()
            size = json.loads(line).get("bytes") if line else None
            code = answers.read(size) if size is not None else b""
        except (OSError, ValueError):
            self.close()
            return None
        return code if size is not None and len(code) == size else None

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        self._process.wait()


_lock = threading.Lock()
_idle: list[Worker] = []
_taken = 0


def worker_limit() -> int:
    """How many workers may run: one processor less than this process may use, `LIMIT` at most; none where Python cannot be started."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(0, min(usable - 1, LIMIT)) if sys.executable and os.name == "posix" else 0


def take_workers() -> list[Worker]:
    """All workers that nobody uses, running; give them back with `return_workers`. Empty where none can be had."""
    global _taken
    with _lock:
        ready = [worker for worker in _idle if worker.alive]
        _idle.clear()
        with contextlib.suppress(OSError):  # no more processes: compile with those there are
            while _taken + len(ready) < worker_limit():
                ready.append(Worker())
        _taken += len(ready)
        return ready


def return_workers(workers: Sequence[Worker]) -> None:
    """They are free for the next program."""
    global _taken
    with _lock:
        _taken -= len(workers)
        _idle.extend(worker for worker in workers if worker.alive)


def close_workers() -> None:
    """End those that nobody uses."""
    with _lock:
        while _idle:
            _idle.pop().close()


def _forget() -> None:
    """In a forked child: the pipes belong to the parent."""
    global _lock, _taken
    _lock, _taken = threading.Lock(), 0
    _idle.clear()


atexit.register(close_workers)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
