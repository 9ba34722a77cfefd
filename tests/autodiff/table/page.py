"""docs/status/autodiff.md: one row per op. `names` can be had without JAX, the numbers need it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gradir.autodiff.registry import SKIPPED, load_rules
from gradir.dialects import nd
from tests.autodiff.table.cases import CASES
from tests.autodiff.table.jax_reasons import BY_HAND, CONVENTIONS, NO_COUNTERPART
from tests.autodiff.table.kinks import KINKS, Kink
from tests.autodiff.table.measure import Errors

TARGET = Path("docs/status/autodiff.md")

HEAD = """# Derivatives of every op

`make autodiff-status` writes this page. Every sample of every op that has a derivative, in f64, at random cotangents and tangents; the
largest error over its samples. An error is the largest difference within a tensor by its largest element. The same comparisons are tests
(`tests/autodiff/test_table.py`); they pass below 1e-7, the dot-product test below 1e-10.

- **differences**: central differences extrapolated to step 0 (Ridders), good to 1e-10 or better. Every element of the arguments moves on its own.
- **dot**: `<ct, J t> = <J^T ct, t>`.
- **2nd**: the second derivative along a tangent, forward over reverse (fwd) and reverse over reverse (rev), against differences of the first.
- **JAX** {version} in x64: each op is a small function of jax.numpy and lax, written by hand (`tests/autodiff/jax_counterparts`).

Notes: *by convention* names rows of [numerics](../numerics.md#derivatives) by which our derivative differs from JAX's at the points listed
[below](#at-kinks-and-singular-points).
"""

COLUMNS = (
    "op",
    "samples",
    "vjp, differences",
    "jvp, differences",
    "dot",
    "2nd fwd",
    "2nd rev",
    "vjp, JAX",
    "jvp, JAX",
    "2nd, JAX",
    "notes",
)


@dataclass(frozen=True)
class Row:
    """One op: the worst over its samples; None where JAX has no counterpart."""

    differences: Errors
    jax: tuple[float, float, float] | None


def samples_of(op: str) -> int:
    """How many programs there are for an op."""
    return sum(1 for case in CASES if case.op == op)


def notes(op: str) -> str:
    """What is known about the op without measuring."""
    found = [f"by convention: {', '.join(CONVENTIONS[op])}"] if op in CONVENTIONS else []
    if op in BY_HAND:
        found.append(f"JAX: {BY_HAND[op]}")
    if op in NO_COUNTERPART:
        found.append(NO_COUNTERPART[op])
    return "; ".join(found)


def without_derivative() -> list[tuple[str, str]]:
    """Ops of which no argument has a derivative, with the reason."""
    load_rules()
    return [(op.name, SKIPPED[op]) for ops in nd.FAMILIES.values() for op in ops if op in SKIPPED and not samples_of(op.name)]


def names() -> list[tuple[str, ...]]:
    """What a current page says about each op and kink, digits left out."""
    measured = [(name, str(samples_of(name)), notes(name)) for name in dict.fromkeys(case.op for case in CASES)]
    return [*measured, *((kink.convention, kink.op, kink.text) for kink in KINKS), *without_derivative()]


def names_on(page: str) -> list[tuple[str, ...]]:
    """The same, read from a page."""
    found: list[tuple[str, ...]] = []
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")] if line.startswith("| ") else []
        if len(cells) == len(COLUMNS) and cells[0] != "op":
            found.append((cells[0], cells[1], cells[-1]))
        elif len(cells) == 5 and cells[0] != "convention":
            found.append((cells[0], cells[1], cells[2]))
        elif len(cells) == 2 and cells[0] != "op":
            found.append((cells[0], cells[1]))
    return found


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns), *(f"| {' | '.join(row)} |" for row in rows), ""]


def _digits(error: float) -> str:
    return "0" if error == 0 else f"{error:.0e}"


def _number(x: Any) -> str:
    values = np.asarray(x).astype(complex if np.iscomplexobj(x) else float)
    return str([float(f"{v:.6g}") for v in values]) if values.ndim else f"{values:.6g}"


def page(rows: dict[str, Row], version: str) -> str:
    """The text."""
    lines = [HEAD.format(version=version)]
    for family in dict.fromkeys(case.family for case in CASES):
        lines += [f"## {family}", ""]
        body: list[tuple[str, ...]] = []
        for op in dict.fromkeys(case.op for case in CASES if case.family == family):
            row, e = rows[op], rows[op].differences
            own = (e.vjp, e.jvp, e.dot, e.forward_over_reverse, e.reverse_over_reverse)
            theirs = ("", "", "") if row.jax is None else map(_digits, row.jax)
            body.append((op, str(samples_of(op)), *map(_digits, own), *theirs, notes(op)))
        lines += _table(COLUMNS, body)
    lines += ["## At kinks and singular points", "", "The gradient of the sum, where the convention gives another one than JAX.", ""]
    lines += _table(("convention", "op", "function", "Gradir", "JAX"), map(_kink, KINKS))
    lines += ["## Without a derivative", ""]
    lines += _table(("op", "reason"), without_derivative())
    return "\n".join(lines).rstrip() + "\n"


def _kink(kink: Kink) -> tuple[str, ...]:
    return kink.convention, kink.op, kink.text, _number(kink.ours()), _number(kink.jax())
