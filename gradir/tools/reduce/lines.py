"""Text that is no valid IR: lines, then words, then characters go as long as the failure stays (delta debugging on pieces of text)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from gradir.tools.reduce.search import Interesting, Progress, not_interesting

WORD = re.compile(r"\s+|[\w.$%@#^!-]+|.", re.S)
CHARACTERS = 400
"""Texts up to this length are reduced character by character at the end."""


def reduce_lines(text: str, interesting: Interesting, *, report: Callable[[Progress], None] | None = None, name: str = "<text>") -> str:
    """The smallest text found that `interesting` accepts; nothing about it has to parse. GR070 if `text` is not interesting."""
    tests, best, step = 0, text, "input"

    def ask(candidate: str) -> bool:
        nonlocal tests, best
        tests += 1
        good = interesting(candidate)
        best = candidate if good else best
        if report is not None:
            report(Progress(step, tests, best.count("\n") + 1, best))
        return good

    if not ask(text):
        raise not_interesting(name)
    for step, split in (("lines", _lines), ("words", WORD.findall), ("characters", list)):
        if step == "characters" and len(best) > CHARACTERS:
            break
        _shrink(split(best), lambda pieces: ask("".join(pieces)))
    return best


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def _shrink(pieces: Sequence[str], ask: Callable[[Sequence[str]], bool]) -> None:
    """Leave out ever smaller runs of pieces."""
    size = len(pieces) // 2
    while size >= 1:
        start = 0
        while start < len(pieces):
            rest = [*pieces[:start], *pieces[start + size :]]
            if rest and ask(rest):
                pieces = rest
            else:
                start += size
        size //= 2
