"""`#target` attributes: which machine a module is compiled for, as text in the IR.

`gradir.target` on the module holds one of them; `set-target` writes it, `target_of` reads it. Leaves code generation to `gradir.targets`.
"""

from xdsl.ir import Dialect

from gradir.dialects.target.cpu import CpuTargetAttr
from gradir.dialects.target.cuda import CudaTargetAttr
from gradir.dialects.target.host import host_target
from gradir.dialects.target.resolve import TARGET_ATTRIBUTE, TargetAttr, cuda_place, is_cuda, parse_target, target_of

Target = Dialect("target", [], [CpuTargetAttr, CudaTargetAttr])

__all__ = [
    "TARGET_ATTRIBUTE",
    "CpuTargetAttr",
    "CudaTargetAttr",
    "Target",
    "TargetAttr",
    "cuda_place",
    "host_target",
    "is_cuda",
    "parse_target",
    "target_of",
]
