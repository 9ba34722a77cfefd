"""The pass `schedule-kernels`: fills the schedule attribute of every kernel from the module's target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation

from gradir.dialects.kernel import KERNEL_ATTRIBUTE, REASON_ATTRIBUTE, Schedule
from gradir.dialects.target import TARGET_ATTRIBUTE, CudaTargetAttr
from gradir.dialects.upstream import func
from gradir.ir.passes import Pass, PassContext
from gradir.lowering.groups import group_of_kernel
from gradir.lowering.schedules import GPU_HEURISTICS, HEURISTICS, machine_of
from gradir.lowering.schedules.reasons import GPU_REASONS, REASONS


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
        target = op.attributes.get(TARGET_ATTRIBUTE)
        for function in op.body.block.ops:
            schedule = function.attributes.get(KERNEL_ATTRIBUTE)
            if not isinstance(function, func.FuncOp) or not isinstance(schedule, Schedule) or function.is_declaration:
                continue
            heuristic = HEURISTICS.get(schedule.kind)
            if heuristic is None or any(schedule.field(name) for name in schedule.FIELDS):
                continue
            group = group_of_kernel(function)
            if group is None or group.kind != schedule.kind:
                continue
            if isinstance(target, CudaTargetAttr) and schedule.kind in GPU_HEURISTICS:
                chosen = function.attributes[KERNEL_ATTRIBUTE] = GPU_HEURISTICS[schedule.kind](group, target)
                reason = GPU_REASONS[chosen.kind](group, target, chosen)
            else:
                chosen = function.attributes[KERNEL_ATTRIBUTE] = heuristic(group, machine)
                reason = REASONS[chosen.kind](group, machine, chosen)
            function.attributes.setdefault(REASON_ATTRIBUTE, StringAttr(reason))  # the tuner may have confirmed the choice
