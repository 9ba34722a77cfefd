"""What each function of one number is measured against: an f64 function on arrays, and the same in mpmath for the hard spots.

numpy where its f64 function is good to an ulp or so (the C library's), scipy.special for what numpy lacks. Bounds: docs/numerics.md,
"Elementwise", row "accuracy".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np
import scipy.special as sp

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Reference:
    """`symmetry`: "odd" or "even", whose negative half needs no reference of its own; `exact`: one number in mpmath."""

    name: str
    function: Callable[[Array], Array]
    bound: float
    exact: Callable[[Any], Any]
    symmetry: str = ""

    @property
    def op(self) -> str:
        """The op's name."""
        return f"nd.{self.name}"


def logistic(x: Array) -> Array:
    """StableHLO's formula in f32, with one exact power: its overflow is part of the meaning."""
    power = np.exp(-x).astype(np.float32).astype(np.float64)
    return 1.0 / (1.0 + power)


def _exact_logistic(x: Any) -> Any:
    power = mpmath.exp(-x)
    return mpmath.mpf(0) if power > 3.4028235677973366e38 else 1 / (1 + mpmath.mpf(float(np.float32(float(power)))))


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
    Reference("exp", np.exp, 2, mpmath.exp),
    Reference("log", np.log, 2, _real(mpmath.log)),
    Reference("tanh", np.tanh, 2, mpmath.tanh, "odd"),
    Reference("erf", sp.erf, 2, mpmath.erf, "odd"),
    Reference("sin", np.sin, 2, mpmath.sin, "odd"),
    Reference("cos", np.cos, 2, mpmath.cos, "even"),
    Reference("expm1", np.expm1, 4, mpmath.expm1),
    Reference("log1p", np.log1p, 4, _real(mpmath.log1p)),
    Reference("logistic", logistic, 4, _exact_logistic),
    Reference("sqrt", np.sqrt, 0.5, _real(mpmath.sqrt)),
    Reference("rsqrt", lambda x: 1.0 / np.sqrt(x), 4, _real(lambda x: 1 / mpmath.sqrt(x))),
    Reference("cbrt", np.cbrt, 4, lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)), "odd"),
    Reference("tan", np.tan, 4, mpmath.tan, "odd"),
    Reference("asin", np.arcsin, 4, _real(mpmath.asin), "odd"),
    Reference("acos", np.arccos, 4, _real(mpmath.acos)),
    Reference("atan", np.arctan, 4, mpmath.atan, "odd"),
    Reference("sinh", np.sinh, 4, mpmath.sinh, "odd"),
    Reference("cosh", np.cosh, 4, mpmath.cosh, "even"),
    Reference("asinh", np.arcsinh, 4, mpmath.asinh, "odd"),
    Reference("acosh", np.arccosh, 4, _real(mpmath.acosh)),
    Reference("atanh", np.arctanh, 4, _real(mpmath.atanh), "odd"),
    Reference("erfc", sp.erfc, 4, mpmath.erfc),
    Reference("erf_inv", sp.erfinv, 4, _real(mpmath.erfinv), "odd"),
    _exact("floor", np.floor),
    _exact("ceil", np.ceil),
    _exact("trunc", np.trunc, "odd"),
    _exact("round_even", np.rint, "odd"),
    _exact("round_away", _round_away, "odd"),
    _exact("sign", np.sign, "odd"),
    _exact("neg", np.negative, "odd"),
    _exact("abs", np.abs, "even"),
    _exact("relu", lambda x: np.where((x > 0) | np.isnan(x), x, 0.0)),
)
