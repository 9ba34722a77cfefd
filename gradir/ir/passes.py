"""What a pass is, and how it reports a mistake of the user.

A pass is a frozen dataclass: its fields are its documented options. Which passes exist is `gradir.driver.passes`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from xdsl.dialects.builtin import LocationAttr, NameLoc, StringAttr, UnregisteredOp
from xdsl.ir import Operation

from gradir.errors import GradirError, Part
from gradir.ir.locations import parts, position


@dataclass
class PassContext:
    """What a pass may know besides its op: `diagnostics` collects errors (see `gradir.ir.diagnostics`)."""

    diagnostics: Any = None
    facts: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class Pass:
    """Rewrites `op` (of kind `ANCHOR`; None: any) in place. True before, true after: in each pass's docstring."""

    NAME: ClassVar[str] = ""
    ANCHOR: ClassVar[str | None] = "builtin.module"

    def apply(self, op: Operation, context: PassContext) -> None:
        raise NotImplementedError(self.NAME)  # abstract: each pass defines its own


def location_text(loc: LocationAttr) -> str:
    """`file:line:column` of the first known place in `loc`, else a name in it, or an empty string."""
    where = position(loc)
    if where is not None:
        return str(where)
    return next((part.desc.data for part in parts(loc) if isinstance(part, NameLoc)), "")


def function_name(op: Operation) -> str:
    """Name of the function around `op`, with its `@`; empty outside any function."""
    parent: Operation | None = op
    while parent is not None and parent.name != "func.func":
        parent = parent.parent_op()
    name = parent.properties.get("sym_name") if parent is not None else None
    return f"@{name.data}" if isinstance(name, StringAttr) else ""


def error_at(op: Operation, message: str, *, part: Part, code: str, expected: str = "", found: str = "", hint: str = "") -> GradirError:
    """A `GradirError` that names `op`, its function and its source location; the caller raises it."""
    name = op.op_name.data if isinstance(op, UnregisteredOp) else op.name
    return GradirError(
        f"{name}: {message}",
        part=part,
        code=code,
        op=name,
        function=function_name(op),
        location=location_text(op.location),
        expected=expected,
        found=found,
        hint=hint,
    )
