"""log, log2, log10, log1p: x = 2^e m with m in [sqrt(1/2), sqrt(2)), then a polynomial in f = m - 1.

f32 after Cephes' logf, f64 after fdlibm's log (s = f / (2 + f)), with coefficients of our own.
"""

from __future__ import annotations

from gradir.lowering.expand_math import coefficients as c
from gradir.lowering.expand_math.algebra import Expression

_INF = float("inf")
_NAN = float("nan")
_ROOT_HALF_BITS = {23: 0x3F3504F3, 52: 0x3FE6A09E667F3BCD}
_LN2_PARTS = {23: (0.693359375, -2.12194440e-4), 52: (6.93147180369123816490e-01, 1.90821492927058770002e-10)}
"""ln 2 with a first part so short that e times it is exact."""


def split(x: Expression) -> tuple[Expression, Expression]:
    """(e, m) with x = 2^e m, m in [sqrt(1/2), sqrt(2)); e as a float. For positive finite x, denormals included."""
    f = x.format
    scale = f.mantissa + 2
    tiny = x.lt(f.smallest_normal)
    normal = tiny.select(x * 2.0**scale, x)
    start = _ROOT_HALF_BITS[f.mantissa]
    above = normal.bits() - start
    m = ((above & ((1 << f.mantissa) - 1)) + start).as_float()
    e = ((above >> f.mantissa) + f.magic_bits).as_float() - f.magic
    return e - tiny.select(x.of(float(scale)), 0.0), m


def log(x: Expression) -> Expression:
    """Natural logarithm."""
    f = x.format
    e, m = split(x)
    r = m - 1.0
    high, low = _LN2_PARTS[f.mantissa]
    if f.mantissa == 23:
        z = r * r
        y = (r * z) * r.polynomial(c.LOG_F32)
        y = z.fma(-0.5, e.fma(low, y))
        return _domain(x, e.fma(high, r + y))
    half, s, tail = _tail(r)
    return _domain(x, e.fma(high, r - (half - s.fma(half + tail, e * low))))


def _tail(r: Expression) -> tuple[Expression, Expression, Expression]:
    """f64: r^2/2, s = r/(2+r), and R(s^2), so that log(1+r) = r - (r^2/2 - s (r^2/2 + R))."""
    s = r / (r + 2.0)
    z = s * s
    return r * r * 0.5, s, z * z.polynomial(c.LOG_F64)


def log_near_one(r: Expression) -> Expression:
    """log(1 + r) for sqrt(1/2) <= 1 + r <= sqrt(2)."""
    if r.format.mantissa == 23:
        z = r * r
        return r + z.fma(-0.5, (r * z) * r.polynomial(c.LOG_F32))
    half, s, tail = _tail(r)
    return r - (half - s * (half + tail))


def log2(x: Expression) -> Expression:
    """log(m) log2(e) + e; exact at powers of two."""
    e, m = split(x)
    return _domain(x, log_near_one(m - 1.0).fma(c.LOG2E, e))


def log10(x: Expression) -> Expression:
    """e log10(2) + log(m) / ln(10)."""
    e, m = split(x)
    return _domain(x, e.fma(0.3010299956639812, log_near_one(m - 1.0) * 0.4342944819032518))


def log1p(x: Expression) -> Expression:
    """log(u) + (x - (u - 1)) / u with u = 1 + x rounded (Kahan's correction)."""
    u = x + 1.0
    l = log(u)
    correction = (x - (u - 1.0)) / u
    return abs(l).lt(_INF).select(l + correction, l).copysign(x)


def _domain(x: Expression, result: Expression) -> Expression:
    """-inf at 0, NaN for what is negative or NaN, inf at inf."""
    finite = x.eq(_INF).select(_INF, result)
    return x.gt(0.0).select(finite, x.eq(0.0).select(-_INF, x.of(_NAN)))
