"""Which results of a kernel go past the caches: those that are too large to be found there by whoever reads them next.

A plain store reads the line that it overwrites, so a copy moves three bytes for two; a non-temporal store does not, and leaves what the
caches hold. It costs where the result would have stayed in the last cache (docs/kernels/elementwise.md has the measurements).
"""

from __future__ import annotations

from math import prod

from xdsl.dialects.builtin import MemRefType, TensorType
from xdsl.ir import Attribute, BlockArgument, SSAValue

from gradir.dialects.upstream import func, linalg
from gradir.lowering.groups import Group
from gradir.lowering.groups.loops import extents_of
from gradir.lowering.schedules.machine import Machine, element_bytes

LEAST_TRAFFIC = 3 / 4
"""Part of the last cache that a kernel's operands must fill together."""
MATH_INSTRUCTIONS = frozenset(f"math.{name}" for name in ("sqrt", "fma", "absf", "absi", "floor", "ceil", "roundeven", "trunc", "copysign"))
"""Ops of `math` that are one instruction or two; the others become polynomials."""
LEAST_RESULT = 1 / 4
"""Part of the last cache that the result alone must fill."""


def streamed_results(group: Group, machine: Machine) -> list[int]:
    """Positions of the results to write with non-temporal stores; none where sizes or the last cache are unknown."""
    if not machine.l3 or (group.kind == "elementwise" and any(takes_longer_than_memory(o.op) for o in group.ops)):
        return []
    inside = {o.output for o in group.ops}
    results = results_of(group)
    outside = {v for o in group.ops for v, _ in o.inputs if v not in inside}
    traffic = sum(map(bytes_in_all, outside)) + sum(map(bytes_in_all, results.values()))
    if traffic < machine.l3 * LEAST_TRAFFIC:
        return []
    return sorted(position for position, value in results.items() if bytes_in_all(value) >= machine.l3 * LEAST_RESULT)


def takes_longer_than_memory(op: linalg.GenericOp) -> bool:
    """Is the body more than a few instructions: a polynomial, a loop? Then stores wait for nothing, and past the caches they are slower."""
    return has_polynomials(op) or any(o.regions for o in op.body.block.ops)


def has_polynomials(op: linalg.GenericOp) -> bool:
    """Does the body call functions that become polynomials of many instructions?"""
    return any(o.name.startswith("math.") and o.name not in MATH_INSTRUCTIONS for o in op.body.block.ops)


def results_of(group: Group) -> dict[int, SSAValue]:
    """What the kernel returns, by position; in memref form, the arguments that it writes."""
    outputs = [o.output for o in group.ops]
    arguments = sorted((v for v in outputs if isinstance(v, BlockArgument)), key=lambda v: v.index)
    if arguments:
        return dict(enumerate(arguments))
    return {use.index: v for v in outputs for use in v.uses if isinstance(use.operation, func.ReturnOp)}


def bytes_in_all(value: SSAValue) -> int:
    """Bytes of a tensor or memref of known size; 0 for a scalar or an unknown size."""
    kind: Attribute = value.type
    extents = extents_of(kind)
    if not isinstance(kind, TensorType | MemRefType) or any(not isinstance(n, int) for n in extents):
        return 0
    return prod(n for n in extents if isinstance(n, int)) * element_bytes(kind.element_type)
