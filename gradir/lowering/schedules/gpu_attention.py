"""Schedules of attention on a GPU: rows of queries of a block, keys of a step.

16 queries a warp, 4 warps a block (Dao, 2023: FlashAttention-2); keys and values of two steps are in workgroup memory. The head's size is
padded to a power of two: it is a row of a staged tile.
"""

from __future__ import annotations

from math import prod

from gradir.dialects.kernel import ChainAttr
from gradir.dialects.target import CudaTargetAttr
from gradir.dialects.target.cuda_facts import architecture
from gradir.lowering.groups import Group
from gradir.lowering.groups.attention import Attention, attention_of
from gradir.lowering.schedules.gpu_contraction import RESULT_PAD
from gradir.lowering.schedules.machine import element_of

QUERIES, KEYS = 64, 64
STAGES = 2
MOST_DEPTH = 128
"""Elements of a head that a warp adds up in registers."""
ELEMENTS = ("bf16", "f16")


def padded(size: int) -> int:
    """A row of a staged tile: a power of two, 16 at least."""
    return max(16, 1 << (size - 1).bit_length())


def shared_bytes(depth: int, columns: int) -> int:
    """Bytes of workgroup memory of a block: queries, keys and values of all stages; results go through the same bytes."""
    tiles = 2 * (QUERIES * padded(depth) + STAGES * KEYS * (padded(depth) + padded(columns)))
    return max(tiles, QUERIES * (padded(columns) + RESULT_PAD) * 4)


def sizes_of(roles: Attention, group: Group) -> tuple[int, int] | None:
    """(depth, columns): elements of a query and of a value; None where a size is not known or 0."""
    if not all(isinstance(e, int) and e > 0 for e in group.extents):
        return None
    depth, columns = (prod(int(group.extents[d] or 0) for d in dims) for dims in (roles.depth, roles.columns))
    return depth, columns


def fits(roles: Attention, group: Group, target: CudaTargetAttr) -> bool:
    """Does the kernel take these types and sizes on this GPU?"""
    sizes = sizes_of(roles, group)
    if sizes is None or max(sizes) > MOST_DEPTH:
        return False
    (values,) = [v for v, _ in roles.product.inputs if v is not roles.weight.output]
    elements = {element_of(v) for v, _ in roles.scores.inputs} | {element_of(values)}
    element = next(iter(elements))
    facts = architecture(target.arch)
    weights = element_of(roles.weight.output) in (element, "f32")
    sums = element_of(roles.scores.output) == element_of(roles.product.output) == "f32"
    known = len(elements) == 1 and element in ELEMENTS and (16, 8, 16) in facts.mma.get(element, ()) and facts.asynchronous
    return known and weights and sums and shared_bytes(*sizes) <= facts.shared_per_block


def schedule_gpu_chain(group: Group, target: CudaTargetAttr) -> ChainAttr:
    """block = [queries of a block, keys of a step]."""
    return ChainAttr.of(block=[QUERIES, KEYS])


def reason_gpu_chain(group: Group, target: CudaTargetAttr, schedule: ChainAttr) -> str:
    """`64 queries a block, 64 keys a step; scores stay in registers`"""
    rows, keys = schedule.field("block")
    roles = attention_of(group)
    kept = f"scores of {group.extents[roles.key]} keys stay in registers" if roles is not None else "scores stay in registers"
    return f"{rows} queries a block, {keys} keys a step; {kept}"
