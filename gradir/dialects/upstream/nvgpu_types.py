"""Types of `nvgpu` for sm_90: mbarriers, tensor maps, descriptors and accumulators of warpgroups, under upstream's names and syntax."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar, cast

from xdsl.dialects.builtin import IntAttr, MemRefType, StringAttr, VectorType
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer

SWIZZLES = {"none": 0, "swizzle_32b": 32, "swizzle_64b": 64, "swizzle_128b": 128}
"""Word of a tensor map -> bytes of a swizzled row."""
Fields = dict[str, Callable[[AttrParser], Attribute]]
Kind = TypeVar("Kind", bound=ParametrizedAttribute)


def _parse_struct(parser: AttrParser, fields: Fields, defaults: dict[str, Attribute]) -> list[Attribute]:
    """`<key = value, ...>` in any order; what is absent has its default."""
    found = dict(defaults)

    def parse_field() -> None:
        start = parser.pos
        key = parser.parse_identifier()
        if key not in fields:
            parser.raise_error(f"unknown parameter '{key}', expected one of: {', '.join(fields)}", start, parser.pos)
        parser.parse_punctuation("=")
        found[key] = fields[key](parser)

    start = parser.pos
    parser.parse_comma_separated_list(parser.Delimiter.ANGLE, parse_field)
    missing = [key for key in fields if key not in found]
    if missing:
        parser.raise_error(f"missing parameter '{missing[0]}'", start, parser.pos)
    return [found[key] for key in fields]


def parse_elided(parser: Parser, kind: type[Kind]) -> Kind:
    """A type of this kind; as upstream prints it, its name may be left out."""
    found = parser.parse_optional_type()
    if found is None:
        return kind.new(kind.parse_parameters(parser))
    if not isinstance(found, kind):
        parser.raise_error(f"expected a type !{kind.name}, found {found}")
    return found


def _word(*words: str) -> Callable[[AttrParser], Attribute]:
    def parse(parser: AttrParser) -> Attribute:
        start = parser.pos
        word = parser.parse_identifier()
        if word not in words:
            parser.raise_error(f"unknown word '{word}', expected one of: {', '.join(words)}", start, parser.pos)
        return StringAttr(word)

    return parse


def _type(parser: AttrParser) -> Attribute:
    return parser.parse_type()


@irdl_attr_definition
class MbarrierTokenType(ParametrizedAttribute, TypeAttribute):
    """`!nvgpu.mbarrier.token`: the phase in which a thread arrived."""

    name = "nvgpu.mbarrier.token"


@irdl_attr_definition
class MbarrierGroupType(ParametrizedAttribute, TypeAttribute):
    """`num_barriers` mbarriers side by side in workgroup memory."""

    name = "nvgpu.mbarrier.group"

    memorySpace: Attribute
    num_barriers: IntAttr

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        fields: Fields = {"memorySpace": lambda p: p.parse_attribute(), "num_barriers": lambda p: IntAttr(p.parse_integer())}
        return _parse_struct(parser, fields, {"num_barriers": IntAttr(1)})

    def print_parameters(self, printer: Printer) -> None:
        printer.print_string("<memorySpace = ")
        printer.print_attribute(self.memorySpace)
        printer.print_string(f", num_barriers = {self.num_barriers.data}>" if self.num_barriers.data != 1 else ">")


@irdl_attr_definition
class TensorMapType(ParametrizedAttribute, TypeAttribute):
    """`!nvgpu.tensormap.descriptor`: how boxes of type `tensor` are copied between an array in global memory and workgroup memory."""

    name = "nvgpu.tensormap.descriptor"

    tensor: MemRefType
    swizzle: StringAttr
    l2promo: StringAttr
    oob: StringAttr
    interleave: StringAttr

    @staticmethod
    def of(tensor: MemRefType, swizzle: str = "none", oob: str = "zero") -> TensorMapType:
        """Without promotion in L2 and without interleaving."""
        none = StringAttr("none")
        return TensorMapType(tensor, StringAttr(swizzle), none, StringAttr(oob), none)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        fields: Fields = {
            "tensor": _type,
            "swizzle": _word(*SWIZZLES),
            "l2promo": _word("none", "l2promo_64b", "l2promo_128b", "l2promo_256b"),
            "oob": _word("zero", "nan"),
            "interleave": _word("none", "interleave_16b", "interleave_32b"),
        }
        return _parse_struct(parser, fields, {})

    def print_parameters(self, printer: Printer) -> None:
        printer.print_string("<tensor = ")
        printer.print_attribute(self.tensor)
        words = (f"{key} = {cast(StringAttr, getattr(self, key)).data}" for key in ("swizzle", "l2promo", "oob", "interleave"))
        printer.print_string(", " + ", ".join(words) + ">")


@irdl_attr_definition
class WarpgroupDescriptorType(ParametrizedAttribute, TypeAttribute):
    """`!nvgpu.warpgroup.descriptor`: where a factor lies in workgroup memory; `tensor` is m x k or k x n, however it lies."""

    name = "nvgpu.warpgroup.descriptor"

    tensor: MemRefType

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        return _parse_struct(parser, {"tensor": _type}, {})

    def print_parameters(self, printer: Printer) -> None:
        printer.print_string("<tensor = ")
        printer.print_attribute(self.tensor)
        printer.print_string(">")


@irdl_attr_definition
class WarpgroupAccumulatorType(ParametrizedAttribute, TypeAttribute):
    """`!nvgpu.warpgroup.accumulator`: a matrix that the 128 threads of a warpgroup hold together in registers."""

    name = "nvgpu.warpgroup.accumulator"

    fragmented: VectorType[Attribute]

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns)."""
        m, n = self.fragmented.get_shape()
        return m, n

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        return _parse_struct(parser, {"fragmented": _type}, {})

    def print_parameters(self, printer: Printer) -> None:
        printer.print_string("<fragmented = ")
        printer.print_attribute(self.fragmented)
        printer.print_string(">")


MBARRIER_TOKEN = MbarrierTokenType()
TYPES = [MbarrierGroupType, MbarrierTokenType, TensorMapType, WarpgroupAccumulatorType, WarpgroupDescriptorType]
