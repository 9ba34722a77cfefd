"""Values of more precision rounded once: `fma`, directed roundings, f64 to narrow types.

Rounding to odd (the last bit of an inexact result is set) keeps what a second rounding to fewer bits needs to know: Boldo and Melquiond,
"Emulation of a FMA and correctly rounded sums: proved algorithms using rounding to odd" (IEEE Transactions on Computers, 2008).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np

from gradir.ptx.instructions.forms import Array

_SPLIT = float(2**27 + 1)
_LARGE, _SMALL = 2.0**990, 2.0**-960
"""Between these no step of the error-free transformations overflows or loses bits."""


def _two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Knuth: the sum, and its error exactly."""
    total = a + b
    back = total - a
    return total, (a - (total - back)) + (b - back)


def _two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """Dekker: the product, and its error exactly."""
    product = a * b
    ah, bh = a * _SPLIT - (a * _SPLIT - a), b * _SPLIT - (b * _SPLIT - b)
    al, bl = a - ah, b - bh
    return product, ((ah * bh - product) + ah * bl + al * bh) + al * bl


def odd_sum(a: Array, b: Array) -> Array:
    """a + b in f64, rounded to odd."""
    total, error = _two_sum(a, b)
    bits = total.view(np.int64)
    even = (error != 0) & np.isfinite(total) & (bits & 1 == 0) & (total != 0)
    return np.where(even, bits + np.where((error > 0) == (total > 0), 1, -1), bits).view(np.float64)


def fma(a: Array, b: Array, c: Array) -> Array:
    """a * b + c of one float type, rounded once."""
    a, b, c = (np.array(v) for v in np.broadcast_arrays(a, b, c))
    with np.errstate(all="ignore"):
        if a.dtype == np.float64:
            return _fma_f64(a, b, c)
        product = a.astype(np.float64) * b.astype(np.float64)  # exact: 24 + 24 bits and less
        return narrowed(odd_sum(product, c.astype(np.float64)), a.dtype)


def _fma_f64(a: Array, b: Array, c: Array) -> Array:
    high, low = _two_product(a, b)
    partial, first = _two_sum(c, low)
    total, second = _two_sum(high, partial)
    found = total + odd_sum(first, second)
    plain = a * b + c
    easy = (np.abs(a) < _LARGE) & (np.abs(b) < _LARGE) & (np.abs(c) < _LARGE) & (np.abs(high) < _LARGE) & (np.abs(high) > _SMALL)
    simple = (a == 0) | (b == 0) | ~(np.isfinite(a) & np.isfinite(b) & np.isfinite(c))
    found = np.where(simple, plain, np.where(total == 0, total + (first + second), found))
    for place in np.argwhere(~easy & ~simple):
        at = tuple(place)
        found[at] = _by_fractions(float(a[at]), float(b[at]), float(c[at]))
    return found


def _by_fractions(a: float, b: float, c: float) -> float:
    """The same near the ends of the range, where the error of a product is no number."""
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return 0.0
    try:
        return float(exact)
    except OverflowError:
        return np.inf if exact > 0 else -np.inf


def directed(values: Array, exact: Array, rounding: str) -> Array:
    """`values` (nearest) moved to the neighbour that `rounding` asks for, given values of more precision."""
    over = values.astype(np.float64) > exact
    under = values.astype(np.float64) < exact
    down, up = np.nextafter(values, values.dtype.type(-np.inf)), np.nextafter(values, values.dtype.type(np.inf))
    if rounding == "rm":
        return np.where(over, down, values)
    if rounding == "rp":
        return np.where(under, up, values)
    return np.where(over & (exact > 0), down, np.where(under & (exact < 0), up, values))


def narrowed(wide: Array, dtype: np.dtype[Any]) -> Array:
    """f64 rounded once to a narrower type: what goes through f32 is made odd first where f32 would round on its own."""
    if dtype != np.dtype(ml_dtypes.bfloat16):
        return wide.astype(dtype)
    single = wide.astype(np.float32)
    inexact = single.astype(np.float64) != wide
    bits = single.view(np.int32)
    toward = np.where((np.abs(single.astype(np.float64)) > np.abs(wide)) & inexact, -1, 0)
    odd = np.where(inexact & np.isfinite(single), (bits + toward) | 1, bits).astype(np.int32)
    return odd.view(np.float32).astype(dtype)
