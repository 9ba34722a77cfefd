"""exp, exp2, expm1 and the hyperbolic functions.

exp(x) = 2^n exp(r) with n = round(x / ln 2); the sum with 1.5 * 2^mantissa rounds to an integer and leaves it in the low bits, so that no
float is converted to an integer (whose out-of-range cases would be undefined). The bits of the sum stand for n itself: a shift into the
exponent drops what is above. 2^n is applied in two halves: denormal results round once.
"""

from __future__ import annotations

from gradir.lowering.expand_math import coefficients as c
from gradir.lowering.expand_math.algebra import Expression, Format

_EXP_RANGE = {23: (89.0, -104.0), 52: (710.0, -746.0)}
"""From where on e^x is infinite, and 0."""
_EXP2_RANGE = {23: (128.0, -150.0), 52: (1024.0, -1075.0)}
_LOG_OF_LARGEST = {23: 88.72283935546875, 52: 709.782712893384}
_INF = float("inf")


def exp(x: Expression) -> Expression:
    """e^x."""
    f = x.format
    n, r = _reduce(_limited(x, *_EXP_RANGE[f.mantissa]), f)
    return _scaled(_near_1(r, f), n, f)


def exp_of_nonpositive(x: Expression) -> Expression:
    """e^x for x <= 0 or NaN: 2^(n+k) is normal for every n, so that one more product with 2^-k rounds what is denormal."""
    f = x.format
    low = _EXP_RANGE[f.mantissa][1]
    n, r = _reduce(x.lt(low).select(low, x), f)
    k = f.bias // 2
    large = ((n << f.mantissa) + ((f.bias + k) << f.mantissa)).as_float()
    return _near_1(r, f) * large * 2.0**-k


def _near_1(r: Expression, f: Format) -> Expression:
    """e^r for |r| <= ln(2) / 2."""
    return (r * r).fma(r.two_chains(c.by_format(f, c.EXP_OF_R_F32, c.EXP_F64)), r) + 1.0


def exp2(x: Expression) -> Expression:
    """2^x; exact for integers."""
    f = x.format
    x = _limited(x, *_EXP2_RANGE[f.mantissa])
    shifted = x + f.magic
    r = x - (shifted - f.magic)
    p = r.fma(r.polynomial(c.by_format(f, c.EXP2_F32, c.EXP2_F64)), 1.0)
    return _scaled(p, shifted.bits(), f)


def expm1(x: Expression) -> Expression:
    """e^x - 1 = 2^n (e^r - 1) + (2^n - 1), accurate near 0; computed at half size so that 2^1024 never appears."""
    f = x.format
    k, r = _reduce(x, f)
    small = (r * r).fma(r.polynomial(c.by_format(f, c.EXP_F32, c.EXP_F64)), r)
    half = ((k + (f.bias - 1)) << f.mantissa).as_float()
    scaled = half.fma(small, half - 0.5)
    result = k.eq(f.magic_bits).select(small, scaled + scaled)
    high, low = _LOG_OF_LARGEST[f.mantissa], -18.0 if f.mantissa == 23 else -40.0
    result = x.gt(high).select(_INF, x.lt(low).select(-1.0, result))
    return result.copysign(x)


def minus_expm1(y: Expression) -> tuple[Expression, Expression]:
    """f32: (1 - e^y, 1 + e^y) for -80 < y <= 0 or NaN, relative to themselves accurate, without a piece of its own for small y.

    e^y = s (1 + p) with s = 2^n and p = e^r - 1: 1 - e^y = (1 - s) - s p, where 1 - s is exact, and 0 for n = 0.
    """
    f = y.format
    shifted = y.fma(c.LOG2E, f.magic)
    r = (shifted - f.magic).fma(-c.LN2_HIGH_LOW[f.mantissa][0], y)  # n times the error of ln 2 is far below what counts
    p = (r * r).fma(r.two_chains(c.by_format(f, c.EXP_F32, c.EXP_F64)), r)
    s = _power_of_2(shifted.bits(), f)
    return (-s).fma(p, 1.0 - s), s.fma(p, s + 1.0)


def tanh(x: Expression) -> Expression:
    """f32: (1 - e) / (1 + e) with e = e^-2a; f64: t / (t + 2) with t = e^2a - 1."""
    f = x.format
    a = abs(x)
    if f.mantissa == 23:
        y = a * -2.0
        less, more = minus_expm1(y.lt(-20.0).select(-20.0, y))
        return (less / more).copysign(x)
    t = expm1(a + a)
    return a.gt(22.0).select(1.0, t / (t + 2.0)).copysign(x)


def sinh(x: Expression) -> Expression:
    """(t + t / (t + 1)) / 2 with t = e^a - 1; e^a in two factors where it overflows but sinh does not."""
    f = x.format
    a = abs(x)
    t = expm1(a)
    small = (t + t / (t + 1.0)) * 0.5
    half = exp(a * 0.5)
    large = (half * 0.5) * half
    return a.gt(float(f.mantissa) * 0.75).select(large, small).copysign(x)


def cosh(x: Expression) -> Expression:
    """(e^a + e^-a) / 2; e^a in two factors where it overflows but cosh does not."""
    f = x.format
    a = abs(x)
    e = exp(a)
    half = exp(a * 0.5)
    large = (half * 0.5) * half
    return a.gt(float(f.mantissa) * 0.75).select(large, e * 0.5 + 0.5 / e)


def _reduce(x: Expression, f: Format) -> tuple[Expression, Expression]:
    """The bits of n = round(x / ln 2) plus 1.5 * 2^mantissa, and r = x - n ln 2."""
    shifted = x.fma(c.LOG2E, f.magic)
    n = shifted - f.magic
    high, low = c.LN2_HIGH_LOW[f.mantissa]
    r = n.fma(-low, n.fma(-high, x))
    return shifted.bits(), r


def _scaled(p: Expression, n: Expression, f: Format) -> Expression:
    """p * 2^n, p near 1."""
    first = n >> 1
    return p * _power_of_2(first, f) * _power_of_2(n - first, f)


def _power_of_2(n: Expression, f: Format) -> Expression:
    """2^n for a normal result."""
    return ((n << f.mantissa) + (f.bias << f.mantissa)).as_float()


def _limited(x: Expression, high: float, low: float) -> Expression:
    """x within the range where the result changes; NaN passes both comparisons."""
    x = x.gt(high).select(high, x)
    return x.lt(low).select(low, x)
