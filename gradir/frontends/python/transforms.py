"""`grad`, `value_and_grad`, `vjp` and `jvp`: requests (`ad.*`) in the traced module. Outside a trace they compile themselves."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects.builtin import TensorType

from gradir.dialects import ad
from gradir.frontends.python import promotion
from gradir.frontends.python.arrays import Array
from gradir.frontends.python.complex import real
from gradir.frontends.python.creation import zeros_like
from gradir.frontends.python.elementwise import add, multiply
from gradir.frontends.python.functions import Traced, trace_function
from gradir.frontends.python.operands import as_array
from gradir.frontends.python.pytrees import Structure, flatten, paths, unflatten
from gradir.frontends.python.reduction import sum
from gradir.frontends.python.sizes import whole
from gradir.frontends.python.trace import current, eager_mode, python_location, ssa, tracing, user_error


def value_and_grad(function: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that returns `(value, gradients)` of a scalar function.

    `argnums`: which arguments (containers of floating-point arrays) to differentiate; those given by keyword are not. The gradient g
    of a complex z is that of `jax.grad`: the loss changes by Re(g dz).
    `has_aux`: the function returns `(loss, aux)`, and the value is that pair. Usable inside and outside `gradir.jit`, and under itself.
    """

    @functools.wraps(function, updated=())
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return _differentiate(wrapped, function, argnums, has_aux, args, kwargs)

    return wrapped


def grad(function: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """As `value_and_grad`, but returns the gradients alone (with `has_aux`: `(gradients, aux)`)."""
    both = value_and_grad(function, argnums, has_aux)

    @functools.wraps(function, updated=())
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        value, gradients = both(*args, **kwargs)
        return (gradients, value[1]) if has_aux else gradients

    return wrapped


def vjp(function: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[[Any], tuple[Any, ...]]]:
    """`(results, pullback)`: `pullback(cotangents)` gives the cotangent of each primal, one container of cotangents as `results` is.

    All leaves of `primals` are floating-point arrays. For use inside `gradir.jit`; outside, each call compiles.
    """

    def weighted(cotangents: Any, *inner: Any) -> Any:
        results, found = flatten(function(*inner))
        weights, given = flatten(cotangents)
        if found != given:
            raise user_error(
                "vjp: the cotangents have another structure than the results",
                code="GR107",
                op="ad.vjp",
                expected=str(found),
                found=str(given),
            )
        arrays = [(as_array(y), as_array(w)) for y, w in zip(results, weights)]
        products = [real(sum(multiply(y, w))) for y, w in arrays if promotion.is_inexact(y.dtype)]  # complex: Re(sum w y)
        return functools.reduce(add, products)

    weighted.__name__ = getattr(function, "__name__", "f")
    gradients = grad(weighted, tuple(range(1, len(primals) + 1)))
    return function(*primals), lambda cotangents: gradients(cotangents, *primals)


def jvp(function: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """`(results, their tangents)` of `function(*primals)` when the primals move along `tangents`: forward mode, no residuals.

    Floating-point leaves of `primals` need a tangent of the same shape and type; those of other leaves are ignored. The tangent of a
    result without derivative (an integer) is zeros. What `function` captures does not move. Usable inside and outside `gradir.jit`, and
    under itself.
    """
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
        from gradir.frontends.python.eager import eager_jvp

        concrete = [Array(x.type, concrete=x.concrete) for x in (*leaves, *directions)]
        for result, value in zip(results, flatten(eager_jvp(function, concrete, structure))[0]):
            result.concrete = value.concrete
    return unflatten(found, results[: found.leaves]), unflatten(found, results[found.leaves :])


def jvp_request(
    function: Callable[..., Any], leaves: list[Array], directions: list[Array], structure: Structure
) -> tuple[list[Array], Structure]:
    """Append `ad.jvp @f(...)`: its results and their tangents, flat, and the structure of the results."""
    wrt = [k for k, x in enumerate(leaves) if promotion.is_inexact(x.dtype)]
    tangents = [_tangent(leaves[k], directions[k], k) for k in wrt]
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


def _tangent(primal: Array, tangent: Array, position: int) -> Array:
    if tangent.shape != primal.shape or tangent.dtype != primal.dtype:
        raise user_error(
            f"jvp: tangent {position} is not of the primal's shape and type",
            code="GR107",
            op="ad.jvp",
            expected=f"{primal.dtype} of shape {primal.shape}",
            found=f"{tangent.dtype} of shape {tangent.shape}",
        )
    return tangent


def _jvp_outside(function: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    if eager_mode():
        from gradir.frontends.python.eager import eager_jvp

        flat, structure = flatten(tuple(primals))
        return eager_jvp(function, [*flat, *flatten(tuple(tangents))[0]], structure)
    from gradir.frontends.python.jit import jit

    def inside(primals: Any, tangents: Any) -> Any:
        return jvp(function, primals, tangents)

    inside.__name__ = getattr(function, "__name__", "f")
    return jit(inside)(tuple(primals), tuple(tangents))


def _differentiate(
    wrapped: Callable[..., Any],
    function: Callable[..., Any],
    argnums: int | tuple[int, ...],
    has_aux: bool,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    if not tracing():
        return _outside(wrapped, function, argnums, has_aux, args, kwargs)
    function = _with_keywords(function, kwargs)
    leaves, structure, wrt, grad_structure = differentiated_arguments(function, argnums, args)
    trace = current()[0]
    traced = trace_function(
        trace.module, function, leaves, structure, parent=trace, recording=trace.recording, scalar_first=True, has_aux=has_aux
    )
    results = request(traced, leaves, wrt)
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
    from gradir.frontends.python.eager import eager_value_and_grad

    flat, structure = flatten(args)
    concrete = [Array(x.type, concrete=x.concrete) if isinstance(x, Array) else x for x in flat]
    values, _ = flatten(eager_value_and_grad(function, argnums, has_aux, unflatten(structure, concrete)))
    for result, value in zip(results, values):
        result.concrete = value.concrete


def request(traced: Traced, leaves: list[Array], wrt: list[int]) -> list[Array]:
    """Append `ad.value_and_grad @f(...)`; its results as arrays."""
    function, builder = current()
    builder.loc = python_location()
    outputs = [x.type for x in traced.outputs]
    op = ad.ValueAndGradOp.make(traced.name, [ssa(x) for x in (*leaves, *traced.captured)], wrt, outputs)
    op.location = builder.loc
    builder.block.add_op(op)
    return [Array(v.type, v, function) for v in op.results if isinstance(v.type, TensorType)]


def differentiated_arguments(
    function: Callable[..., Any], argnums: int | tuple[int, ...], args: tuple[Any, ...]
) -> tuple[list[Array], Structure, list[int], Structure]:
    """Flat arguments, their structure, positions of the differentiated leaves, structure of the gradients."""
    flat, structure = flatten(args)
    leaves = [as_array(x) for x in flat]
    numbers = (argnums,) if isinstance(argnums, int) else argnums
    starts = [0]
    for child in structure.children:
        starts.append(starts[-1] + child.leaves)
    wrt: list[int] = []
    for n in (whole("an element of argnums", n) for n in numbers):
        if not -len(args) <= n < len(args):
            raise user_error(
                f"argnums names argument {n}", code="GR104", op="ad.value_and_grad", expected=f"0 to {len(args) - 1}", found=str(n)
            )
        n %= len(args)
        for k, path in zip(range(starts[n], starts[n + 1]), paths(structure.children[n])):
            if not promotion.is_inexact(leaves[k].dtype):
                raise user_error(
                    f"argument {n}{path} of {getattr(function, '__name__', 'f')} has no derivative",
                    code="GR109",
                    op="ad.value_and_grad",
                    expected="floating-point arrays",
                    found=str(leaves[k].dtype),
                    hint="choose other argnums, or convert it with astype",
                )
            wrt.append(k)
    children = tuple(structure.children[n % len(args)] for n in numbers)
    return leaves, structure, wrt, children[0] if isinstance(argnums, int) else Structure(tuple, (), children)


def _outside(
    wrapped: Callable[..., Any],
    function: Callable[..., Any],
    argnums: int | tuple[int, ...],
    has_aux: bool,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    if eager_mode():
        from gradir.frontends.python.eager import eager_value_and_grad

        return eager_value_and_grad(_with_keywords(function, kwargs), argnums, has_aux, args)
    from gradir.frontends.python.jit import jit

    compiled = wrapped.__dict__.get("_compiled")
    if compiled is None:

        def inside(*inner: Any, **keywords: Any) -> Any:
            return _differentiate(wrapped, function, argnums, has_aux, inner, keywords)

        inside.__name__ = getattr(function, "__name__", "f")
        compiled = wrapped.__dict__["_compiled"] = jit(inside)
    return compiled(*args, **kwargs)
