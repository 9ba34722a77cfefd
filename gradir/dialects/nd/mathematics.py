"""Further elementwise functions of one number: rounding, roots, inverse and hyperbolic functions, error functions, classes, bits.

`result[i] = f(operand[i])` for every index i. Meaning: docs/numerics.md, "Elementwise". f16 and bf16 are computed in f32 and rounded once.
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.irdl import irdl_op_definition

from gradir.dialects.nd.base import NdOp
from gradir.dialects.nd.elementwise import Unary


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


ROUNDING: tuple[type[Function], ...] = (RoundEvenOp, RoundAwayOp, TruncOp)
UNARY: tuple[type[Unary], ...] = ROUNDING
OPS: tuple[type[NdOp], ...] = UNARY
