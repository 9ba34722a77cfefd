"""Building groups: from one op, from two groups, from a finished kernel.

`merge` rebuilds the group from its ops in program order, by the same procedure that `group_of_kernel` applies to the kernel made of
it, so fusion and loop generation cannot disagree. Groups are small (MAX_OPS), which keeps fusion linear in program size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation, SSAValue

from gradir.dialects.kernel import KERNEL_ATTRIBUTE, ContractionAttr
from gradir.dialects.upstream import func, linalg
from gradir.lowering.groups.chain import STAGE, chain_group
from gradir.lowering.groups.dims import shared_dims
from gradir.lowering.groups.group import Group, GroupOp, RowsRoles
from gradir.lowering.groups.kinds import contraction_roles, elementwise_space, rows_roles, rows_with
from gradir.lowering.groups.loops import Loops, Read, is_generic, loops_of

MAX_OPS = 40
"""Ops in a group: bounds the cost of a merge, the length of LLVM's basic blocks and register pressure."""


def single(op: Operation) -> Group:
    """The group of one `linalg.generic`; kind "loops" when nothing better fits."""
    group = build([loops_of(op)])
    assert group is not None
    return group


def merge(a: Group, b: Group, order: Mapping[Operation, int]) -> Group | None:
    """One group with the ops of both in program `order`, or None when no kind of loop nest computes them together."""
    if len(a.ops) + len(b.ops) > MAX_OPS:
        return None
    appended = _append(a, b, order)
    if appended is not None:
        return appended
    ops = [o.loops for o in (*a.ops, *b.ops)]
    return build(sorted(ops, key=lambda loops: order[loops.op]))


def _append(group: Group, last: Group, order: Mapping[Operation, int]) -> Group | None:
    """What `build` gives for the commonest merge, at a cost that does not grow with the group: one more elementwise op at the end
    that reads values of the group point by point. None: not that case."""
    if len(last.ops) != 1 or last.kind != "elementwise" or group.kind == "loops":
        return None
    loops = last.ops[0].loops
    if group.rows is not None:
        return _append_to_rows(group, group.rows, loops, order)
    inside = [read for value, read in loops.reads if value in group.produced]
    if not inside or any(read != loops.output_loops for read in inside) or any(v in group.produced for v in loops.captured):
        return None
    dims = dict(zip(loops.output_loops, group.space))
    same_space = len(dims) == len(group.space) == len(loops.extents)
    if not same_space or any(loops.extents[l] != group.extents[d] for l, d in dims.items()) or order[group.ops[-1].op] > order[loops.op]:
        return None
    member = GroupOp(loops, tuple(dims[l] for l in range(len(dims))))
    produced = {**group.produced, member.output: member}
    return replace(group, ops=(*group.ops, member), produced=produced)


def _append_to_rows(group: Group, rows: RowsRoles, loops: Loops, order: Mapping[Operation, int]) -> Group | None:
    """The same for rows: an op all of whose loops are those of a value of the group that it reads.

    The rows stay what they are: `rows_roles` takes the first set of outer dimensions that suits all ops and leaves the fastest
    dimension inside; one more op may rule sets out, and adds one at most, as the last.
    """
    if order[group.ops[-1].op] > order[loops.op] or any(v in group.produced for v in loops.captured):
        return None
    dims = next((found for value, read in loops.reads if (found := _dims_of_read(group, value, read, len(loops.extents)))), None)
    if dims is None or any(loops.extents[l] != group.extents[d] for l, d in enumerate(dims)) or not _reads_agree(group, loops, dims):
        return None
    member = GroupOp(loops, dims)
    place = {d: i for i, d in enumerate(group.space)}
    places = [place[d] for d in member.output_dims]
    if places != sorted(places):  # one order of all dimensions has to suit every output
        return None
    roles = rows_with(rows, group.ops, member, group.space, group.extents)
    if roles is None:
        return None
    return replace(group, ops=(*group.ops, member), rows=roles, produced={**group.produced, member.output: member})


def _dims_of_read(group: Group, value: SSAValue, read: Read | None, loops: int) -> tuple[int, ...] | None:
    """Group dimensions of an op's loops, when it reads a value of the group with each loop once."""
    producer = group.produced.get(value)
    if producer is None or read is None or len(read) != loops or len(set(read)) != loops:
        return None
    places = dict(zip(read, producer.output_dims))
    return None if None in places else tuple(places[l] for l in range(loops))


def _reads_agree(group: Group, loops: Loops, dims: Sequence[int]) -> bool:
    """Whether what is read from the group, or by the group from outside too, is read along the same dimensions."""
    mine: dict[SSAValue, tuple[int | None, ...]] = {}
    for value, read in loops.reads:
        along = None if read is None else tuple(None if l is None else dims[l] for l in read)
        producer = group.produced.get(value)
        if producer is not None and along != producer.output_dims:
            return False
        if along is not None and mine.setdefault(value, along) != along:
            return False
    for member in group.ops:
        for value, read in member.loops.reads:
            if value in mine and read is not None and mine[value] != tuple(None if l is None else member.dims[l] for l in read):
                return False
    return True


def build(ops: Sequence[Loops], *, match_unnamed: bool = False, continued: bool = False) -> Group | None:
    """The group of `ops` (in program order), or None when it has no kind. One op alone always has one.

    `continued`: a contraction may go on from what its output holds, as in a block of a chain.
    """
    found = shared_dims(ops, match_unnamed=match_unnamed)
    if found is None:
        return None
    dims, extents = found
    members = tuple(GroupOp(loops, d) for loops, d in zip(ops, dims))
    produced = {o.output: o for o in members}
    space = elementwise_space(members, len(extents))
    if space is not None:
        return Group(members, extents, "elementwise", space, produced=produced)
    if (contraction := contraction_roles(members, continued=continued)) is not None:
        return Group(members, extents, "contraction", contraction[0], contraction=contraction[1], produced=produced)
    if (rows := rows_roles(members, extents)) is not None:
        return Group(members, extents, "rows", rows[0], rows=rows[1], produced=produced)
    if len(members) == 1:
        return Group(members, extents, "loops", members[0].dims, produced=produced)
    return None


def group_of_kernel(kernel: func.FuncOp) -> Group | None:
    """The group of a kernel in tensor form (level 2) or memref form (level 3); None for a template.

    In memref form each buffer is written by one generic, so the buffer stands for the value.
    """
    fills: dict[SSAValue, SSAValue] = {}
    ops: list[Loops] = []
    schedule = kernel.attributes.get(KERNEL_ATTRIBUTE)
    for op in kernel.body.block.ops:
        if op.regions and not isinstance(op, linalg.GenericOp | linalg.FillOp):
            return None
        if isinstance(op, linalg.FillOp) and not op.results:
            fills[op.outputs[0]] = op.inputs[0]
        elif is_generic(op):
            ops.append(loops_of(op, fills))
    if any(STAGE in loops.op.attributes for loops in ops):
        return marked_chain(ops)
    return build(ops, match_unnamed=True, continued=isinstance(schedule, ContractionAttr)) if ops else None


def marked_chain(ops: Sequence[Loops]) -> Group | None:
    """The chain of ops that carry the numbers of their stages."""
    stages: dict[int, list[Loops]] = {}
    for loops in ops:
        mark = loops.op.attributes.get(STAGE)
        if not isinstance(mark, IntegerAttr):
            return None
        stages.setdefault(mark.value.data, []).append(loops)
    return chain_group([stages[number] for number in sorted(stages)])
