"""Ops with regions that have no rule, on an active path, become the loops that they stand for: loops have a derivative."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import Block, Operation

from gradir.autodiff.activity import Activity, Resolve
from gradir.autodiff.registry import VJP
from gradir.autodiff.tensors import known_sizes
from gradir.dialects.upstream import func
from gradir.ir.builder import Builder


def activity_of(function: func.FuncOp, arguments: Sequence[bool], results: Sequence[bool], resolve: Resolve) -> Activity:
    """The activity of `function` once every active op that only its loop can differentiate is that loop."""
    activity = Activity.of(function, arguments, results, resolve)
    found = [op for op in function.walk() if _needs_loop(op) and any(result in activity for result in op.results)]
    if not found:
        return activity
    for op in found:
        _replace(op)
    return Activity.of(function, arguments, results, resolve)


def _needs_loop(op: Operation) -> bool:
    return hasattr(op, "spelled_out") and type(op) not in VJP


def _replace(op: Any) -> None:
    for value in (*op.operands, *op.results):
        known_sizes(op, value)
    parts, parent = Block(), op.parent
    values = op.spelled_out(Builder(parts, op.location))
    for part in list(parts.ops):
        part.detach()
        parent.insert_op_before(part, op)
    for old, new in zip(op.results, values, strict=True):
        old.replace_all_uses_with(new)
    op.detach()
    op.erase()
