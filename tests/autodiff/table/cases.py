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


def _matrix(seed: int, *shape: int) -> Array:
    return test_complex.numbers(seed, *shape) + np.eye(*shape[-2:])


def _positive(*shape: int) -> Array:
    """Hermitian, positive definite, eigenvalues well apart; the other triangle is noise."""
    a = _matrix(5, *shape)
    whole = a @ np.conj(np.swapaxes(a, -1, -2)) + np.diag(np.arange(shape[-1]) * 1.5 + 1.0)
    return whole + np.triu(_matrix(6, *shape), 1)


def _linalg() -> list[Case]:
    """Factors of complex matrices; each op also with several results."""
    found: list[Case] = []

    def case(op: str, name: str, flags: str, inputs: Sequence[Array], results: Sequence[tuple[tuple[int, ...], str]]) -> None:
        kinds = ", ".join(f"tensor<{'x'.join(map(str, (*shape, element)))}>" for shape, element in results)
        types = [f"tensor<{'x'.join(map(str, (*x.shape, 'complex<f64>')))}>" for x in inputs]
        names, count = [f"%x{k}" for k in range(len(inputs))], len(results)
        text = f"func.func @f({', '.join(f'{n}: {kind}' for n, kind in zip(names, types))}) -> ({kinds}) {{\n"
        bound, parts = ("%r", ["%r"]) if count == 1 else (f"%r:{count}", [f"%r#{k}" for k in range(count)])
        text += f"{bound} = {op} {', '.join(names)}{flags} : {', '.join(types)} -> {kinds}\nreturn {', '.join(parts)} : {kinds}\n}}"
        found.append(Case("linalg", op, f"complex {name}", text, lambda: list(inputs), tuple(range(len(inputs)))))

    z, r = "complex<f64>", "f64"
    for lower in (True, False):
        flag, side = (" lower", "lower") if lower else ("", "upper batch")
        a = _positive(3, 3) if lower else np.swapaxes(_positive(2, 3, 3), -1, -2).copy()
        case("nd.cholesky", side, flag, [a], [(a.shape, z)])
        case("nd.eigh", side, flag, [a], [(a.shape[:-1], r), (a.shape, z)])
    for flags in (" left lower", " lower transpose", " left adjoint", " unit_diagonal adjoint"):
        case("nd.triangular_solve", flags.strip(), flags, [_matrix(7, 3, 3), _matrix(8, 3, 3)], [((3, 3), z)])
    for name, (m, n) in {"square": (3, 3), "tall": (4, 2), "wide": (2, 4)}.items():
        k = min(m, n)
        a = _matrix(9, m, n)
        case("nd.qr", name, "", [a], [((m, k), z), ((k, n), z)])
        case("nd.svd", name, "", [a], [((m, k), z), ((k,), r), ((k, n), z)])
    case("nd.lu", "square", "", [_matrix(11, 3, 3)], [((3, 3), z), ((3,), "i32"), ((3,), "i32")])
    case("nd.qr", "batch", "", [_matrix(10, 2, 3, 2)], [((2, 3, 2), z), ((2, 2, 2), z)])
    return found


CASES = sorted([*_samples(), *_complex(), *_linalg()], key=lambda case: list(nd.FAMILIES).index(case.family))
