"""PTX text as tokens, and a cursor over them that says what it expected instead."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from gradir.errors import GradirError
from gradir.ptx.syntax import Immediate

_TOKEN = re.compile(
    r"""
    (?P<skip>\s+|//[^\n]*|/\*.*?\*/)
  | (?P<number>0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16}|0[xX][0-9a-fA-F]+U?|0[bB][01]+U?|\d+\.\d*(?:[eE][+-]?\d+)?|\d+(?:[eE][+-]?\d+)?U?)
  | (?P<word>[.]?[%$a-zA-Z_][\w$]*(?:(?:\.|::)[\w$]+)*|\.\d[\w$]*)
  | (?P<string>"(?:[^"\\]|\\.)*")
  | (?P<sign>[-{}()\[\],;:<>=|@!+*~&^/?])
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Token:
    kind: str
    text: str
    line: int


def tokens_of(text: str) -> list[Token]:
    """All tokens of a text, and one for its end."""
    found: list[Token] = []
    at, line = 0, 1
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise _not_ptx(line, "a token of PTX", text[at : at + 20].split("\n")[0])
        if match.lastgroup != "skip":
            found.append(Token(match.lastgroup or "", match.group(), line))
        line += match.group().count("\n")
        at = match.end()
    found.append(Token("end", "the end of the text", line))
    return found


def _not_ptx(line: int, expected: str, found: str) -> GradirError:
    return GradirError(
        "this is not PTX",
        part="operator",
        code="OP060",
        location=f"line {line}",
        expected=expected,
        found=found,
        hint="the emulator reads what NVPTX, nvcc, Triton and numba write; inline assembly is taken as they print it",
    )


class Cursor:
    """A place among tokens. Whatever does not fit there is a `GradirError` OP060 with its line."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.at = 0

    @property
    def now(self) -> Token:
        return self.tokens[self.at]

    def fail(self, expected: str) -> NoReturn:
        raise _not_ptx(self.now.line, expected, self.now.text)

    def take(self) -> str:
        text = self.now.text
        self.at += 1
        return text

    def accept(self, text: str) -> bool:
        if self.now.text != text:
            return False
        self.at += 1
        return True

    def expect(self, text: str) -> None:
        if not self.accept(text):
            self.fail(f"'{text}'")

    def word(self) -> str:
        if self.now.kind != "word":
            self.fail("a name")
        return self.take()

    def integer(self) -> int:
        negative = self.accept("-")
        if self.now.kind != "number":
            self.fail("a whole number")
        value = number_of(self.take())
        if not isinstance(value.value, int):
            self.fail("a whole number")
        return -value.value if negative else value.value


def number_of(text: str) -> Immediate:
    """A literal: `0f...` and `0d...` are the bits of a float, `0x`, `0b` and a leading zero integers of base 16, 2 and 8."""
    head = text[:2].lower()
    if head == "0f" and len(text) == 10:
        bits = int(text[2:], 16)
        return Immediate(struct.unpack("<f", bits.to_bytes(4, "little"))[0], bits)
    if head == "0d":
        bits = int(text[2:], 16)
        return Immediate(struct.unpack("<d", bits.to_bytes(8, "little"))[0], bits)
    bare = text.rstrip("U")
    readers: dict[str, Callable[[str], int]] = {"0x": lambda t: int(t, 16), "0b": lambda t: int(t, 2)}
    if head in readers:
        return Immediate(readers[head](bare))
    if bare.isdecimal():
        return Immediate(int(bare, 8) if len(bare) > 1 and bare[0] == "0" else int(bare))
    return Immediate(float(bare))
