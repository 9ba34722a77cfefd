"""asin, acos and the inverse hyperbolic functions.

asin: an odd polynomial up to 1/2, above it asin(x) = pi/2 - 2 asin(sqrt((1 - x) / 2)), where 1 - x is exact. The inverse hyperbolic
functions are logarithms of 1 + u with a u that has no cancellation (W. Kahan, "Branch cuts for complex elementary functions", 1987).
"""

from __future__ import annotations

from gradir.lowering.expand_math import coefficients as c
from gradir.lowering.expand_math.algebra import Expression
from gradir.lowering.expand_math.logarithm import log, log1p

_NAN = float("nan")
_LARGE = {23: 2.0**14, 52: 2.0**28}
"""From here on x^2 + 1 is x^2."""


def asin(x: Expression) -> Expression:
    far, core = _half_angle(abs(x))
    high, low = c.parts(x.format, c.HALF_PI, c.HALF_PI_LOW)
    return far.select((low - (core + core)) + high, core).copysign(x)


def acos(x: Expression) -> Expression:
    """pi/2 - asin(x) up to 1/2; 2 asin(sqrt((1 - x) / 2)) above, pi minus that below -1/2."""
    far, core = _half_angle(abs(x))
    high, low = c.parts(x.format, c.HALF_PI, c.HALF_PI_LOW)
    near = (low - core.copysign(x)) + high
    high, low = c.parts(x.format, c.PI, c.PI_LOW)
    twice = core + core
    return far.select(x.lt(0.0).select((low - twice) + high, twice), near)


def _half_angle(a: Expression) -> tuple[Expression, Expression]:
    """(is a > 1/2, asin(s)) with s = a, or sqrt((1 - a) / 2) above 1/2; NaN above 1."""
    far = a.gt(0.5)
    z = far.select((1.0 - a) * 0.5, a * a)
    s = far.select(z.sqrt(), a)
    return far, (s * z).fma(z.polynomial(c.by_format(a.format, c.ASIN_F32, c.ASIN_F64)), s)


def asinh(x: Expression) -> Expression:
    """log(1 + a + a^2 / (1 + sqrt(a^2 + 1))); log(2 a) for large a."""
    a = abs(x)
    square = a * a
    small = log1p(a + square / ((square + 1.0).sqrt() + 1.0))
    return a.gt(_LARGE[x.format.mantissa]).select(log(a) + c.LN2, small).copysign(x)


def acosh(x: Expression) -> Expression:
    """log(1 + t + sqrt(t^2 + 2 t)) with t = x - 1; log(2 x) for large x; NaN below 1."""
    t = x - 1.0
    small = log1p(t + t.fma(t, t + t).sqrt())
    result = x.gt(_LARGE[x.format.mantissa]).select(log(x) + c.LN2, small)
    return x.lt(1.0).select(_NAN, result)


def atanh(x: Expression) -> Expression:
    """log(1 + 2 a / (1 - a)) / 2; below 1/2 the quotient as 2 a + 2 a^2 / (1 - a)."""
    a = abs(x)
    twice, rest = a + a, 1.0 - a
    u = a.lt(0.5).select(twice + twice * a / rest, twice / rest)
    return (log1p(u) * 0.5).copysign(x)
