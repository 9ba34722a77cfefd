"""Ops that carry code for single elements: a comparator, a combiner.

Such a region is one block whose arguments and values are rank-0 tensors; it ends in `nd.yield`, holds elementwise ops and constants of
`nd` alone, and reads nothing from outside. So it means the same for one element and for many at once: `gradir.dialects.nd.meaning.regions`
runs it on whole arrays, `convert-nd-to-linalg` on scalars inside a loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NoReturn, Self, cast

from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, traits_def, var_operand_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from gradir.dialects.nd.base import TENSOR, NdOp, Sample
from gradir.dialects.nd.creation import ConstantOp
from gradir.dialects.text import parse_operands, parse_tensors, resolve
from gradir.dialects.types import rank_of, tensor
from gradir.ir.builder import Builder

SCALAR_FAMILIES = {"elementwise", "mathematics", "bits", "complex", "special"}
"""Families whose ops compute each element from the same element of their operands: what a region may hold besides constants."""


@irdl_op_definition
class YieldOp(IRDLOperation):
    """Ends a region of `nd.sort`, `nd.reduce`, ... and gives its values: `nd.yield %a, %b : tensor<f32>, tensor<i32>`."""

    name = "nd.yield"
    FAMILY: ClassVar[str] = "regions"

    values = var_operand_def(TENSOR)

    traits = traits_def(IsTerminator(), Pure())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        operands = parse_operands(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        position = parser.pos
        return cls.create(operands=resolve(parser, operands, parse_tensors(parser), position), attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.values, printer.print_operand)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_list([value.type for value in self.values], printer.print_attribute)

    def fail(self, message: str) -> NoReturn:
        """Refuse this op."""
        raise VerifyException(f"{self.name}: {message}")

    def verify_(self) -> None:
        around = self.parent_op()
        if not isinstance(around, RegionOp):
            self.fail(f"stands in {around.name if around is not None else 'no op'}, expected an op of nd with a region")
        if not self.values:
            self.fail("expected at least one value, found none")

    @classmethod
    def samples(cls) -> tuple[Sample, ...]:
        """None: it has no meaning alone."""
        return ()


class RegionOp(NdOp):
    """An op of `nd` with regions for single elements."""

    traits = traits_def(Pure(), IsolatedFromAbove())

    def scalar_code(self, region: Region, what: str, arguments: Sequence[Attribute], yields: Sequence[Attribute]) -> None:
        """Check one region: its arguments, what it may hold, what it yields. The types are element types."""
        if len(region.blocks) != 1:
            self.fail(f"the {what} must be one block, found {len(region.blocks)}")
        block = region.block
        self._same(what, "arguments", [a.type for a in block.args], arguments)
        for op in block.ops:
            if not isinstance(op, YieldOp):
                if not isinstance(op, ConstantOp) and not (isinstance(op, NdOp) and op.FAMILY in SCALAR_FAMILIES):
                    self.fail(f"the {what} holds {op.name}, expected elementwise ops and constants of nd")
                for value in (*op.operands, *op.results):
                    if rank_of(value) != 0:
                        self.fail(f"the {what} works on single elements, found {value.type} in {op.name}")
        last = block.last_op
        if not isinstance(last, YieldOp):
            self.fail(f"the {what} must end in nd.yield, found {last.name if last is not None else 'nothing'}")
        self._same(what, "yielded values", [value.type for value in last.values], yields)

    def _same(self, what: str, which: str, found: Sequence[Attribute], elements: Sequence[Attribute]) -> None:
        expected = [tensor(element) for element in elements]
        if list(found) != expected:
            self.fail(f"{which} of the {what} must have types ({', '.join(map(str, expected))}), found ({', '.join(map(str, found))})")


def parse_body(parser: Parser) -> Region:
    """`(%a: tensor<f32>, %b: tensor<f32>) { ... }`, each argument with its location if there is one"""

    def argument() -> Parser.Argument:
        found = parser.parse_argument()
        found.location = parser.parse_optional_location()
        return found

    return parser.parse_region(parser.parse_comma_separated_list(parser.Delimiter.PAREN, argument))


def print_body(printer: Printer, region: Region) -> None:
    """`(%a: tensor<f32>, %b: tensor<f32>) { ... }`"""
    with printer.in_parens():
        printer.print_list(region.block.args, printer.print_block_argument)
    printer.print_string(" ")
    printer.print_region(region, print_entry_block_args=False)


Body = Callable[[Builder, Sequence[SSAValue]], Sequence[SSAValue]]
"""`body(builder, arguments)` -> the values to yield."""


def region_of(elements: Sequence[Attribute], body: Body) -> Region:
    """A region whose arguments have these element types and whose ops `body` appends."""
    block = Block(arg_types=[tensor(element) for element in elements])
    builder = Builder(block)
    values = body(builder, block.args)
    builder.op(YieldOp, values)
    return Region(block)


def single_op(region: Region) -> NdOp | None:
    """The op that a region is: one op of its two arguments, in any order, whose result it yields."""
    ops = list(region.block.ops)
    if len(region.block.args) != 2 or len(ops) != 2 or not isinstance(ops[1], YieldOp) or not isinstance(ops[0], NdOp):
        return None
    first = ops[0]
    return first if list(ops[1].values) == list(first.results) and set(first.operands) == set(region.block.args) else None


def create(
    kind: type[Any],
    operands: Sequence[SSAValue],
    results: Sequence[Attribute],
    properties: dict[str, Attribute],
    regions: Sequence[Region] = (),
) -> Any:
    """One op of class `kind` of several results, without the checks and the cost of a constructor."""
    return cast("Any", kind).create(operands=tuple(operands), result_types=tuple(results), properties=properties, regions=list(regions))


OPS = (YieldOp,)
