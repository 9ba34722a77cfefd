"""Calls that say how they are differentiated: by rules of the caller's own, or by running the callee again.

Each computes what a `func.call` of the callee would, and becomes one when `differentiate` is done. `differentiate` reads the rest:
functions at level 1 that are differentiated in turn when a higher derivative is asked for. An argument or result "moves" when its
elements are (complex) floats; integers, booleans and index values have neither tangent nor cotangent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self, cast

from xdsl.dialects.builtin import FunctionType, SymbolRefAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, prop_def, traits_def, var_operand_def, var_result_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import SymbolTable, SymbolUserOpInterface
from xdsl.utils.exceptions import VerifyException

from gradir.dialects.types import has_derivative


class NamedFunctions(SymbolUserOpInterface):
    """The functions named exist and fit each other."""

    def verify(self, op: Operation) -> None:
        call = cast("RuledCall", op)
        kinds: list[FunctionType] = []
        for word in ("callee", *call.RULES):
            name = cast("SymbolRefAttr", op.properties[word])
            found = SymbolTable.lookup_symbol(op, name)
            kind = None if found is None else found.properties.get("function_type")
            if not isinstance(kind, FunctionType):
                problem = "no function in this module" if found is None else f"not a function but {found.name}"
                raise VerifyException(f"{op.name}: {word} {name} is {problem}")
            kinds.append(kind)
        primal, *rules = kinds
        call.expect("argument", call.callee, primal.inputs.data, [v.type for v in op.operands])
        call.expect("result", call.callee, primal.outputs.data, [v.type for v in op.results])
        call.verify_rules(primal, rules)


class RuledCall(IRDLOperation):
    """`results = callee(arguments)`, with a derivative of its own."""

    RULES: ClassVar[tuple[str, ...]] = ()

    callee = prop_def(SymbolRefAttr)
    arguments = var_operand_def()
    outs = var_result_def()

    traits = traits_def(NamedFunctions())

    def rule(self, word: str) -> str:
        """Name of the function behind `word`, without `@`."""
        return cast("SymbolRefAttr", self.properties[word]).string_value()

    def functions(self) -> list[str]:
        """Names of all functions that the call mentions, the callee first."""
        return [self.rule(word) for word in ("callee", *self.RULES)]

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        properties: dict[str, Attribute] = {"callee": parser.parse_attribute()}
        for word in cls.RULES:
            parser.parse_keyword(word)
            properties[word] = parser.parse_attribute()
        names = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        position = parser.pos
        kind = parser.parse_function_type()
        operands = parser.resolve_operands(names, kind.inputs.data, position)
        return cls.create(operands=operands, result_types=kind.outputs.data, properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_attribute(self.callee)
        for word in self.RULES:
            printer.print_string(f" {word} ")
            printer.print_attribute(self.properties[word])
        with printer.in_parens():
            printer.print_list(self.arguments, printer.print_operand)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_function_type([v.type for v in self.operands], [v.type for v in self.results])

    def verify_rules(self, primal: FunctionType, rules: Sequence[FunctionType]) -> None:
        """Refuse rules that do not fit the callee."""

    def expect(self, what: str, of: Attribute, expected: Sequence[Attribute], found: Sequence[Attribute]) -> None:
        """Refuse other types than expected."""
        if len(expected) != len(found):
            raise VerifyException(f"{self.name}: expected {len(expected)} {what}s of {of}, found {len(found)}")
        for k, (want, have) in enumerate(zip(expected, found)):
            if want != have:
                raise VerifyException(f"{self.name}: {what} {k} of {of} must have type {want}, found {have}")

    @classmethod
    def make(cls, functions: Sequence[str], arguments: Sequence[SSAValue], results: Sequence[Attribute]) -> Self:
        """The call of `functions[0]`, the rules behind it."""
        words = ("callee", *cls.RULES)
        properties: dict[str, Attribute] = {word: SymbolRefAttr(name) for word, name in zip(words, functions, strict=True)}
        return cls.create(operands=tuple(arguments), result_types=tuple(results), properties=properties)


def moving(kinds: Sequence[Attribute]) -> list[Attribute]:
    """The types that have tangents and cotangents."""
    return [kind for kind in kinds if has_derivative(kind)]


@irdl_op_definition
class CustomVjpOp(RuledCall):
    """`results = callee(arguments)`; reverse mode runs `forward(arguments) -> (results, residuals)` in its place, then
    `backward(residuals, cotangents of the moving results) -> cotangents of the moving arguments`. JAX: custom_vjp.
    """

    name = "ad.custom_vjp"
    RULES: ClassVar[tuple[str, ...]] = ("forward", "backward")

    forward = prop_def(SymbolRefAttr)
    backward = prop_def(SymbolRefAttr)

    def verify_rules(self, primal: FunctionType, rules: Sequence[FunctionType]) -> None:
        forward, backward = rules
        count = len(primal.outputs.data)
        self.expect("argument", self.forward, primal.inputs.data, forward.inputs.data)
        self.expect("result", self.forward, primal.outputs.data, forward.outputs.data[:count])
        residuals = forward.outputs.data[count:]
        self.expect("argument", self.backward, [*residuals, *moving(primal.outputs.data)], backward.inputs.data)
        self.expect("result", self.backward, moving(primal.inputs.data), backward.outputs.data)


@irdl_op_definition
class CustomJvpOp(RuledCall):
    """`results = callee(arguments)`; forward mode runs in its place
    `tangents(arguments, tangents of the moving arguments) -> (results, tangents of the moving results)`, reverse mode the transpose.
    JAX: custom_jvp.
    """

    name = "ad.custom_jvp"
    RULES: ClassVar[tuple[str, ...]] = ("tangents",)

    tangents = prop_def(SymbolRefAttr)

    def verify_rules(self, primal: FunctionType, rules: Sequence[FunctionType]) -> None:
        (rule,) = rules
        self.expect("argument", self.tangents, [*primal.inputs.data, *moving(primal.inputs.data)], rule.inputs.data)
        self.expect("result", self.tangents, [*primal.outputs.data, *moving(primal.outputs.data)], rule.outputs.data)


@irdl_op_definition
class CheckpointOp(RuledCall):
    """`results = callee(arguments)`; reverse mode saves the arguments alone and runs the callee again. JAX: checkpoint (remat)."""

    name = "ad.checkpoint"
