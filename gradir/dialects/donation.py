"""Attributes of entries whose callers give the memory of arguments away."""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, StringAttr

from gradir.dialects.types import ints
from gradir.dialects.upstream.func import FuncOp

DONATED = "gradir.donated"
"""Of an entry at any level: positions of the arguments whose memory the caller gives away, `array<i64: 0, 2>`."""

ALIASES = "gradir.aliases"
"""Of an entry at level 3 or 4: argument and result by turns, `array<i64: 0, 1>`; the caller passes the argument's memory for the result."""

DONATION = "gradir.donation"
"""Of an entry at level 3 or 4: what became of each argument that was given away, in words."""


def donated_arguments(function: FuncOp) -> frozenset[int]:
    """The arguments of an entry that the caller gives away."""
    marked = function.attributes.get(DONATED)
    return frozenset(ints(marked)) if isinstance(marked, DenseArrayBase) else frozenset()


def aliases_of(function: FuncOp) -> dict[int, int]:
    """Result -> the argument in whose memory it lies, of an entry at level 3 or 4."""
    flat = function.attributes.get(ALIASES)
    numbers = ints(flat) if isinstance(flat, DenseArrayBase) else ()
    return dict(zip(numbers[1::2], numbers[::2]))


def donation_notes(function: FuncOp) -> tuple[str, ...]:
    """What became of each argument that was given away."""
    notes = function.attributes.get(DONATION)
    return tuple(note.data for note in notes if isinstance(note, StringAttr)) if isinstance(notes, ArrayAttr) else ()


__all__ = ["ALIASES", "DONATED", "DONATION", "aliases_of", "donated_arguments", "donation_notes"]
