"""Special functions: logarithm and derivatives of the gamma function, Hurwitz's zeta function, Bessel functions; fused multiply-add.

Meaning: docs/numerics.md, "Elementwise". f16 and bf16 are computed in f32 and rounded once. f64 keeps 4 ulp except close to the zeros of
lgamma and digamma at negative x, where the error is relative to the larger of the two terms that cancel.
"""

from __future__ import annotations

from typing import ClassVar, Self

from xdsl.ir import SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, result_def

from gradir.dialects.nd.base import TENSOR, NdOp, new
from gradir.dialects.nd.checks import check_element, check_same_types
from gradir.dialects.nd.elementwise import Binary, Unary


class SpecialFunction(Unary):
    """A function from floats to floats of the same type."""

    FAMILY: ClassVar[str] = "special"


class SpecialPair(Binary):
    """A function of two floats of one type."""

    FAMILY: ClassVar[str] = "special"
    ELEMENTS: ClassVar[str] = "float"


@irdl_op_definition
class LgammaOp(SpecialFunction):
    """`result = ln |Gamma(x)|`; inf at 0, at negative integers and at both infinities. CHLO: lgamma. torch: lgamma. scipy: gammaln."""

    name = "nd.lgamma"


@irdl_op_definition
class DigammaOp(SpecialFunction):
    """`result = Gamma'(x) / Gamma(x)`; NaN at 0, at negative integers and at -inf. CHLO: digamma. torch, scipy: digamma."""

    name = "nd.digamma"


@irdl_op_definition
class TrigammaOp(SpecialFunction):
    """`result = digamma'(x) = sum over k >= 0 of 1 / (x + k)**2`; inf at 0 and at negative integers. scipy: polygamma(1, x)."""

    name = "nd.trigamma"


@irdl_op_definition
class BesselI0eOp(SpecialFunction):
    """`result = e**-|x| I_0(x)`, the modified Bessel function of order 0, scaled. scipy: i0e."""

    name = "nd.bessel_i0e"


@irdl_op_definition
class BesselI1eOp(SpecialFunction):
    """`result = e**-|x| I_1(x)`, the modified Bessel function of order 1, scaled; odd. CHLO: bessel_i1e. scipy: i1e."""

    name = "nd.bessel_i1e"


@irdl_op_definition
class ZetaOp(SpecialPair):
    """`result = sum over k >= 0 of (rhs + k)**-lhs`, Hurwitz's zeta function of s = lhs at q = rhs.

    inf at s = 1, NaN for s < 1. For q <= 0: NaN unless s is an integer; at an integer q inf for even s, NaN for odd s. A derivative by q
    alone. CHLO: zeta. scipy: zeta.
    """

    name = "nd.zeta"


@irdl_op_definition
class PolygammaOp(SpecialPair):
    """`result = the derivative of order lhs of digamma, at rhs`: digamma for order n = 0, `(-1)**(n+1) n! zeta(n + 1, x)` for n >= 1.

    NaN where the order is no integer or negative; at x = 0, -1, ... inf for odd n, NaN for even n. A derivative by rhs alone.
    CHLO: polygamma. scipy: polygamma.
    """

    name = "nd.polygamma"


@irdl_op_definition
class FmaOp(NdOp):
    """`result = a * b + c`, rounded once; f16 and bf16: the fma of f32, rounded. torch: addcmul. C: fma."""

    name = "nd.fma"
    FAMILY: ClassVar[str] = "special"

    a = operand_def(TENSOR)
    b = operand_def(TENSOR)
    c = operand_def(TENSOR)
    result = result_def(TENSOR)

    def verify_(self) -> None:
        check_same_types(self, ("a", "b", "c", "result"), (self.a, self.b, self.c, self.result))
        check_element(self, "a", self.a, "float")

    @classmethod
    def make(cls, a: SSAValue, b: SSAValue, c: SSAValue) -> Self:
        """The op on these operands; the result has their type."""
        return new(cls, (a, b, c), a.type)


FUNCTIONS: tuple[type[SpecialFunction], ...] = (LgammaOp, DigammaOp, TrigammaOp, BesselI0eOp, BesselI1eOp)
PAIRS: tuple[type[SpecialPair], ...] = (ZetaOp, PolygammaOp)
OPS: tuple[type[NdOp], ...] = (*FUNCTIONS, *PAIRS, FmaOp)
