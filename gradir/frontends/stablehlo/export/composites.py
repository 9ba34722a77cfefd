"""Ops of level 1 that are more than one op of StableHLO keep their names: `stablehlo.composite "gradir.softmax"` and a decomposition.

Whoever knows the name may take it whole (our importer gives the same op back); all others call the decomposition, which says the same in
StableHLO's ops. Equal ones (name, types, attributes) share one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

from xdsl.ir import Attribute, Block, Operation, SSAValue

from gradir.dialects import nd
from gradir.frontends.stablehlo.control import OWN_COMPOSITE
from gradir.frontends.stablehlo.export.symbols import symbol_text
from gradir.frontends.stablehlo.export.writer import ExportRule, Value, Values, Writer, kind_of, list_text, results_text, type_text
from gradir.ir.builder import Builder

Expansion: TypeAlias = "Callable[[Any, Builder, Sequence[SSAValue]], Sequence[SSAValue]]"
"""`expansion(op, builder, operands)` appends ops of level 1 and gives the results."""


def expands(rule: ExportRule) -> ExportRule:
    """The rule that writes a composite of the op's name; `rule` writes its decomposition."""

    def write(w: Writer, op: Operation, operands: Values) -> Values:
        name = OWN_COMPOSITE + op.name.partition(".")[2]
        types = [value.type for value in operands]
        results = [kind_of(result.type) for result in op.results]
        attributes = ", ".join(f"{key} = {attribute}" for key, attribute in sorted(op.properties.items()))
        key = f"{name} {list_text(types)} -> {list_text(results)} {attributes}"
        if key not in w.decompositions:
            w.decompositions[key] = _unused(w, name)
            _function(w, w.decompositions[key], op, types, rule)
        made = [Value(w.fresh(), kind) for kind in results]
        names = ", ".join(value.name for value in operands)
        inside = f"composite_attributes = {{{attributes}}}, " if attributes else ""
        w.line(
            f'{", ".join(v.name for v in made)} = stablehlo.composite "{name}" {names} '
            f"{{{inside}decomposition = {symbol_text(w.decompositions[key])}}} : ({list_text(types)}) -> {results_text(results)}"
        )
        return made

    return write


def _unused(w: Writer, name: str) -> str:
    number, found = 0, name
    while found in w.taken:
        number += 1
        found = f"{name}_{number}"
    w.taken.add(found)
    return found


def _function(w: Writer, name: str, op: Operation, types: list[Any], rule: ExportRule) -> None:
    """The function that spells the op out, into `w.functions`."""
    with w.function() as lines:
        arguments = [Value(w.fresh(), kind) for kind in types]
        results = rule(w, op, arguments)
    w.functions.append(function_text(name, arguments, results, lines, private=True))


def function_text(name: str, arguments: Values, results: Values, lines: list[str], *, private: bool) -> str:
    """A whole function."""
    listed = ", ".join(f"{value.name}: {type_text(value.type)}" for value in arguments)
    outputs = results_text([value.type for value in results])
    names, types = ", ".join(value.name for value in results), list_text(value.type for value in results)
    end = f"    return {names} : {types}" if results else "    return"
    head = f"  func.func {'private' if private else 'public'} {symbol_text(name)}({listed}) -> {outputs} {{"
    return "\n".join([head, *lines, end, "  }"])


def by_ops(body: Expansion) -> ExportRule:
    """The rule that writes the ops of level 1 that `body` appends."""

    def write(w: Writer, op: Any, operands: Values) -> Values:
        block = Block(arg_types=[cast("Attribute", value.type) for value in op.operands])
        results = body(op, Builder(block, op.location), block.args)
        w.values.update(zip(block.args, operands))
        for inner in block.ops:
            w.convert_op(inner)
        return [w.values[result] for result in results]

    return write


decomposed = by_ops(lambda op, builder, operands: op.decompose(builder, operands))
"""What the op's own expansion says, op by op."""


RULES: dict[str, ExportRule] = {op.name: expands(decomposed) for ops in nd.FAMILIES.values() for op in ops if issubclass(op, nd.Composite)}
