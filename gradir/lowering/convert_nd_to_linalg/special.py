"""Special functions, spelled out in arith and math: upstream's math dialect has none of them. All compute in f64 inside.

Gamma functions: a polynomial on an interval of length 1, Gamma(x + 1) = x Gamma(x) down to it, Stirling's series above, reflection for
negative x (NIST DLMF 5.5, 5.11, 5.15). Bessel functions: Chebyshev series in two pieces, as Cephes divides them. Hurwitz's zeta function:
Euler and Maclaurin's formula (DLMF 25.11.28), where negative q is put together from positive ones.
"""

from __future__ import annotations

from functools import partial
from math import log, pi

from xdsl.dialects.builtin import f32
from xdsl.ir import Operation, SSAValue

from gradir.dialects.nd import special as nd
from gradir.dialects.upstream import arith, math
from gradir.lowering.convert_nd_to_linalg import special_coefficients as c
from gradir.lowering.convert_nd_to_linalg.formula import Condition, Formula, in_f64
from gradir.lowering.convert_nd_to_linalg.function import Lowering
from gradir.lowering.convert_nd_to_linalg.rules import lowers
from gradir.lowering.convert_nd_to_linalg.scalars import Body, Scalars, float_op
from gradir.lowering.convert_nd_to_linalg.views import View

_INF, _NAN = float("inf"), float("nan")
_EXACT_SHIFTS = 6
"""So many steps of the recurrence before lgamma's series takes over, at x = 8.25."""


def _sin_pi(r: Formula) -> Formula:
    """sin(pi r) for 0 <= r <= 1/2."""
    return r * (r * r).polynomial(c.SINPI)


def lgamma(x: Formula) -> Formula:
    """log|Gamma(x)|: at x = 2 + k + t with t in [-3/4, 1/4) a polynomial and the logarithm of k factors; reflection below -3/4."""
    a = abs(x)
    reflects = x.lt(-0.75)
    y = reflects.select(a, x)
    steps = (y - 1.25).floor().op(arith.MinimumfOp, float(_EXACT_SHIFTS)).op(arith.MaximumfOp, -2.0)
    t = y - (steps + 2.0)
    below = steps.lt(0.0)
    factors = below.select(y * steps.lt(-1.0).select(y + 1.0, 1.0), 1.0)
    for k in range(1, _EXACT_SHIFTS + 1):
        factors = factors * steps.ge(float(k)).select(y - float(k), 1.0)
    series = y.ge(_EXACT_SHIFTS + 2.25)
    logarithm = series.select(y, abs(factors)).log()
    near = (t * (t + 1.0)).fma((t + 0.25).polynomial(c.LGAMMA), below.select(-logarithm, logarithm))
    inverse = 1.0 / y
    # (y - 1/2) log y - y + log(2 pi) / 2 + 1/(12 y) - ...
    rest = inverse.fma((inverse * inverse).polynomial(c.STIRLING), 0.5 * log(2 * pi) - 0.5)
    value = series.select((y - 0.5).fma(logarithm - 1.0, rest), near)
    distance = abs(a - a.round_even())
    mirrored = -((a * _sin_pi(distance)) * (1 / pi)).log() - value
    pole = distance.eq(0.0) | a.eq(_INF)
    return (reflects & pole).select(_INF, reflects.select(mirrored, value))


def _mirror(x: Formula) -> tuple[Condition, Formula, Formula, Formula]:
    """Is x negative; 1 - x where it is, else x; x minus the next integer, and its magnitude."""
    negative = x.lt(0.0)
    rest = x - x.round_even()
    return negative, negative.select(1.0 - x, x), rest, abs(rest)


def digamma(x: Formula) -> Formula:
    """psi(y + k) = psi(y) + 1/y + ... + 1/(y + k - 1) down to [1, 2), there (y - y0) G(y) with the zero y0; psi(1 - x) - pi / tan(pi x)."""
    negative, y, rest, distance = _mirror(x)
    steps = y.floor() - 1.0
    low = y.lt(1.0)
    w = low.select(y + 1.0, y - steps.op(arith.MinimumfOp, 8.0))
    # the sum of fractions as one fraction
    above, below = low.select(-1.0, y.of(0.0)), low.select(y, 1.0)
    for k in range(1, 9):
        taken = steps.ge(float(k))
        factor = taken.select(y - float(k), 1.0)
        above = above.fma(factor, taken.select(below, 0.0))
        below = below * factor
    root, root_low = c.PSI_ROOT
    near = ((w - root) - root_low).fma((w - 1.5).polynomial(c.DIGAMMA), above / below)
    inverse = 1.0 / y
    square = inverse * inverse
    far = (y.log() - inverse * 0.5) + square * square.polynomial(c.DIGAMMA_TAIL)
    value = y.ge(10.0).select(far, near)
    cotangent = (_sin_pi(0.5 - distance) / _sin_pi(distance)).copysign(rest)
    value = negative.select(value - cotangent * pi, value)
    pole = x.eq(0.0) | (negative & distance.eq(0.0))
    return pole.select(_NAN, value)


def trigamma(x: Formula) -> Formula:
    """psi'(y) = 1/y^2 + psi'(y + 1) up to 10, the asymptotic series there; pi^2 / sin(pi x)^2 - psi'(1 - x)."""
    negative, y, _, distance = _mirror(x)
    total = y.of(0.0)
    for _ in range(10):
        low = y.lt(10.0)
        total = total + low.select(1.0 / (y * y), 0.0)
        y = low.select(y + 1.0, y)
    inverse = 1.0 / y
    square = inverse * inverse
    value = total + (square * 0.5 + (inverse * square).fma(square.polynomial(c.TRIGAMMA_TAIL), inverse))
    ratio = pi / _sin_pi(distance)
    return negative.select(ratio * ratio - value, value)


def _power(base: Formula, exponent: Formula, single: bool) -> Formula:
    """base^exponent for a positive base; in f64 by a logarithm of 53 bits where the result is only needed in f32."""
    if single:
        return (base.op(math.Log2Op) * exponent).op(math.Exp2Op)
    return base.op(math.PowFOp, exponent)


def _zeta_positive(s: Formula, q: Formula, single: bool) -> Formula:
    """q > 0, s > 1: ten terms, the integral of the others, and corrections."""
    total = _power(q, -s, single)
    for k in range(1, 10):
        total = total + _power(q + float(k), -s, single)
    a = q + 10.0
    power = _power(a, -s, single)
    inverse = 1.0 / a
    square = inverse * inverse
    factor = s * inverse
    tail = a / (s - 1.0) + 0.5
    for k, coefficient in enumerate(c.ZETA, 1):
        tail = factor.fma(coefficient, tail)
        factor = factor * ((s + (2.0 * k - 1.0)) * (s + 2.0 * k)) * square
    vanishes = power.eq(0.0) | a.eq(_INF)
    return total + vanishes.select(0.0, power * tail)


def zeta(s: Formula, q: Formula, single: bool) -> Formula:
    """For q < 0 the terms with a negative base are zeta(s, 1 - f) - zeta(s, 1 - q) with f = q mod 1, times (-1)^s."""
    negative = q.lt(0.0)
    fraction = q - q.floor()
    even = (s * 0.5).floor().eq(s * 0.5)
    sign = even.select(1.0, s.of(-1.0))
    value = _zeta_positive(s, negative.select(fraction, q), single)
    others = _zeta_positive(s, 1.0 - fraction, single) - _zeta_positive(s, 1.0 - q, single)
    value = negative.select(sign.fma(others, value), value)
    not_positive = q.compare("ole", 0.0)
    value = (not_positive & fraction.eq(0.0)).select(even.select(_INF, s.of(_NAN)), value)
    value = (not_positive & s.floor().compare("une", s)).select(_NAN, value)
    value = s.eq(1.0).select(_INF, s.lt(1.0).select(_NAN, value))
    unknown = s.compare("uno", q) | q.eq(-_INF)
    return unknown.select(_NAN, value)


def polygamma(n: Formula, x: Formula, single: bool) -> Formula:
    """(-1)^(n+1) n! zeta(n + 1, x), digamma and trigamma for n = 0 and 1."""
    order = n + 1.0
    even = (order * 0.5).floor().eq(order * 0.5)
    value = even.select(1.0, n.of(-1.0)) * lgamma(order).op(math.ExpOp) * zeta(order, x, single)
    value = n.eq(0.0).select(digamma(x), n.eq(1.0).select(trigamma(x), value))
    return (n.lt(0.0) | n.floor().compare("une", n)).select(_NAN, value)


def _by_precision(function: type[nd.SpecialPair]) -> Body:
    compute = zeta if function is nd.ZetaOp else polygamma

    def body(s: Scalars, x: SSAValue, y: SSAValue) -> SSAValue:
        return in_f64(partial(compute, single=x.type == f32))(s, x, y)

    return body


def _bessel(order: int, x: Formula) -> Formula:
    """e^-|x| I(x): one series up to 8, another one in 1/x times 1 / sqrt(x) above."""
    a = abs(x)
    small, large = (c.I0_SMALL, c.I0_LARGE) if order == 0 else (c.I1_SMALL, c.I1_LARGE)
    far = a.gt(8.0)
    near = (a * 0.25 - 1.0).chebyshev(small)
    above = (16.0 / a - 1.0).chebyshev(large) / a.sqrt()
    if order == 0:
        return far.select(above, near / (a + 1.0))
    return far.select(x.lt(0.0).select(-above, above), (near * x) / ((a + 1.0) * a.fma(0.5, 1.0)))


BODIES: dict[type[Operation], Body] = {
    nd.LgammaOp: in_f64(lgamma),
    nd.DigammaOp: in_f64(digamma),
    nd.TrigammaOp: in_f64(trigamma),
    nd.BesselI0eOp: in_f64(partial(_bessel, 0)),
    nd.BesselI1eOp: in_f64(partial(_bessel, 1)),
    nd.ZetaOp: _by_precision(nd.ZetaOp),
    nd.PolygammaOp: _by_precision(nd.PolygammaOp),
    nd.FmaOp: float_op(math.FmaOp),
}


@lowers(*BODIES)
def lower_special(lowering: Lowering, op: nd.NdOp) -> View:
    """`result[i] = f(operands[i])`."""
    return lowering.elementwise(op, [lowering.view(value) for value in op.operands], BODIES[type(op)])
