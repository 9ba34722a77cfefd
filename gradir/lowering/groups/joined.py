"""Which dimensions of a group the generators will run as one loop, because every operand holds them side by side in memory.

What the generators do about it is `gradir.lowering.lower_kernels.collapse`; schedules ask here, where there is no code yet.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import MemRefType, StridedLayoutAttr
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from gradir.dialects.upstream import linalg
from gradir.lowering.groups.group import Group, GroupOp
from gradir.lowering.groups.loops import extents_of


def joined_loops(group: Group, dims: Sequence[int]) -> list[tuple[int, ...]]:
    """`dims` in runs: each run is one loop. `a[i, j, k] b[k, n]` of a contiguous `a` has the runs (i, j), (n), (k)."""
    order = (*group.space, *(d for d in range(len(group.extents)) if d not in group.space))
    place = {d: position for position, d in enumerate(order)}
    runs: list[tuple[int, ...]] = []
    for d in sorted(dims, key=place.__getitem__):
        if runs and place[runs[-1][-1]] == place[d] - 1 and all(_joinable(group, o, runs[-1][-1], d) for o in group.ops):
            runs[-1] = (*runs[-1], d)
        else:
            runs.append((d,))
    return runs


def _joinable(group: Group, o: GroupOp, first: int, second: int) -> bool:
    """Do both loops, one right inside the other, run over memory without gaps in every operand of `o`?"""
    pair = {first, second}
    if len(pair & set(o.dims)) == 1 or len(pair & o.reduced) == 1:
        return False
    if any(isinstance(i, linalg.IndexOp) and o.dims[i.dim.value.data] in pair for i in o.op.body.block.ops):
        return False
    inside = {other.output for other in group.ops}
    written = o.op.indexing_maps.data[-1].data
    operands = [*o.inputs, (o.output, written)]
    return all(value in inside or _side_by_side(group, value, map_, o.dims, first, second) for value, map_ in operands)


def _side_by_side(group: Group, value: SSAValue, map_: AffineMap, dims: Sequence[int], first: int, second: int) -> bool:
    """Does the operand hold the whole of `second` for each step of `first`, one after the other?"""
    used = [{dims[l] for l in e.used_dims()} for e in map_.results]
    touching = [k for k, found in enumerate(used) if found & {first, second}]
    if not touching:
        return True
    if len(touching) != 2 or touching[1] != touching[0] + 1:
        return False
    if any(not isinstance(map_.results[k], AffineDimExpr) for k in touching) or used[touching[0]] != {first}:
        return False
    if isinstance(value.type, MemRefType) and isinstance(value.type.layout, StridedLayoutAttr):
        return False
    return extents_of(value.type)[touching[1]] == group.extents[second]


__all__ = ["joined_loops"]
