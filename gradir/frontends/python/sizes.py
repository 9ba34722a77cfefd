"""Whole numbers that the user writes: sizes, strides, axes. What is none, or too small, is an error at the user's line."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

from gradir.frontends.python.dims import Dim, note_limits
from gradir.frontends.python.trace import user_error


def whole(what: str, value: Any, least: int | None = None) -> int:
    """`value` as an int, at least `least`; GradirError GR112 otherwise."""
    try:
        number = operator.index(value)
    except TypeError:
        raise user_error(f"{what} must be a whole number", code="GR112", expected="an int", found=repr(value)[:80]) from None
    if not -1 << 63 <= number < 1 << 63:
        raise user_error(f"{what} is too large", code="GR112", expected="a number of 64 bits", found=str(number)[:40])
    if least is not None and number < least:
        raise user_error(f"{what} is too small", code="GR112", expected=f"at least {least}", found=str(number))
    return number


def sizes(what: str, value: Any, least: int | None = 0) -> tuple[int, ...]:
    """One number or `Dim`, or a sequence of them, as a tuple."""
    return tuple(size(what, n, least) for n in (value if isinstance(value, Iterable) and not isinstance(value, str) else (value,)))


def size(what: str, value: Any, least: int | None = 0) -> Any:
    """A whole number, at least `least`, or a `Dim`."""
    if not isinstance(value, Dim):
        return whole(what, value, least)
    note_limits(value)
    return value


def axis_of(axis: Any, rank: int) -> int:
    """`axis` counted from the front; GradirError GR104 if there is none."""
    number = whole("an axis", axis)
    if not -rank <= number < rank:
        raise user_error(f"axis {number} is out of range", code="GR104", expected=f"-{rank} to {rank - 1}", found=str(number))
    return number % rank


def pairs(what: str, value: Any, rank: int, code: str) -> list[tuple[int, int]]:
    """(low, high) per dimension: a number stands for an equal pair."""
    rows = [(row, row) if not isinstance(row, Sequence) else tuple(row) for row in value] if isinstance(value, Sequence) else []
    if len(rows) != rank or any(len(row) != 2 for row in rows):
        raise user_error(f"{what} needs one pair per dimension", code=code, expected=f"{rank} (low, high) pairs", found=repr(value)[:80])
    return [(whole(what, low), whole(what, high)) for low, high in rows]
