"""pow, cbrt and integer powers.

pow(x, y) = 2^(y log2 x). f32 in f64 arithmetic; f64 with log2 as an unevaluated sum of two f64 (error 2^-65), as the exponent of a large
result has 10 bits before the point. The cases of IEEE 754 pow are selected at the end.
"""

from __future__ import annotations

from xdsl.dialects.builtin import f64

from gradir.lowering.expand_math import coefficients as c
from gradir.lowering.expand_math.algebra import Expression, fast_two_sum, two_product, two_sum
from gradir.lowering.expand_math.control import while_any
from gradir.lowering.expand_math.exponential import exp2
from gradir.lowering.expand_math.logarithm import log2, split

_INF = float("inf")
_NAN = float("nan")


def pow(x: Expression, y: Expression) -> Expression:
    """IEEE 754 pow."""
    a = abs(x)
    if x.format.mantissa == 23:
        exponent = y.to(f64) * log2(a.to(f64))
        magnitude = exp2(exponent).to(x.element)
    else:
        magnitude = _power_f64(a, y)
    whole = y.round_even().eq(y)
    half = y * 0.5
    odd = whole & half.round_even().ne(half)
    negative = x.bits().lt(0)
    signed = (odd & negative).select(-magnitude, magnitude)
    # a negative finite base with a fractional exponent
    result = (x.lt(0.0) & x.gt(-_INF) & whole.eq(0)).select(x.of(_NAN), signed)
    result = (x.is_nan() | y.is_nan()).select(x + y, result)
    unit = a.eq(1.0) & abs(y).eq(_INF)
    return (x.eq(1.0) | y.eq(0.0) | unit).select(1.0, result)


def _power_f64(a: Expression, y: Expression) -> Expression:
    """a^y for a >= 0."""
    high, low = _log2_in_two(a)
    finite = abs(y).lt(2.0**65)
    y = finite.select(y, y.of(2.0**65).copysign(y))  # beyond it only the sign matters; the products stay finite
    p, e = two_product(high, y)
    e = low.fma(y, e)
    p, e = fast_two_sum(p, e)
    inside = abs(p).lt(1100.0)
    p = inside.select(p, p.of(1100.0).copysign(p))
    e = inside.select(e, 0.0)
    # 2^(p + e) = 2^p (1 + e ln 2), inside the polynomial: e joins the reduced argument
    f = p.format
    shifted = p + f.magic
    r = (p - (shifted - f.magic)) + e
    q = r.fma(r.polynomial(c.EXP2_F64), 1.0)
    k = shifted.bits() - f.magic_bits
    first = k >> 1
    for part in (first, k - first):
        q = q * ((part + f.bias) << f.mantissa).as_float()
    q = p.ge(1024.0).select(_INF, p.lt(-1080.0).select(0.0, q))
    zero = y.gt(0.0).select(y.of(0.0), _INF)
    top = y.gt(0.0).select(y.of(_INF), 0.0)
    return a.eq(0.0).select(zero, a.eq(_INF).select(top, q))


def _log2_in_two(a: Expression) -> tuple[Expression, Expression]:
    """log2(a) as high + low, for positive finite a.

    log(m) = 2 s (1 + z/3 + z^2 Q(z)) with s = (m-1)/(m+1), z = s^2; s, z and the first two terms carry their errors.
    """
    e, m = split(a)
    r = m - 1.0
    d, d_low = two_sum(m, m.of(1.0))
    s = r / d
    s_low = ((-s).fma(d, r) - s * d_low) / d
    z, z_low = two_product(s, s)
    z_low = (s + s).fma(s_low, z_low)
    t, t_low = two_product(z, c.THIRD[0])
    t_low = z.fma(c.THIRD[1], z_low.fma(c.THIRD[0], t_low))
    t, more = fast_two_sum(t, z * z * z.polynomial(c.POW_LOG))
    u, u_low = fast_two_sum(m.of(1.0), t)
    u_low = u_low + (more + t_low)
    l, l_low = two_product(s + s, u)
    l_low = (s + s).fma(u_low, (s_low + s_low).fma(u, l_low))
    # times log2(e), plus the exponent
    g, g_low = two_product(l, c.LOG2E)
    g_low = l.fma(c.LOG2E_LOW, l_low.fma(c.LOG2E, g_low))
    high, low = two_sum(e, g)
    return fast_two_sum(high, low + g_low)


def cbrt(x: Expression) -> Expression:
    """2^(log2(a) / 3), then one Newton step; f32 in f64."""
    a = abs(x)
    if x.format.mantissa == 23:
        return exp2(log2(a.to(f64)) * (1.0 / 3.0)).to(x.element).copysign(x)
    tiny = a.lt(2.0**-900)
    scaled = tiny.select(a * 2.0**162, a)
    y = exp2(log2(scaled) * (1.0 / 3.0))
    square, square_low = two_product(y, y)
    residual = square.fma(y, -scaled) + square_low * y
    y = y - residual / (square * 3.0)
    y = (a.gt(0.0) & a.lt(_INF)).select(tiny.select(y * 2.0**-54, y), a)
    return y.copysign(x)


def integer_power(base: Expression, exponent: Expression) -> Expression:
    """base^exponent by repeated squaring, wrapping; a negative exponent gives 0 unless the base is 1 or -1 (docs/numerics.md)."""
    one = base.of(1)
    magnitude = exponent.lt(0).select(0 - exponent, exponent)
    result, _, _ = while_any([one, base, magnitude], lambda v: v[2].ne(0), lambda v: [
        (v[2] & 1).ne(0).select(v[0] * v[1], v[0]), v[1] * v[1], v[2].logical_shift(1),
    ])  # fmt: skip
    odd = (exponent & 1).ne(0)
    minus_one = base.eq(-1).select(odd.select(base.of(-1), 1), 0)
    inverse = base.eq(1).select(base.of(1), minus_one)
    return exponent.lt(0).select(inverse, result)


def float_to_integer_power(base: Expression, exponent: Expression) -> Expression:
    """`math.fpowi`: the exponent as a float; exact up to the mantissa, where larger ones give 0, 1 or inf anyway."""
    return pow(base.to(f64), exponent.from_integer(f64)).to(base.element)
