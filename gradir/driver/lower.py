"""Running passes on a module: one after the other, timed, with the errors that they report turned into one `GradirError`."""

from __future__ import annotations

import gc
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from gradir.autodiff.reverse.report import FACT
from gradir.dialects.upstream.func import FuncOp
from gradir.driver.passes import load_pass
from gradir.driver.pipelines import OptionValue, Request
from gradir.driver.progress import remaining
from gradir.driver.report import CompileReport
from gradir.ir.diagnostics import DiagnosedError, Engine
from gradir.ir.options import configure
from gradir.ir.passes import Pass, PassContext
from gradir.ir.text import parse_module, verify_module

AfterPass = Callable[[str, ModuleOp], None]
"""Called with the name of the pass that just ran."""


def lower(
    module: ModuleOp | str,
    *,
    target: str = "",
    cpu: str = "",
    threads: int = 0,
    last: str = "loops",
    check: bool = True,
    report: CompileReport | None = None,
) -> ModuleOp:
    """The module taken to the end of stage `last` (tensor, structured, buffers, loops) by what is left of the road.

    Text is parsed, a module is changed in place. Both are verified first and, with `check`, once more at the end.
    """
    report = report if report is not None else CompileReport()
    op = read(module, report)
    given: dict[str, OptionValue] = {k: v for k, v in (("target", target), ("cpu", cpu), ("threads", threads)) if v}
    run_passes(op, remaining(op, given, last=last), report)
    if check:
        with report.stage("verify"):
            verify_module(op)
    return op


def read(module: ModuleOp | str, report: CompileReport) -> ModuleOp:
    """A verified module from text or from a module."""
    if isinstance(module, str):
        with report.stage("parse"):
            return parse_module(module)
    with report.stage("verify"):
        verify_module(module)
    return module


def run_passes(module: ModuleOp, requests: Iterable[Request], report: CompileReport, after: AfterPass | None = None) -> None:
    """Apply the passes in order; a pass that is anchored on functions runs on each.

    Raises the `GradirError` of the first pass that fails.
    """
    with collector_paused():
        for request in requests:
            instance = configure(load_pass(request.name), request.options, request.name)
            with report.stage(request.name):
                context = _apply(instance, module)
            report.residuals = context.facts.get(FACT, report.residuals)
            if after is not None:
                after(request.name, module)


def _apply(instance: Pass, module: ModuleOp) -> PassContext:
    engine = Engine()
    context = PassContext(diagnostics=engine)
    targets: list[Operation] = [module]
    if instance.ANCHOR == "func.func":
        targets = [op for op in module.body.block.ops if isinstance(op, FuncOp) and op.body.blocks]
    for op in targets:
        try:
            instance.apply(op, context)
        except DiagnosedError:
            break
    if engine.errors:
        raise engine.to_raise()
    return context


@contextmanager
def collector_paused() -> Generator[None, None, None]:
    """Python's cycle collector doubles the time of building IR: it looks at every op again and again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
