"""Names of generated values, for readers: the derivative of `%h` is `%dh`, its stack `%hs`, a copy of it is `%h` again.

A value that has a name keeps it. Constants stay without: many values share one.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import SSAValue
from xdsl.ir.core import OpResult

from gradir.dialects import nd


def name_after(derivative: SSAValue, value: SSAValue) -> None:
    """Call the derivative of `%x` `%dx`."""
    if value.name_hint is not None:
        _name(derivative, f"d{value.name_hint}")


def name_stack(stack: SSAValue, value: SSAValue) -> None:
    """Call the stack of `%x` `%xs`."""
    if value.name_hint is not None:
        _name(stack, f"{value.name_hint}s")


def name_copies(copies: Mapping[SSAValue, SSAValue]) -> None:
    """Call what stands for a value in the backward part as the value is called."""
    for value, copy in copies.items():
        if value.name_hint is not None:
            _name(copy, value.name_hint)


def _name(value: SSAValue, name: str) -> None:
    constant = isinstance(value, OpResult) and isinstance(value.op, nd.ConstantOp)
    if value.name_hint is None and not constant:
        value.name_hint = name
