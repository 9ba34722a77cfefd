"""erf and erfc.

f32: 1 - exp(-Q(x)) in one piece (after N. Juffa's erff, which takes two). f64: an odd polynomial below 1, 1 - exp(-x^2) R((x-3)/(x+3))
above.
erfc: exp(-x^2) P((x-k)/(x+k)) / (1 + 2x) for x > 3/8
(M. Shepherd, J. Laframboise, "Chebyshev approximation of (1+2x) exp(x^2) erfc x", 1981).
"""

from __future__ import annotations

from xdsl.dialects.builtin import f64

from gradir.lowering.expand_math import coefficients as c
from gradir.lowering.expand_math.algebra import Expression, two_product
from gradir.lowering.expand_math.exponential import exp, minus_expm1

_ERFC = {23: (2.0, 10.1), 52: (4.0, 27.3)}
"""k, and from where on erfc is 0."""
_ERFC_SMALL = 0.375


def erf(x: Expression) -> Expression:
    """2/sqrt(pi) times the integral of exp(-t^2) from 0 to x."""
    a = abs(x)
    return (_erf_f32(a) if x.format.mantissa == 23 else _erf_f64(a)).copysign(x)


def _erf_f32(a: Expression) -> Expression:
    """1 - exp(-(a + a P(a))); from 4 on it is 1."""
    a = a.gt(4.0).select(4.0, a)
    return minus_expm1(-(a.polynomial(c.ERF_F32).fma(a, a)))[0]


def _erf_f64(a: Expression) -> Expression:
    b = a.gt(6.0).select(6.0, a)
    t = (b - 3.0) / (b + 3.0)
    large = 1.0 - exp(-(b * b)) * t.polynomial(c.ERFC_F64)
    return a.gt(1.0).select(large, _small(a))


def _small(a: Expression) -> Expression:
    """erf below 0.92."""
    z = a * a
    return z.polynomial(c.ERF_F32_SMALL).fma(a, a) if a.format.mantissa == 23 else a * z.polynomial(c.ERF_F64)


def erfc(x: Expression) -> Expression:
    """1 - erf(x), relative to itself accurate; 2 - erfc(-x) for large negative x. f32 in f64, but near 0."""
    a = abs(x)
    tail = _tail_f32(a.to(f64)).to(x.element) if x.format.mantissa == 23 else _tail_f64(a)
    tail = x.lt(0.0).select(2.0 - tail, tail)
    return a.gt(_ERFC_SMALL).select(tail, 1.0 - _small(a).copysign(x))


def _tail_f32(a: Expression) -> Expression:
    """erfc of a > 3/8, an f32 number in f64, whose square is exact."""
    k, end = _ERFC[23]
    a = a.gt(end).select(end, a)
    p = ((a - k) / (a + k)).polynomial(c.ERFC_SCALED_F32)
    return exp(-(a * a)) * (p / a.fma(2.0, 1.0))


def _tail_f64(a: Expression) -> Expression:
    """erfc of a > 3/8; the square in exp(-a^2) is exact in two parts."""
    k, end = _ERFC[52]
    a = a.gt(end).select(end, a)
    p = ((a - k) / (a + k)).polynomial(c.ERFC_SCALED_F64)
    square, low = two_product(a, a)
    y = exp(-square) * (p / a.fma(2.0, 1.0))
    return (-low).fma(y, y)
