"""The pass `schedule-kernels`: fills the schedule attribute of every kernel from the module's target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation

from gradir.dialects.kernel import KERNEL_ATTRIBUTE, REASON_ATTRIBUTE, Schedule
from gradir.dialects.upstream import func
from gradir.ir.passes import Pass, PassContext
from gradir.lowering.groups import group_of_kernel
from gradir.lowering.schedules import HEURISTICS, machine_of
from gradir.lowering.schedules.reasons import REASONS


@dataclass(frozen=True)
class ScheduleKernels(Pass):
    """Before: kernels carry their kind, `#kernel.contraction<>`. After: the fields are filled by the heuristic of the kind, for the
    target of the module, and `gradir.reason` says why; a schedule that already has fields (by hand or by the tuner) stays as it is.

    ```mlir
    func.func private @k(...) attributes {gradir.kernel = #kernel.contraction<>}
    // becomes
    func.func private @k(...) attributes {gradir.kernel = #kernel.contraction<tile = [6, 16], pack = [1]>,
                                                  gradir.reason = "6 x 16 accumulators in 12 of 16 registers; ..."}
    ```
    """

    NAME: ClassVar[str] = "schedule-kernels"

    def apply(self, op: Operation, context: PassContext) -> None:
        assert isinstance(op, ModuleOp)
        machine = machine_of(op)
        for function in op.body.block.ops:
            schedule = function.attributes.get(KERNEL_ATTRIBUTE)
            if not isinstance(function, func.FuncOp) or not isinstance(schedule, Schedule) or function.is_declaration:
                continue
            heuristic = HEURISTICS.get(schedule.kind)
            if heuristic is None or any(schedule.field(name) for name in schedule.FIELDS):
                continue
            group = group_of_kernel(function)
            if group is not None and group.kind == schedule.kind:
                chosen = function.attributes[KERNEL_ATTRIBUTE] = heuristic(group, machine)
                if REASON_ATTRIBUTE not in function.attributes:  # the tuner may have confirmed the choice
                    function.attributes[REASON_ATTRIBUTE] = StringAttr(REASONS[chosen.kind](group, machine, chosen))
