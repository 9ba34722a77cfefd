"""docs/status/autodiff.md: points where the derivative is a convention, whether the page has every row, whether the differences are good."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gradir.autodiff.registry import SKIPPED, load_rules
from gradir.dialects import nd
from tests.autodiff.table.cases import CASES
from tests.autodiff.table.differences import slope
from tests.autodiff.table.jax_reasons import BY_HAND, CONVENTIONS, NO_COUNTERPART
from tests.autodiff.table.kinks import KINKS, Kink
from tests.autodiff.table.page import TARGET, names, names_on

PAGE = Path(__file__).parents[2] / TARGET


@pytest.mark.parametrize("kink", KINKS, ids=lambda kink: kink.text)
def test_kinks(kink: Kink) -> None:
    np.testing.assert_allclose(kink.ours().astype(complex), kink.expected, rtol=1e-12)


@pytest.mark.parametrize("kink", KINKS, ids=lambda kink: kink.text)
def test_a_convention_differs_from_jax(kink: Kink) -> None:
    """Else the row is stale."""
    pytest.importorskip("jax", reason="jax is not installed")
    assert not np.allclose(kink.jax().astype(complex), kink.expected)


def test_every_op_is_measured_or_says_why() -> None:
    load_rules()
    measured = {case.op for case in CASES}
    assert [op.name for ops in nd.FAMILIES.values() for op in ops if op.name not in measured and op not in SKIPPED] == []
    assert measured >= {*NO_COUNTERPART, *BY_HAND, *CONVENTIONS}
    assert {(name, op) for op, found in CONVENTIONS.items() for name in found} == {(kink.convention, kink.op) for kink in KINKS}


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
