"""The events of one run as a Chrome trace (`chrome://tracing`, https://ui.perfetto.dev), one row per thread."""

from __future__ import annotations

import json
from typing import Any

from gradir.driver.explain.explanation import Explanation


def trace_of(explanation: Explanation) -> dict[str, Any]:
    """The trace event format: complete events (`ph` X), microseconds; calls on the caller's row, chunks on their threads'."""
    rows = {row.name: row for row in explanation.rows}
    events: list[dict[str, Any]] = [
        {"ph": "M", "pid": 1, "tid": 0, "name": "process_name", "args": {"name": f"@{explanation.function}"}},
    ]
    for thread in sorted({event.thread for event in explanation.events}):
        name = "caller" if thread == 0 else f"worker {thread}"
        events.append({"ph": "M", "pid": 1, "tid": thread, "name": "thread_name", "args": {"name": name}})
    for event in explanation.events:
        row = rows.get(event.name)
        arguments: dict[str, Any] = {"location": event.location}
        if row is not None and not event.chunk:
            arguments |= {"strategy": row.strategy, "why": row.reason}
        events.append(
            {
                "ph": "X",
                "pid": 1,
                "tid": event.thread,
                "name": event.name + (" (chunk)" if event.chunk else ""),
                "cat": "chunk" if event.chunk else "kernel",
                "ts": round(event.begin, 3),
                "dur": round(event.duration, 3),
                "args": arguments,
            }
        )
    return {"traceEvents": events, "displayTimeUnit": "ns"}


def trace_json(explanation: Explanation) -> str:
    """`trace_of` as text."""
    return json.dumps(trace_of(explanation), separators=(",", ":"))


__all__ = ["trace_json", "trace_of"]
