"""Which operand of a kernel may lie in the memory of which result.

Legal when every element of the operand is read at the index at which the result is written, by elementwise ops, no later than the write.
The kernel's group says how its loops will run: the write must be in the last sweep over the rows, since a value of an earlier sweep may be
computed again later. The order of the ops matters too: on buffers the ops of a kernel run one after the other.
"""

from __future__ import annotations

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue

from gradir.dialects.upstream import func
from gradir.lowering.groups import Group, GroupOp, group_of_kernel
from gradir.lowering.groups.loops import pure_dims


def in_place_pairs(kernel: func.FuncOp, results: int) -> frozenset[tuple[int, int]]:
    """(operand, result) pairs of `kernel`, which has that many destinations as its last operands."""
    block = kernel.body.block
    group = group_of_kernel(kernel)
    last = block.last_op
    if group is None or last is None or group.kind in ("loops", "chain"):
        return frozenset()
    order = {op: position for position, op in enumerate(block.ops)}
    inputs = [(i, a) for i, a in enumerate(block.args[: len(block.args) - results]) if isinstance(a.type, TensorType)]
    found: set[tuple[int, int]] = set()
    for k, value in enumerate(last.operands):
        writer = group.produced.get(value)
        if writer is None or writer.reduced or not _is_final(group, writer, order):
            continue
        found.update((i, k) for i, a in inputs if a.type == value.type and _reads_match(group, a, writer, order))
    return frozenset(found)


def _is_final(group: Group, writer: GroupOp, order: dict[Operation, int]) -> bool:
    """Does nothing run (again) after `writer` has gone over its space once?"""
    if group.contraction is not None:
        return True  # elementwise over the output of the contraction: the epilogue
    if group.rows is None:
        return True
    sections = group.rows.sections
    section = sections[group.ops.index(writer)]
    if section.form == "full":
        return section.sweep == group.rows.sweeps - 1 and not any(s.after_rows for s in sections)
    return section.after_rows and all(order[o.op] <= order[writer.op] for o in group.ops)


def _reads_match(group: Group, operand: SSAValue, writer: GroupOp, order: dict[Operation, int]) -> bool:
    """Is every read of `operand` elementwise at the writer's index, in its section, and not after it?"""
    for o in group.ops:
        if operand in o.loops.captured:
            return False
        for value, indexing in o.inputs:
            if value is not operand:
                continue
            loops = pure_dims(indexing)
            if o.reduced or o.loops.reads_output or loops is None or order[o.op] > order[writer.op]:
                return False
            if tuple(o.dims[l] for l in loops) != writer.output_dims or o.output_dims != writer.output_dims:
                return False
            if group.rows is not None:
                sections = group.rows.sections
                if sections[group.ops.index(o)].form != sections[group.ops.index(writer)].form:
                    return False
    return True
