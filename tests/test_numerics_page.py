"""Every row of docs/numerics.md names its tests, and `pytest -k numerics` finds them."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PAGE = TESTS.parent / "docs" / "numerics.md"


def rows() -> list[list[str]]:
    """The cells of the rows of all tables."""
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").replace("\\|", "\x00").split(" | ")] for line in lines]
    return [row for row in cells if row[0] != "case"]


@cache
def selected() -> frozenset[str]:
    """Names of the test functions that `-k numerics` selects: by their own name or that of their file."""
    found: set[str] = set()
    for path in TESTS.rglob("test_*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_") and "numerics" in path.stem + node.name:
                found.add(node.name)
    return frozenset(found)


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_numerics_row_names_its_tests(row: list[str]) -> None:
    assert len(row) == 3, f"three cells: case, result, tests; found {row}"
    names = [name.strip().strip("`") for name in row[2].split(",")]
    assert names and all(names)
    missing = [name for name in names if f"test_{name}" not in selected()]
    assert not missing, f"no test of that name that `pytest -k numerics` selects: {missing}"


def test_there_are_rows() -> None:
    assert len(rows()) > 80
