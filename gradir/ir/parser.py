"""MLIR text in: xDSL's parser, with a source position on every op and block argument.

Adds what xDSL lacks: `#loc` aliases that stand after their uses (what `mlir-opt --mlir-print-debuginfo` prints), fused
locations with metadata and ranges; float bits in dense literals; a position where an attribute constructor rejects its arguments.
"""

from __future__ import annotations

import difflib
import re
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, NoReturn

from xdsl.context import Context
from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    AnyFloat,
    ComplexType,
    FileLineColLoc,
    FusedLoc,
    IndexType,
    IntegerType,
    LocationAttr,
    ModuleOp,
    NoneAttr,
    RankedStructure,
    StringAttr,
)
from xdsl.ir import Attribute, AttributeInvT, BlockArgument, Operation, SSAValue, TypeAttribute
from xdsl.irdl import AttrConstraint, base
from xdsl.parser import AttrParser, Parser, UnresolvedOperand
from xdsl.parser.generic_parser import ParserState
from xdsl.utils.exceptions import ParseError, VerifyException
from xdsl.utils.lexer import Input, Span
from xdsl.utils.mlir_lexer import MLIRLexer, MLIRTokenKind

from gradir.ir.locations import Position, file_location

_LOCATION_ALIAS = re.compile(r"^(#\w+) = loc\(", re.M)
_USED_ALIAS = re.compile(r"#\w+")
_PLAIN_TENSOR = re.compile(r"tensor<(?:\d+x)*[a-z]+\d*>")
_DENSE_TYPE: AttrConstraint = base(RankedStructure[IntegerType | IndexType | AnyFloat | ComplexType])


class RealLiteral(AttrParser._TensorLiteralElement):
    """A number in a dense literal; xDSL asserts that it is not one of complex type."""

    def to_complex(self, parser: AttrParser, type: ComplexType) -> Any:
        parser.raise_error("Expected a complex number, (real, imaginary)", at_position=self.span)


class FloatBits(RealLiteral):
    """A hexadecimal element of a dense literal: of a float type it spells the bits (xDSL reads `dense<0xFF800000>` as a number)."""

    def to_type(self, parser: AttrParser, type: Any) -> Any:
        if not isinstance(type, AnyFloat) or not isinstance(self.value, int):
            return super().to_type(parser, type)
        if self.value.bit_length() > type.bitwidth:
            parser.raise_error("hexadecimal float constant out of range for type", at_position=self.span)
        return next(type.iter_unpack(self.value.to_bytes(type.compile_time_size, "little")))


class ComplexLiteral(AttrParser._TensorLiteralElement):
    """`(re, im)` in a dense literal: two numbers in any spelling (xDSL wants two of one kind and reads no bits)."""

    def __init__(self, parts: tuple[Any, Any], span: Span) -> None:
        super().__init__(False, (0.0, 0.0), span)
        self.parts = parts

    def to_int(self, parser: AttrParser, allow_negative: bool = True, allow_booleans: bool = True) -> int:
        parser.raise_error("Expected integer value, found a complex number", at_position=self.span)

    def to_float(self, parser: AttrParser) -> float:
        parser.raise_error("No conversion from complex to float", at_position=self.span)

    def to_complex(self, parser: AttrParser, type: ComplexType) -> Any:
        real, imag = self.parts
        return (real.to_type(parser, type.element_type), imag.to_type(parser, type.element_type))


class _Lexer(MLIRLexer):
    """xDSL's expression for strings takes time exponential in the length of a string that is not closed."""

    _unescaped_characters_regex = re.compile(r'"(?:[^"\\\n\v\f]++|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+"')


class LocParser(Parser):
    """Parses one module; `line_offset` is the number of lines that precede `text` in the file `name`."""

    _TensorLiteralElement = RealLiteral
    """What xDSL makes of each number."""

    def __init__(self, context: Context, text: str, name: str = "<text>", line_offset: int = 0) -> None:
        super().__init__(context, "", name)
        self._parser_state = ParserState(_Lexer(Input(text, name)))
        self._line_starts = [0, *(m.end() for m in re.finditer("\n", text))]
        self._line_offset = line_offset
        self._file = StringAttr(name)
        self._op_starts: list[int] = []  # of the ops being parsed, outermost first
        self._forward_uses: dict[str, Span] = {}  # where a value that is not defined yet was first used
        self._early_aliases: set[str] = set()
        self._tensors: dict[str, TypeAttribute] = {}  # by their text: the same few types stand thousands of times in a program
        self._define_location_aliases(text)

    def location_at(self, offset: int) -> FileLineColLoc:
        """The location of a character offset in the text."""
        line = bisect_right(self._line_starts, offset)
        return file_location(self._file, line + self._line_offset, offset - self._line_starts[line - 1] + 1)

    def parse_module(self, allow_implicit_module: bool = True) -> ModuleOp:
        empty = self._current_token.kind == MLIRTokenKind.EOF  # an empty file is an empty module, as for mlir-opt
        try:
            module = ModuleOp([]) if empty else super().parse_module(allow_implicit_module)
        except RecursionError:  # xDSL parses by recursion
            raise ParseError(self._current_token.span, "regions, types or attributes nest too deeply") from None
        except ParseError as error:
            if not error.msg.startswith("values used but not defined"):
                raise
            name = next(iter(self.forward_ssa_references))  # xDSL reports them at the end of the file
            raise ParseError(self._forward_uses[name], f"use of undefined value %{name}") from error
        if module.location is UNKNOWN_LOC:
            module.location = file_location(self._file, 0, 0)  # mlir-opt's location of an implicit module
        return module

    def _parse_op_result_list(self) -> list[tuple[Span, int]]:
        results = super()._parse_op_result_list()
        self._op_starts.append(self._current_token.span.start)  # MLIR's position of an op is that of its name
        return results

    def parse_operation(self) -> Operation:
        depth = len(self._op_starts)
        try:
            op = super().parse_operation()
        except (
            VerifyException,
            ValueError,
            NotImplementedError,
            OverflowError,
        ) as error:  # xDSL's, without a position
            self.raise_error(" ".join(str(error).split()), self._op_starts[-1] if len(self._op_starts) > depth else None)
        start = self._op_starts.pop()
        if op.location is UNKNOWN_LOC:
            op.location = self.location_at(start)
        return op

    def _parse_tensor_literal_element(self) -> AttrParser._TensorLiteralElement:
        start = self._current_token.span.start
        if self.parse_optional_punctuation("(") is not None:
            real = self._parse_tensor_literal_element()
            self.parse_punctuation(",")
            imag = self._parse_tensor_literal_element()
            end = self.pos
            self.parse_punctuation(")")
            return ComplexLiteral((real, imag), Span(start, end, self.lexer.input))
        hexadecimal = self._current_token.text[:2] in ("0x", "0X")
        element = super()._parse_tensor_literal_element()
        return FloatBits(element.is_negative, element.value, element.span) if hexadecimal else element

    def _parse_dense_literal_type(self) -> Any:
        found = self.expect(self.parse_optional_type, "Dense attribute must be typed!")
        if not _DENSE_TYPE.verifies(found):  # made once: xDSL makes this constraint for every literal, a third of parsing a program
            self.raise_error("Expected memref, vector or tensor type of integer, index, float, or complex type")
        return found

    def parse_optional_type(self) -> TypeAttribute | None:
        token = self._current_token
        match = _PLAIN_TENSOR.match(self.lexer.input.content, token.span.start) if token.text == "tensor" else None
        if match is None:
            return super().parse_optional_type()
        known = self._tensors.get(match[0])
        if known is not None:
            self._resume_from(match.end())
            return known
        found = super().parse_optional_type()
        if found is not None:
            self._tensors[match[0]] = found
        return found

    def resolve_operand(self, operand: UnresolvedOperand, type: AttributeInvT) -> SSAValue[AttributeInvT]:
        if operand.operand_name not in self.ssa_values:
            self._forward_uses.setdefault(operand.operand_name, operand.span)
        return super().resolve_operand(operand, type)

    def _get_op_by_name(self, name: str) -> type[Operation]:
        if found := self.ctx.get_optional_op(name, dialect_stack=self._parser_state.dialect_stack):
            return found
        start = self._op_starts[-1]  # xDSL points behind the name
        dialect = name.partition(".")[0]
        known = "." in name and dialect in self.ctx.registered_dialect_names
        near = difflib.get_close_matches(name, [op.name for op in self.ctx.loaded_ops if known or "." not in name], 1, 0.75)
        what = f"unknown op '{name}'" + (f"; did you mean '{near[0]}'?" if near else "")
        what += "" if known or "." not in name else f": no dialect '{dialect}' is registered"
        self.raise_error(what, Span(start, start + len(name), self.lexer.input))

    def _register_ssa_definition(self, name: str, values: Sequence[SSAValue], span: Span) -> None:
        super()._register_ssa_definition(name, values, span)
        for value in values:
            if isinstance(value, BlockArgument) and value.location is UNKNOWN_LOC:
                value.location = self.location_at(span.start)

    def raise_error(self, msg: str, at_position: Any = None, end_position: Any = None) -> NoReturn:
        if at_position is None and end_position is None:
            at_position = self._end_of_previous_line()
        super().raise_error(msg, at_position, end_position)  # pyright: ignore[reportArgumentType]  (xDSL's overloads)

    def _end_of_previous_line(self) -> int | None:
        """Where an error after the last token of a line belongs: there, not at the first token of a later line."""
        text = self.lexer.input.content
        line = bisect_right(self._line_starts, self._current_token.span.start) - 1
        if text[self._line_starts[line] : self._current_token.span.start].strip():
            return None
        while line > 0:
            line -= 1
            code = text[self._line_starts[line] : self._line_starts[line + 1]].partition("//")[0].rstrip()
            if code:
                return self._line_starts[line] + len(code) - 1
        return None

    # -- location aliases may stand behind their uses

    def _define_location_aliases(self, text: str) -> None:
        pending = {match[1]: match.end() - len("loc(") for match in _LOCATION_ALIAS.finditer(text)}
        if not pending:
            return
        resume = self._current_token.span.start
        for name in tuple(pending):
            self._define_location_alias(name, pending, text)
        self._resume_from(resume)

    def _define_location_alias(self, name: str, pending: dict[str, int], text: str) -> None:
        stack = [name]  # iterative: chains of callsites may be long
        while stack:
            name = stack[-1]
            start = pending.get(name)
            if start is None:
                stack.pop()
                continue
            end = text.find("\n", start)
            line_end = end if end >= 0 else len(text)
            needs = [used for used in _USED_ALIAS.findall(text, start, line_end) if used in pending and used not in stack]
            if needs:
                stack.extend(needs)
                continue
            del pending[name]
            self._resume_from(start)
            self.attribute_aliases[name] = self.parse_attribute()
            self._early_aliases.add(name)

    def _parse_alias_def(self) -> None:
        name = self._current_token.text
        if name in self._early_aliases:
            self._early_aliases.discard(name)
            del self.attribute_aliases[name]
        start = self._current_token.span.start
        try:
            super()._parse_alias_def()
        except (VerifyException, ValueError) as error:
            self.raise_error(" ".join(str(error).split()), start)

    # -- location syntax that xDSL lacks

    def _parse_location(self) -> LocationAttr:
        token = self._current_token
        if token.kind == MLIRTokenKind.BARE_IDENT and token.text == "fused":
            self._consume_token()
            metadata: Attribute = NoneAttr()
            if self.parse_optional_punctuation("<") is not None:
                metadata = self.parse_attribute()
                self.parse_punctuation(">")
            return FusedLoc(tuple(self.parse_comma_separated_list(self.Delimiter.SQUARE, self._parse_location)), metadata)
        location = super()._parse_location()
        if isinstance(location, FileLineColLoc) and self.parse_optional_keyword("to") is not None:
            # "f":1:2 to :3 and "f":1:2 to 4:3 are ranges: the start is kept
            if self.parse_optional_punctuation(":") is None:
                self.parse_integer()
                self.parse_punctuation(":")
            self.parse_integer()
        return location


def parse_error_position(error: ParseError, name: str, line_offset: int = 0) -> tuple[Position, int]:
    """(`Position` of `error` in the file `name`, number of characters to underline)."""
    where = error.span.get_location()
    return Position(name, where.line + line_offset, where.col), max(1, min(len(error.span), 60))
