"""Further functions of one number, numpy's names; integers and booleans become f32 where the result is not whole."""

from __future__ import annotations

import math
from typing import Any

from xdsl.dialects.builtin import i1

from gradir.dialects import nd
from gradir.dialects.types import tensor
from gradir.frontends.python import promotion
from gradir.frontends.python.arrays import OPERATORS, Array
from gradir.frontends.python.elementwise import (
    abs,
    add,
    divide,
    exp,
    greater,
    log,
    log1p,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    minimum,
    multiply,
    name_functions,
    negative,
    not_equal,
    power,
    sqrt,
    subtract,
    unary,
    where,
)
from gradir.frontends.python.operands import as_array, float_dtype, together
from gradir.frontends.python.trace import apply, user_error

round_away = unary(nd.RoundAwayOp, "Nearest integer, halves away from 0")
trunc = unary(nd.TruncOp, "The integer next to x toward 0")
cbrt = unary(nd.CbrtOp, "Cube root, with the sign of x")
tan = unary(nd.TanOp, "Tangent")
arcsin = unary(nd.AsinOp, "Inverse of sin, in [-pi/2, pi/2]")
arccos = unary(nd.AcosOp, "Inverse of cos, in [0, pi]")
arctan = unary(nd.AtanOp, "Inverse of tan, in [-pi/2, pi/2]")
sinh = unary(nd.SinhOp, "Hyperbolic sine")
cosh = unary(nd.CoshOp, "Hyperbolic cosine")
arcsinh = unary(nd.AsinhOp, "Inverse of sinh")
arccosh = unary(nd.AcoshOp, "Inverse of cosh; NaN below 1")
arctanh = unary(nd.AtanhOp, "Inverse of tanh; NaN outside of [-1, 1]")

erfc = unary(nd.ErfcOp, "1 - erf(x), accurate where that is small")

erf_inv = unary(nd.ErfInvOp, "The y with erf(y) = x; NaN outside of [-1, 1]")


def reciprocal(x: Any) -> Array:
    """1 / x"""
    return divide(1, x)


def isnan(x: Any) -> Array:
    """True where x is NaN"""
    return _classified(nd.IsNanOp, x)


def isinf(x: Any) -> Array:
    """True where x is inf or -inf"""
    return _classified(nd.IsInfOp, x)


def _classified(kind: type[nd.Classification], x: Any) -> Array:
    x = as_array(x)
    if promotion.is_complex(x.dtype):
        return logical_or(*(_classified(kind, OPERATORS[part](x)) for part in ("real", "imag")))
    return apply(kind, [x], tensor(i1, x.shape)) if promotion.is_float(x.dtype) else not_equal(x, x)


def population_count(x: Any) -> Array:
    """The number of 1 bits of an integer, in its type"""
    return _counted(nd.PopcntOp, "population_count", x)


def clz(x: Any) -> Array:
    """The number of 0 bits above the highest 1 of an integer, in its type; the width for 0"""
    return _counted(nd.ClzOp, "clz", x)


def _counted(kind: type[nd.Bits], name: str, x: Any) -> Array:
    x = as_array(x)
    if x.dtype.kind not in "iu":
        raise user_error(f"{name} of {x.dtype}", code="GR002", op=kind.name, expected="integers", found=str(x.dtype))
    return apply(kind, [x], x.type)


def logaddexp(x: Any, y: Any) -> Array:
    """log(exp(x) + exp(y)) without overflow: max(x, y) + log1p(exp(-|x - y|)); two equal infinities have no difference"""
    a, b = together("logaddexp", x, y, dtype=float_dtype(x, y))
    distance = abs(subtract(a, b))
    return add(maximum(a, b), where(isnan(distance), 0.0, log1p(exp(negative(distance)))))


def log2(x: Any) -> Array:
    """log(x) / log(2)"""
    return divide(log(x), math.log(2))


def log10(x: Any) -> Array:
    """log(x) / log(10)"""
    return divide(log(x), math.log(10))


def exp2(x: Any) -> Array:
    """2 ** x"""
    return power(2.0, x)


def hypot(x: Any, y: Any) -> Array:
    """sqrt(x*x + y*y) without overflow: m sqrt(1 + (n/m)**2) with m >= n; inf if one is infinite; derivative 0 at 0"""
    a, b = together("hypot", x, y, dtype=float_dtype(x, y))
    a, b = abs(a), abs(b)
    m, n = maximum(a, b), minimum(a, b)
    infinite = logical_or(isinf(a), isinf(b))
    usable = logical_and(greater(m, 0.0), logical_not(infinite))
    ratio = divide(where(usable, n, 0.0), where(usable, m, 1.0))
    return where(infinite, float("inf"), multiply(m, sqrt(add(1.0, multiply(ratio, ratio)))))


def round(x: Any) -> Array:
    """Nearest integer, halves to the even one; integers stay as they are"""
    x = as_array(x)
    return apply(nd.RoundEvenOp, [x], x.type) if promotion.is_float(x.dtype) else x


rint = round
OPERATORS.update(round=round)
name_functions(globals())
