"""The examples of docs/autodiff.md: each command line keeps the meaning, and each derivative is the slope of its function."""

from __future__ import annotations

import shlex
from contextlib import chdir
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from gradir.dialects import ad
from gradir.dialects.types import element_of, shape_of
from gradir.ir.text import parse_module
from gradir.reference import run
from gradir.tools import docs_autodiff, opt

FOLDER = Path(__file__).parents[2] / docs_autodiff.FOLDER
NAMES = sorted(path.stem for path in FOLDER.glob("*.mlir"))
Array = np.ndarray[Any, Any]
HELD_FIXED = {"stop-gradient"}
"""Examples whose derivative is on purpose not the slope."""
STEPS = {2: (2**-4, 1e-1), 4: (2**-7, 2e-2), 8: (1e-6, 1e-7)}
"""Bytes of an element -> step of the differences, tolerance."""


@pytest.mark.parametrize("name", NAMES)
def test_the_command_keeps_the_meaning(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Every pass, against the evaluator."""
    monkeypatch.chdir(FOLDER.parents[1])
    _, *arguments = shlex.split(docs_autodiff.Example.read(name).command)
    assert opt.run([*arguments, "--check-semantics"]) == 0, capsys.readouterr().err


def modules(name: str) -> tuple[ModuleOp, FuncOp, ad.Request]:
    """What the example's command prints; as it is written, the function of the outermost request, and that request."""
    before = parse_module((FOLDER / f"{name}.mlir").read_text())
    with chdir(FOLDER.parents[1]):
        after = parse_module(docs_autodiff.Example.read(name).printed())
    *_, request = (op for op in before.walk() if isinstance(op, ad.Request))
    (function,) = (op for op in before.walk() if isinstance(op, FuncOp) and op.sym_name.data == request.callee_name)
    return after, function, request


def random_inputs(request: ad.Request, rng: np.random.Generator) -> list[Array]:
    """Floats away from 0, small integers, truth values."""
    found: list[Array] = []
    for value in request.args:
        kind, shape = str(element_of(value.type)), tuple(int(n) for n in shape_of(value.type))
        if kind.startswith("f"):
            found.append(rng.uniform(0.3, 1.4, shape).astype(f"f{int(kind[1:]) // 8}"))
        else:
            found.append(rng.integers(0, 2 if kind == "i1" else 4, shape).astype(bool if kind == "i1" else np.int64))
    return found


def slopes_of(module: ModuleOp, name: str, at: list[Array], directions: dict[int, Array], step: float) -> list[Array]:
    """Central differences of the float results."""
    moved = [
        run(module, name, [(x + sign * step * directions[k]).astype(x.dtype) if k in directions else x for k, x in enumerate(at)])
        for sign in (1, -1)
    ]
    return [(np.float64(up) - np.float64(down)) / (2 * step) for up, down in zip(*map(list, moved)) if up.dtype.kind == "f"]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", [name for name in NAMES if name not in HELD_FIXED])
def test_the_derivative_is_the_slope(name: str, seed: int) -> None:
    """Of `ad.vjp`: sum(ct * slope) along a random direction; of `ad.jvp`: the slope itself; of `ad.batch`: one lane after the other."""
    module, function, request = modules(name)
    rng = np.random.default_rng(seed)
    given, wrt, count = random_inputs(request, rng), request.wrt_positions, len(function.function_type.inputs)
    primals, more = given[:count], given[count:]
    results = run(module, "main", given)
    if isinstance(request, ad.BatchOp):
        lanes = [run(module, request.callee_name, [x[k] if n in wrt else x for n, x in enumerate(given)])[0] for k in range(5)]
        np.testing.assert_allclose(results[0], lanes)
        return
    step, within = STEPS[primals[wrt[0]].dtype.itemsize]
    directions = dict(zip(wrt, more)) if isinstance(request, ad.JvpOp) else {k: rng.standard_normal(primals[k].shape) for k in wrt}
    slopes = slopes_of(module, request.callee_name, primals, directions, step)
    if isinstance(request, ad.JvpOp):
        np.testing.assert_allclose(results[-1], slopes[0], rtol=1e-7)
        return
    cts = [np.ones(())] if isinstance(request, ad.GradOp) else [ct for ct in more if ct.dtype.kind == "f"]
    expected = sum(np.sum(ct * slope) for ct, slope in zip(cts, slopes))
    found = sum(np.sum(np.float64(dx) * directions[k]) for k, dx in zip(wrt, results[-len(wrt) :]))
    np.testing.assert_allclose(found, expected, rtol=within, atol=within * 0.1)


def test_what_is_held_fixed_has_no_slope() -> None:
    module, _, request = modules("stop-gradient")
    x, dy = random_inputs(request, np.random.default_rng(0))
    np.testing.assert_allclose(run(module, "main", [x, dy])[1], dy * np.exp(x))


def test_the_branch_not_taken_is_zero() -> None:
    """The page says: at 0 the slope of the root is infinite, and the derivative is 1."""
    module, _, _ = modules("strong-zero")
    _, dx = run(module, "main", [np.array([0.0, 0.25, 4.0]), np.ones(3)])
    np.testing.assert_array_equal(dx, [1, 1, 0.25])
