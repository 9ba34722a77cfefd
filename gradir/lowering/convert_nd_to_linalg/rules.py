"""The table of lowering rules: `@lowers(nd.AddOp)` on a function `(lowering, op) -> View | SSAValue`.

A rule returns the value of the op's one result: a view (which may never reach memory) or a scalar; of several results a tuple.
Plugins add rows the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from xdsl.ir import Operation, SSAValue

from gradir.lowering.convert_nd_to_linalg.views import View

if TYPE_CHECKING:
    from gradir.lowering.convert_nd_to_linalg.function import Lowering

Rule: TypeAlias = "Callable[[Lowering, Any], View | SSAValue | tuple[View, ...] | None]"

RULES: dict[type[Operation], Rule] = {}
"""Filled at import by the family modules."""


def lowers(*kinds: type[Operation]) -> Callable[[Rule], Rule]:
    """Register the decorated function as the rule of these ops; None as its result means that the op has no results."""

    def register(rule: Rule) -> Rule:
        for kind in kinds:
            RULES[kind] = rule
        return rule

    return register
