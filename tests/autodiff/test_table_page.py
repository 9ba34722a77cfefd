"""docs/status/autodiff.md has every row and says which conventions differ from JAX; the differences are as good as it says."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gradir.autodiff.registry import SKIPPED, load_rules
from gradir.dialects import nd
from tests.autodiff.conventions import GROUPS, SAME
from tests.autodiff.table.cases import CASES
from tests.autodiff.table.differences import slope
from tests.autodiff.table.jax_reasons import BY_HAND, CONVENTIONS, NO_COUNTERPART
from tests.autodiff.table.page import TARGET, names, names_on

PAGE = Path(__file__).parents[2] / TARGET


def test_every_op_is_measured_or_says_why() -> None:
    load_rules()
    measured = {case.op for case in CASES}
    assert [op.name for ops in nd.FAMILIES.values() for op in ops if op.name not in measured and op not in SKIPPED] == []
    assert measured >= {*NO_COUNTERPART, *BY_HAND, *CONVENTIONS}


def test_conventions_that_are_named_differ_from_jax() -> None:
    for group in {name for found in CONVENTIONS.values() for name in found}:
        assert any(row.jax != SAME for row in GROUPS[group].rows), f"{group} agrees with JAX"


def test_page_has_every_row() -> None:
    """Names, numbers of samples and notes; not the digits."""
    assert names_on(PAGE.read_text()) == names(), "run make autodiff-status"


def test_differences_are_good() -> None:
    """Smooth functions to 1e-11, a kink a hundredth away, a singular point, values that are infinite."""
    close = lambda f, expected: np.testing.assert_allclose(slope(lambda s: [np.asarray(f(s))])[0], expected, rtol=1e-11)
    close(lambda s: np.exp(3 * (0.7 + s)), 3 * np.exp(2.1))
    close(lambda s: np.abs(0.01 + s), 1.0)
    close(lambda s: np.log(0.06 + s), 1 / 0.06)
    close(lambda s: np.array([np.inf, 2 * s]), [0.0, 2.0])
    assert np.isnan(slope(lambda s: [np.asarray(np.nan)])[0])
