"""Room for transformations that go down with the calls of a program.

A pass that treats the callee before its caller takes a dozen frames of Python per level, and Python stops at a thousand. Frames of Python
code take no stack of the machine, so that the limit may follow the program.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager

FRAMES = 50
"""Frames that one level of calls may take."""


@contextmanager
def room_for(levels: int) -> Generator[None]:
    """While calls may be nested as deep as that."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(before + FRAMES * levels)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
