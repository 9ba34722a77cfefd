"""Schedules of elementwise kernels: vectors of a few registers, blocks for threads when the space is large."""

from __future__ import annotations

from math import prod

from gradir.dialects.kernel import ElementwiseAttr
from gradir.lowering.groups import Group
from gradir.lowering.schedules.machine import Machine, bytes_of, extent_or
from gradir.lowering.schedules.streaming import has_polynomials, results_of, streamed_results

REGISTERS = 2
"""Registers per vector value: enough to hide latencies, few enough for bodies with many live values."""
MOST_OPS = 24
"""Beyond so many ops (half of it with polynomials) one register a value: more are live than there are."""
MOST_OPS_OF_LONG_STEPS = 6
"""With one polynomial among few ops, twice the registers: its chain of multiply-adds is long (5 % to 10 % on tanh, erf, gelu)."""
PARALLEL_BYTES = 2 << 20
"""Memory traffic from which on a second thread pays: 40 us of one thread."""
OP, POLYNOMIAL, LOOP = 1 / 4, 3, 8
"""Passes over memory in the time of one op on a value in a register, of one polynomial, of a loop in the body."""
TURNED = 2
"""Plain passes in the time of one over tensors that lie side by side along different dimensions."""
UNKNOWN = 1024


def schedule_elementwise(group: Group, machine: Machine) -> ElementwiseAttr:
    """tile = [elements of a step]; block = [elements of a task] and parallel = [the outermost dimension] when there is much to move."""
    widest = max(bytes_of(o.output) for o in group.ops)
    lanes = machine.lanes_of(widest)
    polynomials = sum(has_polynomials(o.op) for o in group.ops)
    registers = REGISTERS if len(group.ops) <= (MOST_OPS if not polynomials else MOST_OPS // 2) else 1
    if len(group.ops) <= MOST_OPS_OF_LONG_STEPS and polynomials == 1:
        registers = 2 * REGISTERS
    extents = [extent_or(group.extents[d], UNKNOWN) for d in group.space]
    traffic = prod(extents) * widest * (_passes(group) + POLYNOMIAL * polynomials) * (TURNED if _is_turned(group) else 1)
    fields = {"tile": [lanes * registers], "stream": streamed_results(group, machine)}
    if machine.threads > 1 and traffic >= PARALLEL_BYTES and group.space:
        fields["parallel"] = [group.space[0]]
    return ElementwiseAttr.of(**fields)


def _passes(group: Group) -> float:
    """The time that one element takes without polynomials, in passes over memory: operands and results of the kernel, arithmetic."""
    inside = {o.output for o in group.ops}
    outside = {value for o in group.ops for value, _ in o.inputs if value not in inside}
    bodies = [op for o in group.ops for op in o.op.body.block.ops]
    loops = sum(bool(op.regions) for op in bodies)
    return len(outside) + len(results_of(group)) + OP * (len(bodies) - len(group.ops)) + LOOP * loops


def _is_turned(group: Group) -> bool:
    """Does an operand lie side by side along another dimension than the results?"""
    last = group.space[-1] if group.space else None
    for op in group.ops:
        for _, map_ in op.inputs:
            used = {op.dims[loop] for loop in map_.results[-1].used_dims()} if map_.results else set[int]()
            if used and last not in used and any(last in {op.dims[loop] for loop in e.used_dims()} for e in map_.results):
                return True
    return False
