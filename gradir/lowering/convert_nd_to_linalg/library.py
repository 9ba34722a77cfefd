"""A call of a function by name becomes a call of a declared kernel in destination-passing style.

The declaration says everything that the runtime needs: `gradir.library` (the name), `gradir.config`, element types as level 1 has them,
which arguments are complex. Nothing below looks into it: it is bufferized like any kernel and ends as a callback.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, UnitAttr
from xdsl.ir import Attribute

from gradir.dialects import custom_calls, nd
from gradir.dialects.kernel import (
    COMPLEX_ATTRIBUTE,
    CONFIG_ATTRIBUTE,
    DESTINATIONS_ATTRIBUTE,
    EFFECTS_ATTRIBUTE,
    ELEMENTS_ATTRIBUTE,
    KERNEL_ATTRIBUTE,
    LIBRARY_ATTRIBUTE,
    LibraryAttr,
)
from gradir.dialects.nd.library import unknown_call
from gradir.dialects.target import CpuTargetAttr, target_of
from gradir.dialects.types import element_of, i64_array, i64_attr, ints, shape_of
from gradir.ir.passes import error_at
from gradir.lowering.convert_nd_to_linalg.function import Lowering
from gradir.lowering.convert_nd_to_linalg.rules import lowers
from gradir.lowering.convert_nd_to_linalg.views import View


@lowers(nd.CustomCallOp)
def lower_custom_call(lowering: Lowering, op: nd.CustomCallOp) -> tuple[View, ...]:
    """`results = call @name(operands, empty tensors)`"""
    _check_target(op)
    operands = [lowering.tensor(value) for value in op.inputs]
    destinations = [lowering.nests.empty(element_of(r), shape_of(r)) for r in op.results]
    results = lowering.templates.declared(lowering.builder, op.callee.data, operands, destinations, _description(op))
    return tuple(lowering.whole(value, element_of(r)) for value, r in zip(results, op.results))


def _description(op: nd.CustomCallOp) -> dict[str, Attribute]:
    """The attributes of the declaration."""
    found: dict[str, Attribute] = {KERNEL_ATTRIBUTE: LibraryAttr(), LIBRARY_ATTRIBUTE: op.callee}
    found[ELEMENTS_ATTRIBUTE] = ArrayAttr([element_of(v) for v in (*op.operands, *op.results)])
    found[DESTINATIONS_ATTRIBUTE] = i64_attr(len(op.results))
    if op.config is not None and op.config.data:
        found[CONFIG_ATTRIBUTE] = op.config
    if op.effects is not None:
        found[EFFECTS_ATTRIBUTE] = UnitAttr()
    joined = list(_positions(op, "complex_operands"))
    joined += [len(op.operands) + k for k in _positions(op, "complex_results")]
    if joined:
        found[COMPLEX_ATTRIBUTE] = i64_array(tuple(joined))
    return found


def _positions(op: nd.CustomCallOp, what: str) -> tuple[int, ...]:
    attribute = op.properties.get(what)
    return () if attribute is None else ints(attribute)


def _check_target(op: nd.CustomCallOp) -> None:
    """The name is known, and known on this machine."""
    row = custom_calls.find(op.callee.data)
    if row is None:
        raise unknown_call(op)
    kind = "cpu" if isinstance(target_of(op), CpuTargetAttr) else "cuda"
    if kind not in row.targets:
        raise error_at(
            op,
            f"@{row.name} has no kernel for the target {kind}",
            part="operator",
            code="OP052",
            expected=f"a target of {', '.join(sorted(row.targets)) or 'none'}",
            found=kind,
            hint=f'give it one: gradir.register_custom_call("{row.name}", ..., kernels={{"{kind}": function}})',
        )
