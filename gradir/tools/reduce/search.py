"""The search: each edit is tried on all its opportunities at once, then on halves, down to single ones, until nothing gets smaller.

This is delta debugging over edits (Zeller and Hildebrandt 2002, as in llvm-reduce). An edit walks the module and asks at every opportunity
whether to take it, so that counting opportunities and taking some of them is the same walk. A candidate is accepted if it verifies, is
smaller by `measure`, and the caller's question about its text is answered with yes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from gradir.errors import GradirError
from gradir.ir.diagnostics import Engine
from gradir.ir.text import parse_module, print_module
from gradir.ir.verifier import verify
from gradir.tools.reduce.edits import EDITS, Edit
from gradir.tools.reduce.measure import measure

Interesting = Callable[[str], bool]
"""Whether a program, given as text, still shows what is looked for."""


@dataclass(frozen=True)
class Progress:
    """What the search has done so far."""

    edit: str
    tests: int
    lines: int
    text: str


class Choice:
    """Counts opportunities and takes those from `first` up to `last`."""

    def __init__(self, first: int = 0, last: int = 0) -> None:
        self.first, self.last, self.count = first, last, 0

    def __call__(self) -> bool:
        self.count += 1
        return self.first < self.count <= self.last


def reduce_module(
    text: str,
    interesting: Interesting,
    *,
    edits: Sequence[Edit] = EDITS,
    report: Callable[[Progress], None] | None = None,
    name: str = "<text>",
    limit: int = 1_000_000,
) -> str:
    """The text of a program that `interesting` accepts and in which no single edit can be made any more.

    `text` must be valid IR (GR010, GR011) that is interesting (GR070). `report` is called after every question with the best text so
    far; what it raises ends the search. `limit` bounds the questions asked.
    """
    module = parse_module(text, name)
    search = _Search(module, interesting, report, limit)
    if not search.ask(search.text):
        raise not_interesting(name)
    return search.run(edits)


def not_interesting(name: str) -> GradirError:
    """The error for an input that does not show the failure to begin with."""
    return GradirError(
        "the input does not fail: there is nothing to reduce",
        part="graph",
        code="GR070",
        location=name,
        expected="a test that fails on the unchanged file (see --expect-status, --expect-output)",
        found="a test that passes on it",
        hint="run the test by hand on the file",
    )


class _Search:
    def __init__(self, module: ModuleOp, interesting: Interesting, report: Callable[[Progress], None] | None, limit: int) -> None:
        self.module, self.text = module, print_module(module)
        self.size = measure(module, self.text)
        self.interesting, self.report, self.left = interesting, report, limit
        self.tests, self.edit = 0, "input"
        self.known: set[str] = set()

    def run(self, edits: Sequence[Edit]) -> str:
        """Repeat all edits until a whole round changes nothing."""
        changed = True
        while changed:
            changed = False
            for edit in edits:
                self.edit = edit.name
                changed |= self.repeat(edit)
        return self.text

    def repeat(self, edit: Edit) -> bool:
        """All opportunities of one edit, in ever smaller groups; whether anything was accepted."""
        changed = False
        size = 1 if edit.alone else max(1, self.count(edit))
        while size >= 1:
            start = 0
            while start < self.count(edit) and self.left > 0:
                if self.attempt(edit, start, start + size):
                    changed = True
                else:
                    start += size
            size //= 2
        return changed

    def count(self, edit: Edit) -> int:
        choice = Choice()
        edit.apply(self.module, choice)
        return choice.count

    def attempt(self, edit: Edit, first: int, last: int) -> bool:
        candidate = self.module.clone()
        try:
            edit.apply(candidate, Choice(first, last))
        except Exception:  # the edit does not fit this program, which is there because something goes wrong with it
            return False
        if not verify(candidate, Engine(), limit=1):
            return False
        text = print_module(candidate)
        size = measure(candidate, text)
        if text in self.known or size >= self.size or not _reads_back(text):
            return False
        self.known.add(text)
        if not self.ask(text):
            return False
        self.module, self.text, self.size = candidate, text, size
        self.tell()
        return True

    def ask(self, text: str) -> bool:
        self.tests += 1
        self.left -= 1
        answer = self.interesting(text)
        self.tell()
        return answer

    def tell(self) -> None:
        if self.report is not None:
            self.report(Progress(self.edit, self.tests, self.text.count("\n"), self.text))


def _reads_back(text: str) -> bool:
    """Whether the command will be able to read what it is given."""
    try:
        parse_module(text)
    except GradirError:
        return False
    return True
