"""What schedules need to know of a CPU, read from the module's `#target.cpu`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from gradir.dialects.target import TARGET_ATTRIBUTE, CpuTargetAttr


@dataclass(frozen=True)
class Machine:
    """Lanes of f32 in a vector register, number of vector registers, threads, cache sizes in bytes (0: unknown)."""

    lanes: int = 8
    registers: int = 16
    threads: int = 1
    l1: int = 32 << 10
    l2: int = 512 << 10

    def lanes_of(self, element_bytes: int) -> int:
        """Lanes of elements of that size in one register."""
        return max(1, self.lanes * 4 // element_bytes)


def machine_of(module: ModuleOp) -> Machine:
    """The machine of the module's target; AVX2-like when it has none, or one that is no CPU."""
    target = module.attributes.get(TARGET_ATTRIBUTE)
    if not isinstance(target, CpuTargetAttr):
        return Machine()
    return Machine(target.vector, target.registers, target.threads, target.l1, target.l2)
