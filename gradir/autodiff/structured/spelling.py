"""Loop nests on an active path that have no structured derivative become loops around smaller ones: loops have a derivative."""

from __future__ import annotations

from xdsl.ir import Block

from gradir.autodiff.activity import Activity
from gradir.autodiff.structured.kinds import dims_in_order
from gradir.dialects.nests import Nest
from gradir.dialects.upstream import func, linalg
from gradir.ir.builder import Builder
from gradir.ir.structure import move_before


def spell_out_nests(function: func.FuncOp, activity: Activity) -> bool:
    """Replace those nests; whether there were any."""
    changed = False
    for op in list(function.walk()):
        if not isinstance(op, linalg.GenericOp) or not any(r in activity for r in op.results):
            continue
        dims = dims_in_order(op, activity.varied)
        if dims is None:
            continue
        parts = Block()
        values = Nest.of(op).peel(Builder(parts, op.location), dims)
        move_before(parts, op)
        for old, new in zip(op.results, values, strict=True):
            old.replace_all_uses_with(new)
            new.name_hint = old.name_hint
        op.detach()
        op.erase()
        changed = True
    return changed
