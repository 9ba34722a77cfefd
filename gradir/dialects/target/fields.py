"""Text of a target attribute: a name in quotes, then `key = value` for what differs from the default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xdsl.dialects.builtin import IntAttr, StringAttr
from xdsl.parser import AttrParser
from xdsl.printer import Printer


def parse_fields(parser: AttrParser, name: str, defaults: Mapping[str, Any]) -> list[StringAttr | IntAttr]:
    """The parameters in the order of `defaults`, the leading name first; an unknown key is a parse error."""
    found: dict[str, str | int] = {}
    with parser.in_angle_brackets():
        leading = parser.parse_str_literal()
        while parser.parse_optional_punctuation(","):
            start = parser.pos
            key = parser.parse_identifier()
            if key not in defaults:
                parser.raise_error(f"#{name} has no field '{key}', expected one of: {', '.join(defaults)}", start, parser.pos)
            parser.parse_punctuation("=")
            found[key] = (
                parser.parse_str_literal()
                if isinstance(defaults[key], str)
                else parser.parse_integer(allow_boolean=False, allow_negative=False)
            )
    values = {**defaults, **found}
    return [StringAttr(leading), *(StringAttr(v) if isinstance(v, str) else IntAttr(int(v)) for v in values.values())]


def print_fields(printer: Printer, leading: str, defaults: Mapping[str, Any], values: Mapping[str, Any]) -> None:
    """`<"leading", key = value, ...>`; fields that have their default are left out."""
    shown = [f'{key} = "{v}"' if isinstance(v, str) else f"{key} = {v}" for key, v in values.items() if v != defaults[key]]
    printer.print_string("<" + ", ".join([f'"{leading}"', *shown]) + ">")
