"""Compiling a function some of whose arguments never change: what follows from them alone is a program of its own, run once."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp

from gradir.dialects.target import CpuTargetAttr, parse_target
from gradir.driver.lower import run_passes
from gradir.driver.pipelines import Request
from gradir.driver.report import CompileReport
from gradir.ir.structure import function_named

if TYPE_CHECKING:
    from gradir.lowering.freeze import Split

FREEZE = "gradir.lowering.freeze"
"""Loaded when somebody freezes."""


def split_frozen(module: ModuleOp, name: str, frozen: Sequence[int], target: str, report: CompileReport) -> Split:
    """Split `@name` of a level-1 module (see `gradir.lowering.freeze`), which is changed in place; other functions are inlined first.

    A target without panels for registers (CUDA) keeps the function as it is.
    """
    freezing, machine = import_module(FREEZE), parse_target(target)
    if not isinstance(machine, CpuTargetAttr):
        return freezing.Split(None, tuple(range(len(function_named(module, name).body.block.args))))
    run_passes(module, [Request("inline")], report)
    with report.stage("freeze"):
        return freezing.freeze(module, name, frozen, machine)
