"""Where the time of a compilation goes: milliseconds of each stage for the training workloads, a table of `bench.compile_time`'s page."""

from __future__ import annotations

import gradir as gd
from bench.systems.gradir_system import GradirSystem
from bench.workloads import WORKLOADS

PROGRAMS = ("mlp_train", "digits_mlp_step", "digits_cnn_step", "resnet_train", "block_train", "lstm_grad", "newton_grad")
SHOWN = 12
"""Stages with a row of their own: those that take longest in all programs together."""

WORDS = (
    "Milliseconds of each stage, from the traced module to loaded code, for the training programs of the [benchmark](performance.md);",
    "`gradir.Compiled.report` and `gradir-opt --timing` show them for any program. `llvm` is LLVM's code generation.",
)


def stages_of(name: str, times: int = 2) -> dict[str, float]:
    """Seconds of each stage of one workload, of the quickest of some compilations."""
    w = WORKLOADS[name]
    donated = tuple(range(w.params if w.kind == "train" else 0))
    reports = [gd.compile(GradirSystem(1).function(w), *w.inputs(), cache=False, threads=1, donate=donated).report for _ in range(times)]
    return min(reports, key=lambda report: report.seconds).stages


def stage_table() -> list[str]:
    """A row per stage, a column per program, the largest stages first."""
    found = {name: stages_of(name) for name in PROGRAMS}
    total = {stage: sum(stages.get(stage, 0.0) for stages in found.values()) for stages in found.values() for stage in stages}
    order = sorted(total, key=lambda stage: -total[stage])
    cells = lambda chosen: " | ".join(f"{1e3 * sum(stages.get(s, 0.0) for s in chosen):.1f}" for stages in found.values())
    rows = [f"| `{stage}` | {cells([stage])} |" for stage in order[:SHOWN]]
    rows += [f"| others | {cells(order[SHOWN:])} |", f"| **all** | {cells(order)} |"]
    return [f"| stage | {' | '.join(found)} |", "|---" * (len(found) + 1) + "|", *rows]
