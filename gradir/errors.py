"""The one exception type that a user of Gradir can cause. What each code means is in `gradir.codes`, one row per code.

Relies on nothing else: every layer, the compiler-free runtime included, imports it.
"""

from __future__ import annotations

from gradir.codes import CODES, Code, Part

__all__ = ["CODES", "Code", "GradirError", "Part"]


class GradirError(Exception):
    """A failure that the user can act upon.

    `part` names which of the four organs failed, `code` the row of `CODES`; `op`, `function` and `location` say where;
    `expected` and `found` are values, never classes of values; `hint` is the next step.
    """

    def __init__(
        self,
        message: str,
        *,
        part: Part,
        code: str,
        op: str = "",
        function: str = "",
        location: str = "",
        expected: str = "",
        found: str = "",
        hint: str = "",
    ) -> None:
        super().__init__(message)
        self.message, self.part, self.code = message, part, code
        self.op, self.function, self.location = op, function, location
        self.expected, self.found, self.hint = expected, found, hint

    def __str__(self) -> str:
        where = f"{self.location}: " if self.location else ""
        lines = [f"{where}[{self.part} {self.code}] {self.message}"]
        rows = (("op", self.op), ("function", self.function), ("expected", self.expected), ("found", self.found), ("next step", self.hint))
        lines += [f"  {name}: {value}" for name, value in rows if value]
        return "\n".join(lines)
