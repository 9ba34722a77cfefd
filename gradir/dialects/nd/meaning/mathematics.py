"""Meaning of the further functions of one number (docs/numerics.md, "Elementwise")."""

from __future__ import annotations

from collections.abc import Callable
from math import erfc as scalar_erfc
from typing import Any

import numpy as np

from gradir.dialects.nd.meaning.elementwise import by_f32, by_f64, erf64, from_double
from gradir.dialects.nd.meaning.rounding import F64, Array


def _round_away(x: Array) -> Array:
    whole = np.trunc(x)  # x - whole is exact, so that 0.49999997 goes to 0
    return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(np.ones((), x.dtype), x), whole)


_ERFC = np.frompyfunc(scalar_erfc, 1, 1)


def erfc64(x: Array) -> Array:
    """erfc of f64 values."""
    return np.asarray(_ERFC(x)).astype(F64)


def erf_inv64(x: Array) -> Array:
    """The inverse of erf: S. Winitzki's approximation (2e-3), then Halley's steps on erf, or on erfc above 1/2 where 1 - |x| is exact."""
    a = np.abs(x)
    w = -np.log((1 - a) * (1 + a))
    t, u = 2 / (np.pi * 0.147) - w / 2, w / 0.147
    root = np.sqrt(t * t + u)
    y = np.sqrt(np.where(t > 0, u / (root + t), root - t))
    for _ in range(3):
        step = np.where(a > 0.5, (1 - a) - erfc64(y), erf64(y) - a) * (np.sqrt(np.pi) / 2) * np.exp(y * y)
        y = y - step / (1 + y * step)
    return np.copysign(np.where(a == 1, np.inf, y), x)


def is_nan(op: Any, x: Array) -> Array:
    return np.isnan(x.astype(F64))


def is_inf(op: Any, x: Array) -> Array:
    return np.isinf(x.astype(F64))


def _bits(x: Array) -> Array:
    """The bits of each element, lowest first, as 0 and 1 along a new last axis."""
    width = 8 * x.dtype.itemsize
    unsigned = np.dtype(f"uint{width}")
    return (x.view(unsigned)[..., None] >> np.arange(width, dtype=unsigned)) & unsigned.type(1)


def popcnt(op: Any, x: Array) -> Array:
    return _bits(x).sum(axis=-1).astype(x.dtype)


def clz(op: Any, x: Array) -> Array:
    bits = _bits(x)
    any_from_here = np.maximum.accumulate(bits[..., ::-1], axis=-1)  # highest first: 1 from the highest 1 on
    return (bits.shape[-1] - any_from_here.sum(axis=-1)).astype(x.dtype)


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
    "nd.erfc": from_double(erfc64),
    "nd.erf_inv": from_double(erf_inv64),
    "nd.is_nan": is_nan,
    "nd.is_inf": is_inf,
    "nd.popcnt": popcnt,
    "nd.clz": clz,
}
