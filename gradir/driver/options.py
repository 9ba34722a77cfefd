"""What a compilation was asked for, and who looks at the program on its way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from gradir.driver.tuning.records import Records

Trees = Mapping[str, tuple[str, str]]
"""Function name -> how a frontend packs its inputs and its outputs (the manifest's `input_tree`, `output_tree`)."""


@dataclass(frozen=True)
class Hooks:
    """Who looks at a program on its way, or changes it: `outlined` when kernels are functions that have no schedules yet (level 2),
    `planned` when buffers have their places (level 3), `lowered`, for a GPU, when kernels are launches (level 4)."""

    outlined: Callable[[ModuleOp], None] | None = None
    planned: Callable[[ModuleOp], None] | None = None
    lowered: Callable[[ModuleOp], None] | None = None


@dataclass(frozen=True)
class BuildOptions:
    """What `compile_module` was asked for that decides about passes."""

    target: str
    threads: int | None
    optimize: int
    hooks: Hooks = Hooks()
    records: Records | None = None
    device: str = ""
    """Where a program for a GPU will run (`cuda:0`, `cuda:emulated`); empty for a CPU."""
