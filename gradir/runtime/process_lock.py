"""A lock that a forked child finds free: whoever held it stayed in the parent."""

from __future__ import annotations

import os
import threading
from types import TracebackType


class ProcessLock:
    """A reentrant lock of the threads of one process."""

    def __init__(self) -> None:
        self._state = os.getpid(), threading.RLock()

    def _lock(self) -> threading.RLock:
        if self._state[0] != os.getpid():
            self._state = os.getpid(), threading.RLock()
        return self._state[1]

    def __enter__(self) -> None:
        self._lock().acquire()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._lock().release()
