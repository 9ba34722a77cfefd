"""LLVM IR text to object code, with llvmlite alone: what the compiler's own process and its workers share.

No mid-level passes: they gave no speed on explicit vector code and cost more than code generation
(docs/decisions/0011-code-generation-only.md).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import llvmlite.binding as llvm

CODEGEN_LEVEL = 1


@cache
def _initialize(foreign: bool) -> None:
    if foreign:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
    else:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()


@cache
def machine_of(triple: str, cpu: str, features: str) -> Any:
    """The (cached) LLVM target machine: position-independent code, small code model. An empty triple means this process's."""
    _initialize(bool(triple))
    target = llvm.Target.from_triple(triple or llvm.get_process_triple())
    return target.create_target_machine(cpu=cpu, features=features, opt=CODEGEN_LEVEL, reloc="pic", codemodel="default")


def parsed(text: str, triple: str, cpu: str, features: str) -> Any:
    """The verified LLVM module of a text, laid out for the machine. Raises RuntimeError with LLVM's words when it is rejected."""
    module = llvm.parse_assembly(text)
    module.triple = triple or llvm.get_process_triple()
    module.data_layout = str(machine_of(triple, cpu, features).target_data)
    module.verify()
    return module


def object_of(text: str, triple: str, cpu: str, features: str) -> bytes:
    """The relocatable object (ELF, Mach-O or COFF) of LLVM IR text. Raises RuntimeError when LLVM rejects the text."""
    return bytes(machine_of(triple, cpu, features).emit_object(parsed(text, triple, cpu, features)))
