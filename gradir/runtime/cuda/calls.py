"""The call that a thread is in the middle of: what functions that host code calls back need to know, and what they leave behind."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradir.runtime.cuda.device import Device, Stream
    from gradir.runtime.cuda.pool import Block


@dataclass
class Call:
    """One call of a compiled function. `place()` is (kernel, source line) of the launch that host code is at."""

    device: Device
    stream: Stream
    function: str
    place: Callable[[], tuple[str, str]]
    error: BaseException | None = None
    blocks: dict[int, Block] = field(default_factory=dict[int, "Block"])
    outside: int = 0
    """How often host code asked for something that a captured graph cannot repeat: memory, a value, a library function."""


class _Calls(threading.local):
    def __init__(self) -> None:
        self.stack: list[Call] = []


_calls = _Calls()


def current_call() -> Call:
    """The innermost call of this thread."""
    return _calls.stack[-1]


@contextmanager
def entered(call: Call) -> Generator[Call]:
    """`call` is the current one inside."""
    _calls.stack.append(call)
    try:
        yield call
    finally:
        _calls.stack.pop()
