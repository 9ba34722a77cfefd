"""Write the description of the machine to compile for on the module, once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import Operation

from gradir.dialects.target import TARGET_ATTRIBUTE, CpuTargetAttr, CudaTargetAttr, TargetAttr, host_target, parse_target
from gradir.ir.passes import Pass, PassContext, error_at


@dataclass(frozen=True)
class SetTarget(Pass):
    """Before: any level. After: the module's attribute `gradir.target` names a machine.

    A target that is there already stays; an option that contradicts it is OP042.

    ```mlir
    module { }
    // becomes, by set-target{target=cpu cpu=znver4},
    module attributes {gradir.target = #target.cpu<"znver4", vector = 16, registers = 32>} { }
    ```
    """

    NAME: ClassVar[str] = "set-target"

    target: str = ""
    """`host`, `cpu` or `cuda`, or with the processor `cpu:znver4`, `cuda:sm_90`; empty: what the module has, else `host`."""

    cpu: str = ""
    """LLVM's name of the processor, or a CUDA architecture."""

    threads: int = 0
    """Threads to schedule for; 0: all that the machine has."""

    def apply(self, op: Operation, context: PassContext) -> None:
        present = op.attributes.get(TARGET_ATTRIBUTE)
        if not isinstance(present, CpuTargetAttr | CudaTargetAttr):
            op.attributes[TARGET_ATTRIBUTE] = parse_target(self.target or ("cpu" if self.cpu else "host"), self.cpu, self.threads)
            return
        conflict = self._conflict(present)
        if conflict:
            asked = " ".join(f"{k}={v}" for k, v in (("target", self.target), ("cpu", self.cpu), ("threads", self.threads)) if v)
            raise error_at(
                op,
                f"the module is already compiled for another {conflict}",
                part="operator",
                code="OP042",
                expected=f"options that agree with {present}",
                found=asked,
                hint="set the target once, or remove the attribute gradir.target from the module",
            )

    def _conflict(self, present: TargetAttr) -> str:
        """What the options contradict in `present`; empty when nothing."""
        kind, _, detail = self.target.partition(":")
        name = self.cpu or detail
        if isinstance(present, CudaTargetAttr):
            if kind not in ("", "cuda"):
                return "kind of machine"
            return "architecture" if name and name != present.arch else ""
        if kind and kind not in ("host", "cpu"):
            parse_target(self.target, self.cpu)  # an unknown word is that error, not this one
            return "kind of machine"
        if kind == "host" and host_target().cpu != present.cpu:
            return "machine"
        if name and name != present.cpu:
            return "processor"
        return "number of threads" if self.threads and self.threads != present.threads else ""
