"""Ops that are there for what they do or forbid: assertions and lines of output keep their place, a barrier keeps values apart.

Effects keep program order among themselves, are never removed, and pure ops may move past them
(`gradir.dialects.upstream.effects` has their rows). Under `differentiate` they happen once, in the forward part.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self

from xdsl.dialects.builtin import StringAttr, TensorType, i1
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, prop_def, traits_def, var_operand_def, var_result_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from gradir.dialects.nd.base import TENSOR, Sample
from gradir.dialects.nd.library import CustomCallOp
from gradir.dialects.text import parse_operands, parse_tensors, resolve
from gradir.dialects.types import shape_of
from gradir.printing import placeholders

if TYPE_CHECKING:
    from gradir.ir.builder import Builder


class EffectOp(IRDLOperation):
    """An op of this family: any number of results."""

    FAMILY: ClassVar[str] = "effects"

    def fail(self, message: str) -> NoReturn:
        """Refuse this op: `nd.assert: the condition must be ...`."""
        raise VerifyException(f"{self.name}: {message}")

    @classmethod
    def samples(cls) -> tuple[Sample, ...]:
        """Small valid uses."""
        return import_module("gradir.dialects.nd.samples.effects").samples_of(cls)


@irdl_op_definition
class AssertOp(EffectOp):
    """Stops the program with `message` unless `condition` holds: an error RT020 that names the line of this op.

    condition `tensor<i1>`, or the scalar `i1` that index arithmetic gives. In a loop it is checked in every iteration, in a branch where
    the branch is taken. JAX: checkify.check. torch: torch._assert.
    """

    name = "nd.assert"

    condition = operand_def()
    message = prop_def(StringAttr)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        operand = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        message = StringAttr(parser.parse_str_literal())
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        condition = parser.resolve_operand(operand, parser.parse_type())
        return cls.create(operands=(condition,), properties={"message": message}, attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.condition)
        printer.print_string(", ")
        printer.print_string_literal(self.message.data)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.condition.type)

    def verify_(self) -> None:
        if not is_condition(self.condition.type):
            self.fail(f"the condition must be tensor<i1> or i1, found {self.condition.type}")
        if not self.message.data:
            self.fail('expected a message, found ""')

    @classmethod
    def make(cls, condition: SSAValue, message: str) -> Self:
        """Refuse to go on with `message` unless `condition` holds."""
        return cls.create(operands=(condition,), properties={"message": StringAttr(message)})


@irdl_op_definition
class PrintOp(EffectOp):
    """Writes one line, `format` with its `{}` replaced by the operands, to stdout or where `gradir.set_print_sink` says.

    `{:.3f}` shows each number that way. Lines come in the order of the program, in a loop in every iteration; a derivative prints once.
    JAX: debug.print. torch: print.
    """

    name = "nd.print"

    inputs = var_operand_def(TENSOR)
    format = prop_def(StringAttr)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        template = StringAttr(parser.parse_str_literal())
        operands = [] if parser.parse_optional_punctuation(",") is None else parse_operands(parser)
        attributes = parser.parse_optional_attr_dict()
        position = parser.pos
        types = parse_tensors(parser) if parser.parse_optional_punctuation(":") else []
        values = resolve(parser, operands, types, position)
        return cls.create(operands=values, properties={"format": template}, attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_string_literal(self.format.data)
        if self.operands:
            printer.print_string(", ")
            printer.print_list(self.operands, printer.print_operand)
        printer.print_op_attributes(self.attributes)
        if self.operands:
            printer.print_string(" : ")
            printer.print_list([value.type for value in self.operands], printer.print_attribute)

    def verify_(self) -> None:
        try:
            count = placeholders(self.format.data)
        except ValueError as error:
            self.fail(f"bad format: {error}")
        if count != len(self.operands):
            self.fail(f"the format shows {count} operands, found {len(self.operands)}")

    @classmethod
    def make(cls, template: str, operands: Sequence[SSAValue] = ()) -> Self:
        """Print `template` with the operands in it."""
        return cls.create(operands=tuple(operands), properties={"format": StringAttr(template)})

    def decompose(self, builder: Builder, operands: Sequence[SSAValue]) -> list[SSAValue]:
        """A call by name that has effects."""
        call = CustomCallOp.make("print", operands, (), {"format": self.format.data}, effects=True)
        call.location = builder.loc
        builder.block.add_op(call)
        return []


def is_condition(kind: Attribute) -> bool:
    """One truth value."""
    return kind == i1 or (isinstance(kind, TensorType) and kind.element_type == i1 and shape_of(kind) == ())


@irdl_op_definition
class OptimizationBarrierOp(EffectOp):
    """`results = operands`, each its own type, all available at once: no pass looks through it, merges or fuses across it.

    What reads a result is computed after every operand. Unused, it may go. StableHLO: optimization_barrier. JAX: lax.optimization_barrier.
    """

    name = "nd.optimization_barrier"

    inputs = var_operand_def(TENSOR)
    outputs = var_result_def(TENSOR)

    traits = traits_def(Pure())

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        operands = parse_operands(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        position = parser.pos
        types = parse_tensors(parser)
        return cls.create(operands=resolve(parser, operands, types, position), result_types=types, attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_operand)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_list([value.type for value in self.operands], printer.print_attribute)

    def verify_(self) -> None:
        if not self.operands:
            self.fail("expected at least one operand, found none")
        if len(self.operands) != len(self.results):
            self.fail(f"{len(self.operands)} operands need as many results, found {len(self.results)}")
        for k, (value, result) in enumerate(zip(self.operands, self.results)):
            if value.type != result.type:
                self.fail(f"types differ: operand {k} has {value.type}, result {k} has {result.type}")

    @classmethod
    def make(cls, operands: Sequence[SSAValue]) -> Self:
        """The operands, kept apart from what follows."""
        return cls.create(operands=tuple(operands), result_types=[value.type for value in operands])

    def evaluate(self, *arrays: Any) -> Any:
        """The identity."""
        return arrays[0] if len(arrays) == 1 else tuple(arrays)


OPS = (AssertOp, OptimizationBarrierOp, PrintOp)
