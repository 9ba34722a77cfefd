"""One system in a process of its own, driven by JSON lines on stdin: load a workload, run a burst, drop it.

{"do": "load", "workload": NAME}   -> {"first": seconds, "outputs": PATH, "note": ...} or {"error": text}
{"do": "burst", "seconds": S}      -> {"times": [seconds, ...]}
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
import tempfile
import time
from typing import Any

import numpy as np

from bench.systems import SYSTEMS, NotAvailable
from bench.workloads import WORKLOADS


def main(name: str, threads: int) -> None:
    """Serve until stdin closes."""
    module, _, attribute = SYSTEMS[name].partition(":")
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints goes to stderr

    def answer(**fields: Any) -> None:
        out.write(json.dumps(fields) + "\n")
        out.flush()

    try:
        system = getattr(importlib.import_module(module), attribute)(threads)
    except ImportError as error:
        answer(error=f"not installed: {error}")
        return
    answer(version=system.version())
    cell = None
    for line in sys.stdin:
        order = json.loads(line)
        if order["do"] == "load":
            cell = None
            gc.collect()
            try:
                began = time.perf_counter()
                cell = system.prepare(WORKLOADS[order["workload"]])
                prepared = time.perf_counter()
                cell.call()
                first = time.perf_counter() - prepared
                path = os.path.join(tempfile.gettempdir(), f"bench-{os.getpid()}.npz")
                np.savez(path, *cell.outputs())
                answer(first=first, prepare=prepared - began, outputs=path, note=cell.note)
            except NotAvailable as error:
                answer(error=str(error))
            except Exception as error:  # a failing system is a cell of the table, not the end of the run
                answer(error=f"{type(error).__name__}: {str(error).splitlines()[0][:200] if str(error) else ''}")
        else:
            assert cell is not None
            times: list[float] = []
            until = time.perf_counter() + order["seconds"]
            while time.perf_counter() < until or len(times) < 2:
                began = time.perf_counter()
                cell.call()
                times.append(time.perf_counter() - began)
            answer(times=times[:2000])


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
