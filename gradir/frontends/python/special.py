"""Special functions under scipy's names; fused multiply-add."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.ir import Operation

from gradir.dialects import nd
from gradir.frontends.python.arrays import Array
from gradir.frontends.python.elementwise import name_functions, unary
from gradir.frontends.python.operands import float_dtype, together
from gradir.frontends.python.trace import apply

lgamma = unary(nd.LgammaOp, "log |Gamma(x)|; inf at 0 and at negative integers")
digamma = unary(nd.DigammaOp, "The derivative of lgamma; NaN at 0 and at negative integers")
trigamma = unary(nd.TrigammaOp, "The derivative of digamma; inf at 0 and at negative integers")
i0e = unary(nd.BesselI0eOp, "exp(-|x|) times the modified Bessel function of order 0")
i1e = unary(nd.BesselI1eOp, "exp(-|x|) times the modified Bessel function of order 1")


def _pair(kind: type[Operation], name: str, doc: str) -> Callable[[Any, Any], Array]:
    def function(x: Any, y: Any) -> Array:
        a, b = together(name, x, y, dtype=float_dtype(x, y))
        return apply(kind, [a, b], a.type)

    function.__doc__ = doc
    return function


zeta = _pair(nd.ZetaOp, "zeta", "Hurwitz's zeta function of s at q, the sum of (q + k) ** -s over k >= 0; a derivative by q alone")
polygamma = _pair(nd.PolygammaOp, "polygamma", "The derivative of order n of digamma, at x; a derivative by x alone")


def fma(a: Any, b: Any, c: Any) -> Array:
    """a * b + c, rounded once"""
    x, y, z = together("fma", a, b, c, dtype=float_dtype(a, b, c))
    return apply(nd.FmaOp, [x, y, z], x.type)


name_functions(globals())
