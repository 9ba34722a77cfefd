"""`--check-nan`: which op makes the first NaN or infinity of finite operands, at which line, in which iteration.

The program is compiled once more without fusion and simplification, and behind each op that can make such a number stands a call of the
runtime that looks at its operands and results (`instrument`); what it sees is collected in a `Watch` (`watch`). Derivatives are resolved
first, composites stay whole: what happens inside of a softmax is its own business.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from gradir.driver.check_nan.instrument import instrument
from gradir.driver.check_nan.watch import Finding, Watch
from gradir.driver.compile import Trees, compile_module
from gradir.driver.lower import run_passes
from gradir.driver.pipelines import Request
from gradir.driver.progress import level_of
from gradir.driver.report import CompileReport
from gradir.errors import GradirError
from gradir.ir.text import parse_module
from gradir.runtime.module import Module

__all__ = ["Finding", "Watch", "compile_checked"]

BEFORE = (Request("inline"), Request("differentiate"), Request("inline"), Request("symbol-dce"), Request("dce"))
"""What runs first: derivatives and callees become ops with locations of their own, and what nobody uses goes."""


def compile_checked(
    module: ModuleOp | str, *, target: str = "host", threads: int | None = None, trees: Trees | None = None
) -> tuple[Module, Watch]:
    """Compile a level-1 module for `check_nan`; `module` is not changed. Raises GradirError GR054 for a module at a lower level."""
    program = parse_module(module) if isinstance(module, str) else module.clone()
    if (level := level_of(program)) != 1:
        raise GradirError(
            "only programs at the tensor level are checked for NaN",
            part="graph",
            code="GR054",
            expected="level 1: ops of nd, before convert-nd-to-linalg",
            found=f"level {level}",
            hint="give it the module that the lowering began with",
        )
    run_passes(program, BEFORE, CompileReport())
    watch = instrument(program)
    compiled = compile_module(program, target=target, threads=threads, optimize=0, cache=False, trees=trees)
    return compiled, watch
