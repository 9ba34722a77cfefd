"""The instructions, by family: each module has a table of first part of the opcode -> compiler of an instruction to a step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from gradir.errors import GradirError
from gradir.ptx.instructions import (
    arithmetic,
    async_copies,
    atomics,
    bulk,
    calls,
    clusters,
    control,
    conversions,
    integers,
    matrices,
    mbarriers,
    memory,
    mma,
    packed,
    tensor_copies,
    warp,
    wgmma,
    wmma,
)
from gradir.ptx.machine import Step
from gradir.ptx.syntax import Function, Instruction

Compiler: TypeAlias = Callable[[Instruction], Step | None]
"""From an instruction to what runs it; None: the table has no meaning for this form."""

FAMILIES: tuple[Mapping[str, Compiler], ...] = (
    packed.COMPILERS,
    integers.COMPILERS,
    arithmetic.COMPILERS,
    conversions.COMPILERS,
    clusters.COMPILERS,
    mbarriers.COMPILERS,
    bulk.COMPILERS,
    tensor_copies.COMPILERS,
    wgmma.COMPILERS,
    memory.COMPILERS,
    async_copies.COMPILERS,
    atomics.COMPILERS,
    warp.COMPILERS,
    matrices.COMPILERS,
    mma.COMPILERS,
    wmma.COMPILERS,
    calls.COMPILERS,
    control.COMPILERS,
)
"""Families in the order in which they are asked; the first that has a meaning for an instruction gives it."""


def compiled(function: Function) -> tuple[Step, ...]:
    """The steps of a function. `GradirError` OP061 for an instruction outside of the subset."""
    return tuple(_compiled(function, op) for op in function.body)


def _compiled(function: Function, op: Instruction) -> Step:
    compilers = (family[op.opcode[0]] for family in FAMILIES if op.opcode[0] in family)
    step = next((found for compiler in compilers if (found := compiler(op)) is not None), None)
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
