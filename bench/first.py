"""A fresh process per measurement: process start to first result, and what the process weighs when warm.

`python -m bench.first SYSTEM WORKLOAD THREADS [CACHE [preload]]` is the child: it prints one JSON line when the first result is there and
another one after some warm calls. Making the inputs is taken out of all times. Gradir runs on one cache directory, empty, then filled; and
once more with everything loaded beforehand, for the first call alone with a filled cache. Its modules are compiled to bytecode before, as
those of installed packages are, the peers' among them.
"""

from __future__ import annotations

import compileall
import importlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.peer import LIMIT, ROOT, environment, pinned, python_of
from bench.systems import SYSTEMS, NotAvailable
from bench.workloads import WORKLOADS

WARM_CALLS = 5


def measure(system: str, workload: str, threads: int) -> dict[str, Any]:
    """`{"start", "import", "first", "resident", "peak"}` in seconds and bytes, for gradir `cached` with the same; else why not."""
    if system != "gradir":
        return _child(system, workload, threads)
    compileall.compile_dir(str(ROOT / "gradir"), quiet=2)
    compileall.compile_dir(str(ROOT / "bench"), quiet=2)
    cache = tempfile.mkdtemp(prefix="gradir-bench-")
    try:
        cold = _child(system, workload, threads, cache)
        if "start" not in cold:
            return cold
        cached, loaded = _child(system, workload, threads, cache), _child(system, workload, threads, cache, "preload")
        return {**cold, "cached": {**cached, "first": loaded["first"]}} if "first" in loaded else cold
    finally:
        shutil.rmtree(cache, ignore_errors=True)


def _child(system: str, workload: str, threads: int, *more: str) -> dict[str, Any]:
    command = [*pinned(threads), str(python_of(system)), "-m", "bench.first", system, workload, str(threads), *more]
    began = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT, env=environment(threads, caches=False)
    )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        start = time.perf_counter() - began
        rest, _ = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()
        return {"failed": "no result in time"}
    found = json.loads(line) if line.strip() else {"failed": f"the process ended (status {process.wait()})"}
    if "first" not in found:
        return found
    return {**found, "start": start - found.pop("inputs"), **(json.loads(rest) if rest.strip() else {})}


def _status(name: str) -> int:
    path = Path("/proc/self/status")
    found = re.search(rf"{name}:\s+(\d+)", path.read_text()) if path.exists() else None
    return int(found[1]) * 1024 if found else 0


def child(system: str, workload: str, threads: int, cache: str = "", preload: str = "") -> None:
    module, _, attribute = SYSTEMS[system].partition(":")
    w = WORKLOADS[workload]
    began = time.perf_counter()
    made = getattr(importlib.import_module(module), attribute)
    running = made(threads, cache, preload=bool(preload)) if cache else made(threads)
    imported = time.perf_counter() - began
    began = time.perf_counter()
    w.inputs()
    inputs = time.perf_counter() - began  # the adapter makes them a second time
    try:
        cell = running.prepare(w)
    except NotAvailable as error:
        print(json.dumps({"missing": str(error)}), flush=True)
        return
    began = time.perf_counter()
    cell.call()
    first = time.perf_counter() - began
    print(json.dumps({"import": imported, "first": first, "inputs": 2 * inputs}), flush=True)
    for _ in range(WARM_CALLS):
        cell.call()
    print(json.dumps({"resident": _status("VmRSS"), "peak": _status("VmHWM")}), flush=True)


if __name__ == "__main__":
    child(sys.argv[1], sys.argv[2], int(sys.argv[3]), *sys.argv[4:])
