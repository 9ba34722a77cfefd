"""Heuristics per kind of kernel: which tile, packing and parallel loops fit a group of ops and a machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gradir.dialects.kernel import Schedule
from gradir.dialects.target import CudaTargetAttr
from gradir.lowering.groups import Group
from gradir.lowering.schedules.chain import schedule_chain
from gradir.lowering.schedules.contraction import schedule_contraction
from gradir.lowering.schedules.elementwise import schedule_elementwise
from gradir.lowering.schedules.gpu_attention import schedule_gpu_chain
from gradir.lowering.schedules.gpu_contraction import schedule_gpu_contraction
from gradir.lowering.schedules.gpu_elementwise import schedule_gpu_elementwise
from gradir.lowering.schedules.gpu_rows import schedule_gpu_rows
from gradir.lowering.schedules.loops import schedule_loops
from gradir.lowering.schedules.machine import Machine, machine_of
from gradir.lowering.schedules.rows import schedule_rows

HEURISTICS: Mapping[str, Callable[[Group, Machine], Schedule]] = {
    "contraction": schedule_contraction,
    "elementwise": schedule_elementwise,
    "rows": schedule_rows,
    "loops": schedule_loops,
    "chain": schedule_chain,
}

GPU_HEURISTICS: Mapping[str, Callable[[Group, CudaTargetAttr], Schedule]] = {
    "contraction": schedule_gpu_contraction,
    "elementwise": schedule_gpu_elementwise,
    "rows": schedule_gpu_rows,
    "chain": schedule_gpu_chain,
}
"""Kinds that have schedules of their own on a GPU."""

__all__ = ["GPU_HEURISTICS", "HEURISTICS", "Machine", "machine_of"]
