"""`vjp`, `linearize`: the derivative of a function at a point as a function, of cotangents or of tangents.

In a trace both are requests on one traced function. Outside, the function runs once, compiled, and the map reads what it saved (`halves`).
Under `gradir.eager` they are made of `grad` and `jvp`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects.builtin import TensorType

from gradir.dialects import ad
from gradir.frontends.python import promotion
from gradir.frontends.python.arrays import Array
from gradir.frontends.python.complex import real
from gradir.frontends.python.creation import zeros_like
from gradir.frontends.python.elementwise import add, multiply, stop_gradient
from gradir.frontends.python.functions import call, trace_function
from gradir.frontends.python.halves import halves
from gradir.frontends.python.operands import as_array, is_scalar
from gradir.frontends.python.pytrees import Structure, flatten, paths, unflatten
from gradir.frontends.python.reduction import sum
from gradir.frontends.python.requests import name_of, needs_arguments, needs_floats, needs_function
from gradir.frontends.python.trace import current, eager_mode, into, python_location, ssa, tracing, user_error
from gradir.frontends.python.transforms import grad, jvp

Map = Callable[[Sequence[Array]], list[Any]]
"""Cotangents (tangents) of what moves on one side to those of what moves on the other."""


@dataclass(frozen=True)
class Side:
    """The arguments or the results of a function: structure, and arrays of the types of its leaves (values count in a trace alone)."""

    structure: Structure
    leaves: tuple[Array, ...]

    @property
    def moving(self) -> list[int]:
        """Positions of the leaves that have tangents and cotangents."""
        return [k for k, x in enumerate(self.leaves) if promotion.is_inexact(x.dtype)]

    def taken(self, what: str, tree: Any) -> list[Array]:
        """The moving leaves of `tree`, which has this structure and these shapes and types; Python numbers take the type."""
        flat, found = flatten(tree)
        if found != self.structure:
            side = "results" if what == "vjp: cotangent" else "arguments"
            raise user_error(
                f"{what}s have another structure than the {side}",
                code="GR107",
                op=f"ad.{OPS[what]}",
                expected=str(self.structure),
                found=str(found),
            )
        taken: list[Array] = []
        for k, path in enumerate(paths(self.structure)):
            leaf, x = self.leaves[k], flat[k]
            if not promotion.is_inexact(leaf.dtype):
                continue
            x = as_array(x, leaf.dtype) if is_scalar(x) else as_array(x)
            if x.type != leaf.type:
                raise user_error(
                    f"{what} {path or k} is not of the shape and type of what it belongs to",
                    code="GR107",
                    op=f"ad.{OPS[what]}",
                    expected=f"{leaf.dtype} of shape {leaf.shape}",
                    found=f"{x.dtype} of shape {x.shape}",
                )
            taken.append(x)
        return taken

    def given(self, moving: Sequence[Any]) -> Any:
        """A tree of this structure with these moving leaves, zeros for the others."""
        found = dict(zip(self.moving, moving, strict=True))
        zeros = zeros_like if tracing() or eager_mode() else _numpy_zeros
        return unflatten(self.structure, [found[k] if k in found else zeros(x) for k, x in enumerate(self.leaves)])


OPS = {"vjp: cotangent": "vjp", "linearize: tangent": "jvp"}


def _numpy_zeros(x: Array) -> Any:
    return np.zeros(x.shape, x.dtype)


class LinearMap:
    """The derivative of a function at a point: call it with cotangents (`vjp`) or with tangents (`linearize`)."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self._name, self._function = name, function

    def __repr__(self) -> str:
        return f"<gradir.{self._name}>"

    def __call__(self, *moved: Any) -> Any:
        needs_arguments(self._name, self._function, moved)
        return self._function(*moved)


def vjp(function: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """`(results, pullback)`: `pullback(cotangents)` gives the cotangent of each primal, one container of cotangents as `results` is.

    Leaves without derivative (integers) get zeros, and their own cotangents are ignored. `has_aux`: the function returns `(results, aux)`,
    and so does this, `(results, pullback, aux)`. Outside of `gradir.jit` the function runs once, and `pullback` reads what it saved; both
    are compiled once for a function.
    """
    needs_function("vjp", function)
    needs_arguments("vjp", function, primals)
    point = _point("vjp", function, primals, has_aux)

    def pullback(cotangents: Any, /) -> tuple[Any, ...]:
        return point.inputs.given(point.back(point.outputs.taken("vjp: cotangent", cotangents)))

    found = LinearMap(f"vjp of {name_of(function)}", pullback)
    return (point.results, found, point.aux) if has_aux else (point.results, found)


def linearize(function: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """`(results, along)`: `along(*tangents)` gives the tangents of the results when the primals move along `tangents`.

    As `jvp` for many directions: outside of `gradir.jit` the function runs once, and `along` reads what it saved.
    """
    needs_function("linearize", function)
    needs_arguments("linearize", function, primals)
    point = _point("linearize", function, primals, has_aux)

    def along(*tangents: Any) -> Any:
        return point.outputs.given(point.along(point.inputs.taken("linearize: tangent", tangents)))

    found = LinearMap(f"linearize of {name_of(function)}", along)
    return (point.results, found, point.aux) if has_aux else (point.results, found)


@dataclass(frozen=True)
class _Point:
    """A function at its arguments: results, and both linear maps on what moves."""

    results: Any
    aux: Any
    inputs: Side
    outputs: Side
    back: Map
    along: Map


def _point(what: str, function: Callable[..., Any], primals: tuple[Any, ...], has_aux: bool) -> _Point:
    flat, structure = flatten(primals)
    if eager_mode() or (tracing() and current()[0].recording):
        return _by_values(what, function, flat, structure, has_aux)
    if tracing():
        return _traced(what, function, [as_array(x) for x in flat], structure, has_aux)
    with into(None, None):
        leaves = [as_array(x) for x in flat]
    return _compiled(what, function, leaves, structure, has_aux)


def _pair(what: str, function: Callable[..., Any], found: Any, has_aux: bool) -> tuple[Any, Any]:
    """(results, aux) of what the function returned."""
    if not has_aux:
        return found, None
    if isinstance(found, tuple) and len(found) == 2:
        return found
    raise user_error(
        f"{what}: has_aux asks {name_of(function)} for a pair (results, aux)", code="GR108", expected="a pair", found=type(found).__name__
    )


def _without_slope(what: str, function: Callable[..., Any], has_aux: bool) -> Callable[..., Any]:
    """The function; no derivative runs through what is auxiliary."""
    if not has_aux:
        return function

    @functools.wraps(function, updated=())
    def split(*args: Any) -> Any:
        results, aux = _pair(what, function, function(*args), has_aux)
        leaves, structure = flatten(aux)
        arrays = [as_array(x) for x in leaves]
        return results, unflatten(structure, [stop_gradient(x) if promotion.is_inexact(x.dtype) else x for x in arrays])

    return split


def _sides(what: str, leaves: Sequence[Array], structure: Structure, results: Any) -> tuple[Side, Side]:
    """Both sides of the map; each has something that moves."""
    found, of_results = flatten(results)
    outputs = [as_array(y) for y in found]
    needs_floats(what, "arguments", leaves)
    needs_floats(what, "results", outputs)
    if not tracing():
        leaves, outputs = [Array(x.type) for x in leaves], [Array(y.type) for y in outputs]
    return Side(structure, tuple(leaves)), Side(of_results, tuple(outputs))


# -- in a trace


def _traced(what: str, function: Callable[..., Any], leaves: list[Array], structure: Structure, has_aux: bool) -> _Point:
    trace = current()[0]
    traced = trace_function(trace.module, _without_slope(what, function, has_aux), leaves, structure, parent=trace)
    whole = call(traced, leaves)
    results, aux = _pair(what, function, whole, has_aux)
    inputs, outputs = _sides(what, leaves, structure, results)
    values = [as_array(y) for y in flatten(whole)[0]]
    arguments = [*leaves, *traced.captured]
    kinds = [x.type for x in traced.outputs]

    def request(op: Any, moved: Sequence[Array]) -> list[Array]:
        """The results of the request behind those of the function."""
        found, builder = current()
        builder.loc = python_location()
        made = op.make(traced.name, [ssa(x) for x in (*arguments, *moved)], inputs.moving, kinds)
        made.location = builder.loc
        builder.block.add_op(made)
        return [Array(v.type, v, found) for v in made.results[len(kinds) :] if isinstance(v.type, TensorType)]

    def back(cotangents: Sequence[Array]) -> list[Any]:
        given = dict(zip(outputs.moving, cotangents, strict=True))
        return request(ad.VjpOp, [given[k] if k in given else zeros_like(y) for k, y in enumerate(values)])

    def along(tangents: Sequence[Array]) -> list[Any]:
        return request(ad.JvpOp, tangents)[: len(outputs.moving)]

    return _Point(results, aux, inputs, outputs, back, along)


# -- outside


def _compiled(what: str, function: Callable[..., Any], leaves: list[Array], structure: Structure, has_aux: bool) -> _Point:
    found = halves(function, leaves, structure, (what, has_aux) if has_aux else None, lambda: _without_slope(what, function, has_aux))
    count = len(found.traced.outputs)
    flat = found.run(*(x.concrete for x in leaves))
    values, saved = flat[:count], flat[count:]
    results, aux = _pair(what, function, unflatten(found.traced.structure, values), has_aux)
    inputs, outputs = _sides(what, leaves, structure, results)
    resting = [np.zeros(x.shape, x.dtype) for x in values[len(outputs.leaves) :] if promotion.is_inexact(x.dtype)]

    def back(cotangents: Sequence[Array]) -> list[Any]:
        return list(found.back(*saved, *(c.concrete for c in cotangents), *resting))

    def along(tangents: Sequence[Array]) -> list[Any]:
        return list(found.along(*saved, *(t.concrete for t in tangents))[: len(outputs.moving)])

    return _Point(results, aux, inputs, outputs, back, along)


# -- op by op


def _by_values(what: str, function: Callable[..., Any], flat: list[Any], structure: Structure, has_aux: bool) -> _Point:
    leaves = [as_array(x) for x in flat]
    results, aux = _pair(what, function, function(*unflatten(structure, leaves)), has_aux)
    inputs, outputs = _sides(what, leaves, structure, results)

    def moving(*moved: Any) -> list[Any]:
        """The results that move, of the arguments that move."""
        found = dict(zip(inputs.moving, moved, strict=True))
        result, _ = _pair(what, function, function(*unflatten(structure, [found.get(k, x) for k, x in enumerate(leaves)])), has_aux)
        ys = flatten(result)[0]
        return [as_array(ys[k]) for k in outputs.moving]

    moving.__name__ = name_of(function)
    point = [leaves[k] for k in inputs.moving]

    def weighted(weights: list[Any], *moved: Any) -> Any:
        products = [real(sum(multiply(y, w))) for y, w in zip(moving(*moved), weights, strict=True)]  # complex: Re(sum w y)
        return functools.reduce(add, products)

    def back(cotangents: Sequence[Array]) -> list[Any]:
        return list(grad(weighted, tuple(range(1, len(point) + 1)))(list(cotangents), *point))

    def along(tangents: Sequence[Array]) -> list[Any]:
        return list(jvp(moving, point, list(tangents))[1])

    return _Point(results, aux, inputs, outputs, back, along)


__all__ = ["LinearMap", "linearize", "vjp"]
