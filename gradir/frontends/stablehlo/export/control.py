"""Control flow and the scalar arithmetic around it: `scf` on tensors to while, if and case; `arith` on indices to ops of rank 0."""

from __future__ import annotations

from typing import Any, cast

from xdsl.dialects.builtin import FloatAttr, IntegerAttr, SymbolRefAttr, i32
from xdsl.ir import Attribute

from gradir.dialects import nd
from gradir.dialects.types import element_of, ints, is_unsigned
from gradir.dialects.upstream import arith, scf
from gradir.frontends.stablehlo.conversion import UnsupportedError
from gradir.frontends.stablehlo.export.symbols import symbol_text
from gradir.frontends.stablehlo.export.writer import ExportRule, Value, Values, Writer, kind_of, list_text, results_text


def for_op(w: Writer, op: scf.ForOp, operands: Values) -> Values:
    """`i = lb; while i < ub: state = body(i, state); i += step`"""
    lower, upper, step, *state = operands
    types = [value.type for value in (lower, *state)]
    cond = w.region(types, lambda arguments: [w.compare("LT", arguments[0], upper)])

    def body(arguments: Values) -> Values:
        results = w.block(op.body.block, arguments)
        return [w.binary("stablehlo.add", arguments[0], step), *results]

    return w.op("stablehlo.while", [lower, *state], types, "", [cond, w.region(types, body)])[1:]


def while_op(w: Writer, op: scf.WhileOp, operands: Values) -> Values:
    """`while before(state): state = after(..)`; what else `before` computes is computed again where it is used."""
    before, after = op.before_region.block, op.after_region.block
    end = before.last_op
    assert isinstance(end, scf.ConditionOp)
    plain = list(end.args) == list(before.args)

    def forwarded(arguments: Values) -> list[Value]:
        return list(arguments) if plain else w.block(before, arguments)[1:]

    types = [value.type for value in operands]
    cond = w.region(types, lambda arguments: w.block(before, arguments)[:1])
    body = w.region(types, lambda arguments: w.block(after, forwarded(arguments)))
    return forwarded(w.op("stablehlo.while", operands, types, "", [cond, body]))


def if_op(w: Writer, op: scf.IfOp, operands: Values) -> Values:
    """`then() if flag else other()`"""
    if not op.results:
        raise UnsupportedError("scf.if without results")
    branches = [w.region([], lambda _, block=region.block: w.block(block, ())) for region in (op.true_region, op.false_region)]
    return w.op("stablehlo.if", operands, [kind_of(result.type) for result in op.results], "", branches)


def index_switch(w: Writer, op: scf.IndexSwitchOp, operands: Values) -> Values:
    """`case` with the default last: it takes every index outside."""
    (at,) = operands
    cases = ints(op.cases)
    number: Value = w.constant(len(cases), i32)
    for k, value in reversed(list(enumerate(cases))):
        number = w.select(w.compare("EQ", at, w.like(value, at)), w.constant(k, i32), number)
    regions = [w.region([], lambda _, block=region.block: w.block(block, ())) for region in (*op.case_regions, op.default_region)]
    return w.op("stablehlo.case", [number], [kind_of(result.type) for result in op.results], "", regions)


def call(w: Writer, op: Any, operands: Values) -> Values:
    """A call of a function of the module."""
    callee = cast("SymbolRefAttr", op.properties["callee"]).string_value()
    results = [kind_of(result.type) for result in op.results]
    made = [Value(w.fresh(), kind) for kind in results]
    names = ", ".join(value.name for value in operands)
    head = f"{', '.join(v.name for v in made)} = " if made else ""
    w.line(f"{head}func.call {symbol_text(callee)}({names}) : ({list_text(v.type for v in operands)}) -> {results_text(results)}")
    return made


def custom_call(w: Writer, op: nd.CustomCallOp, operands: Values) -> Values:
    """A call of the function of that name, which whoever runs it must have registered."""
    if "complex_operands" in op.properties or "complex_results" in op.properties:
        raise UnsupportedError("complex numbers that were split already")
    config = "" if op.config is None else f", backend_config = {op.config}"
    effects = ", has_side_effect = true" if op.effects is not None else ""
    attributes = f'call_target_name = "{op.callee.data}", api_version = 4 : i32{config}{effects}'
    return w.op("stablehlo.custom_call", operands, [kind_of(result.type) for result in op.results], attributes)


# -- scalars

ARITH: dict[str, str] = {
    "arith.addi": "stablehlo.add",
    "arith.subi": "stablehlo.subtract",
    "arith.muli": "stablehlo.multiply",
    "arith.andi": "stablehlo.and",
    "arith.ori": "stablehlo.or",
    "arith.xori": "stablehlo.xor",
    "arith.maxsi": "stablehlo.maximum",
    "arith.minsi": "stablehlo.minimum",
    "arith.divsi": "stablehlo.divide",
    "arith.remsi": "stablehlo.remainder",
    "arith.addf": "stablehlo.add",
    "arith.subf": "stablehlo.subtract",
    "arith.mulf": "stablehlo.multiply",
    "arith.divf": "stablehlo.divide",
}
PREDICATES = ("EQ", "NE", "LT", "LE", "GT", "GE")
"""Signed predicates of `arith.cmpi`, by number."""


def _binary(name: str) -> ExportRule:
    return lambda w, op, operands: [w.binary(name, *operands)]


def constant(w: Writer, op: arith.ConstantOp, operands: Values) -> Values:
    """A scalar."""
    value: Attribute = op.value
    if not isinstance(value, IntegerAttr | FloatAttr):
        raise UnsupportedError(f"a constant that is {value}")
    return [w.constant(cast("Any", value).value.data, element_of(kind_of(op.results[0].type)))]


def compare(w: Writer, op: arith.CmpiOp, operands: Values) -> Values:
    """A signed comparison."""
    predicate = op.predicate.value.data
    if predicate >= len(PREDICATES) or is_unsigned(operands[0].element):
        raise UnsupportedError("an unsigned comparison")
    lhs, rhs = operands
    return [w.compare(PREDICATES[predicate], lhs, rhs)]


def index_cast(w: Writer, op: Any, operands: Values) -> Values:
    """An integer as an index or back."""
    return [w.convert(operands[0], element_of(kind_of(op.results[0].type)))]


def select(w: Writer, op: Any, operands: Values) -> Values:
    """A choice of scalars."""
    return [w.select(*operands)]


def ceil_div(w: Writer, op: Any, operands: Values) -> Values:
    """`-floor(-x / y)`, for y > 0 and any x: truncation plus one where a positive remainder is left."""
    x, y = operands
    quotient, rest = w.binary("stablehlo.divide", x, y), w.binary("stablehlo.remainder", x, y)
    more = w.convert(w.compare("GT", rest, w.like(0, rest)), x.element)
    return [w.binary("stablehlo.add", quotient, more)]


RULES: dict[str, ExportRule] = {
    "scf.for": for_op,
    "scf.while": while_op,
    "scf.if": if_op,
    "scf.index_switch": index_switch,
    "func.call": call,
    "nd.custom_call": custom_call,
    **{op: _binary(name) for op, name in ARITH.items()},
    "arith.constant": constant,
    "arith.cmpi": compare,
    "arith.index_cast": index_cast,
    "arith.select": select,
    "arith.ceildivsi": ceil_div,
}
