"""The loop: seeds to programs to oracles to finds, until the time is over.

The work is done in a child process that reports line by line, because compiled code that is wrong may take its process with it: then, or
when nothing was heard for `SILENCE` seconds, the program that was being looked at is a find, and another child goes on with the next seed.
"""

from __future__ import annotations

import json
import os
import re
import select
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np

from gradir.autodiff.registry import SKIPPED, load_rules
from gradir.driver.lower import lower
from gradir.errors import GradirError
from gradir.ir.text import print_module
from gradir.tools.fuzz import damage_ops, damage_text
from gradir.tools.fuzz.gradients.program import smooth_program
from gradir.tools.fuzz.oracles import ask
from gradir.tools.fuzz.programs import random_program
from gradir.tools.fuzz.refusal import RefusedError
from gradir.tools.fuzz.templates import ops, templates_of
from gradir.tools.reduce import reduce_lines, reduce_module

SCHEDULE = ("semantics", "damaged", "compiled", "damaged", "gradient", "damaged", "semantics", "damaged", "round-trip", "damaged")
"""Which question the seeds 0, 1, 2, ... ask."""

GRADIENTS = (
    "derivatives", "compiled-derivatives", "derivatives", "second-order", "policies", "lanes", "derivatives", "compiled-derivatives",
)  # fmt: skip
"""The same for a campaign on derivatives."""

CORPUS = 64
"""Programs that damage is done to: made once for each range of seeds."""

SILENCE = 90.0
"""Seconds without a word from the child after which it hangs."""


@dataclass(frozen=True)
class Case:
    """One question: `text` under `oracle`."""

    seed: int
    oracle: str
    text: str


@dataclass
class Tally:
    """What a campaign has done: questions asked, refused ones by reason, finds."""

    asked: dict[str, int] = field(default_factory=dict[str, int])
    refused: dict[str, int] = field(default_factory=dict[str, int])
    finds: list[Path] = field(default_factory=list[Path])
    last: int = -1


def oracle_of(seed: int, gradients: bool = False) -> str:
    """Which question has that number."""
    schedule = GRADIENTS if gradients else SCHEDULE
    return schedule[seed % len(schedule)]


def case_of(seed: int, gradients: bool = False) -> Case:
    """The question with that number, and its program."""
    oracle = oracle_of(seed, gradients)
    if gradients:
        return Case(seed, oracle, smooth_program(seed))
    if oracle == "gradient":
        return Case(seed, oracle, random_program(seed, steps=5, only=_differentiable()))
    if oracle != "damaged":
        return Case(seed, oracle, random_program(seed))
    rng = np.random.default_rng(seed)
    first = seed // 1000 * 1000
    text, other = (_corpus(first, int(rng.integers(CORPUS))) for _ in range(2))
    if rng.random() < 0.5:
        return Case(seed, oracle, damage_text.damage(text, rng, [other]))
    try:
        return Case(seed, oracle, damage_ops.damage(text, rng, [other]))
    except Exception:  # the damaged program could not even be printed: nobody could have written it
        return Case(seed, oracle, damage_text.damage(text, rng, [other]))


@cache
def _differentiable() -> tuple[str, ...]:
    """The ops with a derivative that is not 0."""
    load_rules()
    without = {kind.name for kind in SKIPPED}
    return tuple(name for name in ops() if name not in without)


@cache
def _corpus(first: int, number: int) -> str:
    """A program of the corpus of the seeds from `first`: a random one, a sample as it is, or one of them at a lower level."""
    text = ""
    if number % 4 == 3:
        text = _lowered(_corpus(first, number - 1 - number % 8 // 4), ("structured", "buffers", "loops")[number % 3])
    elif number % 2:
        rows = templates_of(ops()[(first // 1000 * 37 + number * 7919) % len(ops())])
        text = print_module(rows[(first // 1000 + number) % len(rows)].module) if rows else ""
    return text or random_program(first + number, steps=3)


def _lowered(text: str, stage: str) -> str:
    try:
        return print_module(lower(text, target="cpu", last=stage))
    except GradirError:
        return text


def run(
    seconds: float,
    first: int,
    folder: Path,
    show: Callable[[Tally, float], None],
    *,
    seeds: int | None = None,
    reduce_for: float = 60.0,
    gradients: bool = False,
) -> Tally:
    """Ask questions from seed `first` on for that time (or that many of them); finds are reduced and written to `folder`.

    `gradients`: the questions are about derivatives.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tally, began, known = Tally(last=first - 1), time.monotonic(), set[str]()
    while (left := seconds - (time.monotonic() - began)) > 0 and (seeds is None or tally.last + 1 < first + seeds):
        stop = None if seeds is None else first + seeds
        for case, outcome, message in _child(tally.last + 1, stop, left, gradients):
            tally.last = case.seed
            tally.asked[case.oracle] = tally.asked.get(case.oracle, 0) + 1
            if outcome == "refused":
                key = f"{case.oracle}: {message}"
                tally.refused[key] = tally.refused.get(key, 0) + 1
            elif outcome == "found" and _kind(message) not in known:
                known.add(_kind(message))
                tally.finds.append(keep(case, message, folder, reduce_for))
            show(tally, time.monotonic() - began)
    return tally


def _kind(message: str) -> str:
    """What two finds with one cause have in common: the message without numbers and quoted names."""
    return re.sub(r"'[^']*'|\d+", "", message)[:80]


def _child(first: int, stop: int | None, seconds: float, gradients: bool) -> Iterator[tuple[Case, str, str]]:
    """The outcomes of the seeds from `first` on, asked in a process of its own; one that dies is the last one's find."""
    reader, writer = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(reader)
        _work(first, stop, seconds, writer, gradients)
    os.close(writer)
    current: Case | None = None
    buffer = b""
    try:
        while True:
            if not select.select([reader], [], [], SILENCE)[0]:
                os.kill(process, signal.SIGKILL)
                if current is not None:
                    yield current, "found", f"no answer within {SILENCE:.0f} s, and no way to interrupt it"
                break
            data = os.read(reader, 1 << 16)
            if not data:
                break
            *lines, buffer = (buffer + data).split(b"\n")
            for line in lines:
                seed, oracle, outcome, message, text = json.loads(line)
                current = Case(seed, oracle, text)
                if outcome != "asking":
                    yield current, outcome, message
                    current = None
    finally:
        os.close(reader)
        _, status = os.waitpid(process, 0)
    if current is not None and os.WIFSIGNALED(status) and os.WTERMSIG(status) != signal.SIGKILL:
        yield current, "found", f"the process died: {signal.Signals(os.WTERMSIG(status)).name}"


def _work(first: int, stop: int | None, seconds: float, writer: int, gradients: bool) -> None:
    """What the child does; never returns."""
    _mute()
    code, end, seed = 0, time.monotonic() + seconds, first
    try:
        while time.monotonic() < end and (stop is None or seed < stop):
            _tell(writer, *_answer(seed, writer, gradients))
            seed += 1
    except (BrokenPipeError, KeyboardInterrupt):
        code = 1
    finally:
        os._exit(code)


def _mute() -> None:
    """What programs print goes nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)


def _answer(seed: int, writer: int, gradients: bool) -> tuple[Case, str, str]:
    try:
        case = case_of(seed, gradients)
    except Exception as error:  # a generator that crashes is a find too: verifier, parser and printer take part in it
        return (
            Case(seed, (GRADIENTS if gradients else SCHEDULE)[seed % len(GRADIENTS if gradients else SCHEDULE)], ""),
            "found",
            f"making the program: {type(error).__name__}: {error}",
        )
    _tell(writer, case, "asking", "")
    try:
        complaint = ask(case.oracle, case.text, case.seed)
    except RefusedError as error:
        return case, "refused", str(error)
    return case, "found" if complaint else "right", complaint or ""


def _tell(writer: int, case: Case, outcome: str, message: str) -> None:
    data = (json.dumps([case.seed, case.oracle, outcome, message, case.text]) + "\n").encode()
    while data:
        data = data[os.write(writer, data) :]


def keep(case: Case, message: str, folder: Path, reduce_for: float) -> Path:
    """Reduce a find and write it with its seed and the command that shows it again."""
    text = reduced(case, message, reduce_for)
    number = 1
    while (path := folder / f"{number}.mlir").exists():
        number += 1
    command = f"python -m gradir.tools.fuzz --oracle {case.oracle} --seed {case.seed} {path}"
    head = f"// {' '.join(message.split())}\n// seed {case.seed}; again: {command}\n"
    path.write_text(head + text, encoding="utf-8")
    return path


def reduced(case: Case, message: str, seconds: float) -> str:
    """The smallest text found in that time that gets a complaint of the same kind, each asked in a process of its own."""
    end, best, wanted = time.monotonic() + seconds, case.text, _kind(message)

    def interesting(text: str) -> bool:
        nonlocal best
        if time.monotonic() > end:
            raise TimeoutError
        found = any(outcome == "found" and _kind(complaint) == wanted for outcome, complaint in [answer_apart(case, text)])
        best = text if found else best
        return found

    try:
        return reduce_module(case.text, interesting)
    except TimeoutError:
        return best
    except GradirError:  # no valid IR
        try:
            return reduce_lines(case.text, interesting)
        except (TimeoutError, GradirError):
            return best


def answer_apart(case: Case, text: str) -> tuple[str, str]:
    """Outcome and message of `case` with another text, asked in a process of its own."""
    reader, writer = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(reader)
        _mute()
        try:
            complaint = ask(case.oracle, text, case.seed)
            outcome = "found" if complaint else "right"
            os.write(writer, json.dumps([outcome, complaint or ""]).encode())
        except RefusedError as error:
            os.write(writer, json.dumps(["refused", str(error)]).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        data = pipe.read()
    _, status = os.waitpid(process, 0)
    if os.WIFSIGNALED(status):
        return "found", f"the process died: {signal.Signals(os.WTERMSIG(status)).name}"
    outcome, complaint = json.loads(data)
    return outcome, complaint
