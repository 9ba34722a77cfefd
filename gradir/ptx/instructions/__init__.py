"""The instructions, by family: each module has a table of first part of the opcode -> compiler of an instruction to a step."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from gradir.errors import GradirError
from gradir.ptx.instructions import arithmetic, atomics, control, conversions, integers, memory, packed, warp
from gradir.ptx.machine import Step
from gradir.ptx.syntax import Function, Instruction

Compiler: TypeAlias = Callable[[Instruction], Step | None]
"""From an instruction to what runs it; None: the table has no meaning for this form."""

COMPILERS: dict[str, Compiler] = {
    **arithmetic.COMPILERS,
    **integers.COMPILERS,
    **packed.COMPILERS,
    **conversions.COMPILERS,
    **memory.COMPILERS,
    **atomics.COMPILERS,
    **warp.COMPILERS,
    **control.COMPILERS,
}


def compiled(function: Function) -> tuple[Step, ...]:
    """The steps of a function. `GradirError` OP061 for an instruction outside of the subset."""
    return tuple(_compiled(function, op) for op in function.body)


def _compiled(function: Function, op: Instruction) -> Step:
    compiler = COMPILERS.get(op.opcode[0])
    step = compiler(op) if compiler is not None else None
    if step is None:
        raise GradirError(
            f"the emulator does not know {op.name}",
            part="operator",
            code="OP061",
            op=op.name,
            function=f"@{function.name}",
            location=str(op.source),
            expected="an instruction of the subset in docs/ptx.md",
            found=op.name,
        )
    return step
