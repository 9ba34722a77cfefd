"""Errors of a call: arguments that do not fit, assertions that do not hold."""

from __future__ import annotations

from gradir.errors import GradirError
from gradir.runtime.caller import caller_location
from gradir.runtime.manifest import FunctionSpec, SourceLine


def misuse(spec: FunctionSpec, code: str, message: str, expected: str, found: str, hint: str) -> GradirError:
    """A call of the function that does not fit its signature, at the line of the user's that makes it."""
    return GradirError(
        message,
        part="runtime",
        code=code,
        function=f"@{spec.name}",
        location=caller_location(),
        expected=expected,
        found=found,
        hint=hint,
    )


def assertion_failed(line: SourceLine | None, function: str, found: str) -> GradirError:
    """An assertion of the program does not hold; `line` is where it stands in the source, if that is known."""
    return GradirError(
        line.message if line and line.message else "an assertion of the program does not hold",
        part="runtime",
        code="RT020",
        op=line.op if line else "",
        function=line.function if line and line.function else f"@{function}",
        location=line.location if line else "",
        expected="the asserted condition",
        found=found,
        hint="check the inputs of this call",
    )
