"""erf and erfc.

f32: N. Juffa's two-piece erff (about 1 ulp). f64: an odd polynomial below 1, 1 - exp(-x^2) R((x-3)/(x+3)) above.
"""

from __future__ import annotations

from gradir.lowering.expand_math import coefficients as c
from gradir.lowering.expand_math.algebra import Expression
from gradir.lowering.expand_math.exponential import exp


def erf(x: Expression) -> Expression:
    """2/sqrt(pi) times the integral of exp(-t^2) from 0 to x."""
    a = abs(x)
    return (_erf_f32(a) if x.format.mantissa == 23 else _erf_f64(a)).copysign(x)


def _erf_f32(a: Expression) -> Expression:
    z = a * a
    bounded = a.gt(4.0).select(4.0, a)
    s = bounded * bounded
    r = bounded.fma(-1.72853470e-5, 3.83197126e-4)
    u = bounded.fma(-3.88396438e-3, 2.42546219e-2)
    r = r.fma(s, u)
    for k in (-1.06777877e-1, -6.34846687e-1, -1.28717512e-1):
        r = r.fma(bounded, k)
    large = 1.0 - exp(r.fma(bounded, -bounded))
    small = z.polynomial(c.ERF_F32_SMALL).fma(a, a)
    return a.gt(0.921875).select(large, small)


def _erf_f64(a: Expression) -> Expression:
    small = a * (a * a).polynomial(c.ERF_F64)
    b = a.gt(6.0).select(6.0, a)
    t = (b - 3.0) / (b + 3.0)
    large = 1.0 - exp(-(b * b)) * t.polynomial(c.ERFC_F64)
    return a.gt(1.0).select(large, small)
