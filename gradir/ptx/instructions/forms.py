"""What the families share: reading typed operands, writing a result, picking the type and the modifiers out of an opcode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from gradir.ptx.machine import Machine, Step
from gradir.ptx.state import Gang
from gradir.ptx.syntax import Instruction
from gradir.ptx.types import WIDTHS

Array = np.ndarray[Any, np.dtype[Any]]
Pointwise: TypeAlias = Callable[..., Array]


def types_of(op: Instruction) -> list[str]:
    """The types among the parts of an opcode, in order."""
    return [part for part in op.opcode[1:] if part in WIDTHS]


def has(op: Instruction, *parts: str) -> bool:
    """Is one of the parts in the opcode?"""
    return any(part in op.opcode[1:] for part in parts)


def pointwise(op: Instruction, function: Pointwise, kinds: list[str]) -> Step:
    """`d = function(a, b, ...)`, operands read as `kinds`, where numpy's warnings mean nothing."""
    destination, *sources = op.operands

    def step(machine: Machine, gang: Gang, mask: Array) -> None:
        with np.errstate(all="ignore"):
            values = function(*(machine.read(gang, source, kind) for source, kind in zip(sources, kinds)))
        machine.write(gang, mask, destination, values)

    return step


def unary(op: Instruction, function: Callable[[Array], Array], kinds: list[str]) -> Step:
    """`pointwise` of one operand."""
    return pointwise(op, function, kinds)


def binary(op: Instruction, function: Callable[[Array, Array], Array], kinds: list[str]) -> Step:
    """`pointwise` of two operands."""
    return pointwise(op, function, kinds)


def ternary(op: Instruction, function: Callable[[Array, Array, Array], Array], kinds: list[str]) -> Step:
    """`pointwise` of three operands."""
    return pointwise(op, function, kinds)


def flushed(values: Array) -> Array:
    """`.ftz`: subnormal numbers are zeros of their sign."""
    tiny = np.finfo(values.dtype).tiny if values.dtype.kind == "f" else 0
    return np.where(np.abs(values) < tiny, np.copysign(np.zeros((), values.dtype), values), values)


def saturated(values: Array) -> Array:
    """`.sat`: from 0 to 1, NaN to 0."""
    return np.where(np.isnan(values), np.zeros((), values.dtype), np.clip(values, 0, 1)).astype(values.dtype)
