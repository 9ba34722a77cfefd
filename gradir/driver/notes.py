"""What a manifest says of each kernel: name, kind, schedule, who chose it and why. For people and for `explain` of a saved artefact."""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import ModuleOp, StringAttr

from gradir.dialects.kernel import KERNEL_ATTRIBUTE, LIBRARY_ATTRIBUTE, REASON_ATTRIBUTE, Schedule
from gradir.dialects.upstream.func import FuncOp

TUNED = "tuned: "
"""How the reason for a schedule begins that the tuner chose."""


def choice_of(function: FuncOp) -> str:
    """Who chose the schedule of a kernel: the heuristic, the tuner, or somebody by hand."""
    schedule, reason = function.attributes[KERNEL_ATTRIBUTE], function.attributes.get(REASON_ATTRIBUTE)
    assert isinstance(schedule, Schedule)
    if isinstance(reason, StringAttr):
        return "tuned" if reason.data.startswith(TUNED) else "heuristic"
    return "by hand" if any(schedule.field(name) for name in schedule.FIELDS) else "heuristic"


def kernel_notes(module: ModuleOp) -> list[dict[str, Any]]:
    """One row per kernel of a level-3 module, declared ones too, in the order of the text."""
    rows: list[dict[str, Any]] = []
    for function in module.body.block.ops:
        schedule = function.attributes.get(KERNEL_ATTRIBUTE)
        if not isinstance(function, FuncOp) or not isinstance(schedule, Schedule):
            continue
        reason, library = function.attributes.get(REASON_ATTRIBUTE), function.attributes.get(LIBRARY_ATTRIBUTE)
        fields = {name: list(schedule.field(name)) for name in schedule.FIELDS if schedule.field(name)}
        row: dict[str, Any] = {"name": function.sym_name.data, "kind": schedule.kind, "schedule": fields, "choice": choice_of(function)}
        row["reason"] = reason.data if isinstance(reason, StringAttr) else ""
        if isinstance(library, StringAttr):
            row["library"] = library.data
        rows.append(row)
    return rows


__all__ = ["TUNED", "choice_of", "kernel_notes"]
