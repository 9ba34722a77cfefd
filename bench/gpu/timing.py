"""Times by events of the device: so many calls between two events that a launch's own cost shows, medians over rounds."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

ROUNDS = 7
ENOUGH = 4e-3
"""Seconds between two events."""
LIMIT = 0.25
"""Seconds that one case may be measured for."""


def device_seconds(
    call: Callable[[], Any], event: Callable[[], Any], elapsed: Callable[[Any, Any], float], wait: Callable[[], None]
) -> float:
    """Seconds of one call: median over rounds of the device's time for a burst of calls."""
    call()
    wait()
    begin = event()
    call()
    end = event()
    wait()
    once = max(elapsed(begin, end), 1e-7)
    burst = max(1, min(1000, int(ENOUGH / once)))
    found: list[float] = []
    stop = time.perf_counter() + LIMIT
    for _ in range(ROUNDS):
        begin = event()
        for _ in range(burst):
            call()
        end = event()
        wait()
        found.append(elapsed(begin, end) / burst)
        if time.perf_counter() > stop:
            break
    return statistics.median(found)


def host_seconds(call: Callable[[], Any], wait: Callable[[], None], count: int = 200) -> float:
    """Seconds of the host for one call that is queued and not waited for: the launch overhead."""
    call()
    wait()
    found: list[float] = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        for _ in range(count):
            call()
        found.append((time.perf_counter() - begin) / count)
        wait()
    return statistics.median(found)


def of_gradir(function: Callable[..., Any], arguments: Any, device: Any) -> float:
    """Seconds of a program on arrays that are on the device."""
    stream = device.current_stream()
    return device_seconds(
        lambda: function(*arguments),
        stream.record,
        lambda begin, end: end.milliseconds_since(begin) * 1e-3,
        stream.synchronize,
    )
