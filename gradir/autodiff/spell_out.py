"""Ops with regions that have no rule, on an active path, become the loops that they stand for: loops have a derivative.

An op says its loop by a method `spelled_out(builder)`; of an op that has a rule for some of its kinds only, `LOOPS` knows the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.ir import Block, Operation, SSAValue

from gradir.autodiff.activity import Activity, Resolve
from gradir.autodiff.registry import VJP
from gradir.autodiff.structured.spelling import spell_out_nests
from gradir.autodiff.tensors import known_sizes
from gradir.dialects.upstream import func
from gradir.ir.builder import Builder
from gradir.ir.structure import move_before

Loop = Callable[[Builder, Any], Sequence[SSAValue]]
LOOPS: dict[type[Operation], tuple[Callable[[Any], bool], Loop]] = {}
"""Op -> (does this one need its loop, how to append it)."""


def activity_of(function: func.FuncOp, arguments: Sequence[bool], results: Sequence[bool], resolve: Resolve) -> Activity:
    """The activity of `function` once every active op that only its loop can differentiate is that loop."""
    activity = activity_with_nests(function, arguments, results, resolve)
    found = [op for op in function.walk() if _loop(op) is not None and any(result in activity for result in op.results)]
    if not found:
        return activity
    for op in found:
        _replace(op)
    return activity_with_nests(function, arguments, results, resolve)


def activity_with_nests(function: func.FuncOp, arguments: Sequence[bool], results: Sequence[bool], resolve: Resolve) -> Activity:
    """The activity of `function` once every active loop nest without a structured derivative is loops around smaller ones."""
    activity = Activity.of(function, arguments, results, resolve)
    while spell_out_nests(function, activity):
        activity = Activity.of(function, arguments, results, resolve)
    return activity


def _loop(op: Any) -> Loop | None:
    needs, loop = LOOPS.get(type(op), (None, None))
    if needs is not None:
        return loop if needs(op) else None
    if hasattr(op, "spelled_out") and type(op) not in VJP:
        return lambda builder, one: one.spelled_out(builder)
    return None


def _replace(op: Any) -> None:
    for value in (*op.operands, *op.results):
        known_sizes(op, value)
    loop, parts = _loop(op), Block()
    assert loop is not None, "asked before"
    values = loop(Builder(parts, op.location), op)
    move_before(parts, op)
    for old, new in zip(op.results, values, strict=True):
        old.replace_all_uses_with(new)
    op.detach()
    op.erase()
