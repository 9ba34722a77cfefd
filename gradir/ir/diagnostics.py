"""Diagnostics: an engine that collects errors, warnings and notes with positions, and shows them as MLIR does.

The verifier and passes report into it (`engine.error(op, message, (other, note))`) and go on; the tool shows what came.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from xdsl.ir import Operation

from gradir.errors import CODES, GradirError
from gradir.ir.locations import Position, position
from gradir.ir.passes import function_name
from gradir.ir.printer import print_one

Severity = Literal["error", "warning", "remark", "note"]


class DiagnosedError(Exception):
    """Stops a pass or a pipeline whose errors are already in the engine."""


@dataclass
class Diagnostic:
    """One message; `op` is shown under it, `width` characters of the source line are underlined."""

    severity: Severity
    where: Position | None
    message: str
    op: Operation | None = None
    notes: list[Diagnostic] = field(default_factory=list["Diagnostic"])
    width: int = 1
    cause: GradirError | None = None
    code: str = ""
    """Row of `gradir.codes`, shown behind the message; empty where the message ends in it already."""

    @property
    def function(self) -> str:
        """Name of the function around `op`, with its `@`."""
        return function_name(self.op) if self.op is not None else ""

    def shown_op(self) -> str:
        """The op's text, regions elided; empty if there is none."""
        return print_one(self.op) if self.op is not None else ""

    def flat(self) -> Iterator[Diagnostic]:
        """This message and its notes."""
        yield self
        yield from self.notes


class Engine:
    """Collects diagnostics; `sources` lets messages show the line that they point at."""

    def __init__(self) -> None:
        self.diagnostics: list[Diagnostic] = []
        self.sources: dict[str, list[str]] = {}

    @property
    def errors(self) -> list[Diagnostic]:
        """The errors so far, in order."""
        return [d for d in self.diagnostics if d.severity == "error"]

    def to_raise(self) -> GradirError:
        """The first error as an exception (GR011 where no exception caused it); its hint quotes the next three."""
        first, *more = self.errors
        if first.cause is not None:
            return first.cause
        quoted = "; ".join(f"{d.where or '<unknown>'}: {d.message}" for d in more[:3])
        return GradirError(
            first.message,
            part="graph",
            code="GR011",
            op=first.op.name if first.op is not None else "",
            function=first.function,
            location=str(first.where or ""),
            found=first.shown_op(),
            hint=f"{len(more)} more: {quoted}" if more else "",
        )

    def add_source(self, name: str, text: str) -> None:
        """Make the lines of the file `name` available to messages."""
        self.sources[name] = text.split("\n")

    def add(self, diagnostic: Diagnostic) -> Diagnostic:
        self.diagnostics.append(diagnostic)
        return diagnostic

    def error(self, op: Operation | None, message: str, *notes: tuple[Operation, str]) -> Diagnostic:
        """Report an error at `op`; each note points at another op."""
        return self._at("error", op, message, notes)

    def warning(self, op: Operation | None, message: str, *notes: tuple[Operation, str]) -> Diagnostic:
        """Report something suspicious at `op`; it does not stop anything."""
        return self._at("warning", op, message, notes)

    def remark(self, op: Operation | None, message: str, *notes: tuple[Operation, str]) -> Diagnostic:
        """Report a fact about `op` that a user may want to know."""
        return self._at("remark", op, message, notes)

    def exception(self, error: GradirError, op: Operation | None = None) -> Diagnostic:
        """Report a GradirError that a pass or verifier raised (at `op`, where the error itself has no location)."""
        where = _parse_position(error.location)
        if where is None and op is not None:
            where = position(op.location)
        found = self.add(Diagnostic("error", where, f"{error.message} [{error.part} {error.code}]", op, cause=error))
        rows = (("in function", error.function), ("expected", error.expected), ("found", error.found), ("next step", error.hint))
        found.notes = [Diagnostic("note", where, f"{name}: {value}") for name, value in rows if value]
        return found

    def _at(self, severity: Severity, op: Operation | None, message: str, notes: tuple[tuple[Operation, str], ...]) -> Diagnostic:
        where = position(op.location) if op is not None else None
        return self.add(Diagnostic(severity, where, message, op, [Diagnostic("note", position(o.location), text) for o, text in notes]))

    def show(self, diagnostic: Diagnostic, outer: Position | None = None) -> str:
        """The text of one diagnostic: position, message, source line with a caret, the op, notes."""
        where = diagnostic.where
        code = f" [{CODES[diagnostic.code].part} {diagnostic.code}]" if diagnostic.code else ""
        lines = [f"{where or '<unknown>'}: {diagnostic.severity}: {diagnostic.message}{code}"]
        if where is not None and where != outer:
            lines += self._caret(where, diagnostic.width)
        if diagnostic.op is not None:
            lines.append(f"{where or '<unknown>'}: note: see current operation: {diagnostic.shown_op()}")
        lines += [self.show(note, where) for note in diagnostic.notes]
        return "\n".join(lines)

    def _caret(self, where: Position, width: int) -> list[str]:
        source = self.sources.get(where.file)
        if source is None or not 0 < where.line <= len(source):
            return []
        line = source[where.line - 1]
        return [f"  {line}", "  " + re.sub(r"[^\t]", " ", line[: where.column - 1]) + "^" + "~" * (width - 1)]


def _parse_position(text: str) -> Position | None:
    match = re.fullmatch(r"(.*):(\d+):(\d+)", text)
    return Position(match[1], int(match[2]), int(match[3])) if match else None
