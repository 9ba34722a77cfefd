"""Running a level-1 module in the reference evaluator: derivative requests are resolved first, nothing is compiled."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from gradir.driver.lower import run_passes
from gradir.driver.pipelines import Request
from gradir.driver.report import CompileReport


@cache
def _run() -> Any:
    """The evaluator, which a program that is compiled does without."""
    return import_module("gradir.reference").run


def evaluate_level1(module: ModuleOp, entry: str, inputs: Sequence[Any]) -> list[Any]:
    """Results of `@entry` on concrete arrays, each op by its own `evaluate`; `module` is changed (requests become functions)."""
    run_passes(module, [Request("differentiate", {})], CompileReport())
    return _run()(module, entry, inputs)


def evaluate_as_it_is(module: ModuleOp, entry: str, inputs: Sequence[Any]) -> list[Any]:
    """Results of `@entry` of a module of any level without derivative requests; `module` is not changed."""
    return _run()(module, entry, inputs)
