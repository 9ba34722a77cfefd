"""Whole programs against JAX's values and derivatives (f64, 1e-9), which are kept in programs/golden.json; what their gradients cost."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import gradir as gd
from gradir.frontends.python.pytrees import flatten
from tests.autodiff.programs import GRADIR, PROGRAMS
from tests.autodiff.programs.golden import PATH, QUESTIONS, asked, distance
from tests.autodiff.programs.page import COSTLY, cost, stencil_cost

GOLDEN = json.loads(PATH.read_text(encoding="utf-8"))["answers"]
CASES = [(name, question) for name, program in PROGRAMS.items() for question in asked(program)]
LONG = {("hand_tracking", "gradient"), ("bundle_adjustment", "gradient"), ("gmm", "hvp"), ("black_scholes", "hvp"), ("vae", "gradient")}
"""Compiled only by `make test-full`."""
NAMED = {
    "gmm", "lstm", "kmeans", "logsumexp", "least_squares", "neural_ode", "hmc", "attention", "resnet", "nbody", "masked_rnn",
    "bundle_adjustment", "adaptive_ode",
}  # fmt: skip
SMALL = ("kmeans", "least_squares", "logsumexp", "softmax_regression", "masked_rnn", "lennard_jones")


def check(found: Any, expected: Any, tolerance: float) -> None:
    leaves = flatten(found)[0]
    assert len(leaves) == len(expected)
    assert max(distance(x, kept) for x, kept in zip(leaves, expected)) < tolerance


@pytest.mark.parametrize(("name", "question"), [pytest.param(*c, marks=pytest.mark.full if c in LONG else ()) for c in CASES])
def test_compiled(name: str, question: str) -> None:
    program = PROGRAMS[name]
    found = QUESTIONS[question](program, GRADIR, program.inputs())
    check(found, GOLDEN[name][question], program.tolerance)


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in SMALL else pytest.mark.full) for n in PROGRAMS])
def test_evaluated(name: str) -> None:
    program = PROGRAMS[name]
    with gd.eager():
        found = QUESTIONS["gradient"](program, GRADIR, program.inputs())
    check(found, GOLDEN[name]["gradient"], program.tolerance)


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in SMALL[:3] else pytest.mark.full) for n in PROGRAMS])
def test_in_f32(name: str) -> None:
    program = PROGRAMS[name]
    found = gd.jit(gd.value_and_grad(program.loss(GRADIR)), cache=False)(*program.inputs(np.float32))
    assert all(np.asarray(x).dtype == np.float32 for x in flatten(found)[0])
    check(found, GOLDEN[name]["gradient"], program.f32_tolerance)


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in NAMED else pytest.mark.full) for n in PROGRAMS])
def test_a_gradient_costs_at_most_four_times_the_function(name: str) -> None:
    forward, both = cost(PROGRAMS[name])
    assert 0 < forward <= both <= COSTLY.get(name, 4) * forward


def test_so_does_that_of_a_stencil_in_loop_nests() -> None:
    forward, both = stencil_cost()
    assert 0 < forward <= both <= 4 * forward
