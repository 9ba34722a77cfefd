"""Schedules of contractions over windows, where they differ from those of other contractions: gradients of filters.

`dw[k, c, o] = sum over n, h, w of x[n, h + k, w + k, c] ct[n, h, w, o]` reads both operands once for each offset in the window and each
tile of channels, so they have to come from L2: a few positions at a time, with the sums in memory between two visits.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from gradir.lowering.groups import GroupOp
from gradir.lowering.schedules.machine import Machine

POSITIONS = 128
"""Positions of a block: few enough for both operands to stay close, enough to pay for a visit of the results."""


def sums_positions(core: GroupOp, extents: Sequence[int]) -> bool:
    """Is an operand read at sums of a position and an offset in a window, and the position summed over?"""
    for _, map_ in core.inputs:
        for expr in map_.results:
            used = [core.dims[l] for l in expr.used_dims()]
            summed = [extents[d] for d in used if d in core.reduced]
            kept = [extents[d] for d in used if d not in core.reduced]
            if summed and kept and prod(summed) > prod(kept):
                return True
    return False


def positions_in_block(machine: Machine, depth: int, rows: int, columns: int, size: int) -> int:
    """Positions between two visits of the results in memory; 0: all, where they are few or stay in the cache anyway."""
    if depth * (rows + columns) * size <= machine.l2 // 2:
        return 0
    return POSITIONS if depth >= 4 * POSITIONS else 0


def shared_columns(machine: Machine, last: int | None, columns: int, width: int) -> list[int]:
    """Threads share the channels of the results, not positions: every sum has one order. None where there are too few channels."""
    return [last] if machine.threads > 1 and last is not None and columns >= machine.threads * width else []
