"""Named sizes, `tensor<?xf32, ["b"]>`: the arguments of a function give the names in their types values, for that function alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation

from gradir.dialects.types import shape_of
from gradir.dialects.upstream.func import FuncOp
from gradir.errors import GradirError
from gradir.ir.passes import error_at
from gradir.reference.machine import Value
from gradir.reference.values import Partial


def named_sizes(op: Operation, function: FuncOp, arguments: Sequence[Value]) -> dict[str, int]:
    """The sizes that `arguments` give the names in the types of the function's arguments; `op` is at fault when two differ."""
    sizes: dict[str, int] = {}
    for parameter, argument in zip(function.body.block.args, arguments, strict=True):
        if not isinstance(parameter.type, TensorType):
            continue
        for name, size in zip(shape_of(parameter.type), np.shape(argument.array if isinstance(argument, Partial) else argument)):
            if isinstance(name, str) and sizes.setdefault(name, size) != size:
                raise two_sizes(op, name, sizes[name], size)
    return sizes


def two_sizes(op: Operation, name: str, one: int, other: int) -> GradirError:
    """The error for a name whose second value differs from its first."""
    return error_at(op, f"the size '{name}' has two values", part="operator", code="OP111", expected=str(one), found=str(other))
