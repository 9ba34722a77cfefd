"""The programs of the table: every sample of every op that names arguments with a derivative, and the complex programs.

A program has a public function `@f` on f64 or complex<f64> arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradir.dialects import nd
from tests.autodiff import test_complex
from tests.autodiff.gradients import in_f64, promoted

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Case:
    """One program: `text` in f64, its inputs, and the positions of the arguments to differentiate by."""

    family: str
    op: str
    name: str
    text: str
    inputs: Callable[[], Sequence[Array]]
    wrt: tuple[int, ...]

    @property
    def id(self) -> str:
        return f"{self.op.removeprefix('nd.')}: {self.name}"


def _complex_inputs() -> list[Array]:
    return [test_complex.numbers(1, 4), test_complex.numbers(2, 4)]


def _samples() -> list[Case]:
    found: list[Case] = []
    for family, ops in nd.FAMILIES.items():
        for op in ops:
            for sample in getattr(op, "samples", tuple)():
                if sample.wrt:
                    inputs = lambda sample=sample: promoted(sample.inputs())
                    found.append(Case(family, op.name, sample.name, in_f64(sample.text), inputs, sample.wrt))
    return found


def _complex() -> list[Case]:
    """Programs of complex vectors; a program of several ops counts for the op that it is named after."""
    families = {op.name: family for family, ops in nd.FAMILIES.items() for op in ops}
    found: list[Case] = []
    for name, (body, result) in test_complex.PROGRAMS.items():
        op = {"scatter mul": "nd.scatter_general"}.get(name, f"nd.{name}")
        if op not in families:
            continue
        text = f"func.func @f(%a: {test_complex.T}, %b: {test_complex.T}) -> {result} {{\n{body}\nreturn %r : {result}\n}}"
        wrt = (0, 1) if "%b" in body else (0,)
        found.append(Case(families[op], op, "complex", text, _complex_inputs, wrt))
    return found


CASES = sorted([*_samples(), *_complex()], key=lambda case: list(nd.FAMILIES).index(case.family))
