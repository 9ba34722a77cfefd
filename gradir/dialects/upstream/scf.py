"""`scf`: xDSL's ops, with upstream's custom syntax for `scf.parallel` (xDSL prints the generic form only)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from xdsl.dialects import scf as xdsl_scf
from xdsl.dialects.builtin import DenseArrayBase, IndexType, i32
from xdsl.dialects.scf import (
    ConditionOp as ConditionOp,
    ExecuteRegionOp as ExecuteRegionOp,
    ForOp as ForOp,
    IfOp as IfOp,
    IndexSwitchOp as IndexSwitchOp,
    WhileOp as WhileOp,
    YieldOp as YieldOp,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    lazy_traits_def,
    operand_def,
    region_def,
    traits_def,
    var_operand_def,
    var_region_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import HasParent, IsTerminator, Pure, RecursiveMemoryEffect, SingleBlockImplicitTerminator, ensure_terminator
from xdsl.utils.exceptions import VerifyException

from .extend import extended, parse_operand_list, parse_types, print_types


@irdl_op_definition
class ParallelOp(IRDLOperation):
    """The body for every point of a box of indices, in any order or at once; `scf.reduce` combines results in any order."""

    name = "scf.parallel"

    lowerBound = var_operand_def(IndexType)
    upperBound = var_operand_def(IndexType)
    step = var_operand_def(IndexType)
    initVals = var_operand_def()
    body = region_def("single_block")
    res = var_result_def()

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = lazy_traits_def(lambda: (SingleBlockImplicitTerminator(ReduceOp), RecursiveMemoryEffect()))

    def __init__(
        self,
        lower_bounds: Sequence[SSAValue | Operation],
        upper_bounds: Sequence[SSAValue | Operation],
        steps: Sequence[SSAValue | Operation],
        body: Region | Sequence[Block] | Sequence[Operation],
        init_vals: Sequence[SSAValue | Operation] = (),
    ) -> None:
        super().__init__(
            operands=[lower_bounds, upper_bounds, steps, init_vals],
            regions=[body],
            result_types=[[SSAValue.get(value).type for value in init_vals]],
        )

    def verify_(self) -> None:
        rank = len(self.lowerBound)
        others = len(self.upperBound), len(self.step), len(self.body.block.args)
        if others != (rank, rank, rank):
            found = f"found {rank}, {others[0]}, {others[1]} and {others[2]}"
            raise VerifyException(f"{self.name}: lower bounds, upper bounds, steps and indices must be equally many, {found}")
        reduce = self.body.block.last_op
        if not isinstance(reduce, ReduceOp):
            raise VerifyException(f"{self.name}: body must end in scf.reduce, found {reduce.name if reduce is not None else 'nothing'}")
        types = [[value.type for value in values] for values in (self.initVals, reduce.args, self.res)]
        if not types[0] == types[1] == types[2]:
            initial, reduced, results = (f"({', '.join(map(str, row))})" for row in types)
            what = "initial values, operands of scf.reduce and results must have the same types"
            raise VerifyException(f"{self.name}: {what}, found {initial}, {reduced} and {results}")

    def print(self, printer: Printer) -> None:
        printer.print_string(" (")
        printer.print_list(self.body.block.args, printer.print_ssa_value)
        for word, values in ((") = (", self.lowerBound), (") to (", self.upperBound), (") step (", self.step)):
            printer.print_string(word)
            printer.print_list(values, printer.print_ssa_value)
        printer.print_string(")")
        if self.initVals:
            printer.print_string(" init (")
            printer.print_list(self.initVals, printer.print_ssa_value)
            printer.print_string(") -> ")
            if len(self.res) > 1:
                printer.print_string("(")
            printer.print_list(self.res.types, printer.print_attribute)
            if len(self.res) > 1:
                printer.print_string(")")
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)
        printer.print_op_attributes(self.attributes)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        position = parser.pos
        arguments = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: parser.parse_argument(expect_type=False))
        bounds: list[list[SSAValue]] = []
        for word in ("=", "to", "step"):
            if word == "=":
                parser.parse_punctuation("=")
            else:
                parser.parse_keyword(word)
            unresolved = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)
            bounds.append(list(parser.resolve_operands(unresolved, [IndexType()] * len(unresolved), position)))
        initial: list[SSAValue] = []
        types: Sequence[Attribute] = []
        if parser.parse_optional_keyword("init"):
            unresolved = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)
            parser.parse_punctuation("->")
            several = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
            types = [parser.parse_type()] if several is None else several
            initial = list(parser.resolve_operands(unresolved, types, position))
        body = parser.parse_region([argument.resolve(IndexType()) for argument in arguments])
        attributes = parser.parse_optional_attr_dict()
        segments = DenseArrayBase.from_list(i32, [*map(len, bounds), len(initial)])
        op = cls.create(
            operands=[value for group in (*bounds, initial) for value in group],
            result_types=types,
            properties={"operandSegmentSizes": segments},
            attributes=attributes,
            regions=[body],
        )
        for trait in op.get_traits_of_type(SingleBlockImplicitTerminator):
            ensure_terminator(op, trait)
        return op


@irdl_op_definition
class ReduceOp(IRDLOperation):
    """Ends the body of `scf.parallel`; region `k` combines two values of operand `k`'s type."""

    name = "scf.reduce"

    args = var_operand_def()
    reductions = var_region_def("single_block")

    traits = lazy_traits_def(
        lambda: (RecursiveMemoryEffect(), HasParent(ParallelOp), IsTerminator(), SingleBlockImplicitTerminator(ReduceReturnOp))
    )

    def __init__(self, args: Sequence[SSAValue | Operation] = (), regions: Sequence[Region] = ()) -> None:
        super().__init__(operands=(args,), regions=(regions,))

    def verify_(self) -> None:
        if len(self.args) != len(self.reductions):
            raise VerifyException(f"{self.name}: {len(self.args)} operands and {len(self.reductions)} regions")
        for value, region in zip(self.args, self.reductions):
            found = [argument.type for argument in region.block.args]
            if found != [value.type, value.type]:
                taken = ", ".join(map(str, found))
                raise VerifyException(f"{self.name}: a region must take two values of type {value.type}, found ({taken})")

    def print(self, printer: Printer) -> None:
        if self.args:
            printer.print_string("(")
            printer.print_list(self.args, printer.print_ssa_value)
            print_types(printer, self.args.types)
            printer.print_string(") ")
            printer.print_list(self.reductions, printer.print_region)
        printer.print_op_attributes(self.attributes)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        position = parser.pos
        operands: Sequence[SSAValue] = ()
        regions: list[Region] = []
        if parser.parse_optional_punctuation("("):
            names = parse_operand_list(parser)
            operands = parser.resolve_operands(names, parse_types(parser), position)
            parser.parse_punctuation(")")
            regions = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_region)
        attributes = parser.parse_optional_attr_dict()
        return cls.create(operands=operands, regions=regions, attributes=attributes)


@irdl_op_definition
class ReduceReturnOp(IRDLOperation):
    """The combined value of a region of `scf.reduce`."""

    name = "scf.reduce.return"

    result = operand_def()

    traits = traits_def(HasParent(ReduceOp), IsTerminator(), Pure())

    assembly_format = "$result attr-dict `:` type($result)"

    def __init__(self, result: SSAValue | Operation) -> None:
        super().__init__(operands=[result])


Scf = extended(xdsl_scf.Scf, [ParallelOp, ReduceOp, ReduceReturnOp])
