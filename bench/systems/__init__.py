"""Adapters: each system supplies the ops of the workloads, and `prepare(workload)` -> a call that is complete when it returns."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

BUILD = Path(__file__).resolve().parent.parent.parent / "build"
PEERS = BUILD / "peers"
"""An environment per peer: `bench/peers.py` makes them."""


class NotAvailable(Exception):
    """This system has no way to run the workload; the message says why."""


def _nothing() -> None:
    pass


def _no_memory() -> dict[str, int]:
    return {}


@dataclass(frozen=True)
class Cell:
    """A prepared workload: `call` runs it once, `outputs` gives what the last call produced.

    `memory` tells bytes that the system plans for a call: `temporary` (arena) and `output`. `close` forgets what was compiled.
    """

    call: Callable[[], None]
    outputs: Callable[[], list[np.ndarray]]
    note: str = ""
    memory: Callable[[], dict[str, int]] = _no_memory
    close: Callable[[], None] = _nothing


def as_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, tuple | list) else (value,)


def caches_allowed() -> bool:
    """May a system use what earlier runs left on disk? Not where first calls are measured."""
    return os.environ.get("BENCH_CACHES") == "1"


SYSTEMS = {
    "numpy": "bench.systems.numpy_system:NumpySystem",
    "gradir": "bench.systems.gradir_system:GradirSystem",
    "jax": "bench.systems.jax_system:JaxSystem",
    "torch": "bench.systems.torch_system:TorchSystem",
    "torch_compile": "bench.systems.torch_system:TorchCompileSystem",
    "iree": "bench.systems.iree_system:IreeSystem",
    "ort": "bench.systems.ort_system:OrtSystem",
    "numba": "bench.systems.numba_system:NumbaSystem",
}
"""Name -> adapter. Each is imported in its own process only."""
