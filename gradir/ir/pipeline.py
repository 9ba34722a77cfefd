"""The grammar of pass pipelines: `a,b{x=1 y=2,3}` and `builtin.module(canonicalize,func.func(cse))` are one language.

    pipeline ::= item (`,` item)*
    item     ::= name options? | anchor `(` pipeline? `)`
    options  ::= `{` (name (`=` value (`,` value)*)?)* `}`
    value    ::= word | number | `true` | `false` | quoted text | `[` value,* `]` | options

Standard library only: a wrong pipeline is reported before xDSL is imported. What the names mean is the caller's business.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NoReturn

from gradir.errors import GradirError

OptionValue = bool | int | float | str | tuple["OptionValue", ...] | Mapping[str, "OptionValue"]
"""What an option may hold; a bare option name means true."""

_TOKEN = re.compile(
    r"""\s*(?:(?P<number>-?\d+\.\d*(?:[eE][+-]?\d+)?|-?\d+(?:[eE][+-]?\d+)?)(?![\w.-])
        |(?P<word>[A-Za-z_0-9][\w.+:/-]*)|(?P<text>"(?:[^"\\]|\\.)*")|(?P<sign>[(){}\[\]=,]))""",
    re.X,
)
_BARE_WORD = re.compile(r"[A-Za-z_][\w.+:/-]*")


@dataclass(frozen=True)
class PassRequest:
    """One pass with its options; `offset` is the position of its name in the text."""

    name: str
    options: Mapping[str, OptionValue] = field(default_factory=dict[str, OptionValue])
    offset: int = 0

    def __str__(self) -> str:
        return self.name + (_options_text(self.options) if self.options else "")


@dataclass(frozen=True)
class Nested:
    """A pipeline that runs on every op called `anchor`."""

    anchor: str
    body: tuple[PassRequest | Nested, ...]
    offset: int = 0

    def __str__(self) -> str:
        return f"{self.anchor}({pipeline_text(self.body)})"


Item = PassRequest | Nested


def pipeline_text(items: tuple[Item, ...] | list[Item]) -> str:
    """Text that `parse_pipeline` reads back as `items`."""
    return ",".join(map(str, items))


def parse_pipeline(text: str) -> tuple[Item, ...]:
    """The items of a pipeline; one outer `builtin.module(...)` is dropped. Raises GradirError GR033 with a caret."""
    items = _Reader(text).pipeline()
    if len(items) == 1 and isinstance(items[0], Nested) and items[0].anchor == "builtin.module":
        return items[0].body
    return items


def pipeline_error(text: str, offset: int, message: str, *, code: str = "GR033", hint: str = "") -> GradirError:
    """An error that points at `offset` in the pipeline `text`; the caller raises it."""
    found = f"{text}\n{' ' * (len('  found: ') + offset)}^"
    return GradirError(f"bad pass pipeline: {message}", part="graph", code=code, found=found, hint=hint)


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    offset: int


class _Reader:
    def __init__(self, text: str) -> None:
        self.text, self.index = text, 0
        self.tokens: list[_Token] = []
        offset, end = 0, len(text.rstrip())
        while offset < end:
            match = _TOKEN.match(text, offset)
            if match is None:
                start = offset + len(text[offset:]) - len(text[offset:].lstrip())
                what = "text without its closing quote" if text[start] == '"' else f"unexpected character '{text[start]}'"
                raise pipeline_error(text, start, what)
            kind = match.lastgroup or ""
            self.tokens.append(_Token(kind, match[kind], match.start(kind)))
            offset = match.end()
        self.tokens.append(_Token("end", "", len(text)))

    @property
    def token(self) -> _Token:
        return self.tokens[self.index]

    def fail(self, message: str) -> NoReturn:
        raise pipeline_error(self.text, self.token.offset, message)

    def at(self, sign: str) -> bool:
        return self.token.kind == "sign" and self.token.text == sign

    def take(self, sign: str) -> bool:
        found = self.at(sign)
        self.index += found
        return found

    def expect(self, sign: str) -> None:
        if not self.take(sign):
            self.fail(f"expected '{sign}'")

    def pipeline(self) -> tuple[Item, ...]:
        items = self.items()
        if self.token.kind != "end":
            self.fail("expected ',' or the end")
        return items

    def items(self) -> tuple[Item, ...]:
        if self.token.kind == "end" or self.at(")"):
            return ()
        items = [self.item()]
        while self.take(","):
            items.append(self.item())
        return tuple(items)

    def item(self) -> Item:
        name = self.token
        if name.kind != "word":
            self.fail("expected the name of a pass")
        self.index += 1
        if self.take("("):
            body = self.items()
            self.expect(")")
            return Nested(name.text, body, name.offset)
        return PassRequest(name.text, self.options() if self.at("{") else {}, name.offset)

    def options(self) -> dict[str, OptionValue]:
        self.expect("{")
        options: dict[str, OptionValue] = {}
        while not self.take("}"):
            name = self.token
            if name.kind != "word":
                self.fail("expected the name of an option or '}'")
            if name.text in options:
                self.fail(f"option '{name.text}' is given twice")
            self.index += 1
            options[name.text] = self.values() if self.take("=") else True
        return options

    def values(self) -> OptionValue:
        first = self.value()
        if not self.at(","):
            return first
        values = [first]
        while self.take(","):
            values.append(self.value())
        return tuple(values)

    def value(self) -> OptionValue:
        token = self.token
        if self.at("{"):
            return self.options()
        if self.take("["):
            values: list[OptionValue] = []
            while not self.take("]"):
                values.append(self.value())
                if not self.at("]"):
                    self.expect(",")
            return tuple(values)
        if token.kind not in ("word", "text", "number"):
            self.fail("expected a value; quote text that is not a word")
        self.index += 1
        if token.kind == "word":
            return {"true": True, "false": False}.get(token.text, token.text)
        if token.kind == "text":
            return re.sub(r"\\(.)", r"\1", token.text[1:-1])
        return int(token.text) if re.fullmatch(r"-?\d+", token.text) else float(token.text)


def _options_text(options: Mapping[str, OptionValue]) -> str:
    return "{" + " ".join(name if value is True else f"{name}={_value_text(value)}" for name, value in options.items()) + "}"


def _value_text(value: OptionValue) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        if _BARE_WORD.fullmatch(value) and value not in ("true", "false"):
            return value
        return '"' + re.sub(r'(["\\])', r"\\\1", value) + '"'
    if isinstance(value, Mapping):
        return _options_text(value)
    if isinstance(value, tuple):
        return "[" + ",".join(map(_value_text, value)) + "]"
    return repr(value)
