"""`vmap`: a function of one element as a function of many."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import TensorType

from gradir.dialects import ad
from gradir.dialects.types import element_of, shape_of, tensor
from gradir.frontends.python.arrays import Array
from gradir.frontends.python.eager import evaluated_in_trace
from gradir.frontends.python.functions import argument_names, trace_function
from gradir.frontends.python.jit import jit
from gradir.frontends.python.kept import kept
from gradir.frontends.python.operands import as_array
from gradir.frontends.python.pytrees import Structure, flatten, paths, unflatten
from gradir.frontends.python.rearrange import moveaxis
from gradir.frontends.python.requests import needs_arguments, needs_function
from gradir.frontends.python.sizes import whole
from gradir.frontends.python.trace import current, eager_mode, python_location, ssa, tracing, user_error

Axes = Any
"""An axis, None (the same for all), or a container of these."""


def vmap(function: Callable[..., Any], in_axes: Axes = 0, out_axes: Axes = 0) -> Callable[..., Any]:
    """`function` on every element along an axis of its arguments at once: whole ops with one more dimension, no loop.

    `in_axes`: the axis of each argument that is mapped over; None: the same for all. An int stands for all arguments, and inside of a
    tuple for all leaves of a container; a container like the argument gives each leaf its own. Arguments by name are mapped over axis 0.
    `out_axes`: where that axis goes in the results, likewise. Works inside and outside `gradir.jit`, under itself, and in any order with
    derivatives.
    """
    needs_function("vmap", function)

    @functools.wraps(function, updated=())
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        needs_arguments("vmap", function, args, kwargs)
        if not tracing():
            return called_outside(wrapped, args, kwargs)
        return _traced(function, in_axes, out_axes, args, kwargs)

    return wrapped


def called_outside(wrapped: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call, outside of any trace, of what needs one: evaluated under `eager`, else compiled, once per kind of arguments."""
    if eager_mode():
        return evaluated_in_trace(functools.partial(_spread, wrapped), (args, kwargs))
    return kept(wrapped, "jit", lambda: _jitted(wrapped))(*args, **kwargs)


def _spread(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    return function(*args, **kwargs)


def _jitted(wrapped: Any) -> Callable[..., Any]:
    return jit(functools.wraps(wrapped, updated=())(lambda *args, **kwargs: wrapped(*args, **kwargs)))


def _traced(function: Callable[..., Any], in_axes: Axes, out_axes: Axes, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    flat, structure = flatten((args, kwargs))
    leaves = [as_array(x) for x in flat]
    positional, named = structure.children
    axes = [*_per_leaf("in_axes", in_axes, positional), *[0] * named.leaves]
    places = paths(positional)
    moved: list[Array] = []
    over: list[int] = []
    for k, (x, axis) in enumerate(zip(leaves, axes)):
        if axis is None:
            moved.append(x)
            continue
        if not -x.ndim <= axis < x.ndim:
            where = f"argument {places[k][1:].replace(']', '', 1)}" if k < len(places) else "an argument by name"
            raise _misfit(f"{where} has no axis {axis}", "an axis of the argument", f"shape {x.shape}")
        over.append(k)
        moved.append(moveaxis(x, axis, 0))
    if not over:
        raise _misfit("no argument is mapped over", "an axis for at least one argument", f"in_axes={in_axes!r}")
    sizes = [moved[k].shape[0] for k in over]
    if any(n != sizes[0] for n in sizes):
        raise _misfit("the mapped axes have different sizes", "one size", ", ".join(map(str, sizes)))
    trace = current()[0]
    elements = [Array(tensor(element_of(x.type), shape_of(x.type)[1:])) if k in over else Array(x.type) for k, x in enumerate(moved)]

    def element(args: Any, kwargs: Any) -> Any:
        return function(*args, **kwargs)

    inner = functools.wraps(function, updated=())(element)
    names = [*argument_names(function, positional), *(re.sub(r"\W+", "_", path).strip("_") for path in paths(named))]
    traced = trace_function(trace.module, inner, elements, structure, parent=trace, names=names)
    outer, builder = current()
    builder.loc = python_location()
    op = ad.BatchOp.make(traced.name, [ssa(x) for x in (*moved, *traced.captured)], over, [x.type for x in traced.outputs])
    op.location = builder.loc
    builder.block.add_op(op)
    results = [Array(v.type, v, outer) for v in op.results if isinstance(v.type, TensorType)]
    to = _per_leaf("out_axes", out_axes, traced.structure, of_result=True)
    return unflatten(traced.structure, [x if place == 0 else moveaxis(x, 0, place or 0) for x, place in zip(results, to)])


def _per_leaf(name: str, axes: Axes, structure: Structure, *, of_result: bool = False) -> list[int | None]:
    """One axis per leaf of the arguments (or of the result): `axes` is a container like them, down to wherever an axis stands for all."""
    if axes is None or isinstance(axes, int | np.integer):
        if axes is None and of_result and structure.leaves:
            raise _misfit("out_axes is None", "an axis: every result differs from element to element", "None")
        return [None if axes is None else whole(name, axes)] * structure.leaves
    children = structure.children
    sequence = isinstance(axes, tuple | list) and structure.kind in (tuple, list)
    given, found = _children(axes)
    if len(given) != len(children) or not (sequence or (found.kind is structure.kind and found.data == structure.data)):
        wanted = f"an int, or a tuple of {len(children)}" if structure.kind in (tuple, list) else f"an int, or a container like {structure}"
        raise _misfit(f"{name} does not fit", wanted, repr(axes))
    return [axis for inner, child in zip(given, children) for axis in _per_leaf(name, inner, child, of_result=of_result)]


def _children(axes: Any) -> tuple[list[Any], Structure]:
    """What a container of axes holds one level down, and its structure; an axis of None is no empty container here."""
    if isinstance(axes, dict):
        keys = flatten(dict.fromkeys(cast("dict[Any, Any]", axes), 0))[1].data
        return [axes[key] for key in keys], Structure(dict, keys)
    if isinstance(axes, tuple | list):
        return list(cast("list[Any]", axes)), Structure(type(cast("object", axes)), getattr(axes, "_fields", ()))
    if dataclasses.is_dataclass(axes) and not isinstance(axes, type):
        names = tuple(f.name for f in dataclasses.fields(axes))
        return [getattr(axes, n) for n in names], Structure(type(axes), names)
    return [], Structure(type(axes))


def _misfit(message: str, expected: str, found: str) -> Exception:
    return user_error(f"vmap: {message}", code="GR107", op="ad.batch", expected=expected, found=found)
