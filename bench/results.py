"""What a run of the benchmark leaves behind: one JSON file, runs of other workloads merged into it; ratios and means taken from it.

`{"format": 1, "threads": 1, "machine": {...}, "systems": {NAME: VERSION}, "workloads": {NAME: {"when", "load", "cells": {SYSTEM: cell}}}}`
A cell that ran has `wall` and `cpu`, each `{"median", "p10", "p90", "samples"}` in seconds per call, `error` and `rise` (bytes); one
that did not has `missing` (the system has no way) or `failed` (it broke, or its result is wrong).
Other sections, each `{WORKLOAD: {SYSTEM: ...}}`: `firsts` (seconds of the first call, caches empty), `plans` (bytes, as in
`bench.systems.Cell`), `starts` (see `bench.first`). And `burners` (busy processes beside it), `sweep`, `limits`, `calls` (`bench.sweep`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

FORMAT = 1
Results = dict[str, Any]
OURS = "gradir"


def empty(threads: int, machine: dict[str, Any]) -> Results:
    return {"format": FORMAT, "threads": threads, "machine": machine, "systems": {}, "workloads": {}}


def read(path: Path) -> Results:
    found = json.loads(path.read_text(encoding="utf-8"))
    if found.get("format") != FORMAT:
        raise SystemExit(f"{path}: format {found.get('format')}, expected {FORMAT}: measure again")
    return found


def write(path: Path, results: Results) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_text(results, "") + "\n", encoding="utf-8")


def _text(value: Any, indent: str) -> str:
    """JSON with six digits; what fits on a line is one, so that a cell changes one line of the file."""
    if isinstance(value, float):
        return json.dumps(float(f"{value:.6g}"))
    if not isinstance(value, dict):
        return json.dumps(value)
    parts = [f"{json.dumps(key)}: {_text(inner, indent + ' ')}" for key, inner in sorted(value.items())]
    line = "{" + ", ".join(parts) + "}"
    if "\n" not in line and len(line) < 400:
        return line
    return "{\n" + ",\n".join(f"{indent} {part}" for part in parts) + f"\n{indent}}}"


def merged(old: Results, new: Results) -> Results:
    """`new` over `old`: of the cells, versions and extra sections, the later one stands, workload by workload."""
    both = {**old, **new, "systems": {**old["systems"], **new["systems"]}, "workloads": dict(old["workloads"])}
    for name, row in new["workloads"].items():
        before = old["workloads"].get(name, {"cells": {}})
        both["workloads"][name] = {**before, **row}
    for section in ("firsts", "plans", "starts"):
        before, after = old.get(section, {}), new.get(section, {})
        if before or after:
            both[section] = {name: {**before.get(name, {}), **after.get(name, {})} for name in {**before, **after}}
    return both


def summary(samples: Sequence[float]) -> dict[str, float]:
    """Of one cell's samples; empty without any."""
    if not samples:
        return {}
    p10, median, p90 = (float(x) for x in np.percentile(samples, [10, 50, 90]))
    return {"median": median, "p10": p10, "p90": p90, "samples": len(samples)}


def seconds_of(results: Results, workload: str, system: str) -> float | None:
    """The median of a call: CPU time on one thread (which is pinned), wall time on several and on a loaded machine."""
    cell = results["workloads"].get(workload, {}).get("cells", {}).get(system, {})
    clock = "cpu" if results["threads"] == 1 and not results.get("burners") else "wall"
    found = cell.get(clock, {}).get("median")
    return found if found and not cell.get("failed") else None


def best_peer(results: Results, workload: str) -> tuple[str, float] | None:
    """The fastest other system with a right result."""
    cells = results["workloads"].get(workload, {}).get("cells", {})
    found = [(seconds_of(results, workload, name), name) for name in cells if name != OURS]
    times = [(t, name) for t, name in found if t is not None]
    return (min(times)[1], min(times)[0]) if times else None


def ratio(results: Results, workload: str) -> float | None:
    """Our time over that of the best peer: below 1 we are ahead."""
    mine, best = seconds_of(results, workload, OURS), best_peer(results, workload)
    return mine / best[1] if mine and best else None


def geometric_mean(values: Iterable[float]) -> float | None:
    logs = [math.log(v) for v in values]
    return math.exp(sum(logs) / len(logs)) if logs else None


def seconds_text(t: float | None) -> str:
    """`2.76 ms`; empty for None."""
    if t is None:
        return ""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if t >= scale:
            return f"{t / scale:.3g} {unit}"
    return f"{t * 1e9:.0f} ns"


def bytes_text(n: float | None) -> str:
    """`12.3 MB`; empty for None."""
    if n is None:
        return ""
    for unit, scale in (("GB", 2**30), ("MB", 2**20), ("KB", 2**10)):
        if abs(n) >= scale:
            return f"{n / scale:.3g} {unit}"
    return f"{n:.0f} B"
