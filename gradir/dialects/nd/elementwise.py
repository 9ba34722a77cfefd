"""Elementwise ops: `result[i] = f(operands[i])` for every index i; all operands have one shape.

Meaning: docs/numerics.md, "Elementwise". f16 and bf16 are computed in f32 and rounded once.
"""

from __future__ import annotations

from typing import ClassVar, Self

from xdsl.dialects.builtin import IntegerAttr, i1
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, result_def
from xdsl.parser import Parser
from xdsl.printer import Printer

from gradir.dialects.nd.base import TENSOR, NdOp, new
from gradir.dialects.nd.checks import check_element, check_same_types, check_shape
from gradir.dialects.nd.comparison import ClampOp, CompareOp, SelectOp
from gradir.dialects.nd.complex import check_parts, parse_parts, print_parts
from gradir.dialects.text import Clause, flag_attr
from gradir.dialects.types import element_of, real_of, shape_of, tensor


class Unary(NdOp):
    """`result[i] = f(operand[i])`."""

    FAMILY: ClassVar[str] = "elementwise"
    ELEMENTS: ClassVar[str] = "float"

    operand = operand_def(TENSOR)
    result = result_def(TENSOR)

    def verify_(self) -> None:
        check_element(self, "operand", self.operand, self.ELEMENTS)
        check_same_types(self, ("operand", "result"), (self.operand, self.result))

    @classmethod
    def make(cls, operand: SSAValue) -> Self:
        """The op on this operand; the result has its type."""
        return new(cls, (operand,), operand.type)


@irdl_op_definition
class ReluOp(Unary):
    """`result = x if x > 0 or x is NaN, else +0`. Its own op: relu'(0) = 0, where max(x, 0) has 1/2. ONNX: Relu."""

    name = "nd.relu"
    ELEMENTS: ClassVar[str] = "signed"


@irdl_op_definition
class NegOp(Unary):
    """`result = -x`; integers wrap (-MIN = MIN). StableHLO: negate. ONNX: Neg."""

    name = "nd.neg"
    ELEMENTS: ClassVar[str] = "number or complex"


@irdl_op_definition
class AbsOp(Unary):
    """`result = |x|`; abs(MIN) = MIN. Of complex x the real number `hypot(real x, imag x)`. StableHLO: abs. ONNX: Abs."""

    name = "nd.abs"
    ELEMENTS: ClassVar[str] = "signed or complex"

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        return parse_parts(cls, parser, real_of)

    def print(self, printer: Printer) -> None:
        print_parts(self, printer)

    def verify_(self) -> None:
        check_element(self, "operand", self.operand, self.ELEMENTS)
        check_parts(self, "result", self.result, real_of(element_of(self.operand)))

    @classmethod
    def make(cls, operand: SSAValue) -> Self:
        """The op on this operand; the result is real."""
        return new(cls, (operand,), tensor(real_of(element_of(operand)), shape_of(operand)))


@irdl_op_definition
class SignOp(Unary):
    """`result = -1, 0 or 1`; sign(-0) = -0, sign(NaN) = NaN; of complex x `x / |x|`, 0 at 0. StableHLO: sign. ONNX: Sign."""

    name = "nd.sign"
    ELEMENTS: ClassVar[str] = "signed or complex"


@irdl_op_definition
class ExpOp(Unary):
    """`result = e**x`; overflow gives inf. StableHLO: exponential. ONNX: Exp."""

    name = "nd.exp"
    ELEMENTS: ClassVar[str] = "float or complex"


@irdl_op_definition
class Expm1Op(Unary):
    """`result = e**x - 1`, accurate near 0. StableHLO: exponential_minus_one."""

    name = "nd.expm1"
    ELEMENTS: ClassVar[str] = "float or complex"


@irdl_op_definition
class LogOp(Unary):
    """`result = ln x`; log(+-0) = -inf, log(x < 0) = NaN. StableHLO: log. ONNX: Log."""

    name = "nd.log"
    ELEMENTS: ClassVar[str] = "float or complex"


@irdl_op_definition
class Log1pOp(Unary):
    """`result = ln(1 + x)`, accurate near 0; log1p(-1) = -inf. StableHLO: log_plus_one."""

    name = "nd.log1p"
    ELEMENTS: ClassVar[str] = "float or complex"


@irdl_op_definition
class SqrtOp(Unary):
    """`result = x ** (1/2)`; sqrt(-0) = -0, sqrt(x < 0) = NaN. StableHLO: sqrt. ONNX: Sqrt."""

    name = "nd.sqrt"
    ELEMENTS: ClassVar[str] = "float or complex"


@irdl_op_definition
class RsqrtOp(Unary):
    """`result = 1 / sqrt(x)`; rsqrt(-0) = -inf. StableHLO: rsqrt."""

    name = "nd.rsqrt"
    ELEMENTS: ClassVar[str] = "float or complex"


@irdl_op_definition
class TanhOp(Unary):
    """`result = (e**x - e**-x) / (e**x + e**-x)`. StableHLO: tanh. ONNX: Tanh."""

    name = "nd.tanh"
    ELEMENTS: ClassVar[str] = "float or complex"


@irdl_op_definition
class LogisticOp(Unary):
    """`result = 1 / (1 + e**-x)`, by that formula: 0 at f32 -90. StableHLO: logistic. ONNX: Sigmoid."""

    name = "nd.logistic"
    ELEMENTS: ClassVar[str] = "float or complex"


@irdl_op_definition
class ErfOp(Unary):
    """`result = 2/sqrt(pi) * integral from 0 to x of e**-t**2 dt`. CHLO: erf. ONNX: Erf."""

    name = "nd.erf"


@irdl_op_definition
class SinOp(Unary):
    """`result = sin x`, accurate over the whole range; sin(inf) = NaN. StableHLO: sine. ONNX: Sin."""

    name = "nd.sin"
    ELEMENTS: ClassVar[str] = "float or complex"


@irdl_op_definition
class CosOp(Unary):
    """`result = cos x`, accurate over the whole range; cos(inf) = NaN. StableHLO: cosine. ONNX: Cos."""

    name = "nd.cos"
    ELEMENTS: ClassVar[str] = "float or complex"


@irdl_op_definition
class FloorOp(Unary):
    """`result = largest integer <= x`. StableHLO: floor. ONNX: Floor."""

    name = "nd.floor"


@irdl_op_definition
class CeilOp(Unary):
    """`result = smallest integer >= x`; ceil(-0.5) = -0. StableHLO: ceil. ONNX: Ceil."""

    name = "nd.ceil"


@irdl_op_definition
class NotOp(Unary):
    """`result = bitwise complement of x`; of i1: logical. StableHLO: not. ONNX: BitwiseNot, Not."""

    name = "nd.not"
    ELEMENTS: ClassVar[str] = "bits"


class Classification(NdOp):
    """Whether an element belongs to a class of floats: an i1 tensor."""

    FAMILY: ClassVar[str] = "elementwise"
    TYPES: ClassVar[str] = "map"

    operand = operand_def(TENSOR)
    result = result_def(TENSOR)

    def verify_(self) -> None:
        check_element(self, "operand", self.operand, "float")
        check_element(self, "result", self.result, "bool")
        check_shape(self, shape_of(self.operand), self.result)

    @classmethod
    def make(cls, operand: SSAValue) -> Self:
        """The op on this operand."""
        return new(cls, (operand,), tensor(i1, shape_of(operand)))


@irdl_op_definition
class IsFiniteOp(Classification):
    """`result = x is neither NaN nor infinite`, an i1 tensor. StableHLO: is_finite."""

    name = "nd.is_finite"


@irdl_op_definition
class ConvertOp(NdOp):
    """`result = x in the element type of the result`.

    To float: one rounding, nearest even. Float to integer: truncate, then saturate, NaN is 0. Integer to integer: wraps. To i1: `x != 0`.
    `saturate`, to a float: what is beyond its largest number becomes that number, infinities too; NaN stays NaN.
    From complex to anything else: the real part; to complex: the imaginary part of what was real is 0.
    StableHLO: convert. ONNX: Cast.
    """

    name = "nd.convert"
    FAMILY: ClassVar[str] = "elementwise"
    TYPES: ClassVar[str] = "map"
    CLAUSES: ClassVar[tuple[Clause, ...]] = (Clause("saturate", "saturate", "flag", optional=True),)

    operand = operand_def(TENSOR)
    saturate = opt_prop_def(IntegerAttr.constr(type=i1))
    result = result_def(TENSOR)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        op = super().parse(parser)
        if not op.saturates:  # left out where it does not hold
            del op.properties["saturate"]
        return op

    @property
    def saturates(self) -> bool:
        """Whether overflow gives the largest finite number."""
        return "saturate" in self.properties and bool(self.number("saturate"))

    def verify_(self) -> None:
        if self.saturates:
            check_element(self, "a saturating result", self.result, "float")
            check_element(self, "operand", self.operand, "ordered")
        check_element(self, "operand", self.operand, "any")
        check_element(self, "result", self.result, "any")
        check_shape(self, shape_of(self.operand), self.result)

    @classmethod
    def make(cls, operand: SSAValue, element: Attribute, *, saturate: bool = False) -> Self:
        """The operand's values in that element type."""
        return new(cls, (operand,), tensor(element, shape_of(operand)), {"saturate": flag_attr(True)} if saturate else {})


class Binary(NdOp):
    """`result[i] = f(lhs[i], rhs[i])`; both operands and the result have one type."""

    FAMILY: ClassVar[str] = "elementwise"
    ELEMENTS: ClassVar[str] = "number"

    lhs = operand_def(TENSOR)
    rhs = operand_def(TENSOR)
    result = result_def(TENSOR)

    def verify_(self) -> None:
        check_same_types(self, ("lhs", "rhs", "result"), (self.lhs, self.rhs, self.result))
        check_element(self, "lhs", self.lhs, self.ELEMENTS)

    @classmethod
    def make(cls, lhs: SSAValue, rhs: SSAValue) -> Self:
        """The op on these operands; the result has the type of `lhs`."""
        return new(cls, (lhs, rhs), lhs.type)


@irdl_op_definition
class AddOp(Binary):
    """`result = lhs + rhs`; integers wrap; i1: or. StableHLO: add. ONNX: Add."""

    name = "nd.add"
    ELEMENTS: ClassVar[str] = "any"


@irdl_op_definition
class SubOp(Binary):
    """`result = lhs - rhs`; integers wrap. StableHLO: subtract. ONNX: Sub."""

    name = "nd.sub"
    ELEMENTS: ClassVar[str] = "number or complex"


@irdl_op_definition
class MulOp(Binary):
    """`result = lhs * rhs`; integers wrap; i1: and. StableHLO: multiply. ONNX: Mul."""

    name = "nd.mul"
    ELEMENTS: ClassVar[str] = "any"


@irdl_op_definition
class MulStrongOp(Binary):
    """`result = 0 if lhs == 0 or rhs == 0, else lhs * rhs`: zero wins over inf and NaN. The product that derivatives use."""

    name = "nd.mul_strong"
    ELEMENTS: ClassVar[str] = "any"


@irdl_op_definition
class DivOp(Binary):
    """`result = lhs / rhs`; integers toward zero, x / 0 = -1 (all ones if unsigned), MIN / -1 = MIN. StableHLO: divide. ONNX: Div."""

    name = "nd.div"
    ELEMENTS: ClassVar[str] = "number or complex"


@irdl_op_definition
class RemOp(Binary):
    """`result = lhs - rhs * trunc(lhs / rhs)`, exact, the sign of lhs (C fmod); integers: x % 0 = x. StableHLO: remainder.

    ONNX: Mod(fmod=1).
    """

    name = "nd.rem"


@irdl_op_definition
class PowOp(Binary):
    """`result = lhs ** rhs` (IEEE pow); integers wrap, a negative exponent gives 0 unless lhs is 1 or -1. StableHLO: power. ONNX: Pow."""

    name = "nd.pow"
    ELEMENTS: ClassVar[str] = "number or complex"


@irdl_op_definition
class MaxOp(Binary):
    """`result = larger of lhs, rhs`; NaN wins, max(-0, +0) = +0; i1: or. StableHLO: maximum. ONNX: Max."""

    name = "nd.max"
    ELEMENTS: ClassVar[str] = "ordered"


@irdl_op_definition
class MinOp(Binary):
    """`result = smaller of lhs, rhs`; NaN wins, min(-0, +0) = -0; i1: and. StableHLO: minimum. ONNX: Min."""

    name = "nd.min"
    ELEMENTS: ClassVar[str] = "ordered"


@irdl_op_definition
class Atan2Op(Binary):
    """`result = angle of the point (x = rhs, y = lhs)`, in [-pi, pi], zeros and infinities as C99. StableHLO: atan2."""

    name = "nd.atan2"
    ELEMENTS: ClassVar[str] = "float"


@irdl_op_definition
class AndOp(Binary):
    """`result = lhs & rhs`, bitwise. StableHLO: and. ONNX: BitwiseAnd, And."""

    name = "nd.and"
    ELEMENTS: ClassVar[str] = "bits"


@irdl_op_definition
class OrOp(Binary):
    """`result = lhs | rhs`, bitwise. StableHLO: or. ONNX: BitwiseOr, Or."""

    name = "nd.or"
    ELEMENTS: ClassVar[str] = "bits"


@irdl_op_definition
class XorOp(Binary):
    """`result = lhs ^ rhs`, bitwise. StableHLO: xor. ONNX: BitwiseXor, Xor."""

    name = "nd.xor"
    ELEMENTS: ClassVar[str] = "bits"


@irdl_op_definition
class ShlOp(Binary):
    """`result = lhs * 2**rhs`, wrapping; 0 when rhs, read as unsigned, is at least the width. StableHLO: shift_left."""

    name = "nd.shl"
    ELEMENTS: ClassVar[str] = "integer"


@irdl_op_definition
class ShrSOp(Binary):
    """`result = floor(lhs / 2**rhs)`, sign-filling; the sign alone when rhs, read as unsigned, is at least the width.

    StableHLO: shift_right_arithmetic.
    """

    name = "nd.shr_s"
    ELEMENTS: ClassVar[str] = "integer"


@irdl_op_definition
class ShrUOp(Binary):
    """`result = bits of lhs moved down by rhs, zeros from above`; 0 when rhs, read as unsigned, is at least the width.

    StableHLO: shift_right_logical.
    """

    name = "nd.shr_u"
    ELEMENTS: ClassVar[str] = "integer"


UNARY: tuple[type[Unary], ...] = (
    ReluOp,
    NegOp,
    AbsOp,
    SignOp,
    ExpOp,
    Expm1Op,
    LogOp,
    Log1pOp,
    SqrtOp,
    RsqrtOp,
    TanhOp,
    LogisticOp,
    ErfOp,
    SinOp,
    CosOp,
    FloorOp,
    CeilOp,
    NotOp,
)
BINARY: tuple[type[Binary], ...] = (
    AddOp,
    SubOp,
    MulOp,
    MulStrongOp,
    DivOp,
    RemOp,
    PowOp,
    MaxOp,
    MinOp,
    Atan2Op,
    AndOp,
    OrOp,
    XorOp,
    ShlOp,
    ShrSOp,
    ShrUOp,
)
OPS = (*UNARY, IsFiniteOp, ConvertOp, *BINARY, CompareOp, SelectOp, ClampOp)
