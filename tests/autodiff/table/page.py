"""docs/status/autodiff.md: one row per op. `names` can be had without JAX, the numbers need it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gradir.autodiff.registry import SKIPPED, load_rules
from gradir.dialects import nd
from tests.autodiff.conventions import GROUPS
from tests.autodiff.table.cases import CASES
from tests.autodiff.table.jax_reasons import BY_HAND, CONVENTIONS, NO_COUNTERPART
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

Notes: *convention* names the [conventions](../derivative-conventions.md) by which our derivative differs from JAX's, at kinks and singular points, where
no sample is.
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
    titles = [GROUPS[name].title for name in CONVENTIONS.get(op, ())]
    links = [f"[{title}](../derivative-conventions.md#{_anchor(title)})" for title in titles]
    found = [f"convention: {', '.join(links)}"] if links else []
    if op in BY_HAND:
        found.append(f"JAX: {BY_HAND[op]}")
    if op in NO_COUNTERPART:
        found.append(NO_COUNTERPART[op])
    return "; ".join(found)


def _anchor(title: str) -> str:
    """As the manual's generator makes it."""
    return re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower())


def without_derivative() -> list[tuple[str, str]]:
    """Ops of which no argument has a derivative, with the reason."""
    load_rules()
    return [(op.name, SKIPPED[op]) for ops in nd.FAMILIES.values() for op in ops if op in SKIPPED and not samples_of(op.name)]


def names() -> list[tuple[str, ...]]:
    """What a current page says about each op, digits left out."""
    measured = [(name, str(samples_of(name)), notes(name)) for name in dict.fromkeys(case.op for case in CASES)]
    return [*measured, *without_derivative()]


def names_on(page: str) -> list[tuple[str, ...]]:
    """The same, read from a page."""
    found: list[tuple[str, ...]] = []
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")] if line.startswith("| ") else []
        if len(cells) == len(COLUMNS) and cells[0] != "op":
            found.append((cells[0], cells[1], cells[-1]))
        elif len(cells) == 2 and cells[0] != "op":
            found.append((cells[0], cells[1]))
    return found


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns), *(f"| {' | '.join(row)} |" for row in rows), ""]


def _digits(error: float) -> str:
    return "0" if error == 0 else f"{error:.0e}"


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
    lines += ["## Without a derivative", ""]
    lines += _table(("op", "reason"), without_derivative())
    return "\n".join(lines).rstrip() + "\n"
