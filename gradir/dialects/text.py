"""The text form that the ops of `nd` share: operands, keyword clauses, attributes, types.

    nd.dot_general %x, %w contract [1] x [0] : tensor<2x3xf32>, tensor<3x4xf32> -> tensor<2x4xf32>

A class gives its clauses as data; hand-written once here, this costs less at start-up than one `assembly_format` per class. `TYPES`
says what stands behind the colon: `all` - one type, which all operands and the result have; `map` - `operand types -> result type`;
`several` - `operand types -> result types`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, cast

from xdsl.dialects.builtin import IndexType, IntegerAttr, TensorType, i1
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer

from gradir.dialects.types import i64_array, i64_attr, ints

INDEX = IndexType()


@dataclass(frozen=True)
class Clause:
    """`keyword value`, or `keyword value x value` for a pair; left out of the text where the value is the default.

    `kind` is the form of the value: `ints` an array, `int` a number, `pair` two arrays for the properties `name` and `second`,
    `flag` a keyword alone (an i1 property). An `ints` clause without default must be there; with default () it means one
    number per dimension of operand `per` (`spatial` leaves out two), each equal to `fill`.
    """

    keyword: str
    name: str
    kind: Literal["ints", "int", "pair", "flag"] = "ints"
    second: str = ""
    optional: bool = False
    fill: int = 0
    count: Literal["none", "rank", "spatial", "padding", "spatial_padding"] = "none"

    def default(self, rank: int) -> tuple[int, ...]:
        """The numbers that an absent clause stands for."""
        times = {"none": 0, "rank": rank, "spatial": rank - 2, "padding": 2 * rank, "spatial_padding": 2 * (rank - 2)}[self.count]
        return (self.fill,) * times


@lru_cache(maxsize=16)
def flag_attr(value: bool) -> IntegerAttr[Any]:
    """`true` or `false`, interned."""
    return IntegerAttr(1 if value else 0, i1)


def parse_ints(parser: Parser) -> tuple[int, ...]:
    """`[1, -2]`"""
    return tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parser.parse_integer(allow_boolean=False)))


def print_ints(printer: Printer, values: Sequence[int]) -> None:
    """`[1, -2]`"""
    printer.print_string("[" + ", ".join(map(str, values)) + "]")


def parse_clauses(parser: Parser, clauses: Sequence[Clause]) -> dict[str, Attribute]:
    """The properties that the clauses in the text give; absent optional ones are filled in by `fill_defaults`."""
    found: dict[str, Attribute] = {}
    for clause in clauses:
        if clause.optional or clause.kind == "flag":
            present = parser.parse_optional_keyword(clause.keyword) is not None
        else:
            parser.parse_keyword(clause.keyword)
            present = True
        if clause.kind == "flag":
            found[clause.name] = flag_attr(present)
        elif not present:
            continue
        elif clause.kind == "int":
            found[clause.name] = i64_attr(parser.parse_integer(allow_boolean=False))
        else:
            found[clause.name] = i64_array(parse_ints(parser))
            if clause.kind == "pair":
                parser.parse_keyword("x")
                found[clause.second] = i64_array(parse_ints(parser))
    return found


def fill_defaults(properties: dict[str, Attribute], clauses: Sequence[Clause], rank: int) -> dict[str, Attribute]:
    """Properties in the order of the clauses, absent ones at their default."""
    full: dict[str, Attribute] = {}
    for clause in clauses:
        if clause.kind == "int":
            full[clause.name] = i64_attr(clause.fill)
        elif clause.kind == "flag":
            full[clause.name] = flag_attr(False)
        else:
            full[clause.name] = i64_array(clause.default(rank))
        if clause.kind == "pair":
            full[clause.second] = i64_array(())
    full.update(properties)
    return full


def print_clauses(op: Operation, printer: Printer, clauses: Sequence[Clause], rank: int) -> None:
    """The clauses whose values differ from their defaults."""
    for clause in clauses:
        value = op.properties.get(clause.name)
        if value is None:
            continue
        if clause.kind in ("int", "flag"):
            number = cast("IntegerAttr[Any]", value).value.data
            if clause.optional and number == clause.fill:
                continue
            if clause.kind == "flag":
                if number:
                    printer.print_string(f" {clause.keyword}")
            else:
                printer.print_string(f" {clause.keyword} {number}")
            continue
        values = ints(value)
        second = ints(op.properties[clause.second]) if clause.kind == "pair" else ()
        if clause.optional and not second and values == clause.default(rank):
            continue
        printer.print_string(f" {clause.keyword} ")
        print_ints(printer, values)
        if clause.kind == "pair":
            printer.print_string(" x ")
            print_ints(printer, second)


def parse_tensor(parser: Parser) -> TensorType[Any]:
    """A tensor type; anything else is an error at its position."""
    position = parser.pos
    kind = parser.parse_type()
    if not isinstance(kind, TensorType):
        parser.raise_error(f"expected a tensor type, found {kind}", position, parser.pos)
    return cast("TensorType[Any]", kind)


def parse_tensors(parser: Parser) -> list[TensorType[Any]]:
    """`tA, tB`"""
    return parser.parse_comma_separated_list(parser.Delimiter.NONE, lambda: parse_tensor(parser))


def parse_operands(parser: Parser) -> list[UnresolvedOperand]:
    """`%a, %b`"""
    return parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)


def resolve(parser: Parser, operands: Sequence[UnresolvedOperand], types: Sequence[Attribute], position: int) -> list[SSAValue]:
    """The values behind the names, or a parse error at `position` when the counts differ."""
    return list(parser.resolve_operands(operands, types, position))


def parse_op(kind: type[Operation], parser: Parser, clauses: Sequence[Clause], types: str) -> Operation:
    """One op in the shared form."""
    operands = parse_operands(parser)
    properties = parse_clauses(parser, clauses)
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    position = parser.pos
    if types == "all":
        result = parse_tensor(parser)
        values = resolve(parser, operands, [result] * len(operands), position)
    else:
        values = resolve(parser, operands, parse_tensors(parser), position)
        parser.parse_punctuation("->")
        if types == "several":
            full = fill_defaults(properties, clauses, _rank(values))
            return kind.create(operands=values, result_types=parse_tensors(parser), properties=full, attributes=attributes)
        result = parse_tensor(parser)
    return finish(kind, values, result, properties, attributes, clauses)


def finish(
    kind: type[Operation],
    values: Sequence[SSAValue],
    result: Attribute,
    properties: dict[str, Attribute],
    attributes: dict[str, Attribute],
    clauses: Sequence[Clause],
) -> Operation:
    """The op, with the defaults of absent clauses that depend on the rank of operand 0."""
    full = fill_defaults(properties, clauses, _rank(values))
    return kind.create(operands=tuple(values), result_types=(result,), properties=full, attributes=attributes)


def print_op(op: Operation, printer: Printer, clauses: Sequence[Clause], types: str) -> None:
    """One op in the shared form."""
    printer.print_string(" ")
    printer.print_list(op.operands, printer.print_operand)
    print_clauses(op, printer, clauses, _rank(op.operands))
    printer.print_op_attributes(op.attributes)
    printer.print_string(" : ")
    if types != "all":
        printer.print_list([operand.type for operand in op.operands], printer.print_attribute)
        printer.print_string(" -> ")
    printer.print_list([result.type for result in op.results[: None if types == "several" else 1]], printer.print_attribute)


def _rank(values: Sequence[SSAValue]) -> int:
    shape = getattr(values[0].type, "shape", None) if values else None
    return len(shape.data) if shape is not None else 0
