"""Meaning of the special functions: series, recurrences and integrals in f64, other ones than those that the lowering uses."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from gradir.dialects.nd.meaning.elementwise import from_double
from gradir.dialects.nd.meaning.rounding import F32, F64, Array, from_f64

_PI = np.pi
_NODES = 48
"""Points of the trapezoidal rule for Bessel functions; up to x = _NODES its error is below 1e-20 e^x."""

_TAIL = (1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000, 1 / 74724249600, -3617 / 10670622842880000)
"""B_2k / (2k)!, k from 1."""
_SHIFT = 16
_PSI_ROOT = (1.4616321449683622, 9.549995429965697e-17)
"""The positive zero of digamma, in two parts."""
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)


def _raised(x: Array, term: Callable[[Array], Array]) -> tuple[Array, Array]:
    """x + n for n large enough, and the sum of `term` at x, x + 1, ..., x + n - 1."""
    total = np.zeros_like(x)
    for _ in range(_SHIFT):
        low = x < _SHIFT
        total = total + np.where(low, term(x), 0.0)
        x = np.where(low, x + 1, x)
    return x, total


def _reflected(x: Array) -> tuple[Array, Array, Array]:
    """Is x negative, 1 - x where it is (else x), and x minus the next integer."""
    negative = x < 0
    return negative, np.where(negative, 1 - x, x), x - np.rint(x)


def _digamma_between(x: Array) -> Array:
    """For 1 <= x <= 3, with the zero r: (x - r) * sum of 1 / ((k + r) (k + x)), the terms from 64 on by Stirling's series at both ends."""
    root, rest = _PSI_ROOT
    step = (x - root) - rest
    total = sum(1 / ((k + root) * (k + x)) for k in range(63, -1, -1)) * step
    a, b = 64 + root, 64 + x
    total = total + np.log1p(step / a) + step / (2 * a * b) + step * (a + b) / (12 * a * a * b * b)
    return total - sum(c / (2 * k) * (b ** (-2 * k) - a ** (-2 * k)) for k, c in enumerate(_BERNOULLI[1:], 2))


def digamma64(x: Array) -> Array:
    """Close to its zero a sum of positive terms; psi(x + 1) = psi(x) + 1/x; Stirling's series; psi(x) = psi(1 - x) - pi / tan(pi x)."""
    negative, y, rest = _reflected(x)
    near = _digamma_between(np.clip(np.where(y < 1, y + 1, y), 1, 3)) - np.where(y < 1, 1 / y, 0.0)
    z, total = _raised(y, lambda v: 1 / v)
    inverse = 1 / (z * z)
    far = np.log(z) - 0.5 / z - sum(b / (2 * k) * inverse**k for k, b in enumerate(_BERNOULLI, 1)) - total
    value = np.where(y < 3, near, np.where(np.isposinf(y), np.inf, far))
    value = np.where(negative, value - _PI / np.tan(_PI * rest), value)
    return np.where((x == 0) | (negative & (rest == 0)) | np.isneginf(x), np.nan, value)


def trigamma64(x: Array) -> Array:
    """The same for its derivative; psi'(x) = pi^2 / sin(pi x)^2 - psi'(1 - x)."""
    negative, y, rest = _reflected(x)
    y, total = _raised(y, lambda v: 1 / (v * v))
    inverse = 1 / (y * y)
    value = 1 / y + 0.5 * inverse + sum(b * inverse**k for k, b in enumerate(_BERNOULLI, 1)) / y + total
    return np.where(negative, (_PI / np.sin(_PI * rest)) ** 2 - value, value)


def _zeta_positive(s: Array, q: Array) -> Array:
    """Euler and Maclaurin's formula for q > 0, s > 1."""
    total = np.zeros_like(q)
    for k in range(_SHIFT):
        total = total + (q + k) ** -s
    a = q + _SHIFT
    power = a**-s
    tail = a * power / (s - 1) + 0.5 * power
    factor = s / a
    for k, c in enumerate(_TAIL, 1):
        tail = tail + c * factor * power
        factor = factor * (s + 2 * k - 1) * (s + 2 * k) / (a * a)
    return total + np.where((power == 0) | np.isinf(a), 0.0, tail)


def _lgamma_between(x: Array) -> Array:
    """For 1/4 <= x <= 7/2: ln Gamma(2 + z) = (1 - gamma) z + sum of (zeta(k) - 1) (-z)^k / k (DLMF 5.7.3), less ln(1 + z) below 5/4."""
    low = x < 1.25
    z = np.where(low, x - 1, x - 2)
    total = np.zeros_like(x)
    for k in range(130, 1, -1):
        total = total * -z + _zeta_positive(np.array(float(k)), np.array(2.0)) / k
    total = (total * z + (1 - np.euler_gamma)) * z
    return np.where(low, total - np.log1p(np.where(low, z, 0.0)), total)


def lgamma64(x: Array) -> Array:
    """Near 1 and 2 a series; below and above Gamma(x + 1) = x Gamma(x), Stirling's series, Gamma(-x) Gamma(x) = -pi / (x sin(pi x))."""
    a = np.abs(x)
    near_zero = a < 0.25
    y = np.where(near_zero, 1 + x, a)
    factors = np.where(near_zero, 1 / a, 1.0)
    low = y
    for _ in range(_SHIFT):
        again = (low > 3.5) & (y < _SHIFT)
        low = np.where(again, low - 1, low)
        factors = np.where(again, factors * low, factors)
    near = _lgamma_between(np.clip(low, 0.25, 3.5)) + np.log(factors)
    series = sum(b / (2 * k * (2 * k - 1)) * y ** (1 - 2 * k) for k, b in enumerate(_BERNOULLI, 1))
    far = (y - 0.5) * (np.log(y) - 1) + (0.5 * np.log(2 * _PI) - 0.5 + series)
    value = np.where(y < _SHIFT, near, far)
    reflects = (x < 0) & ~near_zero
    rest = np.abs(a - np.rint(a))
    value = np.where(reflects, np.log(_PI / (a * np.sin(_PI * rest))) - value, value)
    return np.where((x == 0) | (reflects & (rest == 0)) | np.isinf(x), np.inf, value)


def zeta64(s: Array, q: Array) -> Array:
    """For q < 0 and an integer s the terms with a negative base are summed apart: they are zeta(s, 1 - f) - zeta(s, 1 - q), f = q mod 1."""
    below = q < 0
    fraction = q - np.floor(q)
    value = _zeta_positive(s, np.where(below, fraction, q))
    sign = np.where(np.floor(s / 2) * 2 == s, 1.0, -1.0)
    value = np.where(below, value + sign * (_zeta_positive(s, 1 - fraction) - _zeta_positive(s, 1 - q)), value)
    pole = (q <= 0) & (fraction == 0)
    value = np.where(pole, np.where(sign > 0, np.inf, np.nan), value)
    value = np.where((q <= 0) & (np.floor(s) != s), np.nan, value)
    value = np.where(s == 1, np.inf, np.where(s < 1, np.nan, value))
    return np.where(np.isnan(s) | np.isnan(q) | np.isneginf(q), np.nan, value)


def polygamma64(n: Array, x: Array) -> Array:
    """psi_n(x) = (-1)^(n + 1) n! zeta(n + 1, x); digamma and trigamma for n = 0 and 1, NaN for other n than whole ones from 0."""
    sign = np.where(np.floor(n / 2) * 2 == n, -1.0, 1.0)
    value = sign * np.exp(lgamma64(n + 1)) * zeta64(n + 1, x)
    value = np.where(n == 0, digamma64(x), np.where(n == 1, trigamma64(x), value))
    return np.where((n < 0) | (np.floor(n) != n), np.nan, value)


def _bessel(order: int, x: Array) -> Array:
    """An integral over half a period, by the trapezoidal rule; beyond x = 48 the asymptotic series (NIST DLMF 10.32.1, 10.32.2, 10.40.1).

    I_0(x) = 1/pi * integral from 0 to pi of e^(x cos t) dt, I_1(x) = x/pi * integral of e^(x cos t) sin(t)^2 dt.
    """
    a = np.minimum(np.abs(x), _NODES)
    total = np.zeros_like(a)
    for k in range(_NODES, -1, -1):
        angle = _PI * k / _NODES
        weight = (0.5 if k in (0, _NODES) else 1.0) * (1.0 if order == 0 else np.sin(angle) ** 2)
        total = total + weight * np.exp(-2 * a * np.sin(angle / 2) ** 2)
    near = total / _NODES * (1.0 if order == 0 else a)
    b = np.maximum(np.abs(x), _NODES)
    term, series = np.ones_like(b), np.ones_like(b)
    for k in range(1, 25):
        term = term * -(4 * order * order - (2 * k - 1) ** 2) / (k * 8 * b)
        series = series + term
    far = series / np.sqrt(2 * _PI * b)
    value = np.where(np.abs(x) > _NODES, far, near)
    return np.copysign(value, x) if order else value


def _pair(function: Callable[[Array, Array], Array]) -> Callable[..., Array]:
    def evaluate(op: Any, x: Array, y: Array) -> Array:
        return from_f64(function(x.astype(F64), y.astype(F64)), x.dtype)

    return evaluate


def fma(op: Any, a: Array, b: Array, c: Array) -> Array:
    """f64 in integers; f32 from an f64 sum that is rounded to odd, so that the second rounding cannot go wrong; f16, bf16: that of f32."""
    if a.dtype == F64:
        return np.asarray(_FMA(a, b, c)).astype(F64)
    x, y, z = (v.astype(F64) for v in (a, b, c))
    product = x * y
    total = product + z
    virtual = total - product
    error = (product - (total - virtual)) + (z - virtual)
    bits = total.view(np.int64)
    away = (error > 0) == (total > 0)
    odd = np.where((error != 0) & np.isfinite(total) & (bits & 1 == 0), np.where(away, bits + 1, bits - 1), bits).view(F64)
    return odd.astype(F32).astype(a.dtype)


def _exact_fma(a: float, b: float, c: float) -> float:
    if not (np.isfinite(a) and np.isfinite(b)) or a == 0 or b == 0:
        return a * b + c
    if not np.isfinite(c):
        return c
    (p, q), (r, s), (t, u) = a.as_integer_ratio(), b.as_integer_ratio(), c.as_integer_ratio()
    numerator, denominator = p * r * u + t * q * s, q * s * u
    if numerator == 0:
        return a * b + c
    try:
        return numerator / denominator  # Python's division of integers rounds once
    except OverflowError:
        return np.inf if numerator > 0 else -np.inf


_FMA = np.frompyfunc(_exact_fma, 3, 1)

EVALUATE: dict[str, Callable[..., Any]] = {
    "nd.lgamma": from_double(lgamma64),
    "nd.digamma": from_double(digamma64),
    "nd.trigamma": from_double(trigamma64),
    "nd.bessel_i0e": from_double(partial(_bessel, 0)),
    "nd.bessel_i1e": from_double(partial(_bessel, 1)),
    "nd.zeta": _pair(zeta64),
    "nd.polygamma": _pair(polygamma64),
    "nd.fma": fma,
}
