"""One extended `Dialect` object per name, and the syntax that several of our own op classes share."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import TensorType, VectorType, i1
from xdsl.ir import Attribute, Dialect, Operation, SSAValue
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer


def extended(base: Dialect, ops: Sequence[type[Operation]], attributes: Sequence[type[Attribute]] = ()) -> Dialect:
    """`base` with `ops` in place of its ops of the same name, or in addition."""
    mine = {op.name: op for op in ops}
    merged = [mine.pop(op.name, op) for op in base.operations]
    return Dialect(base.name, [*merged, *mine.values()], [*base.attributes, *attributes])


def with_element_type(shaped: Attribute, element: Attribute) -> Attribute:
    """`shaped` (a scalar, vector or tensor type) with `element` for its element type."""
    if isinstance(shaped, VectorType):
        return VectorType(element, shaped.shape, shaped.scalable_dims)
    if isinstance(shaped, TensorType):
        return TensorType(element, shaped.shape, shaped.encoding)
    return element


def boolean_like(shaped: Attribute) -> Attribute:
    """`i1` in the shape of `shaped`."""
    return with_element_type(shaped, i1)


def shape_or_none(type_: Attribute) -> tuple[int, ...] | None:
    """Shape of a vector or tensor type, `None` for a scalar."""
    return type_.get_shape() if isinstance(type_, VectorType | TensorType) else None


def parse_operand_list(parser: Parser) -> list[UnresolvedOperand]:
    """`%a, %b, %c`"""
    return parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)


def parse_index_list(parser: Parser) -> list[UnresolvedOperand]:
    """`[%i, %j]`"""
    return parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_unresolved_operand)


def parse_types(parser: Parser) -> list[Attribute]:
    """`: t0, t1`"""
    parser.parse_punctuation(":")
    return parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)


def print_operands(printer: Printer, operands: Sequence[SSAValue]) -> None:
    """` %a, %b`"""
    printer.print_string(" ")
    printer.print_list(operands, printer.print_ssa_value)


def print_indices(printer: Printer, indices: Sequence[SSAValue]) -> None:
    """`[%i, %j]`"""
    printer.print_string("[")
    printer.print_list(indices, printer.print_ssa_value)
    printer.print_string("]")


def print_types(printer: Printer, types: Sequence[Attribute], separator: str = ", ") -> None:
    """` : t0, t1`"""
    printer.print_string(" : ")
    printer.print_list(types, printer.print_attribute, separator)
