"""Objects of LLVM IR texts that are written one after the other: workers compile the first while the passes still make the next.

Which text an object belongs to, and in which order the objects come, does not depend on who compiled it.
"""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager

from gradir.dialects.target import CpuTargetAttr
from gradir.targets.cpu import compile_object
from gradir.targets.workers import Worker, return_workers, take_workers

WORTH_A_WORKER = 24
"""`code_weight` from which on LLVM takes longer than a Python process takes to start."""


@contextmanager
def compiling_objects(machine: CpuTargetAttr, *, helped: bool) -> Generator[Objects, None, None]:
    """`Objects` for a machine; with `helped`, worker processes start at once and are free again at the end, whatever happens."""
    objects = Objects(machine)
    if helped:
        objects.hire()
    try:
        yield objects
    finally:
        objects.close()


class Objects:
    """`add` texts, then `finish`: their objects in the same order.

    After `hire`, texts are compiled by worker processes as soon as they are added; `finish` compiles what is left in this one.
    """

    def __init__(self, machine: CpuTargetAttr) -> None:
        self._machine = machine
        self._texts: list[str] = []
        self._done: dict[int, bytes] = {}
        self._waiting: list[int] = []
        self._closed = False
        self._changed = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._workers: list[Worker] = []

    def hire(self) -> None:
        """Let worker processes help."""
        self._workers = take_workers()
        self._threads = [threading.Thread(target=self._serve, args=(worker,), daemon=True) for worker in self._workers]
        for thread in self._threads:
            thread.start()

    def add(self, text: str) -> int:
        """The position of the text's object."""
        with self._changed:
            position = len(self._texts)
            self._texts.append(text)
            self._waiting.append(position)
            self._changed.notify()
            return position

    def finish(self) -> list[bytes]:
        """All objects. Raises `GradirError` OP043 for a text that LLVM rejects; workers are free afterwards in any case."""
        try:
            while (mine := self._claim(wait=False)) is not None:
                self._done[mine] = compile_object(self._texts[mine], self._machine)
        finally:
            self.close()
        for position, text in enumerate(self._texts):
            if position not in self._done:  # its worker was lost, or LLVM's words are wanted
                self._done[position] = compile_object(text, self._machine)
        return [self._done[position] for position in range(len(self._texts))]

    def close(self) -> None:
        """No more texts; waits for those that workers have begun."""
        with self._changed:
            self._closed = True
            self._waiting.clear()
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()
        return_workers(self._workers)
        self._threads, self._workers = [], []

    def _claim(self, *, wait: bool) -> int | None:
        """The longest text that nobody has begun; None when there is none, with `wait` when there will be none."""
        with self._changed:
            while wait and not self._closed and not self._waiting:
                self._changed.wait()
            if not self._waiting:
                return None
            position = max(self._waiting, key=lambda waiting: len(self._texts[waiting]))
            self._waiting.remove(position)
            return position

    def _serve(self, worker: Worker) -> None:
        while worker.alive and (position := self._claim(wait=True)) is not None:
            code = worker.compile(self._texts[position], self._machine)
            if code is not None:
                self._done[position] = code
