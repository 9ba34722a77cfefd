"""What the verifier checks of `gradir.target`, wherever a module or function carries it."""

from __future__ import annotations

from xdsl.ir import Operation

from gradir.dialects.target.cpu import CpuTargetAttr
from gradir.dialects.target.cuda import CudaTargetAttr
from gradir.dialects.target.resolve import TARGET_ATTRIBUTE
from gradir.ir.verifier import Report, register_invariant


@register_invariant(TARGET_ATTRIBUTE)
def check_target(op: Operation, report: Report) -> None:
    """It names a machine: something else would be passed over in silence, and the code be made for this one."""
    found = op.attributes[TARGET_ATTRIBUTE]
    if not isinstance(found, CpuTargetAttr | CudaTargetAttr):
        report(op, f"must have #target.cpu<...> or #target.cuda<...> as {TARGET_ATTRIBUTE}, found {found}")
