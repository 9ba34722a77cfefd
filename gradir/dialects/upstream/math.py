"""`math`: xDSL's ops, and `erfc`, the predicates and `clampf` that it lacks."""

from __future__ import annotations

from typing import ClassVar, Self

from xdsl.dialects import math as xdsl_math
from xdsl.dialects.arith import FastMathFlagsAttr
from xdsl.dialects.builtin import AnyFloat
from xdsl.dialects.math import (
    AbsFOp as AbsFOp,
    AbsIOp as AbsIOp,
    AcoshOp as AcoshOp,
    AcosOp as AcosOp,
    AsinhOp as AsinhOp,
    AsinOp as AsinOp,
    Atan2Op as Atan2Op,
    AtanhOp as AtanhOp,
    AtanOp as AtanOp,
    CbrtOp as CbrtOp,
    CeilOp as CeilOp,
    CopySignOp as CopySignOp,
    CoshOp as CoshOp,
    CosOp as CosOp,
    CountLeadingZerosOp as CountLeadingZerosOp,
    CountTrailingZerosOp as CountTrailingZerosOp,
    CtPopOp as CtPopOp,
    ErfOp as ErfOp,
    Exp2Op as Exp2Op,
    ExpM1Op as ExpM1Op,
    ExpOp as ExpOp,
    FloatingPointLikeBinaryMathOperation as FloatingPointLikeBinaryMathOperation,
    FloatingPointLikeUnaryMathOperation as FloatingPointLikeUnaryMathOperation,
    FloorOp as FloorOp,
    FmaOp as FmaOp,
    FPowIOp as FPowIOp,
    IPowIOp as IPowIOp,
    Log1pOp as Log1pOp,
    Log2Op as Log2Op,
    Log10Op as Log10Op,
    LogOp as LogOp,
    PowFOp as PowFOp,
    RoundEvenOp as RoundEvenOp,
    RoundOp as RoundOp,
    RsqrtOp as RsqrtOp,
    SignlessIntegerLikeBinaryMathOperation as SignlessIntegerLikeBinaryMathOperation,
    SignlessIntegerLikeUnaryMathOperation as SignlessIntegerLikeUnaryMathOperation,
    SinhOp as SinhOp,
    SinOp as SinOp,
    SqrtOp as SqrtOp,
    TanhOp as TanhOp,
    TanOp as TanOp,
    TruncOp as TruncOp,
)
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import AnyAttr, IRDLOperation, VarConstraint, irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.type import get_element_type_or_self

from .extend import boolean_like, extended, print_operands, print_types

NONPOSITIVE = "gradir.nonpositive"
"""Of a `math.exp`: its operand is never above 0 (it may be NaN), so that e^x takes fewer steps."""


class FloatClass(IRDLOperation):
    """`result[i]`: whether `operand[i]` belongs to a class of floats; `i1` in the operand's shape."""

    operand = operand_def()
    result = result_def()

    traits = traits_def(Pure())

    def __init__(self, operand: SSAValue | Operation) -> None:
        super().__init__(operands=[operand], result_types=[boolean_like(SSAValue.get(operand).type)])

    def verify_(self) -> None:
        if not isinstance(get_element_type_or_self(self.operand.type), AnyFloat) or self.result.type != boolean_like(self.operand.type):
            raise VerifyException(f"{self.name}: expected floats and i1 of one shape, got {self.operand.type} and {self.result.type}")

    def print(self, printer: Printer) -> None:
        print_operands(printer, self.operands)
        printer.print_op_attributes(self.attributes)
        print_types(printer, [self.operand.type])

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        name = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        operand = parser.resolve_operand(name, type_)
        return cls.create(operands=[operand], result_types=[boolean_like(type_)], attributes=attributes)


@irdl_op_definition
class ErfcOp(FloatingPointLikeUnaryMathOperation):
    """`1 - erf(operand)`, accurate where that is small."""

    name = "math.erfc"


@irdl_op_definition
class IsFiniteOp(FloatClass):
    """Neither infinite nor NaN."""

    name = "math.isfinite"


@irdl_op_definition
class IsInfOp(FloatClass):
    """Infinite, of either sign."""

    name = "math.isinf"


@irdl_op_definition
class IsNaNOp(FloatClass):
    """Not a number."""

    name = "math.isnan"


@irdl_op_definition
class IsNormalOp(FloatClass):
    """Finite, not zero and not denormal."""

    name = "math.isnormal"


@irdl_op_definition
class ClampFOp(IRDLOperation):
    """`min` `value` and `max` as `minimumf(maximumf(value, min), max)`."""

    name = "math.clampf"

    T: ClassVar = VarConstraint("T", AnyAttr())

    value = operand_def(T)
    min = operand_def(T)
    max = operand_def(T)
    result = result_def(T)
    fastmath = prop_def(FastMathFlagsAttr, default_value=FastMathFlagsAttr("none"))

    traits = traits_def(Pure())

    assembly_format = "$value `to` `[` $min `,` $max `]` (`fastmath` `` $fastmath^)? attr-dict `:` type($value)"

    def __init__(self, value: SSAValue, low: SSAValue, high: SSAValue) -> None:
        super().__init__(operands=[value, low, high], result_types=[value.type])


Math = extended(xdsl_math.Math, [ErfcOp, IsFiniteOp, IsInfOp, IsNaNOp, IsNormalOp, ClampFOp])
