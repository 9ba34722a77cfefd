"""LLVM IR text to object code or assembly for a `#target.cpu`: parse, verify, code generation at level 1, no mid-level passes.

Mid-level passes gave no speed on explicit vector code and cost more than code generation (docs: findings on compile time).
LLVM holds one lock around every call here; parallel compilation runs in worker processes.
"""

from __future__ import annotations

import tempfile
from functools import cache
from typing import Any

import llvmlite.binding as llvm

from gradir.dialects.target import CpuTargetAttr
from gradir.errors import GradirError

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
def target_machine(target: CpuTargetAttr) -> Any:
    """The (cached) LLVM target machine of a target: position-independent code, small code model."""
    _initialize(bool(target.triple))
    triple = target.triple or llvm.get_process_triple()
    return llvm.Target.from_triple(triple).create_target_machine(
        cpu=target.cpu, features=target.features, opt=CODEGEN_LEVEL, reloc="pic", codemodel="default"
    )


def _parsed(text: str, target: CpuTargetAttr) -> Any:
    """The verified LLVM module; a rejection is our bug and leaves the text in a file."""
    machine = target_machine(target)
    try:
        module = llvm.parse_assembly(text)
        module.triple = target.triple or llvm.get_process_triple()
        module.data_layout = str(machine.target_data)
        module.verify()
    except RuntimeError as error:
        raise rejected(text, str(error)) from error
    return module


def rejected(text: str, message: str, suffix: str = ".ll") -> GradirError:
    """The error for text that LLVM does not take; writes a reproducer."""
    with tempfile.NamedTemporaryFile("w", prefix="gradir-", suffix=suffix, delete=False) as file:
        file.write(text)
    first = next((line for line in message.splitlines() if line.strip()), message)
    return GradirError(
        f"LLVM rejected the emitted code: {first}",
        part="operator",
        code="OP043",
        expected="text that LLVM's parser and verifier accept",
        found=message.strip()[:400],
        hint=f"this is a bug of the emitter; the text is in {file.name}",
    )


def compile_object(text: str, target: CpuTargetAttr) -> bytes:
    """The relocatable object (ELF, Mach-O or COFF) of LLVM IR text. Raises `GradirError` OP043 when LLVM rejects the text."""
    module = _parsed(text, target)
    return bytes(target_machine(target).emit_object(module))


def compile_assembly(text: str, target: CpuTargetAttr) -> str:
    """The assembly of LLVM IR text, as `gradir-translate --to=asm` prints it."""
    module = _parsed(text, target)
    return str(target_machine(target).emit_assembly(module))
