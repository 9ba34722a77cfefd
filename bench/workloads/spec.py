"""What a workload is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

F32 = np.float32


@dataclass(frozen=True)
class Workload:
    """One row of the table: `fn(B, *inputs)` over the ops `B` of a system (`bench.systems.ops`).

    kind `forward`: outputs of fn. `grad`: (loss, *gradients of the first `params` inputs). `train`: (loss, *updated parameters), plain
    SGD. `step`: a state in, a state out, of which the first `params` arrays are parameters.
    `flops` and `bytes` are the useful work of one call. `compare` says how far a result is off (`bench.references.error`): by its largest
    element (`max`), by the norm of the update of the parameters (`update`), or by the share of elements that differ (`share`).
    """

    name: str
    group: str
    kind: str
    fn: Callable[..., Any]
    inputs: Callable[[], list[np.ndarray]]
    params: int = 0
    flops: float = 0.0
    bytes: float = 0.0
    tolerance: float = 2e-3
    rate: float = 0.01
    compare: str = "max"

    @property
    def training(self) -> bool:
        """Does a call contain a backward pass?"""
        return self.kind != "forward"


def normal(seed: int, *shape: int, scale: float = 1.0) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(F32)
