"""`vmap`: a function of one element as a function of many. `jacfwd`, `jacrev`, `hessian`: derivatives of all results by all arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.dialects.builtin import TensorType

from gradir.dialects import ad
from gradir.dialects.types import element_of, shape_of, tensor
from gradir.frontends.python import promotion
from gradir.frontends.python.arrays import Array
from gradir.frontends.python.creation import zeros_like
from gradir.frontends.python.eager import evaluated_in_trace
from gradir.frontends.python.functions import trace_function
from gradir.frontends.python.jit import jit
from gradir.frontends.python.linear_maps import vjp
from gradir.frontends.python.operands import as_array
from gradir.frontends.python.pytrees import LEAF, Structure, flatten, unflatten
from gradir.frontends.python.rearrange import eye, moveaxis
from gradir.frontends.python.requests import needs_arguments, needs_function, positions
from gradir.frontends.python.shape import reshape
from gradir.frontends.python.sizes import whole
from gradir.frontends.python.trace import current, eager_mode, python_location, ssa, tracing, user_error
from gradir.frontends.python.transforms import grad, jvp

Axes = Any
"""An axis, None (the same for all), or a tuple of these, one per argument."""


def vmap(function: Callable[..., Any], in_axes: Axes = 0, out_axes: Axes = 0) -> Callable[..., Any]:
    """`function` on every element along an axis of its arguments at once: whole ops with one more dimension, no loop.

    `in_axes`: the axis of each argument (all leaves of a container alike) that is mapped over; None: the argument is the same for all. An
    int stands for all arguments. `out_axes`: where that axis goes in the results, an int or one per result of a tuple. Works inside and
    outside `gradir.jit`, under itself, and in any order with derivatives.
    """
    needs_function("vmap", function)

    @functools.wraps(function, updated=())
    def wrapped(*args: Any) -> Any:
        needs_arguments("vmap", function, args)
        if not tracing():
            return _outside(wrapped, args)
        return _traced(function, in_axes, out_axes, args)

    return wrapped


def _outside(wrapped: Any, args: tuple[Any, ...]) -> Any:
    """A call outside of any trace: evaluated under `eager`, else compiled."""
    if eager_mode():
        return evaluated_in_trace(wrapped, args)
    return _compiled(wrapped)(*args)


def _compiled(wrapped: Any) -> Callable[..., Any]:
    """`wrapped` as a program, kept with it."""
    found = wrapped.__dict__.get("_compiled")
    if found is None:
        inside = functools.wraps(wrapped, updated=())(lambda *args: wrapped(*args))
        found = wrapped.__dict__["_compiled"] = jit(inside)
    return found


def _traced(function: Callable[..., Any], in_axes: Axes, out_axes: Axes, args: tuple[Any, ...]) -> Any:
    flat, structure = flatten(args)
    leaves = [as_array(x) for x in flat]
    axes = _per_leaf("in_axes", in_axes, structure)
    moved: list[Array] = []
    over: list[int] = []
    for k, (x, axis) in enumerate(zip(leaves, axes)):
        if axis is None:
            moved.append(x)
            continue
        if not -x.ndim <= axis < x.ndim:
            raise _misfit(f"argument leaf {k} has no axis {axis}", "an axis of the argument", f"shape {x.shape}")
        over.append(k)
        moved.append(moveaxis(x, axis, 0))
    if not over:
        raise _misfit("no argument is mapped over", "an axis for at least one argument", f"in_axes={in_axes!r}")
    sizes = [moved[k].shape[0] for k in over]
    if any(n != sizes[0] for n in sizes):
        raise _misfit("the mapped axes have different sizes", "one size", ", ".join(map(str, sizes)))
    trace = current()[0]
    elements = [Array(tensor(element_of(x.type), shape_of(x.type)[1:])) if k in over else Array(x.type) for k, x in enumerate(moved)]
    traced = trace_function(trace.module, function, elements, structure, parent=trace)
    outer, builder = current()
    builder.loc = python_location()
    op = ad.BatchOp.make(traced.name, [ssa(x) for x in (*moved, *traced.captured)], over, [x.type for x in traced.outputs])
    op.location = builder.loc
    builder.block.add_op(op)
    results = [Array(v.type, v, outer) for v in op.results if isinstance(v.type, TensorType)]
    places = _per_leaf("out_axes", out_axes, traced.structure, of_result=True)
    return unflatten(traced.structure, [x if place == 0 else moveaxis(x, 0, place or 0) for x, place in zip(results, places)])


def _per_leaf(name: str, axes: Axes, structure: Structure, *, of_result: bool = False) -> list[int | None]:
    """One axis per leaf of the arguments (or of the result)."""
    if axes is None or isinstance(axes, int | np.integer):
        if axes is None and of_result:
            raise _misfit("out_axes is None", "an axis: every result differs from element to element", "None")
        return [None if axes is None else whole(name, axes)] * structure.leaves
    children = structure.children
    if not isinstance(axes, tuple | list) or len(axes) != len(children):
        raise _misfit(f"{name} does not fit", f"an int, or a tuple of {len(children)}", repr(axes))
    return [axis for given, child in zip(axes, children) for axis in _per_leaf(name, given, child, of_result=of_result)]


def _misfit(message: str, expected: str, found: str) -> Exception:
    return user_error(f"vmap: {message}", code="GR107", op="ad.batch", expected=expected, found=found)


def jacfwd(function: Callable[..., Any], argnum: int = 0) -> Callable[..., Any]:
    """The Jacobian of `function` by its argument `argnum` (one array), column by column: for more results than arguments.

    Every result r of shape R becomes an array of shape R + the argument's.
    """

    @functools.wraps(function, updated=())
    def wrapped(*args: Any) -> Any:
        if not tracing():
            return _outside(wrapped, args)
        x = _one_array("jacfwd", args, argnum)

        def move(direction: Any) -> Any:
            return jvp(_by(function, args, argnum), (x,), (reshape(direction, x.shape),))[1]

        columns, structure = flatten(vmap(move)(eye(_count(x), dtype=x.dtype)))
        return unflatten(structure, [reshape(moveaxis(c, 0, -1), (*c.shape[1:], *x.shape)) for c in columns])

    return wrapped


def jacrev(function: Callable[..., Any], argnum: int = 0) -> Callable[..., Any]:
    """The Jacobian of `function` by its argument `argnum` (one array), row by row: for more arguments than results."""

    @functools.wraps(function, updated=())
    def wrapped(*args: Any) -> Any:
        if not tracing():
            return _outside(wrapped, args)
        x = _one_array("jacrev", args, argnum)
        values, pullback = vjp(_by(function, args, argnum), x)
        flat, structure = flatten(values)
        results = [as_array(y) for y in flat]
        found: list[Any] = []
        for k, y in enumerate(results):
            if not promotion.is_inexact(y.dtype):
                raise user_error("jacrev: a result has no derivative", code="GR109", op="ad.vjp", expected="floats", found=str(y.type))

            def row(weights: Any, k: int = k, y: Array = y) -> Any:
                cotangents = [reshape(weights, y.shape) if j == k else zeros_like(z) for j, z in enumerate(results)]
                return pullback(unflatten(structure, cotangents))[0]

            rows = vmap(row)(eye(_count(y), dtype=y.dtype))
            found.append(reshape(rows, (*y.shape, *x.shape)))
        return unflatten(structure, found)

    return wrapped


def hessian(function: Callable[..., Any], argnum: int = 0) -> Callable[..., Any]:
    """The matrix of second derivatives of a scalar function by its argument `argnum` (one array): forward over reverse."""
    return jacfwd(grad(function, argnum), argnum)


def _by(function: Callable[..., Any], args: tuple[Any, ...], argnum: int) -> Callable[[Any], Any]:
    """The function of one argument, the others as they are."""

    def one(value: Any) -> Any:
        return function(*args[:argnum], value, *args[argnum + 1 :])

    return functools.update_wrapper(one, function, updated=())


def _one_array(name: str, args: tuple[Any, ...], argnum: int) -> Array:
    (argnum,) = positions(name, whole(f"{name}: argnum", argnum), len(args))
    structure = flatten(args[argnum])[1]
    if structure.kind is not LEAF:
        raise user_error(
            f"{name}: argument {argnum} is a {structure.kind.__name__}, not one array",
            code="GR103",
            expected="one array",
            found=str(structure),
            hint="concatenate its arrays into one vector, or make each an argument of its own and name it by argnum",
        )
    x = as_array(args[argnum])
    if not promotion.is_inexact(x.dtype):
        raise user_error(f"{name}: argument {argnum} has no derivative", code="GR109", expected="a float array", found=str(x.type))
    return x


def _count(x: Array) -> int:
    return int(np.prod(x.shape))
