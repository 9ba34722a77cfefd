"""Complex numbers from their parts and back: `nd.complex`, `nd.real`, `nd.imag`, `nd.conj`, and the attribute that holds one number.

Elements are complex<f32> and complex<f64>. Most other ops take them too and say so (`ELEMENTS`); `split-complex` turns every complex
tensor into two real ones before loops are made. Meaning: docs/numerics.md, rows "complex".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self, cast

from xdsl.dialects.builtin import AnyFloat, ComplexType, FloatAttr
from xdsl.ir import Attribute, ParametrizedAttribute, SSAValue
from xdsl.irdl import irdl_attr_definition, irdl_op_definition, operand_def, result_def
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer

from gradir.dialects.nd.base import TENSOR, NdOp, new
from gradir.dialects.nd.checks import check_element, check_same_types, check_shape
from gradir.dialects.text import parse_operands, parse_tensor, resolve
from gradir.dialects.types import complex_of, element_of, is_complex, real_of, shape_of, tensor


@irdl_attr_definition
class ComplexAttr(ParametrizedAttribute):
    """`#nd.number<(1.0, -2.0) : complex<f32>>`: one complex number; in `nd.constant` the part between the brackets alone."""

    name = "nd.number"

    real: FloatAttr
    imag: FloatAttr

    @property
    def type(self) -> Attribute:
        """complex<f32> or complex<f64>."""
        return complex_of(self.real.type)

    @property
    def number(self) -> complex:
        """The value."""
        return complex(self.real.value.data, self.imag.value.data)

    @staticmethod
    def of(value: complex, element: Attribute) -> ComplexAttr:
        """`value` as a number of the complex type `element`."""
        part = cast("AnyFloat", real_of(element))
        return ComplexAttr(FloatAttr(value.real, part), FloatAttr(value.imag, part))

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> list[Attribute]:
        with parser.in_angle_brackets():
            number = parse_optional_number(parser)
            return list(number.parameters) if number is not None else parser.raise_error("expected (real, imaginary) : complex type")

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            print_number(printer, self)


def parse_optional_number(parser: AttrParser) -> ComplexAttr | None:
    """`(re, im) : complex<f32>`; None where no parenthesis opens."""
    if parser.parse_optional_punctuation("(") is None:
        return None
    real = parser._parse_tensor_literal_element()
    parser.parse_punctuation(",")
    imag = parser._parse_tensor_literal_element()
    parser.parse_punctuation(")")
    parser.parse_punctuation(":")
    position = parser.pos
    kind = parser.parse_type()
    if not is_complex(kind):
        parser.raise_error(f"expected complex<f32> or complex<f64>, found {kind}", position, parser.pos)
    part = cast("AnyFloat", real_of(kind))
    return ComplexAttr(*(FloatAttr(cast("float", value.to_type(parser, part)), part) for value in (real, imag)))


def print_number(printer: Printer, attribute: ComplexAttr) -> None:
    """`(re, im) : complex<f32>`"""
    kind = cast("ComplexType[Any]", attribute.type)
    printer.print_complex((attribute.real.value.data, attribute.imag.value.data), kind)
    printer.print_string(" : ")
    printer.print_attribute(kind)


def parse_parts(kind: type[Any], parser: Parser, element: Callable[[Attribute], Attribute]) -> Any:
    """`%a, %b : type of the operands`; `element` gives the result's element type from theirs."""
    operands = parse_operands(parser)
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    position = parser.pos
    found = parse_tensor(parser)
    values = resolve(parser, operands, [found] * len(operands), position)
    try:
        wanted = element(element_of(found))
    except KeyError:
        parser.raise_error(f"{kind.name}: no complex numbers have parts of type {element_of(found)}", position, parser.pos)
    return kind.create(operands=values, result_types=(tensor(wanted, shape_of(found)),), attributes=attributes)


def print_parts(op: NdOp, printer: Printer) -> None:
    """`%a, %b : type of the operands`"""
    printer.print_string(" ")
    printer.print_list(op.operands, printer.print_operand)
    printer.print_op_attributes(op.attributes)
    printer.print_string(" : ")
    printer.print_attribute(op.operands[0].type)


def check_parts(op: NdOp, what: str, value: SSAValue, element: Attribute) -> None:
    """`value` has that element type and the shape of operand 0."""
    if element_of(value) != element:
        op.fail(f"{what} must have {element}, found {element_of(value)}")
    check_shape(op, shape_of(op.operands[0]), value, what)


class Part(NdOp):
    """One real tensor of a complex one."""

    FAMILY: ClassVar[str] = "complex"

    operand = operand_def(TENSOR)
    result = result_def(TENSOR)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        return parse_parts(cls, parser, real_of)

    def print(self, printer: Printer) -> None:
        print_parts(self, printer)

    def verify_(self) -> None:
        check_element(self, "operand", self.operand, "complex")
        check_parts(self, "result", self.result, real_of(element_of(self.operand)))

    @classmethod
    def make(cls, operand: SSAValue) -> Self:
        """The part of this operand."""
        return new(cls, (operand,), tensor(real_of(element_of(operand)), shape_of(operand)))


@irdl_op_definition
class RealOp(Part):
    """`result = real part of x`. StableHLO: real."""

    name = "nd.real"


@irdl_op_definition
class ImagOp(Part):
    """`result = imaginary part of x`. StableHLO: imag."""

    name = "nd.imag"


@irdl_op_definition
class ComplexOp(NdOp):
    """`result = re + im * i`, re and im real tensors of f32 or f64; infinities and NaN stay in their part. StableHLO: complex."""

    name = "nd.complex"
    FAMILY: ClassVar[str] = "complex"

    re = operand_def(TENSOR)
    im = operand_def(TENSOR)
    result = result_def(TENSOR)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        return parse_parts(cls, parser, complex_of)

    def print(self, printer: Printer) -> None:
        print_parts(self, printer)

    def verify_(self) -> None:
        check_element(self, "re", self.re, "part")
        check_same_types(self, ("re", "im"), (self.re, self.im))
        check_parts(self, "result", self.result, complex_of(element_of(self.re)))

    @classmethod
    def make(cls, re: SSAValue, im: SSAValue) -> Self:
        """The complex tensor of two real ones of one type."""
        return new(cls, (re, im), tensor(complex_of(element_of(re)), shape_of(re)))


@irdl_op_definition
class ConjOp(NdOp):
    """`result = real x - i * imag x`. CHLO: conj."""

    name = "nd.conj"
    FAMILY: ClassVar[str] = "complex"

    operand = operand_def(TENSOR)
    result = result_def(TENSOR)

    def verify_(self) -> None:
        check_element(self, "operand", self.operand, "complex")
        check_same_types(self, ("operand", "result"), (self.operand, self.result))

    @classmethod
    def make(cls, operand: SSAValue) -> Self:
        """The conjugate of this operand."""
        return new(cls, (operand,), operand.type)


OPS: tuple[type[NdOp], ...] = (RealOp, ImagOp, ComplexOp, ConjOp)
