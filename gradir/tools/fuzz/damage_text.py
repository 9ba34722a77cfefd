"""Damage to text: words go, double, change places or become others, numbers become extreme, characters flip, the end is cut off."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np

WORD = re.compile(r"\s+|[%@#^!]?[\w.$-]+|->|.", re.S)

NUMBERS = (
    "0",
    "-1",
    "1",
    "2",
    "-9223372036854775808",
    "9223372036854775807",
    "18446744073709551616",
    "99999999999999999999",
    "1e400",
    "0x7F",
    "-0.0",
    "?",
)

WORDS = (
    *("%", "@", "^bb0", "(", ")", "{", "}", "[", "]", "<", ">", ":", ",", "->", "=", '"', '""', "{-#", "#-}", "//", "\\", "\x00", "é"),
    *("tensor<*xf32>", "tensor<f32>", "tensor<?x?xf32>", 'tensor<?xf32, ["n"]>', "memref<4xf32, strided<[?]>>", "vector<4xf32>", "index"),
    *(
        "i1",
        "i0",
        "i65",
        "ui8",
        "f8E5M2",
        "none",
        "tuple<>",
        "complex<f32>",
        'loc("a":1:1)',
        "loc(unknown)",
        "#a",
        "!b",
        "array<i64: 1, 2>",
    ),
    *("affine_map<(d0) -> (d0)>", "dense<1.0> : tensor<2xf32>", 'dense<"0xFF">', "dense", "unit", "true", "func.func", "scf.for"),
    *("scf.yield", "arith.constant", "nd.add", "linalg.generic"),
)


def damage(text: str, rng: np.random.Generator, others: Sequence[str] = ()) -> str:
    """`text` with one to four random changes; words of `others` may come in."""
    words: list[str] = WORD.findall(text)
    for _ in range(1 + int(rng.integers(4))):
        if words:
            words = _CHANGES[int(rng.integers(len(_CHANGES)))](words, rng, others)
    return "".join(words)


def _at(words: Sequence[str], rng: np.random.Generator) -> int:
    """The position of a word that is not space."""
    places = [k for k, word in enumerate(words) if not word.isspace()]
    return places[int(rng.integers(len(places)))] if places else 0


def _drop(words: list[str], rng: np.random.Generator, _others: Sequence[str]) -> list[str]:
    k = _at(words, rng)
    return [*words[:k], *words[k + 1 + int(rng.integers(4)) :]]


def _double(words: list[str], rng: np.random.Generator, _others: Sequence[str]) -> list[str]:
    k = _at(words, rng)
    end = k + 1 + int(rng.integers(6))
    return [*words[:end], *words[k:end], *words[end:]]


def _swap(words: list[str], rng: np.random.Generator, _others: Sequence[str]) -> list[str]:
    k, other = _at(words, rng), _at(words, rng)
    words = list(words)
    words[k], words[other] = words[other], words[k]
    return words


def _replace(words: list[str], rng: np.random.Generator, others: Sequence[str]) -> list[str]:
    """A word by one of the same text, of another text, or of `WORDS`."""
    words = list(words)
    source = (words, WORDS, WORD.findall(others[int(rng.integers(len(others)))]) if others else words)[int(rng.integers(3))]
    words[_at(words, rng)] = source[_at(source, rng)]
    return words


def _insert(words: list[str], rng: np.random.Generator, _others: Sequence[str]) -> list[str]:
    k = _at(words, rng)
    return [*words[:k], WORDS[int(rng.integers(len(WORDS)))], " ", *words[k:]]


def _number(words: list[str], rng: np.random.Generator, _others: Sequence[str]) -> list[str]:
    """A number, in or between words, becomes an extreme one."""
    places = [k for k, word in enumerate(words) if re.search(r"\d", word) and word[0] not in "%@#^"]
    if not places:
        return words
    k, words = places[int(rng.integers(len(places)))], list(words)
    words[k] = re.sub(r"-?\d+", NUMBERS[int(rng.integers(len(NUMBERS)))], words[k], count=1)
    return words


def _character(words: list[str], rng: np.random.Generator, _others: Sequence[str]) -> list[str]:
    text = "".join(words)
    k = int(rng.integers(len(text)))
    return [text[:k], chr(int(rng.integers(1, 128))), text[k + int(rng.integers(2)) :]]


def _lines(words: list[str], rng: np.random.Generator, _others: Sequence[str]) -> list[str]:
    """One line goes, doubles, or moves."""
    lines = "".join(words).split("\n")
    k, other = int(rng.integers(len(lines))), int(rng.integers(len(lines)))
    line = lines[k] if rng.random() < 0.4 else lines.pop(k)
    if rng.random() < 0.7:
        lines.insert(min(other, len(lines)), line)
    return WORD.findall("\n".join(lines))


def _cut(words: list[str], rng: np.random.Generator, _others: Sequence[str]) -> list[str]:
    return words[: _at(words, rng)]


_CHANGES: tuple[Callable[[list[str], np.random.Generator, Sequence[str]], list[str]], ...] = (
    _drop, _double, _swap, _replace, _replace, _replace, _insert, _number, _number, _character, _lines, _cut,
)  # fmt: skip
