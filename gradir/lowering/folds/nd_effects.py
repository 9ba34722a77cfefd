"""Folds of effects: an assertion that is known to hold says nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import Operation, SSAValue

from gradir.dialects import nd
from gradir.lowering.folds.table import Folder, Rule


def fold_assert(op: Any, folder: Folder) -> Sequence[SSAValue] | None:
    """assert true -> nothing. One that is known to fail stays: it fails only where the program gets to it."""
    condition = op.condition
    if folder.truth(condition):
        return []
    made = condition.owner
    return [] if isinstance(made, nd.ConstantOp) and made.splat_value else None


FOLDS: dict[type[Operation], Rule] = {nd.AssertOp: fold_assert}
