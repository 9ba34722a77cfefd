"""Requests for derivatives, `ad.value_and_grad` and `ad.jvp`, appended to what is being traced, and the arguments that they are about."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute

from gradir.dialects import ad
from gradir.frontends.python import promotion
from gradir.frontends.python.arrays import Array
from gradir.frontends.python.creation import zeros_like
from gradir.frontends.python.functions import Traced, trace_function
from gradir.frontends.python.operands import as_array
from gradir.frontends.python.pytrees import Structure, flatten, paths
from gradir.frontends.python.requests import needs_derivative, needs_floats, positions
from gradir.frontends.python.trace import current, python_location, ssa, user_error


def request(traced: Traced, leaves: list[Array], wrt: list[int], attributes: Mapping[str, Attribute] = MappingProxyType({})) -> list[Array]:
    """Append `ad.value_and_grad @f(...)` with these attributes; its results as arrays."""
    function, builder = current()
    builder.loc = python_location()
    outputs = [x.type for x in traced.outputs]
    op = ad.ValueAndGradOp.make(traced.name, [ssa(x) for x in (*leaves, *traced.captured)], wrt, outputs)
    op.location = builder.loc
    op.attributes.update(attributes)
    builder.block.add_op(op)
    return [Array(v.type, v, function) for v in op.results if isinstance(v.type, TensorType)]


def differentiated_arguments(
    function: Callable[..., Any], argnums: int | tuple[int, ...], args: tuple[Any, ...]
) -> tuple[list[Array], Structure, list[int], Structure]:
    """Flat arguments, their structure, positions of the differentiated leaves, structure of the gradients."""
    flat, structure = flatten(args)
    leaves = [as_array(x) for x in flat]
    starts = [0]
    for child in structure.children:
        starts.append(starts[-1] + child.leaves)
    wrt: list[int] = []
    numbers = positions("grad", argnums, len(args))
    for n in numbers:
        for k, path in zip(range(starts[n], starts[n + 1]), paths(structure.children[n])):
            needs_derivative(function, f"{n}{path}", leaves[k].dtype, "ad.value_and_grad")
            wrt.append(k)
    needs_floats("grad", f"arguments {', '.join(map(str, numbers))}", [leaves[k] for k in wrt])
    children = tuple(structure.children[n] for n in numbers)
    single = not isinstance(argnums, tuple | list)
    return leaves, structure, wrt, children[0] if single else Structure(tuple, (), children)


def jvp_request(
    function: Callable[..., Any], leaves: list[Array], directions: list[Array], structure: Structure
) -> tuple[list[Array], Structure]:
    """Append `ad.jvp @f(...)`: its results and their tangents, flat, and the structure of the results."""
    wrt = [k for k, x in enumerate(leaves) if promotion.is_inexact(x.dtype)]
    needs_floats("jvp", "primals", leaves)
    tangents = [directions[k] for k in wrt]
    for k, tangent in zip(wrt, tangents):
        _same_kind("jvp: tangent", "primal", _kind(leaves[k]), _kind(tangent), k)
    trace = current()[0]
    traced = trace_function(trace.module, function, leaves, structure, parent=trace, recording=trace.recording)
    outer, builder = current()
    builder.loc = python_location()
    outputs = [x.type for x in traced.outputs]
    op = ad.JvpOp.make(traced.name, [ssa(x) for x in (*leaves, *traced.captured, *tangents)], wrt, outputs)
    op.location = builder.loc
    builder.block.add_op(op)
    results = [Array(v.type, v, outer) for v in op.results if isinstance(v.type, TensorType)]
    values, slopes = results[: len(outputs)], iter(results[len(outputs) :])
    return [*values, *(next(slopes) if promotion.is_inexact(x.dtype) else zeros_like(x) for x in values)], traced.structure


def _kind(x: Any) -> tuple[Any, np.dtype[Any]]:
    """Shape and element type."""
    x = x if hasattr(x, "shape") and hasattr(x, "dtype") else np.asarray(x)
    return tuple(x.shape), np.dtype(x.dtype)


def _same_kind(what: str, of: str, expected: tuple[Any, Any], found: tuple[Any, Any], position: int) -> None:
    if expected != found:
        raise user_error(
            f"{what} {position} is not of the {of}'s shape and type",
            code="GR107",
            op=f"ad.{what[:3]}",
            expected=f"{expected[1]} of shape {expected[0]}",
            found=f"{found[1]} of shape {found[0]}",
        )
