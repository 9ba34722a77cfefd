"""What each function of one number is measured against: an f64 function on arrays, and the same in mpmath for the hard spots.

numpy where its f64 function is good to an ulp or so (the C library's), scipy.special for what numpy lacks. Bounds: docs/numerics.md,
"Elementwise", row "accuracy".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np
import scipy.special as sp

Array = np.ndarray[Any, Any]


TINY = 2.0**-30
"""Below it `tiny` is exact to 2^-59: the next term is smaller by x^2, or by x where it is not wanted to be better."""


@dataclass(frozen=True)
class Reference:
    """`symmetry`: "odd" or "even", whose negative half needs no reference of its own; `exact`: one number in mpmath.

    `tiny` and, from |x| = `huge` on, `large` are what the function is to far more digits than are looked at, and cost less.
    """

    name: str
    function: Callable[[Array], Array]
    bound: float
    exact: Callable[[Any], Any]
    symmetry: str = ""
    tiny: Callable[[Array], Array] | None = None
    huge: float = math.inf
    large: Callable[[Array], Array] | None = None

    @property
    def op(self) -> str:
        """The op's name."""
        return f"nd.{self.name}"

    def on_block(self, x: Array) -> Array:
        """The function on f64 numbers of one sign, in the order of their magnitudes."""
        least, most = abs(float(x[0])), abs(float(x[-1]))
        if self.tiny is not None and most < TINY:
            return self.tiny(x)
        if self.large is not None and least >= self.huge and most < math.inf:
            return self.large(x)
        return self.function(x)


def _same(x: Array) -> Array:
    return x


def _with_zeros(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """An odd function that forgets the sign of -0."""
    return lambda x: np.where(x == 0, x, function(x))


def _constant(value: float) -> Callable[[Array], Array]:
    return lambda x: np.full_like(x, value)


def _signed(value: float) -> Callable[[Array], Array]:
    return lambda x: np.copysign(value, x)


def _choice(below: float, above: float) -> Callable[[Array], Array]:
    return lambda x: np.where(x < 0, below, above)


_NAN, _INF = math.nan, math.inf


def logistic(x: Array) -> Array:
    """StableHLO's formula in f32, with one exact power: its overflow is part of the meaning."""
    power = np.exp(-x).astype(np.float32).astype(np.float64)
    return 1.0 / (1.0 + power)


def _exact_logistic(x: Any) -> Any:
    power = mpmath.exp(-x)
    return mpmath.mpf(0) if power > 3.4028235677973366e38 else 1 / (1 + mpmath.mpf(float(np.float32(float(power)))))


def lgamma(x: Array) -> Array:
    """ln |Gamma|, inf at both infinities."""
    return np.where(np.isinf(x), _INF, sp.gammaln(x))


def digamma(x: Array) -> Array:
    """psi(1 - x) - pi / tan(pi x) for negative x, where scipy takes long; NaN at 0 and at negative integers."""
    negative = x < 0
    value = sp.digamma(np.where(negative, 1 - x, x))
    rest = x - np.rint(x)
    value = np.where(negative, value - math.pi / np.tan(math.pi * rest), value)
    return np.where((x == 0) | (negative & (rest == 0)) | np.isneginf(x), _NAN, value)


def trigamma(x: Array) -> Array:
    """By zeta for positive x; psi'(x) = pi^2 / sin(pi x)^2 - psi'(1 - x) for negative x."""
    return _trigamma(x, sp.zeta(2.0, np.where(x < 0, 1 - x, x)))


def trigamma_of_large(x: Array) -> Array:
    """1/y + 1/(2 y^2) + 1/(6 y^3) - 1/(30 y^5) + ..."""
    y = np.where(x < 0, 1 - x, x)
    square = 1 / (y * y)
    return _trigamma(x, 1 / y + square / 2 + square / y * (1 / 6 - square * (1 / 30 - square / 42)))


def _trigamma(x: Array, value: Array) -> Array:
    sine = np.sin(math.pi * (x - np.rint(x)))
    value = np.where(x < 0, (math.pi / sine) ** 2 - value, value)
    return np.where(np.isneginf(x), _NAN, np.where(x == 0, _INF, value))


def _exact_lgamma(x: Any) -> Any:
    return mpmath.inf if mpmath.isinf(x) or (x <= 0 and x == mpmath.floor(x)) else mpmath.loggamma(x).real


def _exact_psi(order: int) -> Callable[[Any], Any]:
    """mpmath's by reflection for negative x, where it takes long."""

    def exact(x: Any) -> Any:
        if x <= 0 and x == mpmath.floor(x):
            return mpmath.nan if order == 0 else mpmath.inf
        if x > 0:
            return mpmath.psi(order, x)
        angle = mpmath.pi * (x - mpmath.nint(x))
        return (
            mpmath.psi(0, 1 - x) - mpmath.pi / mpmath.tan(angle)
            if order == 0
            else (mpmath.pi / mpmath.sin(angle)) ** 2 - mpmath.psi(1, 1 - x)
        )

    return exact


def _exact_erf_inv(x: Any) -> Any:
    return mpmath.erfinv(x) if abs(x) <= 1 else mpmath.nan


def _round_away(x: Array) -> Array:
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


def _real(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """NaN where mpmath's result is complex."""

    def real(x: Any) -> Any:
        value = function(x)
        return value if isinstance(value, mpmath.mpf) else mpmath.nan

    return real


def _by_numpy(function: Callable[[Array], Array]) -> Callable[[Any], Any]:
    """An exact function of doubles as one of mpmath."""
    return lambda x: mpmath.mpf(float(function(np.float64(x))))


def _exact(name: str, function: Callable[[Array], Array], symmetry: str = "") -> Reference:
    """A function whose result is a float: no rounding at all."""
    return Reference(name, function, 0.0, _by_numpy(function), symmetry)


REFERENCES: tuple[Reference, ...] = (
    Reference("exp", np.exp, 2, mpmath.exp, tiny=lambda x: 1.0 + x, huge=105, large=_choice(0.0, _INF)),
    Reference("log", np.log, 2, _real(mpmath.log)),
    Reference("tanh", np.tanh, 2, mpmath.tanh, "odd", tiny=_same, huge=30, large=_signed(1.0)),
    Reference("erf", sp.erf, 2, mpmath.erf, "odd", tiny=lambda x: x * (2 / math.sqrt(math.pi)), huge=30, large=_signed(1.0)),
    Reference("sin", np.sin, 2, mpmath.sin, "odd", tiny=_same),
    Reference("cos", np.cos, 2, mpmath.cos, "even", tiny=_constant(1.0)),
    Reference("expm1", np.expm1, 4, mpmath.expm1, tiny=lambda x: x + x * x / 2, huge=105, large=_choice(-1.0, _INF)),
    Reference("log1p", np.log1p, 4, _real(mpmath.log1p), tiny=lambda x: x - x * x / 2),
    Reference("logistic", logistic, 4, _exact_logistic, tiny=_constant(0.5), huge=105, large=_choice(0.0, 1.0)),
    Reference("sqrt", np.sqrt, 0.5, _real(mpmath.sqrt)),
    Reference("rsqrt", lambda x: 1.0 / np.sqrt(x), 4, _real(lambda x: 1 / mpmath.sqrt(x))),
    Reference("cbrt", np.cbrt, 4, lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)), "odd"),
    Reference("tan", np.tan, 4, mpmath.tan, "odd", tiny=_same),
    Reference("asin", np.arcsin, 4, _real(mpmath.asin), "odd", tiny=_same, huge=2, large=_constant(_NAN)),
    Reference("acos", np.arccos, 4, _real(mpmath.acos), tiny=lambda x: math.pi / 2 - x, huge=2, large=_constant(_NAN)),
    Reference("atan", np.arctan, 4, mpmath.atan, "odd", tiny=_same, huge=2.0**30, large=lambda x: np.copysign(math.pi / 2, x) - 1 / x),
    Reference("sinh", np.sinh, 4, mpmath.sinh, "odd", tiny=_same, huge=100, large=_signed(_INF)),
    Reference("cosh", np.cosh, 4, mpmath.cosh, "even", tiny=_constant(1.0), huge=100, large=_constant(_INF)),
    Reference("asinh", np.arcsinh, 4, mpmath.asinh, "odd", tiny=_same),
    Reference("acosh", np.arccosh, 4, _real(mpmath.acosh), tiny=_constant(_NAN)),
    Reference("atanh", np.arctanh, 4, _real(mpmath.atanh), "odd", tiny=_same, huge=2, large=_constant(_NAN)),
    Reference("erfc", sp.erfc, 4, mpmath.erfc, tiny=lambda x: 1.0 - x * (2 / math.sqrt(math.pi)), huge=11, large=_choice(2.0, 0.0)),
    Reference(
        "erf_inv",
        _with_zeros(sp.erfinv),
        4,
        _exact_erf_inv,
        "odd",
        tiny=lambda x: x * (math.sqrt(math.pi) / 2),
        huge=2,
        large=_constant(_NAN),
    ),
    Reference("lgamma", lgamma, 4, _exact_lgamma, tiny=lambda x: -np.log(np.abs(x)) - np.euler_gamma * x),
    Reference("digamma", digamma, 4, _exact_psi(0), tiny=lambda x: np.where(x == 0, _NAN, -1.0 / x - np.euler_gamma)),
    Reference("trigamma", trigamma, 4, _exact_psi(1), tiny=lambda x: 1.0 / (x * x) + math.pi**2 / 6, huge=64, large=trigamma_of_large),
    Reference("bessel_i0e", sp.i0e, 4, lambda x: mpmath.exp(-abs(x)) * mpmath.besseli(0, x), "even", tiny=lambda x: 1.0 - np.abs(x)),
    Reference(
        "bessel_i1e",
        _with_zeros(sp.i1e),
        4,
        lambda x: mpmath.exp(-abs(x)) * mpmath.besseli(1, x),
        "odd",
        tiny=lambda x: x * 0.5 * (1 - np.abs(x)),
    ),
    _exact("floor", np.floor),
    _exact("ceil", np.ceil),
    _exact("trunc", np.trunc, "odd"),
    _exact("round_even", np.rint, "odd"),
    _exact("round_away", _round_away, "odd"),
    _exact("sign", _with_zeros(np.sign), "odd"),
    _exact("neg", np.negative, "odd"),
    _exact("abs", np.abs, "even"),
    _exact("relu", lambda x: np.where((x > 0) | np.isnan(x), x, 0.0)),
)
