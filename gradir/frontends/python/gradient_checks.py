"""`check_grads`: derivatives of a function of one's own against finite differences and against each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from gradir.errors import GradirError
from gradir.frontends.python import promotion
from gradir.frontends.python.eager import to_numpy
from gradir.frontends.python.jit import jit
from gradir.frontends.python.linear_maps import vjp
from gradir.frontends.python.operands import as_array
from gradir.frontends.python.pytrees import Structure, flatten, unflatten
from gradir.frontends.python.requests import needs_arguments, needs_function, needs_sequence
from gradir.frontends.python.sizes import whole
from gradir.frontends.python.trace import user_error
from gradir.frontends.python.transforms import jvp

MODES = ("fwd", "rev")
STEP = {np.dtype(np.float64): 1e-6, np.dtype(np.complex128): 1e-6}
"""Step of the differences by the type of the widest result; 1e-2 for narrower ones."""
TOLERANCE = {np.dtype(np.float64): 1e-6, np.dtype(np.complex128): 1e-6}
"""Relative to 1 and to the value; 2e-2 for narrower types."""

Values = list[NDArray[Any]]


def check_grads(
    function: Callable[..., Any],
    args: Sequence[Any],
    order: int = 1,
    modes: Sequence[str] = MODES,
    *,
    step: float | None = None,
    tolerance: float | None = None,
    seed: int = 0,
) -> None:
    """Check the derivatives of `function` at `args` up to `order`, in each of `modes` ("fwd", "rev").

    Along a random direction: the tangent (forward mode) and the cotangents times the direction (reverse mode) against the central
    difference of the results, so for f64 arguments within about 1e-6. Where no mode has a derivative, or at a kink, a check means nothing.
    Raises GradirError AD014 that names the mode, the order, and both numbers.
    """
    needs_function("check_grads", function)
    needs_sequence("check_grads", "arguments", args)
    needs_arguments("check_grads", function, args)
    whole("check_grads: order", order, 1)
    modes = (modes,) if isinstance(modes, str) else tuple(modes)
    for mode in modes or ("",):
        if mode not in MODES:
            raise user_error("check_grads: no such mode", code="GR104", expected=", ".join(MODES), found=repr(mode))
    rng = np.random.default_rng(seed)
    _check(jit(function), tuple(args), order, modes, (step, tolerance), rng, "")


def _check(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    order: int,
    modes: tuple[str, ...],
    limits: tuple[float | None, float | None],
    rng: np.random.Generator,
    path: str,
) -> None:
    flat, structure = flatten(args)
    primals = [np.asarray(as_array(x).concrete) for x in flat]
    directions = [_random(rng, x) for x in primals]
    results = _numbers(function(*unflatten(structure, list(primals))))
    kind = np.result_type(np.float32, *(y.dtype for y in results if y.dtype.kind in "fc"))
    h = limits[0] if limits[0] is not None else STEP.get(kind, 1e-2)
    tolerance = limits[1] if limits[1] is not None else TOLERANCE.get(kind, 2e-2)
    weights = [_random(rng, y) for y in results]

    def moved(by: float) -> Values:
        there = [(x + by * t).astype(x.dtype) if x.dtype.kind in "fcV" else x for x, t in zip(primals, directions)]
        return _numbers(function(*unflatten(structure, there)))

    slopes = [(a - b) / (2 * h) if a.dtype.kind in "fc" else np.zeros(a.shape) for a, b in zip(moved(h), moved(-h))]
    expected = _pairing(weights, slopes)
    for mode in modes:
        found = _derivative(mode, function, primals, structure, directions, weights)
        if not np.isclose(found, expected, rtol=tolerance, atol=tolerance):
            raise _disagreement(function, f"{path}{mode}", expected, found, tolerance)
        if order > 1:
            inner = _derivative_function(mode, function, directions, weights, structure)
            _check(inner, args, order - 1, modes, limits, rng, f"{path}{mode} of ")


def _derivative(
    mode: str, function: Callable[..., Any], primals: Values, structure: Structure, directions: Values, weights: Values
) -> float:
    """sum of weights * (J direction), by the mode."""
    args = unflatten(structure, list(primals))
    if mode == "fwd":
        tangents = _numbers(jvp(function, args, unflatten(structure, list(directions)))[1])
        return _pairing(weights, tangents)
    gradients = _numbers(_pullback(function, weights)(*args))
    return _pairing([t for t, x in zip(directions, primals) if x.dtype.kind in "fcV"], gradients)


def _derivative_function(
    mode: str, function: Callable[..., Any], directions: Values, weights: Values, structure: Structure
) -> Callable[..., Any]:
    """The derivative as a function of the arguments, for the next order."""
    if mode == "fwd":
        return lambda *args: jvp(function, args, unflatten(structure, list(directions)))[1]
    return _pullback(function, weights)


def _pullback(function: Callable[..., Any], weights: Values) -> Callable[..., Any]:
    """The cotangents of the float leaves of the arguments, as a list."""

    def pulled(*args: Any) -> Any:
        flat, structure = flatten(args)
        floats = [k for k, x in enumerate(flat) if promotion.is_inexact(as_array(x).dtype)]

        def of_floats(*moving: Any) -> Any:
            leaves = list(flat)
            for k, x in zip(floats, moving):
                leaves[k] = x
            return function(*unflatten(structure, leaves))

        results, pullback = vjp(of_floats, *(flat[k] for k in floats))
        return list(pullback(unflatten(flatten(results)[1], list(weights))))

    return pulled


def _numbers(tree: Any) -> Values:
    """The leaves as numpy arrays, narrow floats in f32."""
    leaves = [np.asarray(x) for x in flatten(to_numpy(tree))[0]]
    return [x.astype(np.float32) if x.dtype.kind == "V" or (x.dtype.itemsize < 4 and x.dtype.kind == "f") else x for x in leaves]


def _random(rng: np.random.Generator, like: NDArray[Any]) -> NDArray[Any]:
    """A random array of the same shape and type; zeros for integers."""
    if like.dtype.kind not in "fcV":
        return np.zeros(like.shape, like.dtype)
    values = rng.standard_normal(like.shape)
    return np.asarray(values + 1j * rng.standard_normal(like.shape) if like.dtype.kind == "c" else values).astype(like.dtype)


def _pairing(a: Values, b: Values) -> float:
    """Re(sum a * b)"""
    return float(sum(np.real(np.sum(x * y, dtype=np.result_type(x, y, np.float64))) for x, y in zip(a, b, strict=True)))


def _disagreement(function: Callable[..., Any], mode: str, expected: float, found: float, tolerance: float) -> GradirError:
    name = cast("str", getattr(function, "__name__", "f"))
    error = user_error(
        f"check_grads: the derivative of {name} ({mode}) is not its slope",
        code="AD014",
        part="autodiff",
        expected=f"{expected!r} by central differences, within {tolerance:g}",
        found=repr(found),
        hint="a kink at this point, a rule of one's own that is wrong, or a step that does not suit the function (step=...)",
    )
    return error
