"""What was made for a function, a compiled program say, kept with the function as long as it lives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

ENTRY = "_gradir"
"""Attribute of the function: itself, since `functools.wraps` copies attributes to other functions, and what is kept, by key."""


def kept(function: Callable[..., Any], key: Any, make: Callable[[], Any]) -> Any:
    """What `make` gives, kept with the function under `key` as long as the function lives."""
    words = getattr(function, "__dict__", None)
    if not isinstance(words, dict):
        return make()  # a bound method: a new object each time
    owner, found = words.get(ENTRY, (None, {}))
    if owner is not function:
        found = {}
        words[ENTRY] = (function, found)
    if key not in found:
        found[key] = make()
    return found[key]


def forget(function: Callable[..., Any]) -> None:
    """Drop what is kept with a function that has changed."""
    function.__dict__.pop(ENTRY, None)
