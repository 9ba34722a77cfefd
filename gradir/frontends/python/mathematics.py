"""Further functions of one number, numpy's names; integers and booleans become f32 where the result is not whole."""

from __future__ import annotations

from typing import Any

from gradir.dialects import nd
from gradir.frontends.python import promotion
from gradir.frontends.python.arrays import Array
from gradir.frontends.python.elementwise import name_functions, unary
from gradir.frontends.python.operands import as_array
from gradir.frontends.python.trace import apply

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


def round(x: Any) -> Array:
    """Nearest integer, halves to the even one; integers stay as they are"""
    x = as_array(x)
    return apply(nd.RoundEvenOp, [x], x.type) if promotion.is_float(x.dtype) else x


rint = round
name_functions(globals())
