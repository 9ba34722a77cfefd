"""Adapters: each system supplies the ops of the workloads, and `prepare(workload)` -> a call that is complete when it returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


class NotAvailable(Exception):
    """This system has no way to run the workload; the message says why."""


@dataclass(frozen=True)
class Cell:
    """A prepared workload: `call` runs it once, `outputs` gives what the last call produced."""

    call: Callable[[], None]
    outputs: Callable[[], list[np.ndarray]]
    note: str = ""


def as_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, tuple | list) else (value,)


SYSTEMS = {
    "numpy": "bench.systems.numpy_system:NumpySystem",
    "gradir": "bench.systems.gradir_system:GradirSystem",
    "jax": "bench.systems.jax_system:JaxSystem",
    "torch": "bench.systems.torch_system:TorchSystem",
    "torch_compile": "bench.systems.torch_system:TorchCompileSystem",
}
"""Name -> adapter. Each is imported in its own process only."""
