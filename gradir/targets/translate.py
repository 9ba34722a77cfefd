"""What `gradir-translate` prints: a level-4 module as LLVM IR, assembly, object code, PTX, a cubin or SASS.

Of a module for CUDA the first three are its host code.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from gradir.dialects.target import CpuTargetAttr, TargetAttr, host_target, target_of
from gradir.targets.cpu import compile_assembly, compile_object
from gradir.targets.llvm.device_host import translate_host
from gradir.targets.llvm.module import emit_module
from gradir.targets.nvptx import assemble, cuda_target, disassemble, to_ptx as to_ptx


def cpu_target(module: ModuleOp) -> CpuTargetAttr:
    """The CPU that host code is compiled for: the module's target, or this machine beside a GPU."""
    target: TargetAttr = target_of(module)
    return target if isinstance(target, CpuTargetAttr) else host_target()


def to_llvm_ir(module: ModuleOp) -> str:
    """LLVM IR text of a level-4 module."""
    return emit_module(module) if isinstance(target_of(module), CpuTargetAttr) else translate_host(module, host_target()).text


def to_assembly(module: ModuleOp) -> str:
    """Assembly of a level-4 module for its target."""
    return compile_assembly(to_llvm_ir(module), cpu_target(module))


def to_object(module: ModuleOp) -> bytes:
    """Relocatable object of a level-4 module for its target."""
    return compile_object(to_llvm_ir(module), cpu_target(module))


def to_cubin(module: ModuleOp) -> bytes:
    """Machine code of the kernels of a level-4 module for CUDA. GradirError OP044 without `ptxas`."""
    return assemble(to_ptx(module), cuda_target(module).arch)[0]


def to_sass(module: ModuleOp) -> str:
    """That machine code as text. GradirError OP044 without `cuobjdump` or `nvdisasm`."""
    return disassemble(to_cubin(module))
