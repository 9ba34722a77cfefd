"""`jacfwd`, `jacrev`, `hessian`: derivatives of all results by all arguments, over containers of arrays.

One batch of `jvp` (or of a pullback) over the standard basis of all differentiated elements (or of all elements of the results).
"""

from __future__ import annotations

import functools
import inspect
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from gradir.dialects.types import is_static
from gradir.frontends.python.arrays import Array
from gradir.frontends.python.batching import called_outside, vmap
from gradir.frontends.python.creation import full, zeros
from gradir.frontends.python.linear_maps import linearize, vjp
from gradir.frontends.python.operands import as_array
from gradir.frontends.python.pytrees import Structure, flatten, paths, unflatten
from gradir.frontends.python.rearrange import eye, moveaxis
from gradir.frontends.python.requests import needs_arguments, needs_derivative, needs_function, positions
from gradir.frontends.python.shape import expand_dims, reshape
from gradir.frontends.python.trace import tracing, user_error

Argnums = int | tuple[int, ...]

OF_LEAVES = inspect.Signature([inspect.Parameter("x", inspect.Parameter.VAR_POSITIONAL)])

__all__ = ["hessian", "jacfwd", "jacrev"]


def jacfwd(function: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """The Jacobian of `function` by its arguments `argnums`, column by column: for more results than arguments.

    Every result r is replaced by a container like the argument (a tuple of these for several `argnums`); a leaf x of it becomes an array
    of shape r.shape + x.shape. `has_aux`: the function returns `(results, aux)`, and the result is `(Jacobian, aux)`.
    """
    return _transformed("jacfwd", _forward, function, argnums, has_aux)


def jacrev(function: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """As `jacfwd`, row by row: for more arguments than results, all of which are floats."""
    return _transformed("jacrev", _reverse, function, argnums, has_aux)


def hessian(function: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """All second derivatives of the results of `function` by its arguments `argnums`: forward over reverse.

    For each result a container like the argument whose leaves are containers like it again; of one array the matrix of a scalar's second
    derivatives, of shape x.shape + x.shape.
    """
    return jacfwd(jacrev(function, argnums, has_aux), argnums, has_aux)


Jacobian = Callable[["_Point"], tuple[list[list[Array]], Structure, Any]]
"""Of a function at a point: per result, one array per differentiated leaf; the structure of the results; aux."""


def _transformed(what: str, rule: Jacobian, function: Callable[..., Any], argnums: Argnums, has_aux: bool) -> Callable[..., Any]:
    needs_function(what, function)

    @functools.wraps(function, updated=())
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        needs_arguments(what, function, args, kwargs)
        if not tracing():
            return called_outside(wrapped, args, kwargs)
        point = _Point.of(what, function, argnums, has_aux, args, kwargs)
        rows, structure, aux = rule(point)
        found = unflatten(structure, [unflatten(point.structure, row) for row in rows])
        return (found, aux) if has_aux else found

    return wrapped


@dataclass(frozen=True)
class _Point:
    """A function of the differentiated leaves alone, and these leaves; `structure` is the container that they make."""

    what: str
    function: Callable[..., Any]
    leaves: list[Array]
    structure: Structure
    has_aux: bool

    @classmethod
    def of(
        cls, what: str, function: Callable[..., Any], argnums: Argnums, has_aux: bool, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> _Point:
        numbers = positions(what, argnums, len(args))
        trees = [flatten(args[n]) for n in numbers]
        leaves = [as_array(x) for flat, _ in trees for x in flat]
        names = [f"{n}{path}" for n, (_, structure) in zip(numbers, trees) for path in paths(structure)]
        for name, leaf in zip(names, leaves):
            needs_derivative(function, name, leaf.dtype, f"gradir.{what}")
            if not is_static(leaf.type):
                raise user_error(
                    f"{what}: argument {name} has a size of run time, and with it the Jacobian",
                    code="GR103",
                    op=f"gradir.{what}",
                    expected="sizes that are numbers",
                    found=str(leaf.type),
                    hint="take Jacobian-vector products: gradir.jvp, gradir.vjp",
                )
        both = Structure(tuple, (), tuple(structure for _, structure in trees))

        def by_leaves(*moved: Any) -> Any:
            found = unflatten(both, moved)
            given = dict(zip(numbers, found, strict=True))
            return function(*(given.get(k, x) for k, x in enumerate(args)), **kwargs)

        single = not isinstance(argnums, tuple | list)
        functools.update_wrapper(by_leaves, function, updated=())
        by_leaves.__signature__ = OF_LEAVES  # not that of the function which it wraps
        return cls(what, by_leaves, leaves, both.children[0] if single else both, has_aux)


def _forward(point: _Point) -> tuple[list[list[Array]], Structure, Any]:
    """Columns: the tangents of the results along each element of the arguments."""
    results, along, aux = _linear(linearize, point)
    flat, structure = flatten(results)
    values = [as_array(y) for y in flat]
    columns = _mapped(along, point.leaves) if point.leaves else []
    if not columns:
        return [[zeros((*y.shape, *x.shape), y.dtype) for x in point.leaves] for y in values], structure, aux
    cuts = _cuts(point.leaves)
    return (
        [
            [_block(moveaxis(c, 0, -1), -1, cut, (*y.shape, *x.shape)) for cut, x in zip(cuts, point.leaves)]
            for c, y in zip(columns, values)
        ],
        structure,
        aux,
    )


def _reverse(point: _Point) -> tuple[list[list[Array]], Structure, Any]:
    """Rows: the cotangents of the arguments for each element of the results."""
    results, pullback, aux = _linear(vjp, point)
    flat, structure = flatten(results)
    values = [as_array(y) for y in flat]
    for y, path in zip(values, paths(structure)):
        needs_derivative(point.function, f"result {path or 0}", y.dtype, "gradir.jacrev")
    rows = _mapped(lambda *weights: pullback(unflatten(structure, weights)), values)
    if not rows:
        return [[zeros((*y.shape, *x.shape), x.dtype) for x in point.leaves] for y in values], structure, aux
    cuts = _cuts(values)
    return (
        [[_block(row, 0, cut, (*y.shape, *x.shape)) for row, x in zip(rows, point.leaves)] for cut, y in zip(cuts, values)],
        structure,
        aux,
    )


def _linear(transform: Callable[..., Any], point: _Point) -> tuple[Any, Callable[..., Any], Any]:
    found = transform(point.function, *point.leaves, has_aux=point.has_aux)
    return found if point.has_aux else (*found, None)


def _mapped(function: Callable[..., Any], leaves: Sequence[Array]) -> list[Array]:
    """The flat results of `function` for each element of `leaves` in turn being 1, along a first axis; none for no element."""
    cuts = _cuts(leaves)
    total = cuts[-1][1]
    if total == 0:
        return []
    if total == 1:
        ones = [full(x.shape, 1, x.dtype) for x in leaves]
        return [expand_dims(as_array(y), 0) for y in flatten(function(*ones))[0]]
    basis = [reshape(eye(total, stop - start, -start, x.dtype), (total, *x.shape)) for x, (start, stop) in zip(leaves, cuts)]
    return flatten(vmap(function)(*basis))[0]


def _cuts(leaves: Sequence[Array]) -> list[tuple[int, int]]:
    """Where the elements of each leaf lie when all are put one after the other."""
    ends = list(itertools.accumulate((math.prod(x.shape) for x in leaves), initial=0))
    return list(itertools.pairwise(ends))


def _block(x: Array, axis: int, cut: tuple[int, int], shape: tuple[int, ...]) -> Array:
    """The part of `x` between the cuts along an axis, in another shape."""
    start, stop = cut
    part = x if x.shape[axis] == stop - start else x[start:stop] if axis == 0 else x[..., start:stop]
    return reshape(part, shape)
