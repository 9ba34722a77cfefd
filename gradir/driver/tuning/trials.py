"""Measuring the forms of a kernel in a child process (`gradir.runtime.trial`): a form that crashes, hangs or is wrong harms nobody.

The child says which form it is about to touch; when it dies or is silent for too long, that form is refused and the others go on in a fresh
one.
"""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gradir.errors import GradirError
from gradir.runtime.dtypes import dtype_name
from gradir.runtime.module import Module

SILENCE = 20.0
"""Seconds without a word after which a child hangs."""
START = 60.0
"""Seconds until the first word: a busy machine takes its time to start a process."""


@dataclass(frozen=True)
class Outcome:
    """One form: seconds per call in each round, or why it was refused."""

    seconds: tuple[float, ...] = ()
    refused: str = ""


@dataclass(frozen=True)
class Job:
    """What to measure: the first of `forms` is the reference. `sets` copies of the inputs take turns, so that caches are as cold as in the
    program around; a round is about `seconds` long for each form."""

    forms: Sequence[Callable[[], Module]]
    inputs: Sequence[Any]
    sets: int = 1
    rounds: int = 5
    seconds: float = 0.002
    entry: str = ""


Measure = Callable[[Job], list[Outcome]]
"""`measure(job)`: one outcome per form. Tests give one that does not look at a clock."""


def measure_in_child(job: Job, *, silence: float = SILENCE) -> list[Outcome]:
    """Compile the forms here, run them there. GradirError RT063 when not even the reference runs."""
    outcomes: dict[int, Outcome] = {}
    with tempfile.TemporaryDirectory(prefix="gradir-tune-") as folder:
        paths: dict[int, str] = {}
        for k, form in enumerate(job.forms):
            try:
                paths[k] = os.path.join(folder, f"form{k}.gradir")
                form().save(paths[k])
            except GradirError as error:
                del paths[k]
                outcomes[k] = Outcome(refused=f"it does not compile: {error.code}")
        description = _write_inputs(Path(folder), job.inputs)
        while True:
            waiting = [k for k in paths if k not in outcomes]
            if 0 not in waiting:
                raise _no_reference(outcomes[0].refused)
            if len(waiting) == 1 and len(job.forms) > 1 and outcomes:
                break  # nothing is left to compare with
            settings = {"sets": job.sets, "rounds": job.rounds, "seconds": job.seconds, "entry": job.entry, **description}
            child = _Child({"artefacts": [paths[k] for k in waiting], **settings}, waiting, silence)
            outcomes |= child.run()
            if child.finished:
                break
    return [outcomes.get(k, Outcome(refused="not measured")) for k in range(len(job.forms))]


@dataclass
class _Child:
    """One process for one job: `places` are the forms' numbers in the caller's list."""

    job: Mapping[str, Any]
    places: Sequence[int]
    silence: float
    finished: bool = False
    at: int = 0
    found: dict[int, Outcome] = field(default_factory=dict[int, Outcome])

    def run(self) -> dict[int, Outcome]:
        """What is known when the process has ended: times of all if it finished, else who was refused, and who ended it."""
        command = [sys.executable, "-c", "import sys; from gradir.runtime.trial import main; sys.exit(main())"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            assert process.stdin is not None and process.stdout is not None
            try:
                process.stdin.write(json.dumps(self.job).encode())
                process.stdin.close()
                ended = self._listen(process)
            finally:
                process.kill()
                process.wait()
        if not self.finished:
            self._blame(ended if ended else f"it ends the process ({process.returncode})")
        return self.found

    def _listen(self, process: subprocess.Popen[bytes]) -> str:
        """Read lines until the end; a text if the process went silent."""
        assert process.stdout is not None
        stream = process.stdout
        os.set_blocking(stream.fileno(), False)
        rest = b""
        with selectors.DefaultSelector() as selector:
            selector.register(stream, selectors.EVENT_READ)
            until = time.monotonic() + START
            while not self.finished:
                if not selector.select(max(0.0, until - time.monotonic())):
                    return f"it hangs: no word for {self.silence:g} s"
                data = stream.read()
                if not data:
                    process.wait()
                    return ""
                until = time.monotonic() + self.silence
                *lines, rest = (rest + data).split(b"\n")
                for line in lines:
                    self._word(json.loads(line))
        return ""

    def _word(self, word: Mapping[str, Any]) -> None:
        if "start" in word:
            self.at = int(word["start"])
        elif "checked" in word and word["difference"]:
            self.found[self.places[int(word["checked"])]] = Outcome(refused=str(word["difference"]))
        elif "times" in word:
            self.finished = True
            for k, seconds in word["times"].items():
                self.found[self.places[int(k)]] = Outcome(tuple(map(float, seconds)))

    def _blame(self, why: str) -> None:
        """The form that was touched last; while times are taken nobody can tell which, and the last of those left goes."""
        left = [place for place in self.places if place not in self.found]
        guilty = self.places[self.at] if self.at >= 0 else left[-1]
        self.found[guilty] = Outcome(refused=why)


def _write_inputs(folder: Path, inputs: Sequence[Any]) -> dict[str, Any]:
    arrays = [np.ascontiguousarray(x) for x in inputs]
    path = folder / "inputs.npz"
    with open(path, "wb") as file:
        rows: dict[str, Any] = {f"x{k}": x.reshape(-1).view(np.uint8) for k, x in enumerate(arrays)}
        np.savez(file, **rows)
    return {"inputs": str(path), "dtypes": [dtype_name(x.dtype) for x in arrays], "shapes": [list(np.shape(x)) for x in inputs]}


def _no_reference(why: str) -> GradirError:
    return GradirError(
        "the kernel cannot be measured: its default form does not run in the child process",
        part="runtime",
        code="RT063",
        expected="a run of the schedule that the heuristic chose",
        found=why,
        hint="this is a bug of ours, or of a library that the program calls; run the program itself to see",
    )


__all__ = ["Job", "Measure", "Outcome", "measure_in_child"]
