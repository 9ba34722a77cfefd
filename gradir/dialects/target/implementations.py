"""The operator library: which implementations an op has, and which one a program uses.

One op, one meaning, several implementations: a generated kernel, a template, a vendor's library, a user's function. A row of the table says
`(op, target, dtypes, predicate) -> implementation`; `nd-expand` asks it for every op that has rows. The choice is the attribute
`gradir.implementation` on the op where a person or the tuner pinned one, else the applicable row of least cost. Plugins add rows with
`implement`; what comes with us loads on first use.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation, SSAValue

from gradir.dialects import custom_calls
from gradir.dialects.target.cpu import CpuTargetAttr
from gradir.dialects.target.resolve import TargetAttr
from gradir.dialects.types import element_of
from gradir.ir.passes import error_at

if TYPE_CHECKING:
    from gradir.ir.builder import Builder

CHOICE = "gradir.implementation"
"""Attribute of an op: the name of the row that is to be used."""

Expand: TypeAlias = "Callable[[Builder, Any, Sequence[SSAValue]], list[SSAValue]]"
"""`expand(builder, op, operands)` appends ops of level 1 that compute the op's results: primitives, or `nd.custom_call`."""


@dataclass(frozen=True)
class Implementation:
    """A row. `target` is `cpu`, `cuda` or `any`; `dtypes` are element types of operand 0 (empty: all).

    `refuses` says why this op (None: any op, on this machine) is out of reach, "" if it is not. `expand` None: the op stays, and
    `convert-nd-to-linalg` has its rule. `cost` orders the rows that apply.
    """

    op: str
    name: str
    kind: Literal["generated", "template", "library", "user"]
    target: str = "any"
    dtypes: frozenset[str] = frozenset()
    refuses: Callable[[Any], str] = field(default=lambda _op: "")
    expand: Expand | None = None
    cost: Callable[[Any], int] = lambda _op: 10

    def reason_against(self, op: Operation, target: TargetAttr) -> str:
        """Why the row does not apply; empty if it does."""
        kind = "cpu" if isinstance(target, CpuTargetAttr) else "cuda"
        if self.target not in ("any", kind):
            return f"it is for {self.target}"
        element = str(element_of(op.operands[0])) if op.operands else ""
        if self.dtypes and element not in self.dtypes:
            return f"it takes {', '.join(sorted(self.dtypes))}, not {element}"
        return self.refuses(op)


TABLE: dict[str, list[Implementation]] = {}
"""Op name -> its rows."""

_FAMILIES = ("gradir.dialects.nd.implementations",)


def implement(row: Implementation) -> None:
    """Add a row, in place of one of the same op, name and target."""
    rows = TABLE.setdefault(row.op, [])
    rows[:] = [old for old in rows if (old.name, old.target) != (row.name, row.target)]
    rows.append(row)


def rows_of(op: str) -> Sequence[Implementation]:
    """The rows of an op."""
    for family in _FAMILIES:
        import_module(family)
    return TABLE.get(op, ())


def implemented_ops() -> frozenset[str]:
    """Names of the ops that have rows."""
    return frozenset(_loaded())


def choose(op: Operation, target: TargetAttr) -> Implementation | None:
    """The row that `op` uses on `target`; None for an op without rows.

    GradirError OP053 for a pinned row that does not apply, OP052 when no row applies.
    """
    rows = rows_of(op.name)
    if not rows:
        return None
    pinned = op.attributes.get(CHOICE)
    reasons = {row.name: reason for row in rows if (reason := row.reason_against(op, target))}
    usable = [row for row in rows if row.name not in reasons]
    wanted = pinned.data if isinstance(pinned, StringAttr) else ""
    listed = ", ".join(f"{row.name}" + (f" ({reasons[row.name]})" if row.name in reasons else "") for row in rows)
    if wanted:
        found = next((row for row in usable if row.name == wanted), None)
        if found is None:
            raise error_at(
                op,
                f"the implementation '{wanted}' cannot be used",
                part="operator",
                code="OP053",
                expected=listed,
                found=wanted,
                hint=f"remove {CHOICE} to let the table choose",
            )
        return found
    if not usable:
        kind = "cpu" if isinstance(target, CpuTargetAttr) else "cuda"
        raise error_at(
            op,
            f"no implementation for the target {kind}",
            part="operator",
            code="OP052",
            expected=listed,
            found=f"{kind}, {op.operands[0].type if op.operands else 'no operand'}",
            hint="register one: gradir.dialects.target.implementations.implement",
        )
    return min(usable, key=lambda row: row.cost(op))


def calls_libraries(text: str) -> bool:
    """Whether a program may call functions by name, which can fail at run time."""
    return "nd.custom_call" in text or any(f"{op} " in text for op, rows in _loaded().items() if any(r.kind != "generated" for r in rows))


def library_versions(text: str) -> str:
    """What, besides a program's text, decides which functions it calls: registrations by users, what is installed here."""
    lines = [f"{name} {row.version}" for name, row in sorted(custom_calls.CALLS.items()) if row.version and f"@{name}" in text]
    for op, rows in sorted(_loaded().items()):
        if f"{op} " in text:
            lines += [f"{row.op} {row.name} {row.target} {row.kind} {row.refuses(None)}" for row in rows]
    return "\n".join(lines)


def _loaded() -> dict[str, list[Implementation]]:
    rows_of("")
    return TABLE
