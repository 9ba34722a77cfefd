"""The workloads, written once over a small set of ops `B` that each system supplies (see `systems/`). f32 unless the name says otherwise.

`WORKLOADS` has the 27 of the comparison (`COMPARED`), the two digits steps, and `EXTRA`.
"""

from bench.workloads.kernels import CONVOLUTIONS, ELEMENTWISE, EXTRA, GEMM
from bench.workloads.loops import LOOPS
from bench.workloads.models import MLPS, RESNETS, TRANSFORMERS
from bench.workloads.spec import Workload, normal

OVERHEAD = Workload("overhead_add8", "overhead", "forward", lambda B, a, b: B.add(a, b), lambda: [normal(0, 8), normal(1, 8)])

WORKLOADS: dict[str, Workload] = {
    w.name: w for w in (OVERHEAD, *GEMM, *ELEMENTWISE, *MLPS, *CONVOLUTIONS, *RESNETS, *TRANSFORMERS, *LOOPS, *EXTRA)
}

COMPARED: tuple[str, ...] = tuple(name for name, w in WORKLOADS.items() if w.group != "extra" and not name.startswith("digits_"))
"""The 27 whose ratios the goals of the performance page count."""

__all__ = ["COMPARED", "EXTRA", "WORKLOADS", "Workload", "normal"]
