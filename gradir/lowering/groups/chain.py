"""Kind `chain`: groups one after the other over the same rows, so that a block of rows can go through all of them at once.

Whether a chain pays is decided by `gradir.lowering.chains`; here is what makes one legal. Its dimensions are found by the flow of values
alone: queries and keys of one sequence have equal extents and are two dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import MemRefType, TensorType
from xdsl.ir.affine import AffineDimExpr, AffineMap

from gradir.lowering.groups.dims import flow_dims
from gradir.lowering.groups.group import ChainRoles, Group, GroupOp
from gradir.lowering.groups.kinds import is_contraction
from gradir.lowering.groups.loops import Extent, Loops

STAGE = "gradir.stage"
"""Attribute of a loop nest in a chain: the number of its stage."""


def chain_group(stages: Sequence[Sequence[Loops]]) -> Group | None:
    """The chain of `stages`, in this order; None when no dimension enumerates rows that go through all of them one by one."""
    ops = [loops for stage in stages for loops in stage]
    found = flow_dims(ops)
    if found is None or any(isinstance(v.type, TensorType | MemRefType) for loops in ops for v in loops.captured):
        return None
    dims, extents = found
    if not all(isinstance(e, int) and e > 0 for e in extents):
        return None
    members = tuple(GroupOp(loops, d) for loops, d in zip(ops, dims))
    roles = _roles(members, [len(stage) for stage in stages], extents)
    if roles is None:
        return None
    return Group(members, extents, "chain", (*roles.batch, roles.row), chain=roles, produced={o.output: o for o in members})


def _roles(ops: Sequence[GroupOp], lengths: Sequence[int], extents: Sequence[Extent]) -> ChainRoles | None:
    shared = set(ops[0].dims).intersection(*(o.dims for o in ops))
    sums = frozenset(i for i, o in enumerate(ops) if o.reduced & shared)
    reduced = frozenset[int]().union(*(ops[i].reduced & shared for i in sums))
    if any(ops[i].reduced & shared != reduced or not _may_add_up(ops[i], ops) for i in sums):
        return None
    stages: list[tuple[int, ...]] = []
    for length in lengths:
        first = sum(map(len, stages))
        stages.append(tuple(range(first, first + length)))
    if any(len(stage) > 1 and sums & set(stage) for stage in stages):
        return None
    rows = [d for d in ops[0].dims if d in (reduced or shared) and all(_is_row(o, d) for o in ops)]
    if not rows or not all(_plain(o, shared) for o in ops):
        return None
    row = max(rows, key=lambda d: _number(extents[d]))
    order = [d for d in ops[0].dims if d in shared and d != row]
    batch = tuple(d for d in order if d not in reduced)
    return ChainRoles(tuple(stages), batch, tuple(d for d in order if d in reduced), row, sums)


def _number(extent: Extent) -> int:
    return extent if isinstance(extent, int) else 0


def _may_add_up(o: GroupOp, ops: Sequence[GroupOp]) -> bool:
    """A sum of products of which nobody in the chain reads a part."""
    return is_contraction(o) and not any(v is o.output for other in ops for v, _ in other.inputs)


def _is_row(o: GroupOp, dim: int) -> bool:
    """Does a block of `dim` leave a contraction one: no batch dimension of it?"""
    if not is_contraction(o):
        return True
    return dim in o.reduced or sum(dim in {o.dims[l] for l in map_.used_dims()} for _, map_ in o.inputs) == 1


def _plain(o: GroupOp, shared: set[int]) -> bool:
    """Is every operand read at one index along each shared dimension that it has?"""
    return all(_reads_plainly(map_, o.dims, shared) for _, map_ in o.inputs)


def _reads_plainly(map_: AffineMap, dims: Sequence[int], shared: set[int]) -> bool:
    plain = [dims[e.position] for e in map_.results if isinstance(e, AffineDimExpr)]
    mixed = {dims[l] for e in map_.results if not isinstance(e, AffineDimExpr) for l in e.used_dims()}
    return len(set(plain)) == len(plain) and not mixed & shared
