"""From the options of a pipeline's text to a pass: names, types and defaults are those of the pass's dataclass fields."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from gradir.errors import GradirError

if TYPE_CHECKING:
    from gradir.ir.passes import Pass


def configure(kind: type[Pass], options: Mapping[str, object], name: str = "") -> Pass:
    """A pass of class `kind` with `options`; GradirError GR034 for an unknown option or a value of another type."""
    name = name or kind.NAME
    fields = {f.name: f for f in dataclasses.fields(kind)}
    given: dict[str, object] = {}
    for key, value in options.items():
        field = fields.get(key.replace("-", "_"))
        if field is None:
            near = difflib.get_close_matches(key.replace("-", "_"), fields, 1)
            raise GradirError(
                f"pass '{name}' has no option '{key}'",
                part="graph",
                code="GR034",
                expected=", ".join(fields) or "no options",
                found=key,
                hint=f"did you mean '{near[0]}'?" if near else f"`gradir explain {name}` shows the options",
            )
        given[field.name] = _value(str(field.type), value, name, key)
    return kind(**given)


def _value(annotation: str, value: object, name: str, key: str) -> object:
    """`value` as the field's annotation asks for it."""
    kinds = [kind.strip() for kind in annotation.split("|")]
    for kind in kinds:
        if kind.startswith("tuple"):
            items = value if isinstance(value, tuple) else (value,)
            element = kind.partition("[")[2].partition(",")[0].strip("] ")
            return tuple(_value(element, item, name, key) for item in items) if element else items
        if kind == "bool" and isinstance(value, bool):
            return value
        if kind == "int" and isinstance(value, int) and not isinstance(value, bool):
            return value
        if kind == "float" and isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
        if kind == "str" and isinstance(value, str | int | float) and not isinstance(value, bool):
            return str(value)
    if not any(kind in ("bool", "int", "float", "str") for kind in kinds):
        return value  # a type that only the pass itself can check
    raise GradirError(
        f"option '{key}' of pass '{name}' has a value of another type",
        part="graph",
        code="GR034",
        expected=annotation,
        found=f"{value!r}",
        hint=f"`gradir explain {name}` shows the options",
    )
