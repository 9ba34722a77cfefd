"""Schedules of contractions over windows, where they differ from those of other contractions: gradients of filters.

`dw[k, c, o] = sum over n, h, w of x[n, h + k, w + k, c] ct[n, h, w, o]` reads both operands once for each offset in the window and each
tile of channels, so they have to come from L2: a few positions at a time, with the sums in memory between two visits.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from gradir.lowering.groups import Group, GroupOp
from gradir.lowering.schedules.machine import Machine

LEAST_CHANNELS = 8
"""Channels of a result from which on they are columns of tiles whatever its order."""
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


def channels_across(group: Group) -> int | None:
    """The channels of the result as columns of the tile, although results lie side by side along positions: where the image does not.

    Both then are read as they lie, and tiles are turned on their way out.
    """
    roles = group.contraction
    last = next((d for d in reversed(group.space) if group.extents[d] != 1), None)
    if roles is None or last is None or not all(isinstance(n, int) for n in group.extents):
        return None
    core = group.ops[roles.index]
    if sums_positions(core, [n if isinstance(n, int) else 1 for n in group.extents]):
        return None
    for number, (_, map_) in enumerate(core.inputs[:2]):
        used = [{core.dims[l] for l in e.used_dims()} for e in map_.results]
        if not any(len(dims) > 1 and last in dims for dims in used):
            continue
        inside = used[-1]
        columns = [d for d in (roles.m if number else roles.n) if group.extents[d] != 1]
        if len(inside) != 1 or not inside <= core.reduced or len(columns) != 1 or last in columns:
            return None
        count = group.extents[columns[0]]
        return columns[0] if isinstance(count, int) and count >= LEAST_CHANNELS else None
    return None


def positions_in_block(machine: Machine, depth: int, rows: int, columns: int, size: int) -> int:
    """Positions between two visits of the results in memory; 0: all, where they are few or stay in the cache anyway."""
    if depth * (rows + columns) * size <= machine.l2 // 2:
        return 0
    return POSITIONS if depth >= 4 * POSITIONS else 0


def shared_columns(machine: Machine, last: int | None, columns: int, width: int) -> list[int]:
    """Threads share the channels of the results, not positions: every sum has one order. None where there are too few channels."""
    return [last] if machine.threads > 1 and last is not None and columns >= machine.threads * width else []
