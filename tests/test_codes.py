"""The table of error codes and the source agree, and every row is a page that helps."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from gradir.codes import CODES
from gradir.errors import GradirError

PACKAGE = Path(__file__).parent.parent / "gradir"
CODE = re.compile(r"(GR|AD|OP|RT)\d{3}")
PARTS = {"GR": "graph", "AD": "autodiff", "OP": "operator", "RT": "runtime"}


def used(text: str) -> set[str]:
    """The codes that stand in `text` as a whole string: `code="GR001"`, or an argument of a helper."""
    constants = (node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant))
    return {value for value in constants if isinstance(value, str) and CODE.fullmatch(value)}


def sources() -> dict[str, set[str]]:
    """File -> codes used in it, the table itself left out."""
    paths = (path for path in sorted(PACKAGE.rglob("*.py")) if "codes" not in path.relative_to(PACKAGE).parts)
    return {str(path.relative_to(PACKAGE.parent)): used(path.read_text()) for path in paths}


def test_every_code_in_the_source_has_a_row() -> None:
    missing = {code: name for name, codes in sources().items() for code in codes if code not in CODES}
    assert not missing, f"codes without a row in gradir/codes: {missing}"


def test_every_row_is_used() -> None:
    unused = set(CODES) - set[str]().union(*sources().values())
    assert not unused, f"rows in gradir/codes that nothing raises: {sorted(unused)}"


def test_the_search_can_fail() -> None:
    assert used('f(code="GR001")\ng("RT999", "see GR002")\n"""AD001 in prose"""') == {"GR001", "RT999"}


@pytest.mark.parametrize("code", CODES)
def test_row(code: str) -> None:
    row = CODES[code]
    assert CODE.fullmatch(code) and row.part == PARTS[code[:2]]
    for text in (row.meaning, row.cause, row.next_step):
        assert text[-1] in ".:" and "\n" not in text and "  " not in text, text
    assert row.title and not row.title.endswith(".")
    assert max(map(len, row.page.splitlines())) <= 100


def test_rows_stand_in_the_order_of_numbers() -> None:
    assert list(CODES) == sorted(CODES, key=lambda code: (list(PARTS).index(code[:2]), code))


def test_an_error_shows_part_code_place_and_next_step() -> None:
    error = GradirError(
        "sizes differ",
        part="graph",
        code="GR001",
        op="nd.add",
        function="@f",
        location="a.mlir:3:5",
        expected="4",
        found="5",
        hint="fix it",
    )
    lines = str(error).splitlines()
    assert lines[0] == "a.mlir:3:5: [graph GR001] sizes differ"
    assert lines[1:] == ["  op: nd.add", "  function: @f", "  expected: 4", "  found: 5", "  next step: fix it"]
