"""Pipelines from text to runnable steps: every name and option is checked before any input is read.

A named pipeline (`to-structured`) becomes its passes, each under the pipeline's name in `path`, so that dumps, timing and
checks see every pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from gradir.driver.passes import PASSES, load_pass, unknown_pass
from gradir.driver.pipelines import PIPELINES, expand_pipeline
from gradir.errors import GradirError
from gradir.ir.options import configure
from gradir.ir.pipeline import Item, Nested, PassRequest, parse_pipeline, pipeline_error

MODULE, FUNCTION = "builtin.module", "func.func"
"""The two anchors with a special relation: a function pass at module level runs on every function."""


@dataclass(frozen=True)
class Step:
    """One pass, or a nested pipeline (`anchor` set, `body` its steps), to run on a module.

    `text` is what spells it in a pipeline; `path` names the pipelines that it came from, outermost first.
    """

    name: str
    text: str
    path: tuple[str, ...] = ()
    request: PassRequest | None = None
    anchor: str = ""
    body: tuple[Step, ...] = ()


def plan(text: str) -> tuple[Step, ...]:
    """The steps that the pipeline `text` names. Nothing is imported: only names and nesting are checked.

    Raises GradirError GR030 (unknown pass), GR032 (option of a named pipeline), GR033 (syntax).
    """
    return tuple(_steps(parse_pipeline(text), (), text))


def _steps(items: Sequence[Item], path: tuple[str, ...], text: str) -> Iterator[Step]:
    for item in items:
        if isinstance(item, Nested):
            body = tuple(_steps(item.body, (), text))
            yield Step(f"{item.anchor} pipeline", str(item), path, anchor=item.anchor, body=body)
        elif item.name in PIPELINES:
            for inner in expand_pipeline(item.name, _plain(item)):
                request = PassRequest(inner.name, dict(inner.options), item.offset)  # pyright: ignore[reportArgumentType]  (the driver's options are a subset of ours)
                yield Step(inner.name, str(request), (*path, item.name), request)
        elif item.name in PASSES:
            yield Step(item.name, str(item), path, item)
        else:
            error = unknown_pass(item.name, tuple(PIPELINES))
            raise pipeline_error(text, item.offset, error.message, code=error.code, hint=error.hint)


def with_residual_report(steps: Sequence[Step]) -> tuple[Step, ...]:
    """The steps with the option `report-residuals` on `differentiate`. Raises ValueError when that is none of them."""
    if not any(step.name == "differentiate" for step in steps):
        raise ValueError("--report-residuals: the pipeline has no pass 'differentiate', which decides what is kept")
    return tuple(_reporting(step.request, step) if step.name == "differentiate" and step.request else step for step in steps)


def _reporting(request: PassRequest, step: Step) -> Step:
    return replace(step, request=replace(request, options={**request.options, "report-residuals": True}))


def _plain(item: PassRequest) -> dict[str, str | int | float | bool]:
    options: dict[str, str | int | float | bool] = {}
    for key, value in item.options.items():
        if not isinstance(value, str | int | float | bool):
            raise GradirError(
                f"option '{key}' of pipeline '{item.name}' has a value of another type",
                part="graph",
                code="GR034",
                expected="one word, number or truth value",
                found=repr(value),
                hint="`gradir-opt --list-passes` shows the pipelines",
            )
        options[key] = value
    return options


def check_anchors(steps: Sequence[Step], around: str = MODULE) -> None:
    """Import each pass, check its options and that it may run where it stands; raises GradirError GR034 or GR035."""
    for step in steps:
        if step.request is None:
            check_anchors(step.body, step.anchor)
            continue
        kind = load_pass(step.name)
        configure(kind, step.request.options, step.name)
        wanted = kind.ANCHOR
        if wanted in (None, around) or (wanted == FUNCTION and around == MODULE):
            continue
        raise GradirError(
            f"pass '{step.name}' cannot run on {around}",
            part="graph",
            code="GR035",
            expected=f"a pipeline on {wanted}",
            found=f"{around}({step.text})",
            hint=f"write it at the level of {wanted}",
        )
