"""Named sizes, `tensor<?xf32, ["b"]>`: the arguments of a function give the names in their types values, for that function alone.

Every result is checked against the names in its type: a program whose types lie has no meaning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation

from gradir import size_algebra
from gradir.dialects.types import shape_of
from gradir.dialects.upstream.func import FuncOp
from gradir.errors import GradirError
from gradir.ir.passes import error_at
from gradir.reference.machine import Value
from gradir.reference.values import Partial


def named_sizes(op: Operation, function: FuncOp, arguments: Sequence[Value]) -> dict[str, int]:
    """The sizes that `arguments` give the names in the types of the function's arguments; `op` is at fault when two differ."""
    found: list[tuple[str, int]] = []
    for parameter, argument in zip(function.body.block.args, arguments, strict=True):
        if isinstance(parameter.type, TensorType):
            shape = np.shape(argument.array if isinstance(argument, Partial) else argument)
            found += [(name, size) for name, size in zip(shape_of(parameter.type), shape) if isinstance(name, str)]
    sizes: dict[str, int] = {}
    for name, k, rest, factor in size_algebra.solve([size for size, _ in found]):
        sizes[name] = (found[k][1] - size_algebra.evaluate(rest, sizes)) // factor
    for size, value in found:
        check_size(op, size, value, sizes)
    return sizes


def check_size(op: Operation, size: int | str | None, found: int, sizes: Mapping[str, int]) -> None:
    """What the type calls `size` is that number, as far as the names in it are known."""
    if not isinstance(size, str) or any(name not in sizes for name in size_algebra.names_in(size)):
        return
    if (expected := size_algebra.evaluate(size, sizes)) != found:
        raise two_sizes(op, size, expected, found)


def check_result(op: Operation, kind: Attribute, shape: Sequence[int], sizes: Mapping[str, int]) -> None:
    """The shape of a result is what its type says."""
    if not isinstance(kind, TensorType):
        return
    for size, found in zip(shape_of(kind), shape, strict=True):
        if isinstance(size, int) and size != found:  # a slice beyond a run-time size
            message = "the result has another shape than its type says"
            raise error_at(op, message, part="operator", code="OP111", expected=str(kind), found=str(list(shape)))
        check_size(op, size, found, sizes)


def two_sizes(op: Operation, name: str, one: int, other: int) -> GradirError:
    """The error for a name whose second value differs from its first."""
    return error_at(op, f"the size '{name}' has two values", part="operator", code="OP111", expected=str(one), found=str(other))
