"""`python -m bench.sweep [--cases 'gemm*'] [--threads 1,2] [--json FILE]`: gradir as a percentage of the machine's limits.

Products and convolutions against the FMA peak, everything else against bandwidth (`gradir.driver.limits`), sizes out of the caches. Kernel
and limit take turns, so that a change of the clock or a neighbour hits both. A call is the median of the bursts, the limit their best.
"""

from __future__ import annotations

import argparse
import fnmatch
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import gradir as gd
from bench import results as res
from bench.limits import limits
from bench.measure import machine
from bench.systems.gradir_system import GradirOps
from bench.workloads import normal
from gradir.driver.limits import Meter

ROUNDS = 5
BURST = 0.06
Inputs = Callable[[], list[np.ndarray]]


@dataclass(frozen=True)
class Case:
    """`limit` is `f32` (multiply-adds) or a kind of traffic, `work` operations or bytes of one call, `floor` the goal: the least share."""

    name: str
    function: Callable[..., Any]
    inputs: Inputs
    work: float
    limit: str
    floor: float


OPS = GradirOps()


def _gemm(m: int, k: int, n: int, floor: float) -> Case:
    make = lambda: [normal(0, m, k), normal(1, k, n)]
    return Case(f"gemm_{m}x{k}x{n}", lambda a, b: gd.matmul(a, b), make, 2.0 * m * k * n, "f32", floor)


def _scores(batch: int, m: int, k: int, n: int) -> Case:
    """Of attention: q @ k^T per head."""
    make = lambda: [normal(0, batch, m, k), normal(1, batch, n, k)]
    return Case(
        f"scores_{batch}x{m}x{k}x{n}", lambda a, b: gd.matmul(a, gd.transpose(b, (0, 2, 1))), make, 2.0 * batch * m * k * n, "f32", 0.85
    )


def _conv(batch: int, size: int, channels: int) -> Case:
    make = lambda: [normal(0, channels, channels, 3, 3, scale=0.05), normal(1, batch, channels, size, size)]
    flops = 2.0 * batch * channels * channels * 9 * size * size
    return Case(f"conv3x3_{batch}x{channels}x{size}x{size}", lambda w, x: OPS.conv(x, w, 1), make, flops, "f32", 0.90)


def _rows(name: str, function: Callable[..., Any], touched: float, limit: str, floor: float = 0.85, rows: int = 32768) -> Case:
    """On an array of `rows` x 1024 f32, which is touched `touched` times."""
    make = lambda: [np.random.default_rng(0).random((rows, 1024), np.float32)]
    return Case(f"{name}_{rows}x1024", function, make, 4.0 * rows * 1024 * touched, limit, floor)


def _binary(name: str, function: Callable[..., Any], count: int) -> Case:
    make = lambda: [np.random.default_rng(k).random(count, np.float32) for k in range(2)]
    return Case(f"{name}_{count >> 20}M", function, make, 12.0 * count, "copy", 0.85)


CASES: dict[str, Case] = {
    c.name: c
    for c in (
        *(_gemm(n, n, n, 0.90) for n in (128, 192, 256, 384, 512, 768, 1024, 1536, 2048)),
        *(_gemm(*shape, 0.85) for shape in ((512, 768, 2304), (512, 768, 768), (512, 768, 3072), (512, 3072, 768), (197, 768, 768))),
        _scores(48, 128, 64, 128),
        *(_conv(8, *shape) for shape in ((56, 64), (28, 128), (14, 256), (7, 512))),
        _rows("relu", lambda x: gd.relu(x - 0.5), 2, "copy"),
        _rows("exp", lambda x: gd.exp(x), 2, "copy"),
        _rows("tanh", lambda x: gd.tanh(x), 2, "copy"),
        _binary("gelu_of_sum", lambda x, y: gd.gelu(x + y), 32 << 20),
        _rows("softmax", lambda x: gd.softmax(x, -1), 2, "copy"),
        _rows("layer_norm", lambda x: gd.layer_norm(x, np.ones(1024, np.float32), np.zeros(1024, np.float32)), 2, "copy"),
        _rows("sum_axis0", lambda x: gd.sum(x, 0), 1, "read"),
        _rows("sum_axis1", lambda x: gd.sum(x, 1), 1, "read"),
        _rows("max_all", lambda x: gd.max(x), 1, "read"),
    )
}


def call_seconds(call: Callable[[], Any], seconds: float) -> list[float]:
    """Samples of at least 0.2 ms."""
    began = time.perf_counter()
    call()
    calls = max(1, min(2000, int(2e-4 / max(time.perf_counter() - began, 1e-7))))
    samples: list[float] = []
    until = time.perf_counter() + seconds
    while not samples or time.perf_counter() < until:
        began = time.perf_counter()
        for _ in range(calls):
            call()
        samples.append((time.perf_counter() - began) / calls)
    return samples


def measure(case: Case, threads: int, meter: Meter) -> dict[str, float]:
    """`{"seconds", "rate", "limit", "share", "floor"}`: rate and limit in operations or bytes per second."""
    inputs = case.inputs()
    function = gd.jit(case.function, threads=threads, cache=False)
    box: list[Any] = [function(*inputs)]

    def call() -> None:
        box[0] = function(*inputs)

    samples: list[float] = []
    tops: list[float] = []
    for _ in range(ROUNDS):
        tops.append(
            meter.flops(threads=threads, bursts=1) if case.limit == "f32" else meter.bandwidth(case.limit, threads=threads, bursts=1)
        )
        samples += call_seconds(call, BURST)
    seconds = float(np.median(samples))
    top = max(tops)
    return {"seconds": seconds, "rate": case.work / seconds, "limit": top, "share": case.work / seconds / top, "floor": case.floor}


def calls() -> dict[str, float]:
    """Seconds of a call of `overhead_add8`, `plain` and with `out` (medians)."""
    a, b, out = normal(0, 8), normal(1, 8), np.empty(8, np.float32)
    function = gd.jit(lambda a, b: a + b, threads=1, cache=False)
    kinds: dict[str, Callable[[], Any]] = {"plain": lambda: function(a, b), "out": lambda: function(a, b, out=out)}
    for call in kinds.values():
        call()
    return {name: float(np.median(call_seconds(call, 0.3))) - _empty_call() for name, call in kinds.items()}


def _empty_call() -> float:
    """What the loop around a call costs."""
    return float(np.median(call_seconds(lambda: None, 0.1)))


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.sweep", description=__doc__)
    parser.add_argument("--cases", default="*")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    counts = [int(t) for t in options.threads.split(",")]
    found = run([n for n in CASES if any(fnmatch.fnmatch(n, p) for p in options.cases.split(","))], counts)
    if options.json:
        old = res.read(options.json) if options.json.exists() else res.empty(1, machine())
        for name, row in old.get("sweep", {}).items():
            found["sweep"][name] = {**row, **found["sweep"].get(name, {})}
        res.write(options.json, {**old, **found})


def run(names: Sequence[str], counts: Sequence[int]) -> dict[str, Any]:
    """The section `sweep` of the results, case -> threads -> numbers, and `limits`."""
    meter, sweep = Meter(), dict[str, dict[str, Any]]()
    for name in names:
        case = CASES[name]
        row = sweep[name] = {str(t): measure(case, t, meter) for t in counts}
        scale, unit = 1e9, "GF/s" if case.limit == "f32" else "GB/s"
        cells = (
            f"{t} thread(s): {c['rate'] / scale:.1f} of {c['limit'] / scale:.1f} {unit}, {100 * c['share']:.0f} %" for t, c in row.items()
        )
        gain = f"  x{row['1']['seconds'] / row['2']['seconds']:.2f}" if {"1", "2"} <= set(row) else ""
        print(f"{name:26}", *cells, f"(limit {100 * case.floor:.0f} %)", gain, sep="  ", flush=True)
    return {"sweep": sweep, "limits": limits(tuple(counts)).to_json(), "calls": calls()}


if __name__ == "__main__":
    main()
