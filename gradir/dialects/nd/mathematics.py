"""Further elementwise functions of one number: rounding, roots, inverse and hyperbolic functions, error functions, classes, bits.

`result[i] = f(operand[i])` for every index i. Meaning: docs/numerics.md, "Elementwise". f16 and bf16 are computed in f32 and rounded once.
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.irdl import irdl_op_definition

from gradir.dialects.nd.base import NdOp
from gradir.dialects.nd.elementwise import Classification, Unary


class Function(Unary):
    """A function from floats to floats of the same type."""

    FAMILY: ClassVar[str] = "mathematics"


@irdl_op_definition
class RoundEvenOp(Function):
    """`result = nearest integer, halves to the even one`; round_even(2.5) = 2, the sign of zero is kept.

    StableHLO: round_nearest_even. ONNX: Round.
    """

    name = "nd.round_even"


@irdl_op_definition
class RoundAwayOp(Function):
    """`result = nearest integer, halves away from 0`; round_away(-0.5) = -1, round_away(0.49999997) = 0. StableHLO: round_nearest_afz."""

    name = "nd.round_away"


@irdl_op_definition
class TruncOp(Function):
    """`result = the integer next to x toward 0`; trunc(-0.5) = -0. torch, numpy: trunc."""

    name = "nd.trunc"


@irdl_op_definition
class CbrtOp(Function):
    """`result = x ** (1/3)` with the sign of x; cbrt(-8) = -2, cbrt(-0) = -0. StableHLO: cbrt."""

    name = "nd.cbrt"
    ELEMENTS: ClassVar[str] = "float or complex"


@irdl_op_definition
class TanOp(Function):
    """`result = sin x / cos x`, accurate over the whole range; tan(inf) = NaN. StableHLO: tan. ONNX: Tan."""

    name = "nd.tan"
    ELEMENTS: ClassVar[str] = "float or complex"


@irdl_op_definition
class AsinOp(Function):
    """`result = the angle in [-pi/2, pi/2] whose sine is x`; NaN for |x| > 1. CHLO: asin. ONNX: Asin."""

    name = "nd.asin"
    ELEMENTS: ClassVar[str] = "float or complex"


@irdl_op_definition
class AcosOp(Function):
    """`result = the angle in [0, pi] whose cosine is x`; NaN for |x| > 1. CHLO: acos. ONNX: Acos."""

    name = "nd.acos"
    ELEMENTS: ClassVar[str] = "float or complex"


@irdl_op_definition
class AtanOp(Function):
    """`result = the angle in [-pi/2, pi/2] whose tangent is x`; atan(inf) = pi/2. CHLO: atan. ONNX: Atan."""

    name = "nd.atan"
    ELEMENTS: ClassVar[str] = "float or complex"


@irdl_op_definition
class SinhOp(Function):
    """`result = (e**x - e**-x) / 2`, accurate near 0. CHLO: sinh. ONNX: Sinh."""

    name = "nd.sinh"
    ELEMENTS: ClassVar[str] = "float or complex"


@irdl_op_definition
class CoshOp(Function):
    """`result = (e**x + e**-x) / 2`. CHLO: cosh. ONNX: Cosh."""

    name = "nd.cosh"
    ELEMENTS: ClassVar[str] = "float or complex"


@irdl_op_definition
class AsinhOp(Function):
    """`result = ln(x + sqrt(x**2 + 1))`, accurate near 0. CHLO: asinh. ONNX: Asinh."""

    name = "nd.asinh"
    ELEMENTS: ClassVar[str] = "float or complex"


@irdl_op_definition
class AcoshOp(Function):
    """`result = ln(x + sqrt(x**2 - 1))`, accurate near 1; NaN for x < 1. CHLO: acosh. ONNX: Acosh."""

    name = "nd.acosh"
    ELEMENTS: ClassVar[str] = "float or complex"


@irdl_op_definition
class AtanhOp(Function):
    """`result = ln((1 + x) / (1 - x)) / 2`, accurate near 0; atanh(+-1) = +-inf, NaN for |x| > 1. CHLO: atanh. ONNX: Atanh."""

    name = "nd.atanh"
    ELEMENTS: ClassVar[str] = "float or complex"


@irdl_op_definition
class ErfcOp(Function):
    """`result = 1 - erf(x)`, accurate where that is small; erfc(10) = 2.088e-45. CHLO: erfc."""

    name = "nd.erfc"


@irdl_op_definition
class ErfInvOp(Function):
    """`result = the y with erf(y) = x`; erf_inv(+-1) = +-inf, NaN for |x| > 1. CHLO: erf_inv."""

    name = "nd.erf_inv"


@irdl_op_definition
class IsNanOp(Classification):
    """`result = x is not a number`, an i1 tensor. ONNX: IsNaN. numpy: isnan."""

    name = "nd.is_nan"
    FAMILY: ClassVar[str] = "mathematics"


@irdl_op_definition
class IsInfOp(Classification):
    """`result = x is inf or -inf`, an i1 tensor. CHLO: is_inf. ONNX: IsInf."""

    name = "nd.is_inf"
    FAMILY: ClassVar[str] = "mathematics"


class Bits(Unary):
    """A function of the bits of an integer, unsigned or not; the result has its type."""

    FAMILY: ClassVar[str] = "mathematics"
    ELEMENTS: ClassVar[str] = "integer"


@irdl_op_definition
class PopcntOp(Bits):
    """`result = number of 1 bits`; of i8 -1: 8. StableHLO: popcnt."""

    name = "nd.popcnt"


@irdl_op_definition
class ClzOp(Bits):
    """`result = number of 0 bits above the highest 1`; of 0: the width. StableHLO: count_leading_zeros."""

    name = "nd.clz"


ROUNDING: tuple[type[Function], ...] = (RoundEvenOp, RoundAwayOp, TruncOp)
SMOOTH: tuple[type[Function], ...] = (CbrtOp, TanOp, AsinOp, AcosOp, AtanOp, SinhOp, CoshOp, AsinhOp, AcoshOp, AtanhOp, ErfcOp, ErfInvOp)
UNARY: tuple[type[Unary], ...] = (*ROUNDING, *SMOOTH)
CLASSES: tuple[type[Classification], ...] = (IsNanOp, IsInfOp)
BITS: tuple[type[Bits], ...] = (PopcntOp, ClzOp)
OPS: tuple[type[NdOp], ...] = (*UNARY, *CLASSES, *BITS)
