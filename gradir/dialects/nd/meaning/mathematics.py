"""Meaning of the further functions of one number (docs/numerics.md, "Elementwise")."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradir.dialects.nd.meaning.elementwise import by_f32, by_f64
from gradir.dialects.nd.meaning.rounding import Array


def _round_away(x: Array) -> Array:
    whole = np.trunc(x)  # x - whole is exact, so that 0.49999997 goes to 0
    return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(np.ones((), x.dtype), x), whole)


EVALUATE: dict[str, Callable[..., Any]] = {
    "nd.round_even": by_f32(np.rint),
    "nd.round_away": by_f32(_round_away),
    "nd.trunc": by_f32(np.trunc),
    "nd.cbrt": by_f64(np.cbrt),
    "nd.tan": by_f64(np.tan),
    "nd.asin": by_f64(np.arcsin),
    "nd.acos": by_f64(np.arccos),
    "nd.atan": by_f64(np.arctan),
    "nd.sinh": by_f64(np.sinh),
    "nd.cosh": by_f64(np.cosh),
    "nd.asinh": by_f64(np.arcsinh),
    "nd.acosh": by_f64(np.arccosh),
    "nd.atanh": by_f64(np.arctanh),
}
