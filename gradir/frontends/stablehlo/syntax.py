"""The short forms of StableHLO ops, as JAX prints them.

Most ops share one form: operands, numbers and words between commas, `key = value` clauses, an attribute dictionary, types. Its clauses
become the properties that the generic form spells; `FIELDS` holds the names that differ. Control flow, reduce, constants, calls have
forms of their own. Nothing here knows what an op means.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import cast

from xdsl.dialects.builtin import BoolAttr, ComplexType, DenseIntOrFPElementsAttr, DenseResourceAttr, StringAttr, TensorType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.parser import Parser, UnresolvedOperand

from gradir.dialects.types import element_of, i64_array, i64_attr, shape_of, tensor
from gradir.frontends.stablehlo import attributes as shlo

Properties = dict[str, Attribute]

FIELDS: dict[str, dict[str, str]] = {
    "stablehlo.broadcast_in_dim": {"dims": "broadcast_dimensions"},
    "stablehlo.dynamic_broadcast_in_dim": {"dims": "broadcast_dimensions"},
    "stablehlo.transpose": {"dims": "permutation"},
    "stablehlo.reverse": {"dims": "dimensions"},
    "stablehlo.iota": {"dim": "iota_dimension"},
    "stablehlo.dynamic_iota": {"dim": "iota_dimension"},
    "stablehlo.concatenate": {"dim": "dimension"},
    "stablehlo.get_dimension_size": {"dim": "dimension"},
    "stablehlo.set_dimension_size": {"dim": "dimension"},
    "stablehlo.dynamic_slice": {"sizes": "slice_sizes"},
    "stablehlo.pad": {"low": "edge_padding_low", "high": "edge_padding_high", "interior": "interior_padding"},
    "stablehlo.broadcast": {"sizes": "broadcast_sizes"},
    "stablehlo.fft": {"type": "fft_type", "length": "fft_length"},
    "stablehlo.rng": {"distribution": "rng_distribution"},
    "stablehlo.rng_bit_generator": {"algorithm": "rng_algorithm"},
}
"""Op -> name of a clause in the short form -> name of the property."""


@dataclass
class Clauses:
    """What stands between an op's name and its types."""

    operands: list[UnresolvedOperand] = field(default_factory=list[UnresolvedOperand])
    words: list[str] = field(default_factory=list[str])
    properties: Properties = field(default_factory=dict[str, Attribute])


# -- types at the end


def signature(parser: Parser, count: int) -> tuple[list[Attribute], list[Attribute]]:
    """Types of `count` operands and of the results: `T`, `T, T`, `T, T -> T`, `(T, T) -> (T, T)`."""
    function = parser.parse_optional_function_type()
    if function is not None:
        return list(function.inputs.data), list(function.outputs.data)
    types: list[Attribute] = list(parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type))
    if parser.parse_optional_punctuation("->") is not None:
        results = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
        return types, [parser.parse_type()] if results is None else list(results)
    if len(types) == 1:  # all of one type
        return types * count, types
    if len(types) == 2 and count == 3:  # select: predicate, then the values
        return [types[0], types[1], types[1]], [types[1]]
    return types, types


def finish(
    kind: type[Operation], parser: Parser, operands: Sequence[UnresolvedOperand], properties: Properties, regions: Sequence[Region] = ()
) -> Operation:
    """The attribute dictionary and the types; then the op."""
    extra = parser.parse_optional_attr_dict()
    position = parser.pos
    inputs, results = signature(parser, len(operands)) if parser.parse_optional_punctuation(":") is not None else ([], [])
    values = parser.resolve_operands(operands, inputs, position)
    return kind.create(operands=values, result_types=results, properties={**extra, **properties}, regions=regions)


# -- the form that most ops share


def parse_common(kind: type[Operation], parser: Parser) -> Operation:
    """`%a, %b, WORD, key = value {..} : types`; the list may stand in parentheses."""
    clauses = Clauses()
    names = FIELDS.get(kind.name, {})
    if parser.parse_optional_punctuation("(") is None:
        _clauses(parser, clauses, names)
    else:
        _clauses(parser, clauses, names)
        parser.parse_punctuation(")")
    return finish(kind, parser, clauses.operands, clauses.properties)


def _clauses(parser: Parser, found: Clauses, names: dict[str, str]) -> None:
    while True:
        operand = parser.parse_optional_unresolved_operand()
        if operand is not None:
            found.operands.append(operand)
        elif (word := parser.parse_optional_identifier()) is not None:
            if parser.parse_optional_punctuation("=") is None:
                found.words.append(word)
            else:
                found.properties[names.get(word, word)] = _value(parser)
        else:
            return
        if parser.parse_optional_punctuation(",") is None:
            return


def _value(parser: Parser) -> Attribute:
    """A list of numbers, a number, true, false, a word, or any attribute."""
    numbers = shlo.parse_numbers(parser)
    if numbers is not None:
        return i64_array(numbers)
    flag = parser.parse_optional_boolean()
    if flag is not None:
        return BoolAttr.from_bool(flag)
    number = parser.parse_optional_integer(allow_boolean=False)
    if number is not None:
        return i64_attr(number)
    word = parser.parse_optional_identifier()
    return parser.parse_attribute() if word is None else StringAttr(word)


def parse_compare(kind: type[Operation], parser: Parser) -> Operation:
    """`LT, %a, %b, FLOAT : (T, T) -> B`"""
    clauses = Clauses()
    _clauses(parser, clauses, {})
    names = ("comparison_direction", "compare_type")
    kinds = ("comparison_direction", "comparison_type")
    properties: Properties = {name: shlo.word(which, text) for name, which, text in zip(names, kinds, clauses.words)}
    return finish(kind, parser, clauses.operands, properties)


def parse_complex(kind: type[Operation], parser: Parser) -> Operation:
    """`%re, %im : tensor<2xcomplex<f32>>`: the operands are the parts."""
    clauses = Clauses()
    _clauses(parser, clauses, {})
    extra = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    position = parser.pos
    inputs, results = signature(parser, 2)
    if inputs == [*results, *results]:
        inputs = [_part(kind) for kind in inputs]
    return kind.create(operands=parser.resolve_operands(clauses.operands, inputs, position), result_types=results, properties=extra)


def _part(kind: Attribute) -> Attribute:
    if not isinstance(kind, TensorType) or not isinstance(element_of(kind), ComplexType):
        return kind
    return tensor(cast("ComplexType", element_of(kind)).element_type, shape_of(kind))


def parse_slice(kind: type[Operation], parser: Parser) -> Operation:
    """`%x [0:4:2, 1:3] : (T) -> T`"""
    operand = parser.parse_unresolved_operand()

    def one() -> tuple[int, int, int]:
        start = parser.parse_integer()
        parser.parse_punctuation(":")
        limit = parser.parse_integer()
        return start, limit, 1 if parser.parse_optional_punctuation(":") is None else parser.parse_integer()

    rows = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, one)
    names = ("start_indices", "limit_indices", "strides")
    return finish(kind, parser, [operand], {name: i64_array(row[i] for row in rows) for i, name in enumerate(names)})


def parse_dot_general(kind: type[Operation], parser: Parser) -> Operation:
    """`%a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT]`"""
    operands = [parser.parse_unresolved_operand()]
    parser.parse_punctuation(",")
    operands.append(parser.parse_unresolved_operand())
    dims: dict[str, tuple[int, ...]] = {}
    properties: Properties = {}
    while parser.parse_optional_punctuation(",") is not None:
        clause = parser.parse_identifier()
        parser.parse_punctuation("=")
        if clause in ("batching_dims", "contracting_dims"):
            what = clause.replace("dims", "dimensions")
            dims[f"lhs_{what}"] = shlo.parse_numbers(parser) or ()
            parser.parse_keyword("x")
            dims[f"rhs_{what}"] = shlo.parse_numbers(parser) or ()
        elif clause == "precision":
            parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_identifier)  # a hint: our products never lose bits
        else:
            properties[clause] = shlo.NUMBER_CLASSES["dot_algorithm"](shlo.Numbers.parse_parameter(parser))  # pyright: ignore[reportCallIssue]
    properties["dot_dimension_numbers"] = shlo.numbers("dot", dims)
    return finish(kind, parser, operands, properties)


def parse_convolution(kind: type[Operation], parser: Parser) -> Operation:
    """`(%x, %w) dim_numbers = [..]x[..]->[..], window = {stride = [..], pad = [[..]], ..} {batch_group_count = 1 : i64, ..} : ..`"""
    operands = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)
    parser.parse_keyword("dim_numbers")
    parser.parse_punctuation("=")
    properties: Properties = {"dimension_numbers": shlo.ConvNumbers(shlo.parse_layouts(parser))}
    parser.parse_punctuation(",")
    parser.parse_keyword("window")
    parser.parse_punctuation("=")
    names = {"stride": "window_strides", "lhs_dilate": "lhs_dilation", "rhs_dilate": "rhs_dilation"}

    def one() -> None:
        clause = parser.parse_identifier()
        parser.parse_punctuation("=")
        if clause == "reverse":
            flags = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_boolean)
            properties["window_reversal"] = i64_array(int(flag) for flag in flags)
        elif clause == "pad":
            pairs = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: shlo.parse_numbers(parser) or ())
            properties["padding"] = i64_array(n for pair in pairs for n in pair)
        else:
            properties[names.get(clause, clause)] = i64_array(shlo.parse_numbers(parser) or ())

    parser.parse_comma_separated_list(parser.Delimiter.BRACES, one)
    return finish(kind, parser, operands, properties)


# -- forms of their own


def parse_constant(kind: type[Operation], parser: Parser) -> Operation:
    """`dense<..> : T`, with or without an attribute dictionary before."""
    extra = parser.parse_optional_attr_dict()
    value = parser.parse_attribute()
    if not isinstance(value, DenseIntOrFPElementsAttr | DenseResourceAttr):
        parser.raise_error("expected dense<..> or dense_resource<..> with a tensor type")
    return kind.create(result_types=[value.type], properties={**extra, "value": value})


def parse_custom_call(kind: type[Operation], parser: Parser) -> Operation:
    """`@target(%a, %b) {..} : (T, T) -> T`"""
    target = parser.parse_symbol_name()
    operands = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)
    return finish(kind, parser, operands, {"call_target_name": target})


def parse_composite(kind: type[Operation], parser: Parser) -> Operation:
    """`"name" %a, %b {decomposition = @f} : (T, T) -> T`"""
    name = parser.parse_str_literal()
    operands = parser.parse_optional_undelimited_comma_separated_list(
        parser.parse_optional_unresolved_operand, parser.parse_unresolved_operand
    )
    return finish(kind, parser, operands or [], {"name": StringAttr(name)})


def parse_while(kind: type[Operation], parser: Parser) -> Operation:
    """`(%a = %x, %b = %y) : T, T cond {..} do {..}`"""

    def pair() -> tuple[Parser.UnresolvedArgument, UnresolvedOperand]:
        argument = parser.parse_argument(expect_type=False)
        parser.parse_punctuation("=")
        return argument, parser.parse_unresolved_operand()

    pairs = parser.parse_comma_separated_list(parser.Delimiter.PAREN, pair)
    types: list[Attribute] = []
    position = parser.pos
    if parser.parse_optional_punctuation(":") is not None:
        types = list(parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type))
    values = parser.resolve_operands([operand for _, operand in pairs], types, position)
    extra = parser.parse_optional_attr_dict_with_keyword()
    arguments = [argument.resolve(type) for (argument, _), type in zip(pairs, types)]
    parser.parse_keyword("cond")
    cond = parser.parse_region(arguments)
    parser.parse_keyword("do")
    body = parser.parse_region(arguments)
    attributes = dict(extra.data) if extra is not None else {}
    return kind.create(operands=values, result_types=types, attributes=attributes, regions=[cond, body])


def parse_reduce(kind: type[Operation], parser: Parser) -> Operation:
    """`(%x init: %i), .. applies stablehlo.add across dimensions = [0] : ..`, or the dimensions, the types, and `reducer(..) (..) {..}`."""
    inputs: list[UnresolvedOperand] = []
    starts: list[UnresolvedOperand] = []

    def pair() -> None:
        parser.parse_punctuation("(")
        inputs.append(parser.parse_unresolved_operand())
        parser.parse_keyword("init")
        parser.parse_punctuation(":")
        starts.append(parser.parse_unresolved_operand())
        parser.parse_punctuation(")")

    parser.parse_comma_separated_list(parser.Delimiter.NONE, pair)
    inner = parser.parse_identifier() if parser.parse_optional_keyword("applies") is not None else ""
    parser.parse_keyword("across")
    parser.parse_keyword("dimensions")
    parser.parse_punctuation("=")
    properties: Properties = {"dimensions": i64_array(shlo.parse_numbers(parser) or ())}
    properties |= parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    position = parser.pos
    types = parser.parse_function_type()
    values = parser.resolve_operands([*inputs, *starts], list(types.inputs.data), position)
    region = Region(applied(inner, parser, values[len(inputs)])) if inner else _reducer(parser)
    return kind.create(operands=values, result_types=list(types.outputs.data), properties=properties, regions=[region])


def applied(inner: str, parser: Parser, start: SSAValue) -> Block:
    """The body that `applies` stands for."""
    scalar = start.type
    block = Block(arg_types=[scalar, scalar])
    step = _op_class(inner, parser).create(operands=list(block.args), result_types=[scalar])
    block.add_op(step)
    block.add_op(_op_class("stablehlo.return", parser).create(operands=list(step.results)))
    return block


def _op_class(name: str, parser: Parser) -> type[Operation]:
    found = parser.ctx.get_optional_op(name)
    if found is None:
        parser.raise_error(f"unknown op '{name}'")
    return found


def _reducer(parser: Parser) -> Region:
    """`reducer(%a: T, %b: T) (%c: U, %d: U) {..}`: a pair per input; the region takes all firsts, then all seconds."""
    parser.parse_keyword("reducer")
    firsts: list[Parser.Argument] = []
    seconds: list[Parser.Argument] = []

    def argument() -> Parser.Argument:
        found = parser.parse_argument()
        parser.parse_optional_location()
        return found

    while True:
        pair = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, argument)
        if pair is None:
            return parser.parse_region([*firsts, *seconds])
        firsts.append(pair[0])
        seconds.append(pair[1])


def parse_mesh(kind: type[Operation], parser: Parser) -> Operation:
    """`sdy.mesh @mesh = <["x"=8]>`: kept as a name."""
    name = parser.parse_symbol_name()
    parser.parse_punctuation("=")
    _skip_brackets(parser)
    return kind.create(properties={"sym_name": name}, attributes=parser.parse_optional_attr_dict())


def parse_sharding_constraint(kind: type[Operation], parser: Parser) -> Operation:
    """`sdy.sharding_constraint %x <@mesh, [{"x"}]> : T`: the sharding is not kept."""
    operand = parser.parse_unresolved_operand()
    _skip_brackets(parser)
    return finish(kind, parser, [operand], {})


def _skip_brackets(parser: Parser) -> None:
    parser._parse_dialect_symbol_body()  # xDSL's only scan of balanced brackets


Form = Callable[[type[Operation], Parser], Operation]
