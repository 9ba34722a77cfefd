"""`grad`, `value_and_grad` and `jvp`: requests (`ad.*`) in the traced module. Outside a trace they compile themselves."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xdsl.ir import Attribute

from gradir.frontends.python.arrays import Array
from gradir.frontends.python.derivative_ops import differentiated_arguments, jvp_request, request
from gradir.frontends.python.eager import eager_jvp, eager_value_and_grad
from gradir.frontends.python.functions import trace_function
from gradir.frontends.python.jit import jit
from gradir.frontends.python.kept import kept
from gradir.frontends.python.operands import as_array
from gradir.frontends.python.pytrees import flatten, unflatten
from gradir.frontends.python.requests import name_of, needs_arguments, needs_function, needs_sequence
from gradir.frontends.python.residuals import residual_choice
from gradir.frontends.python.trace import current, eager_mode, tracing, user_error


def value_and_grad(
    function: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    has_aux: bool = False,
    residuals: str | None = None,
    budget: int | None = None,
) -> Callable[..., Any]:
    """A function that returns `(value, gradients)` of a scalar function.

    `argnums`: which arguments (containers of floating-point arrays) to differentiate; those given by keyword are not. The gradient g
    of a complex z is that of `jax.grad`: the loss changes by Re(g dz).
    `has_aux`: the function returns `(loss, aux)`, and the value is that pair. Usable inside and outside `gradir.jit`, and under itself.
    `residuals` ("all", "none", "sqrt") is what loops keep that do not say it themselves (`fori_loop`); `budget`: choose it for each so that
    so many bytes are enough.
    """
    needs_function("grad", function)
    attributes = residual_choice(residuals, budget)

    @functools.wraps(function, updated=())
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        needs_arguments("grad", function, args, kwargs)
        return _differentiate(wrapped, function, argnums, has_aux, attributes, args, kwargs)

    return wrapped


def grad(
    function: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    has_aux: bool = False,
    residuals: str | None = None,
    budget: int | None = None,
) -> Callable[..., Any]:
    """As `value_and_grad`, but returns the gradients alone (with `has_aux`: `(gradients, aux)`)."""
    both = value_and_grad(function, argnums, has_aux, residuals, budget)

    @functools.wraps(function, updated=())
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        value, gradients = both(*args, **kwargs)
        return (gradients, value[1]) if has_aux else gradients

    return wrapped


def jvp(function: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False) -> Any:
    """`(results, their tangents)` of `function(*primals)` when the primals move along `tangents`: forward mode, no residuals.

    Floating-point leaves of `primals` need a tangent of the same shape and type; those of other leaves are ignored. The tangent of a
    result without derivative (an integer) is zeros. What `function` captures does not move. `has_aux`: the function returns
    `(results, aux)`, and so does this, `(results, tangents, aux)`. Usable inside and outside `gradir.jit`, and under itself.
    """
    needs_function("jvp", function)
    if has_aux:
        pair, moved = jvp(function, primals, tangents)
        if not (isinstance(pair, tuple) and len(pair) == 2):
            found = type(pair).__name__
            raise user_error(
                f"jvp: has_aux asks {name_of(function)} for a pair (results, aux)", code="GR108", expected="a pair", found=found
            )
        return pair[0], moved[0], pair[1]
    needs_sequence("jvp", "primals", primals)
    needs_sequence("jvp", "tangents", tangents)
    needs_arguments("jvp", function, primals)
    flat, structure = flatten(tuple(primals))
    moved, given = flatten(tuple(tangents))
    if structure != given:
        raise user_error(
            "jvp: the tangents have another structure than the primals",
            code="GR107",
            op="ad.jvp",
            expected=str(structure),
            found=str(given),
        )
    if not tracing():
        return _jvp_outside(function, primals, tangents)
    leaves, directions = [as_array(x) for x in flat], [as_array(x) for x in moved]
    results, found = jvp_request(function, leaves, directions, structure)
    if current()[0].recording:
        concrete = [Array(x.type, concrete=x.concrete) for x in (*leaves, *directions)]
        for result, value in zip(results, flatten(eager_jvp(function, concrete, structure))[0]):
            result.concrete = value.concrete
    return unflatten(found, results[: found.leaves]), unflatten(found, results[found.leaves :])


def _jvp_outside(function: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    if eager_mode():
        flat, structure = flatten(tuple(primals))
        return eager_jvp(function, [*flat, *flatten(tuple(tangents))[0]], structure)

    def inside(primals: Any, tangents: Any) -> Any:
        return jvp(function, primals, tangents)

    inside.__name__ = name_of(function)
    return kept(function, "jvp", lambda: jit(inside))(tuple(primals), tuple(tangents))


def _differentiate(
    wrapped: Callable[..., Any],
    function: Callable[..., Any],
    argnums: int | tuple[int, ...],
    has_aux: bool,
    attributes: Mapping[str, Attribute],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    if not tracing():
        return _outside(wrapped, function, argnums, has_aux, attributes, args, kwargs)
    function = _with_keywords(function, kwargs)
    leaves, structure, wrt, grad_structure = differentiated_arguments(function, argnums, args)
    trace = current()[0]
    traced = trace_function(
        trace.module, function, leaves, structure, parent=trace, recording=trace.recording, scalar_first=True, has_aux=has_aux
    )
    results = request(traced, leaves, wrt, attributes)
    if trace.recording:
        _attach_values(results, function, argnums, has_aux, args)
    count = len(traced.outputs)
    value = unflatten(traced.structure, results[:count])
    return value, unflatten(grad_structure, results[count:])


def _with_keywords(function: Callable[..., Any], kwargs: dict[str, Any]) -> Callable[..., Any]:
    """The function of the arguments by position alone."""
    return functools.update_wrapper(functools.partial(function, **kwargs), function, updated=()) if kwargs else function


def _attach_values(
    results: list[Array], function: Callable[..., Any], argnums: int | tuple[int, ...], has_aux: bool, args: tuple[Any, ...]
) -> None:
    """While recording, results of a nested request have values too."""
    flat, structure = flatten(args)
    concrete = [Array(x.type, concrete=x.concrete) if isinstance(x, Array) else x for x in flat]
    values, _ = flatten(eager_value_and_grad(function, argnums, has_aux, unflatten(structure, concrete)))
    for result, value in zip(results, values):
        result.concrete = value.concrete


def _outside(
    wrapped: Callable[..., Any],
    function: Callable[..., Any],
    argnums: int | tuple[int, ...],
    has_aux: bool,
    attributes: Mapping[str, Attribute],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    if eager_mode():
        return eager_value_and_grad(_with_keywords(function, kwargs), argnums, has_aux, args)
    compiled = wrapped.__dict__.get("_compiled")
    if compiled is None:

        def inside(*inner: Any, **keywords: Any) -> Any:
            return _differentiate(wrapped, function, argnums, has_aux, attributes, inner, keywords)

        inside.__name__ = getattr(function, "__name__", "f")
        compiled = wrapped.__dict__["_compiled"] = jit(inside)
    return compiled(*args, **kwargs)
