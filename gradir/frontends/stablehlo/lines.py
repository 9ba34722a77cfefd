"""Reading the lines that most of a program consists of by one expression each: a quarter of the time of parsing token by token.

A line that looks like `%3 = stablehlo.add %1, %2 : tensor<4xf32>`, with clauses of numbers, a splat constant, or a reduction that `applies`
an op, is read here if its operands and types are known already; every other one, and every line with a mistake, by the parser itself.
"""

from __future__ import annotations

import re
from typing import Any, cast

from xdsl.dialects.builtin import UNKNOWN_LOC, DenseIntOrFPElementsAttr, LocationAttr
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.utils.lexer import Span

from gradir.dialects.types import i64_array, i64_attr
from gradir.frontends.stablehlo.syntax import FIELDS, applied
from gradir.ir.parser import LocParser

_LINE = re.compile(
    r"%(?P<result>\w+) = (?P<op>(?:stablehlo|chlo)\.\w+)"
    r"(?: dense<(?P<constant>[^<>\"]*)>"
    r"| (?P<operands>%[\w#]+(?:, %[\w#]+)*)?(?P<clauses>(?:(?:, |(?<= ))\w+ = (?:\[[-\d, ]*\]|-?\d+)(?=[, ]))*)"
    r"|\((?P<input>%[\w#]+) init: (?P<start>%[\w#]+)\) applies (?P<applied>[\w.]+) across dimensions = (?P<dimensions>\[[\d, ]*\]))"
    r" : (?P<types>[^\n]*?)(?: loc\((?P<loc>#\w+)\))?$",
    re.M,
)
_CLAUSE = re.compile(r"(\w+) = (\[[^]]*\]|-?\d+)")
_TYPE = re.compile(r"tensor<[^<>]*(?:<[^<>]*>)?>")
_NUMBER = re.compile(r"-?\d+")

Signature = tuple[tuple[Attribute, ...], tuple[Attribute, ...]]
"""Types of the operands, if they are spelled, and of the results."""


class LineParser(LocParser):
    """The parser of StableHLO text."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._signatures: dict[str, Signature] = {}
        self._splats: dict[str, Attribute] = {}
        self._kinds: dict[str, type[Operation] | None] = {}
        super().__init__(*arguments, **options)

    def parse_operation(self) -> Operation:
        start = self._current_token.span.start
        match = _LINE.match(self.lexer.input.content, start)
        op = self._read(match) if match is not None else None
        if match is None or op is None:
            parsed = super().parse_operation()
            if match is not None and match["constant"] is not None and not parsed.regions:
                self._remember(match, parsed)
            return parsed
        loc = match["loc"]
        location = self.attribute_aliases.get(loc) if loc is not None else None
        if location is UNKNOWN_LOC or not isinstance(location, LocationAttr):
            location = self.location_at(match.start("op"))
        op.location = location
        self._resume_from(match.end())
        self._register_ssa_definition(match["result"], op.results, Span(start, match.end("result"), self.lexer.input))
        return op

    def _read(self, match: re.Match[str]) -> Operation | None:
        """The op of the line; None where the parser has to look at it."""
        kind = self._kind(match["op"])
        if kind is None or match["result"] in self.ssa_values or (match["loc"] is not None and match["loc"] not in self.attribute_aliases):
            return None
        if match["constant"] is not None:
            value = self._splats.get(f"{match['constant']} : {match['types']}")
            return (
                kind.create(result_types=[value.type], properties={"value": value}) if isinstance(value, DenseIntOrFPElementsAttr) else None
            )
        signature = self._signature(match["types"])
        if signature is None:
            return None
        if match["applied"] is not None:
            return self._reduction(match, kind, signature)
        operands = self._operands(match["operands"] or "")
        if operands is None:
            return None
        types = [operand.type for operand in operands]
        inputs, results = signature
        if not (types == list(inputs) if inputs else all(type == results[0] for type in types)):
            return None
        clauses = match["clauses"]
        return kind.create(operands=operands, result_types=results, properties=_properties(kind.name, clauses) if clauses else {})

    def _reduction(self, match: re.Match[str], kind: type[Operation], signature: Signature) -> Operation | None:
        operands = self._operands(f"{match['input']}, {match['start']}")
        inner = self._kind(match["applied"])
        if operands is None or inner is None or [operand.type for operand in operands] != list(signature[0]):
            return None
        properties = {"dimensions": i64_array(map(int, _NUMBER.findall(match["dimensions"])))}
        region = Region(applied(match["applied"], self, operands[1]))
        return kind.create(operands=operands, result_types=signature[1], properties=properties, regions=[region])

    def _operands(self, names: str) -> list[SSAValue] | None:
        """The values of `%a, %b#1`; None where one is not defined yet."""
        found: list[SSAValue] = []
        for name in names.split(", ") if names else ():
            stem, mark, index = name[1:].partition("#")
            values = self.ssa_values.get(stem)
            if values is None or (len(values) != 1 and not mark) or (mark and int(index) >= len(values)):
                return None
            found.append(values[int(index) if mark else 0])
        return found

    def _signature(self, text: str) -> Signature | None:
        """`T` (all of one type), `(T, T) -> T`, `T -> T`; None of others, and while a type is new."""
        found = self._signatures.get(text)
        if found is not None:
            return found
        inputs, arrow, results = text.rpartition(" -> ")
        spelled = _TYPE.findall(results)
        if len(spelled) != 1 or spelled[0] != results or (arrow and inputs.strip("()") != ", ".join(_TYPE.findall(inputs))):
            return None
        types = [self._tensors.get(name) for name in (*_TYPE.findall(inputs), results)]
        known = tuple(type for type in types if type is not None)
        if len(known) != len(types):
            return None
        self._signatures[text] = made = (known[:-1], known[-1:])
        return made

    def _kind(self, name: str) -> type[Operation] | None:
        if name not in self._kinds:
            self._kinds[name] = self.ctx.get_optional_op(name)
        return self._kinds[name]

    def _remember(self, match: re.Match[str], op: Operation) -> None:
        """The value of a constant, for the next one that is spelled the same."""
        value = op.properties.get("value")
        if op.name == "stablehlo.constant" and value is not None and len(match["constant"]) < 64:
            self._splats[f"{match['constant']} : {match['types']}"] = value


def _properties(op: str, clauses: str) -> dict[str, Attribute]:
    names = FIELDS.get(op, {})
    found: dict[str, Attribute] = {}
    for name, value in cast("list[tuple[str, str]]", _CLAUSE.findall(clauses)):
        found[names.get(name, name)] = i64_array(map(int, _NUMBER.findall(value))) if value[0] == "[" else i64_attr(int(value))
    return found
