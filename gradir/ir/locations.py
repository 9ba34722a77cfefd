"""Source locations: cheap construction, the place a location points at, and fusing when ops merge.

Relies on xDSL's location attributes; the parser sets them, the printer shows them, rewrites fuse them.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from xdsl.dialects.builtin import UNKNOWN_LOC, CallSiteLoc, FileLineColLoc, FusedLoc, IntAttr, LocationAttr, NameLoc, NoneAttr, StringAttr

MAX_FUSED = 8
"""An op made from more source ops than this names the first ones only: locations stay readable and bounded."""

_set: Any = object.__setattr__


class Position(NamedTuple):
    """A place in a source file; line and column count from 1, 0 where unknown."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@cache
def _int_attr(value: int) -> IntAttr:
    return IntAttr(value)


def file_location(file: StringAttr, line: int, column: int) -> FileLineColLoc:
    """`loc("file":line:column)` without the attribute's verifier: 2 us instead of 12, and every parsed op has one."""
    loc = FileLineColLoc.__new__(FileLineColLoc)
    _set(loc, "filename", file)
    _set(loc, "line", _int_attr(line))
    _set(loc, "column", _int_attr(column))
    return loc


def position(loc: Any) -> Position | None:
    """The first file position that `loc` names: of a call site the callee, of a fused location the first part."""
    while True:
        if isinstance(loc, FileLineColLoc):
            return Position(loc.filename.data, loc.line.data, loc.column.data)
        if isinstance(loc, NameLoc):
            loc = loc.location
        elif isinstance(loc, CallSiteLoc):
            loc = loc.callee
        elif isinstance(loc, FusedLoc):
            return next((found for part in parts(loc) if (found := position(part)) is not None), None)
        else:
            return None


def parts(loc: LocationAttr) -> tuple[LocationAttr, ...]:
    """The members of a fused location; any other location alone."""
    if isinstance(loc, FusedLoc):
        return tuple(loc.locations)  # pyright: ignore[reportArgumentType]  (an ArrayAttr of locations)
    return (loc,)


def is_unknown(loc: LocationAttr) -> bool:
    """Whether `loc` is `loc(unknown)`, written or absent."""
    return loc == UNKNOWN_LOC


def fuse(*locations: LocationAttr) -> LocationAttr:
    """One location for an op made from several: flat, without duplicates or unknowns, at most `MAX_FUSED` parts."""
    distinct = {part: None for loc in locations for part in parts(loc) if not is_unknown(part)}
    if not distinct:
        return UNKNOWN_LOC
    if len(distinct) == 1:
        return next(iter(distinct))
    return FusedLoc(tuple(distinct)[:MAX_FUSED], NoneAttr())
