"""`python -m bench.compile_time [--out docs/status]`: compile time against program size and against trip counts, forward and of gradients.

Chains of N distinct elementwise and matrix ops; gradients of chains, trees, nested loops and of functions that call each other twice; one
loop body with trip counts 10, 1000 and 100000. CPU time of this process, caches off, one thread.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

import gradir as gd
from bench import gradient_programs as programs
from bench.compile_stages import WORDS, stage_table

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


def seconds(function: Any, *args: Any, times: int = 3) -> tuple[float, int]:
    """CPU seconds from Python function to loaded code (best of `times`), and the number of kernels."""
    best, kernels = float("inf"), 0
    for _ in range(times):
        began = time.process_time()
        compiled = gd.compile(function, *args, cache=False, threads=1)
        best, kernels = min(best, time.process_time() - began), compiled.report.kernels
    return best, kernels


@dataclass(frozen=True)
class Point:
    """One gradient: `size` of the program, ops after `differentiate`, CPU seconds of that pass and of the whole compilation."""

    size: int
    ops: int
    pass_seconds: float
    whole: float | None


@dataclass(frozen=True)
class Family:
    """Gradients of a program that grows. `calls`: without inlining, where functions stay functions; only the derivative is made then."""

    name: str
    unit: str
    loss: Callable[[int], programs.Loss]
    sizes: Sequence[int]
    calls: bool = False

    def points(self) -> list[Point]:
        return [self._point(n) for n in self.sizes]

    def _point(self, n: int) -> Point:
        loss = self.loss(n)
        best, ops = float("inf"), 0
        for _ in range(3):
            module, took = programs.differentiated(loss, inline=not self.calls)
            best, ops = min(best, took), programs.ops(module)
        whole = None if self.calls else seconds(gd.grad(loss), *programs.ARGUMENTS, times=2)[0]
        return Point(n, ops, best, whole)


FAMILIES = (
    Family("chain", "ops", programs.chain, (125, 250, 500, 1000)),
    Family("tree", "leaves", programs.tree, (16, 32, 64, 128)),
    Family("nest", "loops", programs.nest, tuple(range(1, 9))),
    Family("calls, inlined", "levels", programs.calls, tuple(range(1, 9))),
    Family("calls, kept", "levels", programs.calls, tuple(range(1, 9)), calls=True),
)

GRADIENTS = (
    "Programs that grow: a chain of distinct ops, a tree over distinct leaves, loops inside of loops, functions that call each other",
    "twice (2^n calls at level n). *Generated ops* are those of the module after `differentiate`. The last column is the time per",
    "generated op against that of the family's smallest program with at least 100: 1 is linear. Calls are inlined before they are",
    "differentiated, so that 2^n calls are 2^n bodies; where they stay calls (*kept*: `differentiate` on its own) there is one pair of",
    "functions per level, each of which hands over twice the residuals of the one below, up to 256: the time per op grows with them.",
)


def gradient_table(found: dict[str, list[Point]]) -> list[str]:
    """A row per point; the last column compares time per generated op with that of the smallest program of at least 100 generated ops."""
    head = "| program | generated ops | differentiate, ms | us per op | whole compilation, s | ms per op | against the smallest |"
    rows = [head, "|---|---|---|---|---|---|---|"]
    for family in FAMILIES:
        points = found[family.name]
        base = next((p for p in points if p.ops >= 100), points[-1])
        for p in points:
            per_op = (p.whole if p.whole is not None else p.pass_seconds) / p.ops
            start = (base.whole if base.whole is not None else base.pass_seconds) / base.ops
            whole = f"{p.whole:.3f} | {1e3 * p.whole / p.ops:.2f}" if p.whole is not None else " | "
            cells = f"{p.ops} | {1e3 * p.pass_seconds:.1f} | {1e6 * p.pass_seconds / p.ops:.0f} | {whole} | {per_op / start:.2f}"
            rows.append(f"| {family.name}, {p.size} {family.unit} | {cells} |")
    return rows


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
    found = {family.name: family.points() for family in FAMILIES}
    rows = [f"| chain of {n} ops | {t:.3f} | {1e3 * t / n:.2f} | {k} |" for n, t, k in chains]
    rows += [f"| loop, {n} trips, with gradient | {t:.3f} | | {k} |" for n, t, k in loops]
    text = "\n".join(
        [
            "# Compile time",
            "",
            f"CPU seconds of one process, caches off, one thread, the best of two or three, load {load:.1f} at start (other programs ran",
            "on the machine's two cores). `taskset -c 1 python -m bench.compile_time --out docs/status`: there LLVM runs in this",
            "process.",
            "",
            "| program | s | ms per op | kernels |",
            "|---|---|---|---|",
            *rows,
            "",
            "## Stages",
            "",
            *WORDS,
            "",
            *stage_table(),
            "",
            "## Gradients",
            "",
            *GRADIENTS,
            "",
            *gradient_table(found),
            "",
            "![compile time](compile-time.png)",
            "",
        ]
    )
    print(text)
    if options.out:
        (options.out / "compile-time.md").write_text(text, encoding="utf-8")
        plot(options.out / "compile-time.png", chains, loops, found)


def plot(path: Path, chains: list[tuple[int, float, int]], loops: list[tuple[int, float, int]], found: dict[str, list[Point]]) -> None:
    figure, axes = plt.subplots(2, 4, figsize=(15, 6.4), layout="constrained")
    panels = list(axes.flat)
    _line(panels[0], [c[0] for c in chains], [c[1] for c in chains], "chain of distinct ops, forward", "ops")
    for panel, family in zip(panels[1:6], FAMILIES):
        points = found[family.name]
        times = [p.whole if p.whole is not None else p.pass_seconds for p in points]
        what = "differentiate" if family.calls else "whole compilation"
        _line(panel, [p.ops for p in points], times, f"gradient: {family.name} ({what})", "generated ops")
    panels[6].semilogx([c[0] for c in loops], [c[1] for c in loops], "o-")
    panels[6].set(title="one loop body and its gradient", xlabel="trip count", ylabel="CPU s", ylim=(0, None))
    nest = found["calls, kept"]
    panels[7].plot([p.size for p in nest], [p.ops for p in nest], "o-", label="kept")
    panels[7].plot([p.size for p in found["nest"]], [p.ops for p in found["nest"]], "o-", label="nested loops")
    panels[7].set(title="generated ops by depth", xlabel="levels", ylabel="ops", ylim=(0, None))
    panels[7].legend()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _line(panel: Any, sizes: Sequence[int], times: Sequence[float], title: str, unit: str) -> None:
    n = np.array(sizes)
    panel.plot(n, times, "o-")
    panel.plot(n, n * times[-1] / n[-1], ":", color="gray", label="proportional")
    panel.set(title=title, xlabel=unit, ylabel="CPU s", xlim=(0, None), ylim=(0, None))
    panel.legend()


if __name__ == "__main__":
    main()
