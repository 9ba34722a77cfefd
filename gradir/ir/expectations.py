"""`// expected-error@+1 {{text}}` comments: what a test file says must be diagnosed, and nothing else.

The syntax is MLIR's: severities error, warning, remark, note; `-re` takes a regular expression in `{{...}}` inside of the
text; `@+N`, `@-N`, `@above`, `@below`, `@unknown` move the expected line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from gradir.errors import GradirError
from gradir.ir.diagnostics import Diagnostic, Engine

_EXPECTED = re.compile(r"expected-(error|warning|remark|note)(-re)? *(?:@([+-]\d+|above|below|unknown))? *\{\{(.*)\}\} *$")
_STARTS = re.compile(r"//.*\bexpected-(error|warning|remark|note)\b")


@dataclass(frozen=True)
class Expectation:
    """One comment at line `written`: a message of `severity` matching `pattern` at `line` (None: without position)."""

    severity: str
    line: int | None
    pattern: re.Pattern[str]
    text: str
    written: int


def read_expectations(text: str, name: str, line_offset: int = 0) -> list[Expectation]:
    """The expectations of one chunk of the file `name`; a malformed comment is a GradirError GR012."""
    lines = text.split("\n")
    matches = [_EXPECTED.search(line) for line in lines]
    found: list[Expectation] = []
    for index, match in enumerate(matches):
        if match is None:
            if _STARTS.search(lines[index]):
                raise GradirError(
                    "malformed expected-... comment",
                    part="graph",
                    code="GR012",
                    location=f"{name}:{index + 1 + line_offset}:1",
                    expected="// expected-error@+1 {{text}}",
                    found=lines[index].strip(),
                )
            continue
        severity, regular, where, body = match.groups()
        line = None if where == "unknown" else _target(index, where, matches) + 1 + line_offset
        pattern = _regular(body) if regular else re.escape(body)
        found.append(Expectation(severity, line, re.compile(pattern), body, index + 1 + line_offset))
    return found


def unmet(expectations: list[Expectation], engine: Engine, name: str) -> list[str]:
    """One line for each expectation that nothing met and each diagnostic that nothing expected.

    Notes are only compared where the file expects notes at all, as in MLIR.
    """
    left = list(expectations)
    notes = any(e.severity == "note" for e in expectations)
    problems: list[str] = []
    for diagnostic in (d for top in engine.diagnostics for d in top.flat()):
        met = next((e for e in left if _meets(diagnostic, e)), None)
        if met is not None:
            left.remove(met)
        elif diagnostic.severity != "note" or notes:
            place = diagnostic.where or f"{name}:?"
            problems.append(f"{place}: error: unexpected {diagnostic.severity}: {diagnostic.message}")
    for e in left:
        at = f"at line {e.line}" if e.line is not None else "without a position"
        problems.append(f'{name}:{e.written}:1: error: expected {e.severity} "{e.text}" {at} was not produced')
    return problems


def _meets(diagnostic: Diagnostic, expectation: Expectation) -> bool:
    line = diagnostic.where.line if diagnostic.where is not None else None
    same = diagnostic.severity == expectation.severity and line == expectation.line
    return same and expectation.pattern.search(diagnostic.message) is not None


def _target(index: int, where: str | None, matches: list[re.Match[str] | None]) -> int:
    """Index of the line that an expectation on line `index` speaks of; @above and @below skip other expectations."""
    if where is None:
        return index
    if where not in ("above", "below"):
        return index + int(where)
    step = -1 if where == "above" else 1
    index += step
    while 0 <= index < len(matches) and matches[index] is not None:
        index += step
    return index


def _regular(body: str) -> str:
    pieces = re.split(r"\{\{(.*?)\}\}", body)
    return "".join(f"(?:{piece})" if i % 2 else re.escape(piece) for i, piece in enumerate(pieces))
