"""Functions of one complex number `z = x + iy`, in real functions of f32 or f64, accurate in units of |result| and without overflow on
the way. Branch cuts follow the sign of zero.

Sources: W. Kahan, "Branch cuts for complex elementary functions" (1987), for sqrt, tanh and atanh; T. E. Hull, T. F. Fairgrieve and
P. T. P. Tang, "Implementing the complex arcsine and arccosine functions using exception handling" (1997).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log as real_log, pi
from typing import TypeAlias

from xdsl.ir import Operation, SSAValue

from gradir.dialects import nd
from gradir.lowering.split_complex.parts import EPSILON, LARGEST, Pair, Parts, Rule

Function: TypeAlias = Callable[[Parts, Pair], Pair]


def divided(parts: Parts, z: Pair, w: Pair) -> Pair:
    """`z / w = z conj(w) / |w|**2`, w divided by its larger part m first, z by 2: `(z / 2) conj(w / m) / (|w / m|**2 / 2) / m`"""
    (a, b), (c, d) = ((parts.mul(part, 0.5) for part in z), w)
    large = parts.max(parts.abs(c), parts.abs(d))
    c, d = (_share(parts, part, large) for part in (c, d))
    size = parts.mul(parts.add(parts.mul(c, c), parts.mul(d, d)), 0.5)
    re = parts.add(parts.mul(a, c), parts.mul(b, d))
    im = parts.sub(parts.mul(b, c), parts.mul(a, d))
    return parts.div(parts.div(re, size), large), parts.div(parts.div(im, size), large)


def _share(parts: Parts, part: SSAValue, large: SSAValue) -> SSAValue:
    """`part / large`, +-1 where |part| = large, be that infinite."""
    is_largest = parts.compare("eq", parts.abs(part), large)
    return parts.choose(is_largest, parts.unary(nd.SignOp, part), parts.div(part, large))


def exp(parts: Parts, z: Pair) -> Pair:
    """`e**x (cos y + i sin y)`; e**(x/2) twice where e**x overflows, real numbers stay real"""
    x, y = z
    whole = parts.exp(x)
    overflows = parts.compare("gt", whole, LARGEST[parts.bits(x)])
    half = parts.exp(parts.mul(x, 0.5))
    is_real = parts.compare("eq", y, 0.0)
    is_far = parts.either(parts.is_infinite(y), parts.compare("ne", y, y))
    is_limit = parts.both(is_far, parts.is_infinite(x))  # 0 or inf in no direction

    def part(direction: SSAValue) -> SSAValue:
        return parts.choose(overflows, parts.mul(parts.mul(half, direction), half), parts.mul(whole, direction))

    vanishes = parts.both(is_limit, parts.compare("lt", x, 0.0))
    re = parts.choose(parts.either(is_real, is_limit), whole, part(parts.cos(y)))
    return re, parts.choose(is_real, y, parts.choose(vanishes, 0.0, part(parts.sin(y))))


def expm1(parts: Parts, z: Pair) -> Pair:
    """`(expm1(x) cos y - 2 sin(y/2)**2) + i e**x sin y`"""
    x, y = z
    re, im = exp(parts, z)
    less = parts.unary(nd.Expm1Op, x)
    sine = parts.sin(parts.mul(y, 0.5))
    near = parts.sub(parts.mul(less, parts.cos(y)), parts.mul(2.0, parts.mul(sine, sine)))
    small = parts.compare("lt", x, 1.0)
    # of an infinite x, y counts only if it is finite: y - y is NaN where it is not
    is_limit = parts.both(parts.is_infinite(x), parts.compare("ne", parts.sub(y, y), 0.0))
    is_real = parts.either(parts.compare("eq", y, 0.0), is_limit)
    return parts.choose(is_real, less, parts.choose(small, near, parts.sub(re, 1.0))), im


def _log_size(parts: Parts, x: SSAValue, y: SSAValue) -> SSAValue:
    """`log |z|`: near the unit circle from |z|**2 - 1 = (m - 1)(m + 1) + n**2, else log m + log1p((n/m)**2) / 2, m >= n the sizes"""
    ax, ay = parts.abs(x), parts.abs(y)
    large, small = parts.max(ax, ay), parts.min(ax, ay)
    near = parts.add(parts.mul(parts.sub(large, 1.0), parts.add(large, 1.0)), parts.mul(small, small))
    is_near = parts.both(parts.compare("gt", large, 0.7), parts.compare("lt", large, 1.4))
    ratio = parts.choose(parts.compare("eq", large, small), 1.0, parts.div(small, large))
    far = parts.add(parts.log(large), parts.mul(0.5, parts.log1p(parts.mul(ratio, ratio))))
    close = parts.mul(0.5, parts.log1p(parts.choose(is_near, near, 0.0)))
    return parts.choose(_is_far(parts, x, y), float("inf"), parts.choose(is_near, close, far))


def _is_far(parts: Parts, x: SSAValue, y: SSAValue) -> SSAValue:
    """A part is infinite; the other one may be NaN."""
    return parts.either(parts.is_infinite(x), parts.is_infinite(y))


def log(parts: Parts, z: Pair) -> Pair:
    """`log |z| + i atan2(y, x)`"""
    return _log_size(parts, *z), parts.atan2(z[1], z[0])


def log1p(parts: Parts, z: Pair) -> Pair:
    """`log |1 + z| + i atan2(y, 1 + x)`, for small z from |1 + z|**2 - 1 = x (2 + x) + y**2"""
    x, y = z
    more = parts.add(x, 1.0)
    is_small = parts.compare("lt", parts.max(parts.abs(x), parts.abs(y)), 0.5)
    excess = parts.add(parts.mul(x, parts.add(x, 2.0)), parts.mul(y, y))
    close = parts.mul(0.5, parts.log1p(parts.choose(is_small, excess, 0.0)))
    return parts.choose(is_small, close, _log_size(parts, more, y)), parts.atan2(y, more)


def _root(parts: Parts, z: Pair) -> tuple[SSAValue, SSAValue, SSAValue]:
    """`(re, im, sqrt |z|)` of the root in the right half plane"""
    x, y = z
    ax, _, large, factor = parts.scaled(x, y)
    is_zero = parts.compare("eq", large, 0.0)
    share = parts.choose(parts.compare("eq", ax, large), 1.0, parts.div(ax, large))
    scale = parts.sqrt(large)
    # t = sqrt((|x| + |z|) / 2), the larger part; the other one is y / 2t
    larger = parts.mul(scale, parts.sqrt(parts.mul(parts.add(share, factor), 0.5)))
    larger = parts.choose(_is_far(parts, x, y), float("inf"), larger)
    smaller = parts.choose(is_zero, y, parts.choose(parts.is_infinite(y), y, parts.div(parts.mul(y, 0.5), larger)))
    is_left = parts.compare("lt", x, 0.0)
    re = parts.choose(is_left, parts.abs(smaller), larger)
    im = parts.choose(is_left, parts.copysign(larger, y), smaller)
    return re, im, parts.mul(scale, parts.sqrt(factor))


def sqrt(parts: Parts, z: Pair) -> Pair:
    """The root with `re >= 0` and the sign of y"""
    re, im, _ = _root(parts, z)
    return re, im


def rsqrt(parts: Parts, z: Pair) -> Pair:
    """`1 / sqrt z = conj(sqrt z) / |z|`, by sqrt |z| twice; 0 at infinity"""
    re, im, size = _root(parts, z)
    vanishes = _is_far(parts, *z)

    def part(x: SSAValue) -> SSAValue:
        return parts.choose(vanishes, 0.0, parts.div(parts.div(x, size), size))

    return part(re), parts.neg(part(im))


def cbrt(parts: Parts, z: Pair) -> Pair:
    """`|z|**(1/3)` at a third of the angle"""
    size = parts.unary(nd.CbrtOp, parts.hypot(*z))
    angle = parts.div(parts.atan2(z[1], z[0]), 3.0)
    return parts.mul(size, parts.cos(angle)), parts.mul(size, parts.sin(angle))


def _growing(parts: Parts, by_cosh: SSAValue, by_sinh: SSAValue, y: SSAValue) -> Pair:
    """`by_cosh cosh y` and `by_sinh sinh y`; where cosh y overflows both functions are e**|y| / 2, taken as e**(|y|/2) twice"""
    size, slope = parts.unary(nd.CoshOp, y), parts.unary(nd.SinhOp, y)
    overflows = parts.compare("gt", size, LARGEST[parts.bits(y)])
    half = parts.exp(parts.mul(parts.abs(y), 0.5))
    signed = parts.mul(parts.mul(by_sinh, parts.unary(nd.SignOp, y)), 0.5)
    even, odd = (parts.product(parts.product(factor, half), half) for factor in (parts.mul(by_cosh, 0.5), signed))
    re = parts.choose(overflows, even, parts.product(by_cosh, size))
    return re, parts.choose(overflows, odd, parts.product(by_sinh, slope))


def sin(parts: Parts, z: Pair) -> Pair:
    """`sin x cosh y + i cos x sinh y`"""
    x, y = z
    return _growing(parts, parts.sin(x), parts.cos(x), y)


def cos(parts: Parts, z: Pair) -> Pair:
    """`cos x cosh y - i sin x sinh y`"""
    x, y = z
    return _growing(parts, parts.cos(x), parts.neg(parts.sin(x)), y)


def turned(function: Function) -> Function:
    """`f(z) = -i g(iz)` for an odd g with real coefficients: its parts on `y + ix`, swapped (tan of tanh, asinh of asin, atan of atanh)."""

    def turn(parts: Parts, z: Pair) -> Pair:
        re, im = function(parts, (z[1], z[0]))
        return im, re

    turn.__doc__ = turned.__doc__
    return turn


sinh = turned(sin)


def cosh(parts: Parts, z: Pair) -> Pair:
    """`cosh x cos y + i sinh x sin y`"""
    x, y = z
    return _growing(parts, parts.cos(y), parts.sin(y), x)


def tanh(parts: Parts, z: Pair) -> Pair:
    """`(b r s + i t) / (1 + b s**2)`, s = sinh x, r = cosh x, t = tan y, b = 1 + t**2; far out `sign x + 4i sin y cos y e**(-2|x|)`"""
    x, y = z
    ax = parts.abs(x)
    limit = 10.0 if parts.bits(x) == 32 else 20.0
    is_far = parts.compare("gt", ax, limit)
    near = parts.choose(is_far, 0.0, x)
    s, r, t = parts.unary(nd.SinhOp, near), parts.unary(nd.CoshOp, near), parts.unary(nd.TanOp, y)
    b = parts.add(parts.mul(t, t), 1.0)
    scale = parts.add(parts.product(parts.product(b, s), s), 1.0)
    re = parts.div(parts.product(parts.mul(b, r), s), scale)
    im = parts.choose(parts.compare("eq", y, 0.0), y, parts.div(t, scale))
    fading = parts.mul(4.0, parts.exp(parts.mul(ax, -2.0)))
    far = parts.product(fading, parts.mul(parts.sin(y), parts.cos(y)))
    return parts.choose(is_far, parts.unary(nd.SignOp, x), re), parts.choose(is_far, far, im)


def logistic(parts: Parts, z: Pair) -> Pair:
    """`1 / (1 + e**-z)`, for x < 0 as `e**z / (1 + e**z)`: the exponential never overflows

    Near the poles `1 + e**x cos y == 2 cos(y/2)**2 + expm1(x) cos y` does not cancel.
    """
    x, y = z
    is_right = parts.compare("ge", x, 0.0)
    away = parts.neg(parts.abs(x))
    power = exp(parts, (away, parts.choose(is_right, parts.neg(y), y)))
    top = (parts.choose(is_right, 1.0, power[0]), parts.choose(is_right, 0.0, power[1]))
    half = parts.cos(parts.mul(y, 0.5))
    more = parts.add(parts.mul(2.0, parts.mul(half, half)), parts.mul(parts.unary(nd.Expm1Op, away), parts.cos(y)))
    return divided(parts, top, (more, power[1]))


def _arc(parts: Parts, z: Pair) -> tuple[SSAValue, SSAValue]:
    """Of |x|, |y|: `(d, h)` with asin's real part `atan2(|x|, d)`, acos's `atan2(d, |x|)`, and both imaginary parts +-h."""
    x, y = parts.abs(z[0]), parts.abs(z[1])
    bits = parts.bits(x)
    above, below = parts.add(x, 1.0), parts.sub(x, 1.0)
    r, s = parts.hypot(above, y), parts.hypot(below, y)
    a = parts.mul(0.5, parts.add(r, s))
    yy = parts.mul(y, y)
    is_inside = parts.compare("lt", x, 1.0)
    # r - (x + 1) = y**2 / (r + x + 1); s - |x - 1| likewise, or s + |x - 1| where the signs differ
    outer = parts.div(yy, parts.add(r, above))
    gap_inside, gap_outside = parts.sub(s, below), parts.add(s, below)
    total = parts.add(a, x)
    d_inside = parts.sqrt(parts.mul(parts.mul(0.5, total), parts.add(outer, gap_inside)))
    inverse = parts.add(parts.div(total, parts.add(r, above)), parts.div(total, gap_outside))
    d_outside = parts.product(y, parts.sqrt(parts.mul(0.5, inverse)))
    d = parts.choose(parts.compare("le", x, 1.0), d_inside, d_outside)
    # a - 1, without cancellation
    close = parts.mul(0.5, parts.add(outer, parts.choose(is_inside, parts.div(yy, gap_inside), gap_outside)))
    excess = parts.choose(parts.compare("lt", a, 1.5), close, parts.sub(a, 1.0))
    h = parts.log1p(parts.add(excess, parts.sqrt(parts.mul(excess, parts.add(a, 1.0)))))
    tiny = 4 * (2.0**-126 if bits == 32 else 2.0**-1022) ** 0.5
    is_thin = parts.both(is_inside, parts.compare("lt", y, tiny))  # y**2 underflows
    thin = parts.div(y, parts.sqrt(parts.mul(parts.sub(1.0, x), above)))
    h = parts.choose(is_thin, thin, h)
    is_far = parts.compare("gt", parts.max(x, y), LARGEST[bits] ** 0.5 / 8)
    return parts.choose(is_far, y, d), parts.choose(is_far, parts.add(_log_size(parts, x, y), real_log(2.0)), h)


def asin(parts: Parts, z: Pair) -> Pair:
    """`atan2(x, d) + i h`, h with the sign of y"""
    d, h = _arc(parts, z)
    return parts.choose(parts.compare("eq", z[0], 0.0), z[0], parts.atan2(z[0], d)), parts.copysign(h, z[1])


def acos(parts: Parts, z: Pair) -> Pair:
    """`atan2(d, x) - i h`, h with the sign of y"""
    d, h = _arc(parts, z)
    return _angle(parts, d, z[0]), parts.choose(parts.is_negative(z[1]), h, parts.neg(h))


def acosh(parts: Parts, z: Pair) -> Pair:
    """`i acos z` or `-i acos z`, whichever has a real part >= 0"""
    d, h = _arc(parts, z)
    return h, parts.copysign(_angle(parts, d, z[0]), z[1])


def _angle(parts: Parts, d: SSAValue, x: SSAValue) -> SSAValue:
    """`atan2(d, x)`, a right angle on the axis."""
    return parts.choose(parts.compare("eq", x, 0.0), pi / 2, parts.atan2(d, x))


def atanh(parts: Parts, z: Pair) -> Pair:
    """`log1p(4|x| / ((1 - |x|)**2 + y**2)) / 4`, with the sign of x, `+ i atan2(2y, (1 - |x|)(1 + |x|) - y**2) / 2`"""
    x, y = parts.abs(z[0]), parts.abs(z[1])
    bits = parts.bits(x)
    gap, yy = parts.sub(1.0, x), parts.mul(y, y)
    re = parts.mul(0.25, parts.log1p(parts.div(parts.mul(4.0, x), parts.add(parts.mul(gap, gap), yy))))
    # x = 1: y**2 may underflow
    is_pole = parts.both(parts.compare("eq", x, 1.0), parts.compare("lt", y, EPSILON[bits] ** 0.5))
    re = parts.choose(is_pole, parts.mul(0.5, parts.sub(real_log(2.0), parts.log(y))), re)
    angle = parts.atan2(parts.mul(2.0, z[1]), parts.sub(parts.mul(gap, parts.add(x, 1.0)), yy))
    im = parts.mul(0.5, angle)
    large, small = parts.max(x, y), parts.min(x, y)
    is_far = parts.compare("gt", large, LARGEST[bits] ** 0.5 / 8)
    ratio = parts.div(small, large)  # re(1/z) = x / |z|**2
    fading = parts.div(parts.div(parts.div(x, large), parts.add(parts.mul(ratio, ratio), 1.0)), large)
    fading = parts.choose(parts.is_infinite(large), 0.0, fading)
    re = parts.choose(_is_far(parts, x, y), 0.0, parts.choose(is_far, fading, re))
    re = parts.choose(parts.compare("eq", x, 0.0), z[0], parts.copysign(re, z[0]))
    is_far = parts.either(is_far, parts.is_infinite(y))
    return re, parts.choose(is_far, parts.copysign(parts.fill(pi / 2, y), z[1]), im)


def _rule(function: Function) -> Rule:
    def split(parts: Parts, op: nd.Unary) -> Sequence[Pair]:
        return [function(parts, parts.pair(op.operand))]

    split.__doc__ = function.__doc__
    return split


RULES: dict[type[Operation], Rule] = {
    nd.ExpOp: _rule(exp),
    nd.Expm1Op: _rule(expm1),
    nd.LogOp: _rule(log),
    nd.Log1pOp: _rule(log1p),
    nd.SqrtOp: _rule(sqrt),
    nd.RsqrtOp: _rule(rsqrt),
    nd.CbrtOp: _rule(cbrt),
    nd.SinOp: _rule(sin),
    nd.CosOp: _rule(cos),
    nd.TanOp: _rule(turned(tanh)),
    nd.SinhOp: _rule(sinh),
    nd.CoshOp: _rule(cosh),
    nd.TanhOp: _rule(tanh),
    nd.LogisticOp: _rule(logistic),
    nd.AsinOp: _rule(asin),
    nd.AcosOp: _rule(acos),
    nd.AtanOp: _rule(turned(atanh)),
    nd.AsinhOp: _rule(turned(asin)),
    nd.AcoshOp: _rule(acosh),
    nd.AtanhOp: _rule(atanh),
}
