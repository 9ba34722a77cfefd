"""Rounding, remainders and classification: mostly for targets that lack the instruction."""

from __future__ import annotations

from xdsl.dialects.builtin import f64

from gradir.lowering.expand_math.algebra import F64, Expression
from gradir.lowering.expand_math.control import while_any

_INF = float("inf")
_NAN = float("nan")


def round_even(x: Expression) -> Expression:
    """(x + m) - m with m = 2^mantissa of x's sign rounds to an integer; larger numbers are integers."""
    f = x.format
    m = x.of(2.0**f.mantissa).copysign(x)
    return abs(x).lt(2.0**f.mantissa).select(((x + m) - m).copysign(x), x)


def floor(x: Expression) -> Expression:
    r = round_even(x)
    return r.gt(x).select(r - 1.0, r).copysign(x)


def ceil(x: Expression) -> Expression:
    r = round_even(x)
    return r.lt(x).select(r + 1.0, r).copysign(x)


def trunc(x: Expression) -> Expression:
    a = abs(x)
    r = round_even(a)
    return r.gt(a).select(r - 1.0, r).copysign(x)


def round_away(x: Expression) -> Expression:
    """Nearest, halves away from zero: 0.49999997 goes to 0, as the fraction is compared, not 0.5 added."""
    a = abs(x)
    whole = a.floor()
    return (a - whole).ge(0.5).select(whole + 1.0, whole).copysign(x)


def rsqrt(x: Expression) -> Expression:
    return 1.0 / x.sqrt()


def fma(a: Expression, b: Expression, addend: Expression) -> Expression:
    """a * b + c on a target without fma: f32 in f64 (the product is exact there), f64 with Dekker's exact product."""
    if a.format.mantissa == 23:
        return (a.to(f64) * b.to(f64) + addend.to(f64)).to(a.element)
    p = a * b
    (ah, al), (bh, bl) = _halves(a), _halves(b)
    error = ((ah * bh - p) + ah * bl + al * bh) + al * bl
    s = p + addend
    t = s - p
    lost = (p - (s - t)) + (addend - t)
    exact = s + (lost + error)
    return abs(s).lt(_INF).select(error.eq(error).select(exact, s), s)


def _halves(x: Expression) -> tuple[Expression, Expression]:
    """x as two numbers of 26 and 27 bits; cut by the bits, so that nothing overflows."""
    high = (x.bits() & -(1 << 27)).as_float()
    return high, x - high


def remainder(x: Expression, y: Expression) -> Expression:
    """C fmod, exact: long division in steps of as many quotient bits as the product with the divisor leaves exact. f32 in f64."""
    if x.element != f64:
        return _remainder(x.to(f64), y.to(f64), 26).to(x.element)
    return _remainder(x, y, 48)  # 49 bits of quotient: exact without an fma instruction too


def _remainder(x: Expression, y: Expression, digits: int) -> Expression:
    r, d = abs(x), abs(y)
    usable = d.gt(0.0) & r.lt(_INF)
    r0 = usable.select(r, 0.0)
    d0 = usable.select(d, 1.0)
    divisor_exponent = _exponent(d0)

    def step(values: list[Expression]) -> list[Expression]:
        (rest,) = values
        site = rest.site
        divisor, exponent = Expression(site, d0.value), Expression(site, divisor_exponent.value)
        busy = rest.ge(divisor)
        k = _exponent(rest) - exponent - digits
        k = k.lt(0).select(0, k)
        scaled = _scale(divisor, k)
        q = (rest / scaled).floor()
        new = (-q).fma(scaled, rest)
        new = new.lt(0.0).select(new + scaled, new)
        return [busy.select(new, rest)]

    (rest,) = while_any([r0], lambda v: v[0].ge(Expression(v[0].site, d0.value)), lambda v: step(list(v)))
    nan = x.is_nan() | y.is_nan() | usable.eq(0)
    return nan.select(_NAN, rest.copysign(x))


def _exponent(x: Expression) -> Expression:
    """floor(log2(x)) of a positive finite f64, denormals included."""
    tiny = x.lt(F64.smallest_normal)
    bits = tiny.select(x * 2.0**54, x).bits()
    return (bits >> 52) - tiny.select(bits.of(1023 + 54), 1023)


def _scale(x: Expression, k: Expression) -> Expression:
    """x * 2^k for 0 <= k <= 2100, exact when the result is finite."""
    for _ in range(3):
        part = k.lt(700).select(k, 700)
        x = x * ((part + 1023) << 52).as_float()
        k = k - part
    return x


def is_nan(x: Expression) -> Expression:
    return x.is_nan()


def is_finite(x: Expression) -> Expression:
    return abs(x).lt(_INF)


def is_inf(x: Expression) -> Expression:
    return abs(x).eq(_INF)


def is_normal(x: Expression) -> Expression:
    a = abs(x)
    return a.ge(x.format.smallest_normal) & a.lt(_INF)
