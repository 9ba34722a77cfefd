"""LLVM IR text to object code or assembly for a `#target.cpu`: parse, verify, code generation at level 1, no mid-level passes.

LLVM holds one lock around every call here; parallel compilation runs in worker processes (`gradir.targets.workers`).
"""

from __future__ import annotations

import tempfile
from typing import Any

from gradir.dialects.target import CpuTargetAttr
from gradir.errors import GradirError
from gradir.targets import code_generation


def target_machine(target: CpuTargetAttr) -> Any:
    """The (cached) LLVM target machine of a target."""
    return code_generation.machine_of(target.triple, target.cpu, target.features)


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
    try:
        return code_generation.object_of(text, target.triple, target.cpu, target.features)
    except RuntimeError as error:
        raise rejected(text, str(error)) from error


def compile_assembly(text: str, target: CpuTargetAttr) -> str:
    """The assembly of LLVM IR text, as `gradir-translate --to=asm` prints it."""
    try:
        module = code_generation.parsed(text, target.triple, target.cpu, target.features)
    except RuntimeError as error:
        raise rejected(text, str(error)) from error
    return str(target_machine(target).emit_assembly(module))
