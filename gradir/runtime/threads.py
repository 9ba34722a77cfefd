"""How many threads compiled code may use, and what happens to the pool in a forked child."""

from __future__ import annotations

import ctypes
import os

from gradir.runtime.native.library import native


def available_threads() -> int:
    """How many threads this process may run on at once."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def worker_count() -> int:
    """Workers that exist now, callers not counted: none before the first parallel loop and in a fresh child of a fork."""
    return ctypes.c_int64.from_address(native().address("gradir.workers")).value
