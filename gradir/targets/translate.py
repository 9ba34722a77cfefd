"""What `gradir-translate` prints: a level-4 module as LLVM IR, assembly, object code or PTX."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from gradir.dialects.target import CpuTargetAttr, TargetAttr, host_target, target_of
from gradir.targets.cpu import compile_assembly, compile_object
from gradir.targets.llvm.module import emit_module
from gradir.targets.nvptx import to_ptx as to_ptx


def cpu_target(module: ModuleOp) -> CpuTargetAttr:
    """The CPU that host code is compiled for: the module's target, or this machine beside a GPU."""
    target: TargetAttr = target_of(module)
    return target if isinstance(target, CpuTargetAttr) else host_target()


def to_llvm_ir(module: ModuleOp) -> str:
    """LLVM IR text of a level-4 module."""
    return emit_module(module)


def to_assembly(module: ModuleOp) -> str:
    """Assembly of a level-4 module for its target."""
    return compile_assembly(emit_module(module), cpu_target(module))


def to_object(module: ModuleOp) -> bytes:
    """Relocatable object of a level-4 module for its target."""
    return compile_object(emit_module(module), cpu_target(module))
