"""Functions that check the derivatives of a module: how they are recognised, and how they are dropped.

`differentiate{check}` makes them, `--check-semantics` runs them after every later pass. They are private, called by nobody, and
yet every pass treats them as what is called from outside; nothing is generated for them.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import DictionaryAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp

from gradir.ir.structure import is_public

CHECK = "gradir.check"
"""Attribute of a check: what it checks, of which function, for which request."""


@dataclass(frozen=True)
class Check:
    """`kind` is `dot` (forward against reverse mode) or `fd` (a derivative against differences) of the derivative that `request` names."""

    kind: str
    function: str
    request: str

    def attribute(self) -> DictionaryAttr:
        """As the attribute `gradir.check`."""
        return DictionaryAttr({key: StringAttr(value) for key, value in vars(self).items()})


def check_of(function: FuncOp) -> Check | None:
    """What `function` checks; None for every other function."""
    found = function.attributes.get(CHECK)
    if found is None:
        return None
    words = (
        {key: value.data for key, value in found.data.items() if isinstance(value, StringAttr)} if isinstance(found, DictionaryAttr) else {}
    )
    return Check(words.get("kind", ""), words.get("function", ""), words.get("request", ""))


def is_entry(function: FuncOp) -> bool:
    """Whether something outside of the module runs `function`: a caller, or whoever runs the checks."""
    return is_public(function) or CHECK in function.attributes


def checks(module: ModuleOp) -> list[FuncOp]:
    """The checks in `module`, in their order."""
    return [op for op in module.body.block.ops if isinstance(op, FuncOp) and op.body.blocks and CHECK in op.attributes]


def drop_checks(module: ModuleOp) -> None:
    """Remove them: before anything is generated."""
    for function in checks(module):
        function.detach()
        function.erase(safe_erase=False)
