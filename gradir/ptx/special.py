"""Special registers: where a thread is, how large the launch is, and clocks, which count instructions of the text here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradir.ptx.state import LANES, Blocks

Array = np.ndarray[Any, np.dtype[Any]]


def special(blocks: Blocks, warps: Array, position: int, name: str) -> Array | None:
    """The value of a special register for these warps, [warp, lane] or broadcast; None for one without a meaning here."""
    base, _, axis = name[1:].partition(".")
    at = "xyz".find(axis) if axis else 0
    lanes = np.arange(LANES, dtype=np.int64)[None, :]
    linear = (warps % blocks.per_block)[:, None].astype(np.int64) * LANES + lanes
    x, y, _ = blocks.threads
    coordinates = blocks.coordinates[blocks.block_of(warps)]
    values: dict[str, Callable[[], Any]] = {
        "tid": lambda: (linear % x, linear // x % y, linear // (x * y))[at],
        "ntid": lambda: np.full((1, 1), blocks.threads[at]),
        "ctaid": lambda: coordinates[:, at : at + 1],
        "nctaid": lambda: np.full((1, 1), blocks.grid[at]),
        "laneid": lambda: lanes,
        "warpid": lambda: (warps % blocks.per_block)[:, None],
        "nwarpid": lambda: np.full((1, 1), blocks.per_block),
        "smid": lambda: blocks.block_of(warps)[:, None] % 132,
        "nsmid": lambda: np.full((1, 1), 132),
        "gridid": lambda: np.zeros((1, 1), np.int64),
        "lanemask_eq": lambda: 1 << lanes,
        "lanemask_lt": lambda: (1 << lanes) - 1,
        "lanemask_le": lambda: (2 << lanes) - 1,
        "lanemask_gt": lambda: 0xFFFFFFFF & ~((2 << lanes) - 1),
        "lanemask_ge": lambda: 0xFFFFFFFF & ~((1 << lanes) - 1),
        "clock": lambda: np.full((1, 1), position),
        "clock64": lambda: np.full((1, 1), position),
        "globaltimer": lambda: np.full((1, 1), position),
        "cluster_ctaid": lambda: coordinates[:, at : at + 1] % blocks.cluster[at],
        "cluster_nctaid": lambda: np.full((1, 1), blocks.cluster[at]),
        "clusterid": lambda: coordinates[:, at : at + 1] // blocks.cluster[at],
        "nclusterid": lambda: np.full((1, 1), blocks.grid[at] // blocks.cluster[at]),
        "cluster_ctarank": lambda: _rank(coordinates, blocks),
        "cluster_nctarank": lambda: np.full((1, 1), int(np.prod(blocks.cluster))),
        "is_explicit_cluster": lambda: np.full((1, 1), int(np.prod(blocks.cluster) > 1)),
        "dynamic_smem_size": lambda: np.full((1, 1), blocks.shared_bytes),
        "envreg1": lambda: np.full((1, 1), blocks.workspace >> 32),  # read by cooperative groups
        "envreg2": lambda: np.full((1, 1), blocks.workspace & 0xFFFFFFFF),
        "total_smem_size": lambda: np.full((1, 1), blocks.shared_bytes),
    }
    return np.asarray(values[base](), np.int64) if base in values else None


def _rank(coordinates: Array, blocks: Blocks) -> Array:
    cx, cy, _ = blocks.cluster
    within = coordinates % np.asarray(blocks.cluster)
    return (within[:, 0] + cx * (within[:, 1] + cy * within[:, 2]))[:, None]
