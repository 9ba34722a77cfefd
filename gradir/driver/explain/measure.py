"""Runs of an instrumented program, and what their recordings say: seconds per site, threads, sizes, the events of the last run."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from gradir.driver.explain.instrument import Marks
from gradir.runtime.profile import SITES, Recording, record

Call = Callable[[], Any]


@dataclass(frozen=True)
class Run:
    """One run: seconds from the caller's side, begin and end on the recorder's clock, and the rows."""

    begin: int
    end: int
    recording: Recording

    @property
    def seconds(self) -> float:
        return (self.end - self.begin) * 1e-9


@dataclass(frozen=True)
class Measurement:
    """`runs` with marks, `plain` seconds of runs without."""

    runs: Sequence[Run]
    plain: Sequence[float]


Measure = Callable[[Call, Call], Measurement]
"""`measure(instrumented, plain)`; tests give one that does not look at a clock."""


def measure_runs(seconds: float = 0.5, most: int = 20) -> Measure:
    """Interleaved runs with and without marks for so many seconds, three at least, `most` at most, after one of each to warm up."""

    def measure(instrumented: Call, plain: Call) -> Measurement:
        _run(instrumented)
        plain()
        runs: list[Run] = []
        without: list[float] = []
        began = time.perf_counter()
        while len(runs) < most and (len(runs) < 3 or time.perf_counter() - began < seconds):
            runs.append(_run(instrumented))
            start = time.perf_counter()
            plain()
            without.append(time.perf_counter() - start)
        return Measurement(runs, without)

    return measure


def _run(call: Call) -> Run:
    with record() as recording:
        begin = time.perf_counter_ns()
        call()
        end = time.perf_counter_ns()
    return Run(begin, end, recording)


@dataclass
class SiteTimes:
    """One site over all runs: seconds and calls of each run, threads that took part, shapes of measured operands."""

    seconds: list[float] = field(default_factory=list[float])
    calls: int = 0
    threads: int = 1
    shapes: tuple[tuple[int, ...], ...] = ()

    @property
    def median(self) -> float:
        return statistics.median(self.seconds) if self.seconds else 0.0


@dataclass(frozen=True)
class Span:
    """One visit of a site, or (`chunk`) one chunk of its parallel loop; nanoseconds of the recorder's clock."""

    site: int
    thread: int
    begin: int
    end: int
    chunk: bool = False


def read_runs(marks: Marks, runs: Sequence[Run]) -> tuple[dict[int, SiteTimes], list[Span]]:
    """Times per site, and the spans of the last run."""
    times = {place.number: SiteTimes() for place in marks.places}
    spans: list[Span] = []
    for run in runs:
        spans = spans_of(run.recording)
        each = dict.fromkeys(times, 0.0)
        calls = dict.fromkeys(times, 0)
        workers: dict[int, set[int]] = {number: set() for number in times}
        for span in spans:
            if span.chunk:
                workers[span.site].add(span.thread)
            else:
                each[span.site] += (span.end - span.begin) * 1e-9
                calls[span.site] += 1
        for number, found in times.items():
            found.seconds.append(each[number])
            found.calls = calls[number]
            found.threads = max(found.threads, len(workers[number]))
    for number, found in times.items():
        site = SITES.get((marks.program, number))
        found.shapes = site.shapes if site is not None and found.calls else ()
    return times, spans


def spans_of(recording: Recording) -> list[Span]:
    """Pairs of begin and end, and chunks, by their beginning."""
    open_at: dict[int, int] = {}
    spans: list[Span] = []
    for code, thread, begin, end in recording.rows.tolist():
        if code < 0:
            spans.append(Span(-1 - code, thread, begin, end, True))
        elif code % 2 == 0:
            open_at[code // 2] = begin
        elif (start := open_at.pop(code // 2, None)) is not None:
            spans.append(Span(code // 2, thread, start, end))
    return sorted(spans, key=lambda span: (span.begin, span.chunk))


__all__ = ["Call", "Measure", "Measurement", "Run", "SiteTimes", "Span", "measure_runs", "read_runs", "spans_of"]
