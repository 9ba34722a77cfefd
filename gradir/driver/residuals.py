"""What the derivatives of a module keep for their backward parts, without compiling it."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import ModuleOp

from gradir.autodiff.reverse.report import ResidualReport
from gradir.driver.lower import run_passes
from gradir.driver.pipelines import OptionValue, Request
from gradir.driver.progress import remaining
from gradir.driver.report import CompileReport


def reporting(request: Request) -> Request:
    """The same request; one for `differentiate` also asks for the report."""
    return Request(request.name, {**request.options, "report-residuals": True}) if request.name == "differentiate" else request


def residual_report(module: ModuleOp, options: Mapping[str, OptionValue] | None = None) -> ResidualReport:
    """The report of a copy of `module`, taken through the passes up to `differentiate` with these options of that pass."""
    copy, report = module.clone(), CompileReport()
    requests = remaining(copy, last="tensor")
    names = [request.name for request in requests]
    if "differentiate" not in names:
        return ResidualReport()
    at = names.index("differentiate")
    last = reporting(Request("differentiate", {**requests[at].options, **(options or {})}))
    run_passes(copy, [*requests[:at], last], report)
    return report.residuals


__all__ = ["ResidualReport", "reporting", "residual_report"]
