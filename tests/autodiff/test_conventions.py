"""docs/derivative-conventions.md is current, names rows of docs/numerics.md, and says what JAX and PyTorch really give."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.autodiff import conventions_page
from tests.autodiff.conventions import ABSENT, ERROR, GROUPS, JAX, SAME, TORCH, Row
from tests.autodiff.other_frameworks import in_jax, in_torch

ROOT = Path(__file__).parents[2]
ROWS = [pytest.param(row, id=f"{name}-{k}") for name, group in GROUPS.items() for k, row in enumerate(group.rows)]


def test_the_page_is_current() -> None:
    assert conventions_page.page() == (ROOT / conventions_page.TARGET).read_text(), "run python -m tests.autodiff.conventions_page"


def test_each_group_is_a_test_of_the_numerics_page() -> None:
    page = (ROOT / "docs" / "numerics.md").read_text().partition("## Derivatives")[2]
    assert [name for name in GROUPS if f"`{name}`" not in page] == []


def check(row: Row, said: Any, gradients: Callable[[Row], list[Any]]) -> None:
    if said in (ABSENT, ERROR):
        with pytest.raises((AttributeError, IndexError)):
            gradients(row)
        return
    for found, value in zip(gradients(row), row.here if said == SAME else said, strict=True):
        wide = found.astype(np.complex128 if found.dtype.kind == "c" else np.float64)
        np.testing.assert_allclose(wide, value, rtol=1e-5)


@pytest.mark.parametrize("row", ROWS)
def test_what_jax_gives(row: Row) -> None:
    pytest.importorskip("jax")
    if version("jax") != JAX:
        pytest.skip(f"the page is about JAX {JAX}")
    check(row, row.jax, in_jax)


@pytest.mark.parametrize("row", ROWS)
def test_what_torch_gives(row: Row) -> None:
    pytest.importorskip("torch")
    if not version("torch").startswith(TORCH):
        pytest.skip(f"the page is about PyTorch {TORCH}")
    check(row, row.torch, in_torch)
