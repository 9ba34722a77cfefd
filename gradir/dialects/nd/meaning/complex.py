"""Meaning of the ops on complex numbers that numpy does not compute as docs/numerics.md, "complex", says.

`COMPLEX` holds, for ops that take real numbers too, what they do with complex ones; an op without a row there has one definition for
both. complex<f32> is computed in complex128 and complex<f64> in numpy's longest complex type, and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradir.dialects.nd.meaning.elementwise import by_f64
from gradir.dialects.nd.meaning.rounding import Array


def _complex(re: Array, im: Array) -> Array:
    """`re + im * i`, part by part: arithmetic would mix infinities."""
    result = np.empty(re.shape, np.result_type(re, np.complex64))
    result.real, result.imag = re, im
    return result


def make(op: Any, re: Array, im: Array) -> Array:
    return _complex(re, im)


def real(op: Any, z: Array) -> Array:
    return np.real(z).copy()


def imag(op: Any, z: Array) -> Array:
    return np.imag(z).copy()


def conj(op: Any, z: Array) -> Array:
    return np.conjugate(z)


def absolute(op: Any, z: Array) -> Array:
    wide = z.astype(np.complex128 if z.dtype == np.complex64 else np.clongdouble)
    return np.hypot(np.real(wide), np.imag(wide)).astype(np.real(z).dtype)


def _sign(z: Array) -> Array:
    x, y = np.real(z), np.imag(z)
    size = np.hypot(x, y)
    return np.where(size == 0, z, _complex(x / size, y / size))


def _expm1(z: Array) -> Array:
    """e**x cos y - 1 == expm1(x) cos y - 2 sin(y/2)**2"""
    x, y = np.real(z), np.imag(z)
    re = np.expm1(x) * np.cos(y) - 2 * np.sin(y / 2) ** 2
    is_real = (y == 0) | (np.isinf(x) & ~np.isfinite(y))
    im = np.where((x == -np.inf) & ~np.isfinite(y), 0, np.exp(x) * np.sin(y))
    return _complex(np.where(is_real, np.expm1(x), re), np.where(y == 0, y, im))


def _log1p(z: Array) -> Array:
    """|1 + z|**2 - 1 == x (2 + x) + y**2"""
    x, y = np.real(z), np.imag(z)
    is_small = np.maximum(np.abs(x), np.abs(y)) < 0.5
    near = np.log1p(np.where(is_small, x * (2 + x) + y * y, 0)) / 2
    return _complex(np.where(is_small, near, np.log(np.hypot(1 + x, y))), np.arctan2(y, 1 + x))


def _rsqrt(z: Array) -> Array:
    """0 at infinity and NaN at 0, in whatever direction."""
    return np.where(np.isinf(z), 0, np.where(z == 0, complex(np.nan, np.nan), 1 / np.sqrt(z)))


def _strong(x: Array, y: Array) -> Array:
    """`x * y` where 0 wins over infinity and NaN."""
    return np.where((x == 0) | (y == 0), 0, x * y)


def _sin(z: Array) -> Array:
    x, y = np.real(z), np.imag(z)
    return _complex(_strong(np.sin(x), np.cosh(y)), _strong(np.cos(x), np.sinh(y)))


def _cos(z: Array) -> Array:
    x, y = np.real(z), np.imag(z)
    return _complex(_strong(np.cos(x), np.cosh(y)), _strong(-np.sin(x), np.sinh(y)))


def _sinh(z: Array) -> Array:
    x, y = np.real(z), np.imag(z)
    return _complex(_strong(np.sinh(x), np.cos(y)), _strong(np.cosh(x), np.sin(y)))


def _cosh(z: Array) -> Array:
    x, y = np.real(z), np.imag(z)
    return _complex(_strong(np.cosh(x), np.cos(y)), _strong(np.sinh(x), np.sin(y)))


def _cbrt(z: Array) -> Array:
    """The root of least angle: |z|**(1/3) at a third of the angle."""
    size, angle = np.cbrt(np.hypot(np.real(z), np.imag(z))), np.arctan2(np.imag(z), np.real(z)) / 3
    return _complex(size * np.cos(angle), size * np.sin(angle))


def _logistic(z: Array) -> Array:
    """For x < 0 as e**z / (1 + e**z), so that nothing overflows; 1 + e**x cos y == 2 cos(y/2)**2 + expm1(x) cos y near the poles."""
    x, y = np.real(z), np.imag(z)
    is_right, away = x >= 0, -np.abs(x)
    power = np.exp(_complex(away, np.where(is_right, -y, y)))
    more = 2 * np.cos(y / 2) ** 2 + np.expm1(away) * np.cos(y)
    return np.where(is_right, 1, power) / _complex(more, np.imag(power))


def equal(op: Any, x: Array, y: Array) -> Array:
    return x == y if op.direction.data.value == "eq" else x != y


EVALUATE: dict[str, Callable[..., Any]] = {"nd.complex": make, "nd.real": real, "nd.imag": imag, "nd.conj": conj}
COMPLEX: dict[str, Callable[..., Any]] = {
    "nd.abs": absolute,
    "nd.sign": by_f64(_sign),
    "nd.expm1": by_f64(_expm1),
    "nd.log1p": by_f64(_log1p),
    "nd.rsqrt": by_f64(_rsqrt),
    "nd.cbrt": by_f64(_cbrt),
    "nd.logistic": by_f64(_logistic),
    "nd.sqrt": by_f64(np.sqrt),
    "nd.sin": by_f64(_sin),
    "nd.cos": by_f64(_cos),
    "nd.sinh": by_f64(_sinh),
    "nd.cosh": by_f64(_cosh),
    "nd.compare": equal,
}
