"""Attributes of StableHLO: enumerations such as `#stablehlo<precision DEFAULT>` and dimension numbers such as `#stablehlo.dot<..>`.

One class per name, two forms of data: a word, or named lists of numbers. Whatever the importer does not read is kept as text.
"""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, Data, SpacedOpaqueSyntaxAttribute
from xdsl.parser import AttrParser
from xdsl.printer import Printer

Field = tuple[str, tuple[int, ...] | str]
"""A name and its numbers (one number: a tuple of one), or the text of what is not numbers."""

Layout = tuple[str | int, ...]
"""`[b, f, 0, 1]`: which dimension is the batch, the features, the spatial dimension 0..."""


class Word(Data[str], SpacedOpaqueSyntaxAttribute):
    """`#stablehlo<kind WORD>`"""

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        bracket = parser.parse_optional_punctuation("<")
        word = parser.parse_identifier()
        if bracket is not None:
            parser.parse_punctuation(">")
        return word

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(self.data)


class Numbers(Data[tuple[Field, ...]]):
    """`#stablehlo.kind<name = [0, 1], name = 2>`"""

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[Field, ...]:
        return tuple(parser.parse_comma_separated_list(parser.Delimiter.ANGLE, lambda: _field(parser)))

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(", ".join(f"{name} = {_show(value)}" for name, value in self.data))

    def numbers(self, name: str) -> tuple[int, ...]:
        """The numbers under that name; none where it is left out."""
        for key, value in self.data:
            if key == name and not isinstance(value, str):
                return value
        return ()

    def number(self, name: str, default: int = 0) -> int:
        """The only number under that name."""
        found = self.numbers(name)
        return found[0] if found else default


def _show(value: tuple[int, ...] | str) -> str:
    return value if isinstance(value, str) else f"[{', '.join(map(str, value))}]"


def _field(parser: AttrParser) -> Field:
    name = parser.parse_identifier()
    parser.parse_punctuation("=")
    numbers = parse_numbers(parser)
    if numbers is not None:
        return name, numbers
    number = parser.parse_optional_integer(allow_boolean=False)
    if number is not None:
        return name, (number,)
    return name, parser.parse_identifier()


def parse_numbers(parser: AttrParser) -> tuple[int, ...] | None:
    """`[0, 1]`, or None where no bracket opens."""
    found = parser.parse_optional_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
    return None if found is None else tuple(found)


class ConvNumbers(Data[tuple[Layout, Layout, Layout]]):
    """`#stablehlo.conv<[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]>`"""

    name = "stablehlo.conv"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[Layout, Layout, Layout]:
        with parser.in_angle_brackets():
            return parse_layouts(parser)

    def print_parameter(self, printer: Printer) -> None:
        lhs, rhs, result = (f"[{', '.join(map(str, layout))}]" for layout in self.data)
        printer.print_string(f"<{lhs}x{rhs}->{result}>")


def parse_layouts(parser: AttrParser) -> tuple[Layout, Layout, Layout]:
    """`[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]`"""
    lhs = _layout(parser)
    parser.parse_keyword("x")
    rhs = _layout(parser)
    parser.parse_punctuation("->")
    return lhs, rhs, _layout(parser)


def _layout(parser: AttrParser) -> Layout:
    def one() -> str | int:
        number = parser.parse_optional_integer(allow_boolean=False, allow_negative=False)
        return parser.parse_identifier() if number is None else number

    return tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, one))


class Token(Data[str]):
    """`!stablehlo.token`: the order of effects. Accepted in text; no op that needs it is imported."""

    name = "stablehlo.token"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        return ""

    def print_parameter(self, printer: Printer) -> None:
        return


WORDS = ("comparison_direction", "comparison_type", "precision", "fft_type", "rng_algorithm", "rng_distribution", "transpose")
NUMBERS = ("dot", "gather", "scatter", "channel_handle", "output_operand_alias", "dot_algorithm")


def _named(base: type[Attribute], name: str) -> type[Attribute]:
    return type(f"{base.__name__}_{name.replace('.', '_')}", (base,), {"name": name})


WORD_CLASSES: dict[str, type[Attribute]] = {word: _named(Word, f"stablehlo.{word}") for word in WORDS}
CHLO_CLASSES: dict[str, type[Attribute]] = {word: _named(Word, f"chlo.{word}") for word in WORDS[:3]}
NUMBER_CLASSES: dict[str, type[Attribute]] = {name: _named(Numbers, f"stablehlo.{name}") for name in NUMBERS}

STABLEHLO_ATTRIBUTES: list[type[Attribute]] = [*WORD_CLASSES.values(), *NUMBER_CLASSES.values(), ConvNumbers]
CHLO_ATTRIBUTES: list[type[Attribute]] = list(CHLO_CLASSES.values())


def word(kind: str, text: str) -> Word:
    """`#stablehlo<kind TEXT>`"""
    made = WORD_CLASSES[kind](text)  # pyright: ignore[reportCallIssue]  a class made from `Word`
    assert isinstance(made, Word)
    return made


def numbers(kind: str, fields: dict[str, tuple[int, ...]]) -> Numbers:
    """`#stablehlo.kind<..>`"""
    made = NUMBER_CLASSES[kind](tuple(fields.items()))  # pyright: ignore[reportCallIssue]  a class made from `Numbers`
    assert isinstance(made, Numbers)
    return made


def word_of(attribute: Attribute | None, default: str = "") -> str:
    """The word of an enumeration, which short forms give as a plain string."""
    return attribute.data if isinstance(attribute, Word | StringAttr) else default
