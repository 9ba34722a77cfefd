"""`python -m bench.gpu.page`: writes docs/status/cuda.md, what an H200 should show, or, with `--measured FILE`, what it showed.

FILE is what `bench.gpu.check` wrote. Nothing on the page is typed by hand.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gradir as gd
from bench.gpu.cases import Case, timed
from bench.gpu.expected import COPY, FORMS, LATENCY, LAUNCH, LIBRARY, UNDER_WAY, Form, forms, program_seconds
from gradir.dialects.target.cuda_facts import CARDS
from gradir.driver.explain.cuda import CudaExplanation, explain_cuda
from gradir.driver.explain.explanation import count_text, duration_text

TARGET = Path("docs/status/cuda.md")
CARD, ARCH = "h200", "sm_90a"
TITLES = {
    "gemm": "Products of matrices",
    "memory": "Bound by memory",
    "attention": "Causal attention",
    "convolution": "Convolutions, NHWC, f32",
}

HEAD = """# CUDA: where it stands

Written by `python -m bench.gpu.page`. {ran}

Every kernel assembles with `ptxas` without spills and runs in the PTX emulator without a report (tests/ptx); programs run on the emulated
device with the results of the CPU (tests/cuda). `python -m bench.gpu.check` checks and measures everything on a GPU in one command.

## On paper

For each case of the bench: operations and bytes are counted from the program, the bound is the longer of the two on the data sheet of an
H200 ({bandwidth:.1f} TB/s, {bf16:.0f} TF/s for bf16 and f16, {f32:.1f} TF/s for f32), registers, shared memory and occupancy are the
assembler's for {arch}. The expected time takes shares of the bound that such kernels are known to reach:

| what | assumed |
|---|---|
| bandwidth that a copy reaches | {copy:.0%} of the data sheet's |
| bytes under way | {under_way} for each resident thread, {latency:.0f} ns from request to answer |
| wgmma with a ring of tensor copies | {wgmma:.0%} of the peak ({library:.0%} is what cuBLAS reaches) |
| mma.sync with cp.async | {mma:.0%} of the peak |
| multiply-adds of plain threads (f32, never rounded to tf32) | {fma:.0%} of the peak |
| between two kernels | {launch:.1f} us |
| a grid that does not fill its last round | what is busy of it |

"""
COLUMNS = "| case | flop | bytes | bound | by | expected | share of bound | kernels: grid, registers, shared memory, occupancy, stages |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page."""
    parser = argparse.ArgumentParser(prog="python -m bench.gpu.page")
    parser.add_argument("--measured", default="", metavar="FILE")
    parser.add_argument("--out", default=str(TARGET))
    parser.add_argument("--cases", default="", help="only cases whose group or name holds this text (for tests)")
    args = parser.parse_args(arguments)
    figures = json.loads(Path(args.measured).read_text()) if args.measured else None
    chosen = [case for case in timed("full") if args.cases in f"{case.group} {case.name}"]
    Path(args.out).write_text(page(chosen, figures), encoding="utf-8")
    return 0


def page(cases: Sequence[Case], figures: dict[str, Any] | None) -> str:
    """The text of the page."""
    card = CARDS[CARD]
    ran = (
        "No GPU has run any of it yet: all times on this page are computed."
        if figures is None
        else f"Measured on a {figures['card']} with torch {figures['versions']['torch']}: {figures['right']} results right, "
        f"{len(figures['wrong'])} wrong; the last section has the figures."
    )
    text = HEAD.format(
        ran=ran,
        bandwidth=card.bandwidth / 1e12,
        bf16=card.peak("bf16") / 1e12,
        f32=card.peak("f32") / 1e12,
        arch=ARCH,
        copy=COPY,
        under_way=UNDER_WAY,
        latency=LATENCY * 1e9,
        library=LIBRARY,
        launch=LAUNCH * 1e6,
        **FORMS,
    )
    lines: list[str] = []
    for group, title in TITLES.items():
        rows = [case for case in cases if case.group == group]
        if rows:
            lines += [f"### {title}", "", COLUMNS, "|---|---:|---:|---:|---|---:|---:|---|", *map(_row, rows), ""]
    if figures is not None:
        lines += ["## Measured", "", *_measured(figures)]
    return text + "\n".join(lines).rstrip() + "\n"


def _row(case: Case) -> str:
    card = CARDS[CARD]
    module = gd.jit(case.function).lower(*map(gd.Spec, case.shapes, [str(dtype) for dtype in case.dtypes]))
    found, ptx = explained(module)
    shapes = forms(ptx)
    seconds = program_seconds(found, card, shapes)
    compute, memory = case.flops / card.peak(case.element), case.moved / card.bandwidth
    bound, by = (compute, "compute") if compute > memory else (memory, "memory")
    expected = "?" if seconds is None else duration_text(seconds)
    share = "?" if seconds is None else f"{bound / seconds:.0%}"
    cells = (case.name, count_text(case.flops), count_text(case.moved), duration_text(bound), by, expected, share, _kernels(found, shapes))
    return f"| {' | '.join(cells)} |"


def explained(module: Any) -> tuple[CudaExplanation, str]:
    """What a program launches on the card, not run, and its PTX."""
    found = explain_cuda(module, target=f"cuda:0:{ARCH}", gpu_card=CARD, run=False)
    return found, found.ptx


def _kernels(found: CudaExplanation, shapes: dict[str, Form]) -> str:
    words: list[str] = []
    for row in found.rows:
        for launch in row.launches:
            form = shapes[launch.function]
            needs = "" if launch.registers is None else f", {launch.registers} r, {count_text(launch.shared or 0)}B, {launch.occupancy:.0%}"
            staged = f", {form.stages} st" if form.stages > 1 else ""
            times = f" x{row.calls}" if row.calls and row.calls > 1 else ""
            words.append(f"{row.kind} ({form.unit}) {launch.blocks if launch.blocks is not None else '?'}{needs}{staged}{times}")
    shown = words[:4] + ([f"and {len(words) - 4} more"] if len(words) > 4 else [])
    return "; ".join(shown)


def _measured(figures: dict[str, Any]) -> list[str]:
    lines = ["| case | us | of bound | peer us | peer / ours |", "|---|---:|---:|---:|---:|"]
    for row in figures.get("speed", ()):
        if "seconds" in row:
            peer = row.get("peer")
            against = f"{peer * 1e6:.1f} | {peer / row['seconds']:.2f}" if peer else " | "
            lines.append(f"| {row['group']} {row['name']} | {row['seconds'] * 1e6:.1f} | {row['bound'] / row['seconds']:.0%} | {against} |")
        else:
            lines.append(f"| {row['group']} {row['name']} | {row.get('error', '')[:80]} | | | |")
    for row in figures.get("training", ()):
        took = f"{row['seconds'] * 1e6:.0f}" if "seconds" in row else row.get("error", "")[:80]
        lines.append(f"| training {row['name']} | {took} | | | |")
    calls = ", ".join(f"{name} {us:.1f} us" for name, us in figures.get("overhead_us", {}).items())
    return [*lines, "", f"A call on 8 elements, the host's part: {calls}."]


if __name__ == "__main__":
    sys.exit(main())
