"""`check_grads`: derivatives of a function of one's own against finite differences and against each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradir.errors import GradirError
from gradir.frontends.python.eager import to_numpy
from gradir.frontends.python.jit import jit
from gradir.frontends.python.linear_maps import vjp
from gradir.frontends.python.operands import as_array
from gradir.frontends.python.pytrees import Structure, flatten, paths, unflatten
from gradir.frontends.python.requests import name_of, needs_arguments, needs_function, needs_sequence
from gradir.frontends.python.sizes import whole
from gradir.frontends.python.trace import user_error
from gradir.frontends.python.transforms import jvp

MODES = ("fwd", "rev")
LIMITS = {8: (1e-6, 1e-6), 4: (1e-2, 2e-2), 2: (0.125, 0.15)}
"""Step of the differences and tolerance (relative to 1 and to the value), by the bytes of the narrowest float in arguments and results."""

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
    difference of the results, so for f64 arguments within about 1e-6; and the results that come with a derivative against those of the
    function. Integers do not move. Raises GradirError AD014 that names the mode, the order, the argument and both numbers: also where
    numbers are not finite, and at a kink, where a check means nothing.
    """
    needs_function("check_grads", function)
    needs_sequence("check_grads", "arguments", args)
    needs_arguments("check_grads", function, args)
    whole("check_grads: order", order, 1)
    modes = (modes,) if isinstance(modes, str) else tuple(modes)
    for mode in modes or ("",):
        if mode not in MODES:
            raise user_error("check_grads: no such mode", code="GR104", expected=", ".join(MODES), found=repr(mode))
    for what, limit in (("step", step), ("tolerance", tolerance)):
        _needs_positive(f"check_grads: {what}", limit)
    rng = np.random.default_rng(seed)
    _Point(jit(function), tuple(args), name_of(function), modes, (step, tolerance), rng).check(order)


def _needs_positive(what: str, limit: Any) -> None:
    if limit is not None and not (isinstance(limit, int | float | np.number) and 0 < limit < np.inf):
        raise user_error(f"{what} is no positive number", code="GR112", expected="a finite number above 0", found=repr(limit)[:80])


@dataclass(frozen=True)
class _Point:
    """A function, where it is checked, and what all orders share."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    name: str
    modes: tuple[str, ...]
    limits: tuple[float | None, float | None]
    rng: np.random.Generator

    def check(self, order: int, path: str = "") -> None:
        """Both modes at this order, then the derivatives as functions of their own."""
        flat, structure = flatten(self.args)
        primals = [np.asarray(as_array(x).concrete) for x in flat]
        here = self.values(unflatten(structure, list(primals)))
        step, tolerance = self.precision([*primals, *here])
        line = _Line(self, primals, structure, [_random(self.rng, x) for x in primals], [_random(self.rng, y) for y in here], step)
        for mode in self.modes:
            what = f"{path}{mode}"
            values, found = line.derivative(mode)
            if not all(
                np.allclose(_wide(a), _wide(b), rtol=tolerance, atol=tolerance, equal_nan=True) for a, b in zip(values, here, strict=True)
            ):
                raise self.error(f"the results that come with the derivative of {self.name} ({what}) are others", repr(here), repr(values))
            self.compare(line, mode, what, found, tolerance)
            if order > 1:
                replace(self, function=line.derivative_function(mode)).check(order - 1, f"{what} of ")

    def compare(self, line: _Line, mode: str, what: str, found: float, tolerance: float) -> None:
        """Raise the error AD014 unless the derivative is the slope."""
        expected = line.slope()
        if np.isfinite(found) and np.isfinite(expected) and np.isclose(found, expected, rtol=tolerance, atol=tolerance):
            return
        near = f"{expected!r} by central differences, within {tolerance:g}"
        if not np.isfinite(expected):
            raise self.error(f"{self.name} ({what}) has no finite slope at this point", "finite numbers", f"a slope of {expected!r}")
        if not np.isfinite(found):
            raise self.error(f"the derivative of {self.name} ({what}) is not finite, the slope is", near, repr(found))
        right, left = line.sides()
        if not np.isclose(right, left, rtol=0.1, atol=10 * tolerance):
            raise self.error(f"{self.name} ({what}) has a kink at this point", f"one slope, found {left!r} and {right!r}", repr(found))
        for path, part in line.parts():
            slope, own = part.slope(), part.derivative(mode)[1]
            if not np.isclose(own, slope, rtol=tolerance, atol=tolerance):
                message = f"the derivative of {self.name} ({what}) by argument {path} is not its slope"
                raise self.error(message, f"{slope!r} by central differences, within {tolerance:g}", repr(own))
        raise self.error(f"the derivative of {self.name} ({what}) is not its slope", near, repr(found))

    def values(self, args: tuple[Any, ...]) -> Values:
        return _numbers(self.function(*args))

    def precision(self, values: Values) -> tuple[float, float]:
        """Step and tolerance for the narrowest float."""
        sizes = [x.dtype.itemsize // (2 if x.dtype.kind == "c" else 1) for x in values if x.dtype.kind in "fcV"]
        step, tolerance = LIMITS[max(2, min(sizes, default=8))]
        return (step if self.limits[0] is None else self.limits[0], tolerance if self.limits[1] is None else self.limits[1])

    def error(self, message: str, expected: str, found: str) -> GradirError:
        return user_error(
            f"check_grads: {message}",
            code="AD014",
            part="autodiff",
            expected=expected,
            found=found,
            hint="a kink at this point, a rule of one's own that is wrong, or a step that does not suit the function (step=...)",
        )


@dataclass(frozen=True)
class _Line:
    """The weighted results of a function along a line through a point."""

    point: _Point
    primals: Values
    structure: Structure
    directions: Values
    weights: Values
    step: float

    def at(self, by: float) -> float:
        """The weighted sum of the results at `by` along the line."""
        there = [(x + by * t).astype(x.dtype) if x.dtype.kind in "fcV" else x for x, t in zip(self.primals, self.directions)]
        return _pairing(self.weights, self.point.values(unflatten(self.structure, there)))

    def slope(self) -> float:
        return (self.at(self.step) - self.at(-self.step)) / (2 * self.step)

    def sides(self) -> tuple[float, float]:
        """The slopes ahead and behind."""
        here = self.at(0.0)
        return (self.at(self.step) - here) / self.step, (here - self.at(-self.step)) / self.step

    def parts(self) -> Iterator[tuple[str, _Line]]:
        """The lines along each leaf of the arguments that moves, and the path of the leaf."""
        for k, (path, x) in enumerate(zip(paths(self.structure), self.primals)):
            if x.dtype.kind in "fcV":
                directions = [t if j == k else np.zeros_like(t) for j, t in enumerate(self.directions)]
                yield path[1:].replace("]", "", 1), replace(self, directions=directions)

    def derivative(self, mode: str) -> tuple[Values, float]:
        """The results, and sum of weights * (J direction), by the mode."""
        args = unflatten(self.structure, list(self.primals))
        if mode == "fwd":
            results, tangents = jvp(self.point.function, args, unflatten(self.structure, list(self.directions)))
            return _numbers(results), _pairing(self.weights, _numbers(tangents))
        results, pullback = vjp(self.point.function, *args)
        cotangents = pullback(unflatten(flatten(results)[1], list(self.weights)))
        return _numbers(results), _pairing(self.directions, _numbers(cotangents))

    def derivative_function(self, mode: str) -> Callable[..., Any]:
        """The derivative as a function of the arguments, for the next order."""
        function = self.point.function
        if mode == "fwd":
            return lambda *args: jvp(function, args, unflatten(self.structure, list(self.directions)))[1]

        def pulled(*args: Any) -> Any:
            results, pullback = vjp(function, *args)
            return pullback(unflatten(flatten(results)[1], list(self.weights)))

        return pulled


def _numbers(tree: Any) -> Values:
    """The leaves as numpy arrays."""
    return [np.asarray(x) for x in flatten(to_numpy(tree))[0]]


def _wide(x: NDArray[Any]) -> NDArray[Any]:
    """In double precision."""
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def _random(rng: np.random.Generator, like: NDArray[Any]) -> NDArray[Any]:
    """A random array of the same shape and type; zeros for integers."""
    if like.dtype.kind not in "fcV":
        return np.zeros(like.shape, like.dtype)
    values = rng.standard_normal(like.shape)
    return np.asarray(values + 1j * rng.standard_normal(like.shape) if like.dtype.kind == "c" else values).astype(like.dtype)


def _pairing(a: Values, b: Values) -> float:
    """Re(sum a * b)"""
    return float(sum(np.real(np.sum(_wide(x) * _wide(y))) for x, y in zip(a, b, strict=True)))
