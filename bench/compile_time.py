"""`python -m bench.compile_time [--out docs/status]`: compile time against program size and against trip counts.

Chains of N distinct elementwise and matrix ops; one loop body with trip counts 10, 1000 and 100000. CPU time, caches off.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

import gradir as gd

matplotlib.use("Agg")
import matplotlib.pyplot as plt

SIZES = (125, 250, 500, 1000)
TRIPS = (10, 1000, 100_000)


def chain(n: int) -> Any:
    """A function of `n` ops, no two of them equal: their constants and their order differ."""

    def function(x: Any, w: Any) -> Any:
        for k in range(n // 5):
            x = gd.tanh(x * (1.0 + k / n) + 0.01 * (k % 7))
            x = x - gd.sigmoid(x) * 0.5
            if k % 25 == 24:
                x = x @ w
        return x

    return function


def seconds(function: Any, *args: Any) -> tuple[float, int]:
    """CPU seconds from Python function to loaded code (best of three), and the number of kernels."""
    best, kernels = float("inf"), 0
    for _ in range(3):
        began = time.process_time()
        compiled = gd.compile(function, *args, cache=False, threads=1)
        best, kernels = min(best, time.process_time() - began), compiled.report.kernels
    return best, kernels


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.compile_time", description=__doc__)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    gd.preload()
    load = os.getloadavg()[0]
    x, w = gd.Spec((32, 64)), gd.Spec((64, 64))
    gd.compile(chain(25), x, w, cache=False)
    chains = [(n, *seconds(chain(n), x, w)) for n in SIZES]
    loops = []
    for trips in TRIPS:
        body = lambda x, w, n=trips: gd.grad(lambda w: gd.sum(gd.fori_loop(0, n, lambda i, s: gd.tanh(s @ w), x)))(w)
        loops.append((trips, *seconds(body, x, w)))
    rows = [f"| chain of {n} ops | {t:.3f} | {1e3 * t / n:.2f} | {k} |" for n, t, k in chains]
    rows += [f"| loop, {n} trips, with gradient | {t:.3f} | | {k} |" for n, t, k in loops]
    text = "\n".join(
        [
            "# Compile time",
            "",
            f"CPU seconds, caches off, best of three, load {load:.1f} at start. `python -m bench.compile_time`",
            "",
            "| program | s | ms per op | kernels |",
            "|---|---|---|---|",
            *rows,
            "",
            "![compile time](compile-time.png)",
            "",
        ]
    )
    print(text)
    if options.out:
        (options.out / "compile-time.md").write_text(text, encoding="utf-8")
        plot(options.out / "compile-time.png", chains, loops)


def plot(path: Path, chains: list[tuple[int, float, int]], loops: list[tuple[int, float, int]]) -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    n = np.array([c[0] for c in chains])
    left.plot(n, [c[1] for c in chains], "o-")
    left.plot(n, n * chains[-1][1] / n[-1], ":", color="gray", label="proportional")
    left.set(title="chain of distinct ops", xlabel="ops", ylabel="CPU s", xlim=(0, None), ylim=(0, None))
    left.legend()
    right.semilogx([c[0] for c in loops], [c[1] for c in loops], "o-")
    right.set(title="one loop body and its gradient", xlabel="trip count", ylabel="CPU s", ylim=(0, None))
    figure.savefig(path, dpi=120)
    plt.close(figure)


if __name__ == "__main__":
    main()
