"""What a compilation did: time per stage, kernels, caches, memory, and on request the IR at each level."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from gradir.autodiff.reverse.report import ResidualReport
from gradir.driver.memory import MemoryReport

CacheUse = Literal["off", "miss", "hit"]

LEVELS = ("1 tensor", "1 tensor, simplified", "2 structured", "3 buffers", "4 loops", "5 target")
"""Keys of `CompileReport.ir`."""


@dataclass
class CompileReport:
    """Filled by `compile_module(..., report=CompileReport())`; `keep_ir=True` keeps the IR of each level and skips both caches."""

    keep_ir: bool = False
    stages: dict[str, float] = field(default_factory=dict[str, float])
    program_cache: CacheUse = "off"
    kernels: int = 0
    kernels_compiled: int = 0
    kernels_cached: int = 0
    kernels_tuned: int = 0
    """Kernels that the tuner has decided about."""
    arena_bytes: dict[str, int] = field(default_factory=dict[str, int])
    object_bytes: int = 0
    ir: dict[str, str] = field(default_factory=dict[str, str])
    memory: MemoryReport = field(default_factory=MemoryReport)
    """Where every buffer lies and how long it lives; filled with `keep_ir`, `Compiled.memory_report()` has it at any time."""
    residuals: ResidualReport = field(default_factory=ResidualReport)
    """What derivatives keep for their backward parts; filled with `keep_ir`, `Compiled.residual_report()` has it at any time."""

    @property
    def seconds(self) -> float:
        """Wall time of all stages."""
        return sum(self.stages.values())

    @contextmanager
    def stage(self, name: str) -> Generator[None, None, None]:
        """Add the time of a block to the stage `name`."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.stages[name] = self.stages.get(name, 0.0) + time.perf_counter() - began

    def text(self) -> str:
        """A table for people: one stage a line with milliseconds, then the counts."""
        lines = [f"{name:<24}{seconds * 1e3:9.2f} ms" for name, seconds in self.stages.items()]
        lines.append(f"{'total':<24}{self.seconds * 1e3:9.2f} ms")
        lines.append(f"program cache: {self.program_cache}; kernels: {self.kernels}, of them cached: {self.kernels_cached}")
        lines += [
            f"residuals of @{f.function}: {f.total(again=False)} bytes in {len(f.residuals)} values" for f in self.residuals.functions
        ]
        lines += [f"arena of @{name}: {size} bytes" for name, size in self.arena_bytes.items()]
        return "\n".join(lines)
