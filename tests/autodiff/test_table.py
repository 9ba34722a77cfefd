"""Every op with a derivative, on every sample: against differences good to 1e-12 and against JAX, in both modes and twice.

`python -m tests.autodiff.table` (make autodiff-status) writes docs/status/autodiff.md from the same measurements.
"""

from __future__ import annotations

import pytest

from tests.autodiff.table.cases import CASES, Case
from tests.autodiff.table.jax_reasons import NO_COUNTERPART
from tests.autodiff.table.measure import against_differences, derivatives, module_of

BOUND, DOT_BOUND = 1e-7, 1e-10


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_against_differences(case: Case) -> None:
    module = module_of(case)
    errors = against_differences(derivatives(case, module), module)
    assert errors.vjp < BOUND
    assert errors.jvp < BOUND
    assert errors.forward_over_reverse < BOUND
    assert errors.reverse_over_reverse < BOUND
    assert errors.dot < DOT_BOUND


@pytest.mark.parametrize("case", [case for case in CASES if case.op not in NO_COUNTERPART], ids=lambda case: case.id)
def test_against_jax(case: Case) -> None:
    pytest.importorskip("jax", reason="jax is not installed")
    from tests.autodiff.table.against_jax import against_jax

    errors = against_jax(derivatives(case, module_of(case)))
    assert errors.value < BOUND
    assert errors.vjp < BOUND
    assert errors.jvp < BOUND
    assert errors.second < BOUND
