"""`arith`: xDSL's ops, with casts, comparisons and `select` that are elementwise on vectors and tensors as upstream's are.

xDSL's take scalars only, or give vectors of comparisons the type `i1`.
"""

from __future__ import annotations

from types import UnionType
from typing import ClassVar, Self

from xdsl.dialects import arith as xdsl_arith
from xdsl.dialects.arith import (
    CMPF_COMPARISON_OPERATIONS as CMPF_COMPARISON_OPERATIONS,
    CMPI_COMPARISON_OPERATIONS as CMPI_COMPARISON_OPERATIONS,
    AddfOp as AddfOp,
    AddiOp as AddiOp,
    AddUIExtendedOp as AddUIExtendedOp,
    AndIOp as AndIOp,
    BitcastOp as BitcastOp,
    CeilDivSIOp as CeilDivSIOp,
    CeilDivUIOp as CeilDivUIOp,
    ComparisonOperation as ComparisonOperation,
    ConstantOp as ConstantOp,
    DivfOp as DivfOp,
    DivSIOp as DivSIOp,
    DivUIOp as DivUIOp,
    ExtFOp as ExtFOp,
    FastMathFlagsAttr as FastMathFlagsAttr,
    FloatingPointLikeBinaryOperation as FloatingPointLikeBinaryOperation,
    FloatingPointToIntegerBaseOp as FloatingPointToIntegerBaseOp,
    FloorDivSIOp as FloorDivSIOp,
    IntegerOverflowAttr as IntegerOverflowAttr,
    IntegerOverflowFlag as IntegerOverflowFlag,
    IntegerToFloatingPointBaseOp as IntegerToFloatingPointBaseOp,
    MaximumfOp as MaximumfOp,
    MaxnumfOp as MaxnumfOp,
    MaxSIOp as MaxSIOp,
    MaxUIOp as MaxUIOp,
    MinimumfOp as MinimumfOp,
    MinnumfOp as MinnumfOp,
    MinSIOp as MinSIOp,
    MinUIOp as MinUIOp,
    MulExtendedBase as MulExtendedBase,
    MulfOp as MulfOp,
    MuliOp as MuliOp,
    MulSIExtendedOp as MulSIExtendedOp,
    MulUIExtendedOp as MulUIExtendedOp,
    NegfOp as NegfOp,
    OrIOp as OrIOp,
    RemSIOp as RemSIOp,
    RemUIOp as RemUIOp,
    ShLIOp as ShLIOp,
    ShRSIOp as ShRSIOp,
    ShRUIOp as ShRUIOp,
    SignlessIntegerBinaryOperation as SignlessIntegerBinaryOperation,
    SignlessIntegerBinaryOperationWithOverflow as SignlessIntegerBinaryOperationWithOverflow,
    SubfOp as SubfOp,
    SubiOp as SubiOp,
    TruncFOp as TruncFOp,
    XOrIOp as XOrIOp,
)
from xdsl.dialects.builtin import AnyFloat, IndexType, IntegerAttr, IntegerType, i1, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.type import get_element_type_or_self

from .extend import boolean_like, extended, parse_operand_list, print_operands, print_types, shape_or_none


class Cast(IRDLOperation):
    """`result[i] = convert(input[i])`: a scalar, or a vector or tensor of the result's shape."""

    FROM: ClassVar[tuple[type | UnionType, ...]]
    TO: ClassVar[tuple[type | UnionType, ...]]
    WIDTH: ClassVar[int] = 0  # +1: the result is wider, -1: narrower, 0: any

    input = operand_def()
    result = result_def()

    traits = traits_def(Pure())

    def __init__(self, input_arg: SSAValue | Operation, target_type: Attribute) -> None:
        super().__init__(operands=[input_arg], result_types=[target_type])

    def verify_(self) -> None:
        source, target = self.input.type, self.result.type
        if shape_or_none(source) != shape_or_none(target):
            raise VerifyException(f"{self.name}: operand {source} and result {target} have different shapes")
        source, target = get_element_type_or_self(source), get_element_type_or_self(target)
        if not isinstance(source, self.FROM) or not isinstance(target, self.TO):
            raise VerifyException(f"{self.name}: cannot convert {source} to {target}")
        if self.WIDTH and self.WIDTH * (_width(target) - _width(source)) <= 0:
            relation = "wider" if self.WIDTH > 0 else "narrower"
            raise VerifyException(f"{self.name}: result type {target} must be {relation} than operand type {source}")

    def print(self, printer: Printer) -> None:
        print_operands(printer, self.operands)
        printer.print_op_attributes(self.attributes)
        print_types(printer, [self.input.type, self.result.type], " to ")

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        name = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        source = parser.parse_type()
        parser.parse_keyword("to")
        target = parser.parse_type()
        return cls.create(operands=[parser.resolve_operand(name, source)], result_types=[target], attributes=attributes)


def _width(element: Attribute) -> int:
    return element.bitwidth if isinstance(element, IntegerType | AnyFloat) else 64


@irdl_op_definition
class FPToSIOp(Cast):
    """Truncates toward zero to a signed integer; out of range is poison."""

    name = "arith.fptosi"
    FROM: ClassVar = (AnyFloat,)
    TO: ClassVar = (IntegerType,)


@irdl_op_definition
class FPToUIOp(Cast):
    """Truncates toward zero to an unsigned integer; out of range is poison."""

    name = "arith.fptoui"
    FROM: ClassVar = (AnyFloat,)
    TO: ClassVar = (IntegerType,)


@irdl_op_definition
class SIToFPOp(Cast):
    """A signed integer as a float, rounded once to nearest even."""

    name = "arith.sitofp"
    FROM: ClassVar = (IntegerType,)
    TO: ClassVar = (AnyFloat,)


@irdl_op_definition
class UIToFPOp(Cast):
    """An unsigned integer as a float, rounded once to nearest even."""

    name = "arith.uitofp"
    FROM: ClassVar = (IntegerType,)
    TO: ClassVar = (AnyFloat,)


@irdl_op_definition
class ExtSIOp(Cast):
    """Sign extension."""

    name = "arith.extsi"
    FROM: ClassVar = (IntegerType,)
    TO: ClassVar = (IntegerType,)
    WIDTH: ClassVar = 1


@irdl_op_definition
class ExtUIOp(Cast):
    """Zero extension."""

    name = "arith.extui"
    FROM: ClassVar = (IntegerType,)
    TO: ClassVar = (IntegerType,)
    WIDTH: ClassVar = 1


@irdl_op_definition
class TruncIOp(Cast):
    """The low bits."""

    name = "arith.trunci"
    FROM: ClassVar = (IntegerType,)
    TO: ClassVar = (IntegerType,)
    WIDTH: ClassVar = -1


@irdl_op_definition
class IndexCastOp(Cast):
    """Between `index` and a signed integer: sign extension or the low bits."""

    name = "arith.index_cast"
    FROM: ClassVar = (IntegerType, IndexType)
    TO: ClassVar = (IntegerType, IndexType)


@irdl_op_definition
class IndexCastUIOp(Cast):
    """Between `index` and an unsigned integer: zero extension or the low bits."""

    name = "arith.index_castui"
    FROM: ClassVar = (IntegerType, IndexType)
    TO: ClassVar = (IntegerType, IndexType)


@irdl_op_definition
class SelectOp(IRDLOperation):
    """`cond ? lhs : rhs`, by one `i1` for the whole value or by one per element."""

    name = "arith.select"

    cond = operand_def()
    lhs = operand_def()
    rhs = operand_def()
    result = result_def()

    traits = traits_def(Pure())

    def __init__(self, cond: SSAValue | Operation, lhs: SSAValue | Operation, rhs: SSAValue | Operation) -> None:
        super().__init__(operands=[cond, lhs, rhs], result_types=[SSAValue.get(lhs).type])

    def verify_(self) -> None:
        if not self.lhs.type == self.rhs.type == self.result.type:
            raise VerifyException(f"{self.name}: the two values and the result must have one type, got {self.lhs.type}, {self.rhs.type}")
        if self.cond.type not in (i1, boolean_like(self.result.type)):
            raise VerifyException(f"{self.name}: condition must be i1 or {boolean_like(self.result.type)}, got {self.cond.type}")

    def print(self, printer: Printer) -> None:
        print_operands(printer, self.operands)
        printer.print_op_attributes(self.attributes)
        scalar_condition = isinstance(self.cond.type, IntegerType)
        print_types(printer, [self.result.type] if scalar_condition else [self.cond.type, self.result.type])

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        position = parser.pos
        names = parse_operand_list(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        condition, value = (i1, types[0]) if len(types) == 1 else (types[0], types[1])
        operands = parser.resolve_operands(names, [condition, value, value], position)
        return cls.create(operands=operands, result_types=[value], attributes=attributes)


class Comparison(IRDLOperation):
    """`result[i] = lhs[i] <predicate> rhs[i]`, `i1` in the shape of the operands."""

    NAMES: ClassVar[list[str]]

    lhs = operand_def()
    rhs = operand_def()
    result = result_def()
    predicate = prop_def(IntegerAttr)

    traits = traits_def(Pure())

    def __init__(self, lhs: SSAValue | Operation, rhs: SSAValue | Operation, predicate: int | str) -> None:
        number = self.NAMES.index(predicate) if isinstance(predicate, str) else predicate
        super().__init__(
            operands=[lhs, rhs],
            result_types=[boolean_like(SSAValue.get(lhs).type)],
            properties={"predicate": IntegerAttr(number, i64)},
        )

    @property
    def predicate_name(self) -> str:
        """The predicate as text: `slt`, `oeq`, ..."""
        return self.NAMES[self.predicate.value.data]

    def verify_(self) -> None:
        if self.lhs.type != self.rhs.type:
            raise VerifyException(f"{self.name}: operands must have one type, got {self.lhs.type} and {self.rhs.type}")
        if self.result.type != boolean_like(self.lhs.type):
            raise VerifyException(f"{self.name}: result must be {boolean_like(self.lhs.type)}, got {self.result.type}")

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.predicate_name},")
        print_operands(printer, self.operands)
        fastmath = self.properties.get("fastmath")
        if isinstance(fastmath, FastMathFlagsAttr) and fastmath.data:
            printer.print_string(" fastmath")
            fastmath.print_parameter(printer)
        printer.print_op_attributes(self.attributes)
        print_types(printer, [self.lhs.type])

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        position = parser.pos
        word = parser.parse_identifier()
        if word not in cls.NAMES:
            parser.raise_error(f"unknown predicate '{word}', expected one of {', '.join(cls.NAMES)}", position)
        parser.parse_punctuation(",")
        names = parse_operand_list(parser)
        properties: dict[str, Attribute] = {"predicate": IntegerAttr(cls.NAMES.index(word), i64)}
        if parser.parse_optional_keyword("fastmath"):
            properties["fastmath"] = FastMathFlagsAttr(FastMathFlagsAttr.parse_parameter(parser))
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        operands = parser.resolve_operands(names, [type_, type_], position)
        return cls.create(operands=operands, result_types=[boolean_like(type_)], properties=properties, attributes=attributes)


@irdl_op_definition
class CmpfOp(Comparison):
    """Ordered predicates (`o..`) are false when an operand is NaN, unordered ones (`u..`) true."""

    name = "arith.cmpf"
    NAMES: ClassVar = CMPF_COMPARISON_OPERATIONS
    fastmath = prop_def(FastMathFlagsAttr, default_value=FastMathFlagsAttr("none"))


@irdl_op_definition
class CmpiOp(Comparison):
    """Signed (`s..`) or unsigned (`u..`) comparison of integers or indices."""

    name = "arith.cmpi"
    NAMES: ClassVar = CMPI_COMPARISON_OPERATIONS


def integer_predicate(name: str) -> IntegerAttr:
    """The `predicate` of an `arith.cmpi`: `eq`, `slt`, `uge`, .."""
    return IntegerAttr(CMPI_COMPARISON_OPERATIONS.index(name), i64)


@irdl_op_definition
class RemFOp(FloatingPointLikeBinaryOperation):
    """`lhs - rhs * trunc(lhs / rhs)` without rounding, the sign of lhs: C's `fmod`."""

    name = "arith.remf"

    traits = traits_def(Pure())


Arith = extended(
    xdsl_arith.Arith,
    [
        *(FPToSIOp, FPToUIOp, SIToFPOp, UIToFPOp, ExtSIOp, ExtUIOp, TruncIOp, IndexCastOp, IndexCastUIOp),
        *(SelectOp, CmpfOp, CmpiOp, RemFOp),
    ],
)
