"""Every element of the programs' values, gradients, Hessian-vector products and gradients by example against JAX: f64 1e-9, f32 1e-5."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gradir.frontends.python.pytrees import flatten
from tests.autodiff.programs import GRADIR, PROGRAMS, jax_toolkit
from tests.autodiff.programs.golden import QUESTIONS, asked

jax = pytest.importorskip("jax", reason="jax is not installed")

CASES = [(name, question) for name, program in PROGRAMS.items() for question in asked(program)]


def relative(found: Any, expected: Any) -> float:
    """The largest difference, relative to the largest element of each array."""
    pairs = list(zip(flatten(found)[0], flatten(jax.device_get(expected))[0], strict=True))
    wide = [(np.asarray(a, np.float64), np.asarray(b, np.float64)) for a, b in pairs]
    return max(float(np.max(np.abs(a - b)) / (np.max(np.abs(b)) or 1.0)) for a, b in wide)


@pytest.fixture(autouse=True)
def no_executables_left() -> Any:
    """Hundreds of them leave a process without memory mappings."""
    yield
    jax.clear_caches()


@pytest.mark.parametrize(("name", "question"), CASES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["f64", "f32"])
def test_equal_to_jax(name: str, question: str, dtype: Any) -> None:
    program = PROGRAMS[name]
    args = program.inputs(dtype)
    k = jax_toolkit()
    reference = jax.jit(lambda *args: QUESTIONS[question](program, k, args))
    expected = reference(*jax.tree_util.tree_map(jax.numpy.asarray, args))
    bound = program.tolerance if dtype == np.float64 else program.f32_tolerance
    assert relative(QUESTIONS[question](program, GRADIR, args), expected) < bound
