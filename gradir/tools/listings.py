"""What `--list-passes` and `--list-dialects` print, and the options of a pass for `gradir explain` and docs/passes.md."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import itertools
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from gradir.driver.passes import PASSES
from gradir.driver.pipelines import PIPELINES, steps_of

if TYPE_CHECKING:
    from gradir.ir.passes import Pass


def list_passes() -> str:
    """Each pass with its summary, then the named pipelines with what they expand to."""
    shown = {name: name + _options_text(options) for name, (_, _, options) in PIPELINES.items()}
    width = max(map(len, (*PASSES, *shown.values()))) + 2
    lines = ["Passes:"]
    lines += [f"  {name:{width}}{summary}" for name, (_, summary) in sorted(PASSES.items())]
    lines += ["", "Named pipelines:"]
    lines += [f"  {text:{width}}{','.join(step.pass_name for step in steps_of(name))}" for name, text in shown.items()]
    return "\n".join(lines) + "\n"


def _options_text(options: Sequence[str]) -> str:
    return "{" + " ".join(f"{option}=..." for option in options) + "}" if options else ""


class Option(NamedTuple):
    """One option of a pass: a field of its class."""

    name: str
    type: str
    default: str
    summary: str


def options_of(kind: type[Pass]) -> list[Option]:
    """The options of a pass, spelt as in a pipeline; a field's summary is the string under it in the class."""
    fields = dataclasses.fields(kind)
    summaries = _summaries(kind) if fields else {}
    return [Option(f.name.replace("_", "-"), str(f.type), _default(f), summaries.get(f.name, "")) for f in fields]


def _summaries(kind: type[Pass]) -> dict[str, str]:
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(definition, ast.ClassDef)
    found: dict[str, str] = {}
    for field, text in itertools.pairwise(definition.body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, ast.Expr):
            found[field.target.id] = inspect.cleandoc(str(ast.literal_eval(text.value)))
    return found


def _default(field: dataclasses.Field[object]) -> str:
    if field.default is not dataclasses.MISSING:
        return repr(field.default)
    return "(required)" if field.default_factory is dataclasses.MISSING else repr(field.default_factory())


def list_dialects() -> str:
    """The names of the dialects that text may use."""
    from gradir.dialects.registry import DIALECTS  # imports xDSL's core, which --list-passes does not need

    return "\n".join(sorted(DIALECTS)) + "\n"
