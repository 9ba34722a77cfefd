"""Comparison and choice, elementwise: `nd.compare`, `nd.select`, `nd.clamp`. Part of the family `elementwise`, which lists them."""

from __future__ import annotations

from typing import ClassVar, Self

from xdsl.dialects.builtin import i1
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import SpacedOpaqueSyntaxAttribute, SSAValue
from xdsl.irdl import irdl_attr_definition, irdl_op_definition, operand_def, prop_def, result_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.str_enum import StrEnum

from gradir.dialects.nd.base import TENSOR, NdOp, new
from gradir.dialects.nd.checks import check_element, check_same_types, check_shape
from gradir.dialects.text import parse_operands, parse_tensor, resolve
from gradir.dialects.types import shape_of, tensor


class Direction(StrEnum):
    """How `nd.compare` compares."""

    EQ = "eq"
    NE = "ne"
    LT = "lt"
    LE = "le"
    GT = "gt"
    GE = "ge"


@irdl_attr_definition
class DirectionAttr(EnumAttribute[Direction], SpacedOpaqueSyntaxAttribute):
    """`#nd<direction lt>`"""

    name = "nd.direction"


DIRECTIONS: dict[str, DirectionAttr] = {direction.value: DirectionAttr(direction) for direction in Direction}


@irdl_op_definition
class CompareOp(NdOp):
    """`result = lhs <direction> rhs`, an i1 tensor; with NaN false, `ne` true; complex: `eq`, `ne` only.

    StableHLO: compare (FLOAT, SIGNED, UNSIGNED, COMPLEX). ONNX: Less, ...
    """

    name = "nd.compare"
    FAMILY: ClassVar[str] = "elementwise"

    lhs = operand_def(TENSOR)
    rhs = operand_def(TENSOR)
    direction = prop_def(DirectionAttr)
    result = result_def(TENSOR)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        direction = DIRECTIONS[parser.parse_str_enum(Direction).value]
        parser.parse_punctuation(",")
        operands = parse_operands(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        position = parser.pos
        kind = parse_tensor(parser)
        values = resolve(parser, operands, (kind, kind), position)
        return cls.create(
            operands=values, result_types=(tensor(i1, shape_of(kind)),), properties={"direction": direction}, attributes=attributes
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.direction.data.value}, ")
        printer.print_list(self.operands, printer.print_operand)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.lhs.type)

    def verify_(self) -> None:
        check_same_types(self, ("lhs", "rhs"), (self.lhs, self.rhs))
        check_element(self, "lhs", self.lhs, "any" if self.direction.data in (Direction.EQ, Direction.NE) else "ordered")
        check_element(self, "result", self.result, "bool")
        check_shape(self, shape_of(self.lhs), self.result)

    @classmethod
    def make(cls, direction: str, lhs: SSAValue, rhs: SSAValue) -> Self:
        """`direction` is one of eq, ne, lt, le, gt, ge."""
        return new(cls, (lhs, rhs), tensor(i1, shape_of(lhs)), {"direction": DIRECTIONS[direction]})


@irdl_op_definition
class SelectOp(NdOp):
    """`result = on_true if pred else on_false`, element by element. StableHLO: select. ONNX: Where."""

    name = "nd.select"
    FAMILY: ClassVar[str] = "elementwise"

    pred = operand_def(TENSOR)
    on_true = operand_def(TENSOR)
    on_false = operand_def(TENSOR)
    result = result_def(TENSOR)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        operands = parse_operands(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        position = parser.pos
        kind = parse_tensor(parser)
        values = resolve(parser, operands, (tensor(i1, shape_of(kind)), kind, kind), position)
        return cls.create(operands=values, result_types=(kind,), attributes=attributes)

    def verify_(self) -> None:
        check_element(self, "pred", self.pred, "bool")
        check_same_types(self, ("on_true", "on_false", "result"), (self.on_true, self.on_false, self.result))
        check_element(self, "on_true", self.on_true, "any")
        check_shape(self, shape_of(self.on_true), self.pred, "pred")

    @classmethod
    def make(cls, pred: SSAValue, on_true: SSAValue, on_false: SSAValue) -> Self:
        """The choice between two values of one type."""
        return new(cls, (pred, on_true, on_false), on_true.type)


@irdl_op_definition
class ClampOp(NdOp):
    """`result = min(max(operand, lo), hi)`: hi when lo > hi, NaN if any of the three is NaN. StableHLO: clamp. ONNX: Clip."""

    name = "nd.clamp"
    FAMILY: ClassVar[str] = "elementwise"

    lo = operand_def(TENSOR)
    operand = operand_def(TENSOR)
    hi = operand_def(TENSOR)
    result = result_def(TENSOR)

    def verify_(self) -> None:
        check_same_types(self, ("operand", "lo", "hi", "result"), (self.operand, self.lo, self.hi, self.result))
        check_element(self, "operand", self.operand, "number")

    @classmethod
    def make(cls, lo: SSAValue, operand: SSAValue, hi: SSAValue) -> Self:
        """The operand between two bounds of its type."""
        return new(cls, (lo, operand, hi), operand.type)
