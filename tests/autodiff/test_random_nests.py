"""Random loop nests: reverse mode against central differences, forward against reverse mode, compiled code against the evaluator."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from gradir.driver.compile import compile_module
from gradir.reference import run
from tests.autodiff.gradients import Array, central_differences, cotangents, with_both_modes
from tests.autodiff.random_nests import program


def check(seed: int, *, compiled: bool) -> None:
    """All derivatives of one program; slopes to 1e-7 of the largest one, or of 1."""
    made = program(seed)
    rng = np.random.default_rng(seed)
    inputs: list[Array] = [rng.standard_normal(shape) * 0.7 for shape in made.shapes]
    wrt = range(len(inputs))
    cts = cotangents(made.text, inputs, 1)
    module = with_both_modes(made.text, wrt)
    gradients = [np.asarray(g) for g in run(module, "vjp", [*inputs, *cts])[len(cts) :]]
    for k in wrt:
        slope = central_differences(made.text, inputs, cts, k)
        assert np.max(np.abs(gradients[k] - slope), initial=0) <= 1e-7 * max(1.0, np.max(np.abs(slope), initial=0)), made.text
    tangents = [rng.standard_normal(x.shape) for x in inputs]
    moved = run(module, "jvp", [*inputs, *tangents])[len(cts) :]
    forwards = sum(float(np.sum(c * m)) for c, m in zip(cts, moved, strict=True))
    backwards = sum(float(np.sum(g * t)) for g, t in zip(gradients, tangents, strict=True))
    assert abs(forwards - backwards) <= 1e-9 * max(1.0, abs(backwards)), made.text
    if compiled:
        machine = compile_module(module.clone(), cache=False)
        for name, given_ in (("vjp", [*inputs, *cts]), ("jvp", [*inputs, *tangents])):
            for found, want in zip(machine[name].flat(*given_), run(module, name, given_), strict=True):
                np.testing.assert_allclose(np.asarray(found), np.asarray(want), rtol=1e-10, atol=1e-12, err_msg=made.text)


@settings(max_examples=12, deadline=None, derandomize=True, database=None)
@given(st.integers(0, 1 << 32))
def test_random_nests(seed: int) -> None:
    check(seed, compiled=False)


@pytest.mark.parametrize("seed", [11, 12, 13])
def test_random_nests_compiled(seed: int) -> None:
    check(seed, compiled=True)


@pytest.mark.full
@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(st.integers(0, 1 << 32))
def test_many_random_nests(seed: int) -> None:
    check(seed, compiled=seed % 8 == 0)
