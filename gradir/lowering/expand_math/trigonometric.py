"""sin, cos, tan, atan and atan2.

Arguments below 2^30 are reduced by n = round(x 2/pi) and pi/2 in two or three f64; larger ones by a window of 192 bits of 2/pi (Payne and
Hanek 1983), in integers, lane by lane and only when there is one. f32 arguments are reduced in f64.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase, DenseIntOrFPElementsAttr, IndexType, VectorType, f32, f64, i32, i64

from gradir.dialects.upstream import arith, vector
from gradir.lowering.expand_math import coefficients as c
from gradir.lowering.expand_math.algebra import F64, Expression, Site, fast_two_sum, two_product, two_sum
from gradir.lowering.expand_math.control import each_lane, rarely

_LIMIT = 2.0**30
_INF = float("inf")
_DYNAMIC = DenseArrayBase.from_list(i64, [DYNAMIC_INDEX])


def sin(x: Expression) -> Expression:
    r, low, quadrant = _reduced(x)
    result = _quarter(r, low, quadrant)
    return x.eq(0.0).select(x, result)  # keeps -0


def cos(x: Expression) -> Expression:
    r, low, quadrant = _reduced(x)
    return _quarter(r, low, quadrant + 1)


def tan(x: Expression) -> Expression:
    r, low, quadrant = _reduced(x)
    result = _quarter(r, low, quadrant) / _quarter(r, low, quadrant + 1)
    return x.eq(0.0).select(x, result)


def _quarter(r: Expression, low: Expression | None, quadrant: Expression) -> Expression:
    """sin(r + low + quadrant pi/2) for abs(r) <= pi/4."""
    f = r.format
    z = r * r
    s = z.polynomial(c.by_format(f, c.SIN_F32, c.SIN_F64))
    k = z.polynomial(c.by_format(f, c.COS_F32, c.COS_F64))
    sine = (r * z).fma(s, r)
    cosine = z.fma(-0.5, 1.0)
    if low is None:
        cosine = (z * z).fma(k, cosine)
    else:
        sine = r + (r * z).fma(s, low.fma(z.fma(-0.5, 1.0), z.of(0.0)))
        # 1 - z/2 rounded, what that lost, and the effect of the low part
        half = z * 0.5
        cosine = 1.0 - half
        lost = (1.0 - cosine) - half
        cosine = cosine + (z * z).fma(k, (-r).fma(low, lost))
    swap = (quadrant & 1).ne(0)
    value = swap.select(cosine, sine)
    return (quadrant & 2).ne(0).select(-value, value)


def _reduced(x: Expression) -> tuple[Expression, Expression | None, Expression]:
    """(r, low, quadrant): x = quadrant pi/2 + r + low modulo 2 pi; NaN for infinities. f32 needs no low part."""
    wide = x.to(f64)
    shifted = wide.fma(c.TWO_OVER_PI, F64.magic)
    n = shifted - F64.magic
    quadrant = shifted.bits()
    p1, p2, p3 = c.HALF_PI_PARTS
    r = n.fma(-p1, wide)
    if x.element == f32:
        r, low = n.fma(-p2, r), x.of(0.0).to(f64)
    else:
        t, t_low = two_product(n, p2)
        r, low = two_sum(r, -t)
        low = (n.fma(-p3, low)) - t_low
        r, low = fast_two_sum(r, low)
    huge = abs(wide).ge(_LIMIT)
    r, low, quadrant = rarely(huge.any(), [r, low, quadrant], lambda site: each_lane(
        site, [Expression(site, wide.value)], [Expression(site, e.value) for e in (r, low, quadrant)], _huge_lane,
    ))  # fmt: skip
    r = abs(wide).lt(_INF).select(r, float("nan"))
    if x.element == f32:
        return r.to(f32), None, quadrant.integer(i32)
    return r, low, quadrant


def _huge_lane(site: Site, inputs: Sequence[Expression], usual: Sequence[Expression]) -> list[Expression]:
    """One scalar: the reduction of a huge argument, or what there is already."""
    (x,) = inputs
    (r, low, quadrant) = _payne_hanek(x)
    huge = abs(x).ge(_LIMIT)
    return [huge.select(new, old) for new, old in zip((r, low, quadrant), usual)]


def _payne_hanek(x: Expression) -> tuple[Expression, Expression, Expression]:
    """For finite abs(x) >= 2^30: x = M 2^E; M times the bits of 2/pi from weight 2^(1-E) on is x 2/pi modulo 4."""
    site = x.site
    bits = x.bits() & 0x7FFFFFFFFFFFFFFF
    exponent = bits >> 52
    exponent = exponent.lt(2046).select(exponent, 2046)  # NaN and infinity: any index that is inside
    exponent = exponent.lt(1023).select(1023, exponent)
    mantissa = (bits & 0xFFFFFFFFFFFFF) | 0x10000000000000
    skip = exponent - (1075 - 62)  # bits of the extended string (64 zeros, then 2/pi) before the window
    skip = skip.lt(0).select(0, skip)
    index, shift = skip >> 6, skip & 63
    words = [_word(site, index + k) for k in range(4)]
    window = [(words[k] << shift) | words[k + 1].logical_shift(1).logical_shift(63 - shift) for k in range(3)]
    low2, high2 = mantissa.wide_product(window[2])
    low1, high1 = mantissa.wide_product(window[1])
    middle = high2 + low1
    carry = middle.below_unsigned(low1).select(x.bits().of(1), 0)
    top = high1 + mantissa * window[0] + carry
    fraction = (top << 2) | middle.logical_shift(62)
    rest = (middle << 2) | low2.logical_shift(62)
    # to the nearest quadrant: the fraction as a signed number of 128 bits
    quadrant = top.logical_shift(62) + fraction.logical_shift(63)
    parts = [
        (fraction >> 32).from_integer(f64) * 2.0**-32,
        (fraction & 0xFFFFFFFF).from_integer(f64) * 2.0**-64,
        rest.logical_shift(32).from_integer(f64) * 2.0**-96,
        (rest & 0xFFFFFFFF).from_integer(f64) * 2.0**-128,
    ]
    s, e1 = two_sum(parts[0], parts[1])
    s, e2 = two_sum(s, parts[2])
    s, e = fast_two_sum(s, (e1 + e2) + parts[3])
    r, r_low = two_product(s, c.HALF_PI)
    r_low = s.fma(c.HALF_PI_LOW, e.fma(c.HALF_PI, r_low))
    negative = x.lt(0.0)
    return negative.select(-r, r), negative.select(-r_low, r_low), negative.select(0 - quadrant, quadrant)


def _word(site: Site, index: Expression) -> Expression:
    """A word of the bits of 2/pi."""
    t = VectorType(i64, [len(c.TWO_OVER_PI_WORDS)])
    key = ("2/pi", t)
    if key not in site.constants:
        value = DenseIntOrFPElementsAttr.from_list(t, [w - (1 << 64) if w >> 63 else w for w in c.TWO_OVER_PI_WORDS])
        op = arith.ConstantOp.create(result_types=[t], properties={"value": value}, location=site.loc)
        first = site.entry.first_op
        assert first is not None
        site.entry.insert_op_before(op, first)
        site.constants[key] = op.results[0]
    at = site.emit(arith.IndexCastOp, [index.value], [IndexType()]).results[0]
    op = site.emit(vector.ExtractOp, [site.constants[key], at], [i64], properties={"static_position": _DYNAMIC})
    return Expression(site, op.results[0])


def _atan_unit(t: Expression) -> Expression:
    """atan(t) for 0 <= t <= 1; above tan(pi/8) as pi/4 + atan((t - 1) / (t + 1))."""
    f = t.format
    far = t.gt(0.4142135623730951)
    u = far.select((t - 1.0) / (t + 1.0), t)
    z = u * u
    a = (u * z).fma(z.polynomial(c.by_format(f, c.ATAN_F32, c.ATAN_F64)), u)
    high, low = c.parts(f, c.HALF_PI / 2, c.HALF_PI_LOW / 2)
    return far.select((a + low) + high, a)


def atan(x: Expression) -> Expression:
    """atan(x) = pi/2 - atan(1/x) above 1."""
    a = abs(x)
    inverse = a.gt(1.0)
    t = _atan_unit(inverse.select(1.0 / a, a))
    high, low = c.parts(x.format, c.HALF_PI, c.HALF_PI_LOW)
    return inverse.select((low - t) + high, t).copysign(x)


def atan2(y: Expression, x: Expression) -> Expression:
    """The angle of (x, y), C99's cases at zeros and infinities."""
    a, b = abs(y), abs(x)
    steep = a.gt(b)
    large, small = steep.select(a, b), steep.select(b, a)
    ratio = small / large
    ratio = large.eq(0.0).select(0.0, small.eq(_INF).select(1.0, ratio))
    r = _atan_unit(ratio)
    high, low = c.parts(x.format, c.HALF_PI, c.HALF_PI_LOW)
    r = steep.select((low - r) + high, r)
    high, low = c.parts(x.format, c.PI, c.PI_LOW)
    r = x.bits().lt(0).select((low - r) + high, r)
    return (x.is_nan() | y.is_nan()).select(x + y, r.copysign(y))
