"""`linalg`: xDSL's ops, with a `generic` whose several results parse, and `fill`, `copy` that carry no region.

Upstream's custom syntax never shows the region of `fill` and `copy`; xDSL builds it for each op, which costs more than
the op. Ours have none (one that is parsed from the generic form is kept).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self, cast

from xdsl.dialects import linalg as xdsl_linalg
from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    IndexType,
    IntegerAttr,
    ShapedType,
    StringAttr,
    TensorType,
    i64,
)
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.dialects.linalg.attrs import IteratorType, IteratorTypeAttr
from xdsl.dialects.linalg.ops import (
    AddOp as AddOp,
    BroadcastOp as BroadcastOp,
    Conv2DNchwFchwOp as Conv2DNchwFchwOp,
    Conv2DNgchwFgchwOp as Conv2DNgchwFgchwOp,
    Conv2DNgchwGfchwOp as Conv2DNgchwGfchwOp,
    Conv2DNhwc_FhwcOp as Conv2DNhwc_FhwcOp,
    Conv2DNhwc_HwcfOp as Conv2DNhwc_HwcfOp,
    Conv2DNhwgcGfhwcOp as Conv2DNhwgcGfhwcOp,
    ExpOp as ExpOp,
    LogOp as LogOp,
    MatmulOp as MatmulOp,
    MaxOp as MaxOp,
    MinOp as MinOp,
    MulOp as MulOp,
    PoolingNchwMaxOp as PoolingNchwMaxOp,
    QuantizedMatmulOp as QuantizedMatmulOp,
    ReduceOp as ReduceOp,
    SelectOp as SelectOp,
    SqrtOp as SqrtOp,
    SubOp as SubOp,
    TransposeOp as TransposeOp,
)
from xdsl.dialects.utils import AbstractYieldOperation
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    opt_region_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import HasParent, IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from gradir.dialects.types import segments

from .extend import extended, parse_operand_list, parse_types, print_types


def _parse_group(parser: Parser, word: str) -> Sequence[SSAValue]:
    """`word(%a, %b : t0, t1)`, or nothing."""
    if not parser.parse_optional_characters(word):
        return ()
    position = parser.pos
    parser.parse_punctuation("(")
    names = parse_operand_list(parser)
    values = parser.resolve_operands(names, parse_types(parser), position)
    parser.parse_punctuation(")")
    return values


def _parse_results(parser: Parser) -> Sequence[Attribute]:
    """`-> t`, `-> (t0, t1)`, `-> t0, t1` (xDSL's spelling), or nothing."""
    if not parser.parse_optional_punctuation("->"):
        return ()
    several = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
    return several if several is not None else parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)


def _print_group(printer: Printer, word: str, values: Sequence[SSAValue]) -> None:
    if not values:
        return
    printer.print_string(f" {word}(")
    printer.print_list(values, printer.print_ssa_value)
    print_types(printer, [value.type for value in values])
    printer.print_string(")")


def _print_results(printer: Printer, types: Sequence[Attribute]) -> None:
    if not types:
        return
    printer.print_string(" -> ")
    if len(types) == 1:
        printer.print_attribute(types[0])
        return
    printer.print_string("(")
    printer.print_list(types, printer.print_attribute)
    printer.print_string(")")


@irdl_op_definition
class GenericOp(LinalgStructuredOperation):
    """For every point `d` of the iteration space, in any order: `out[o(d)] = body(in[i(d)], .., out[o(d)])`."""

    name = "linalg.generic"

    indexing_maps = prop_def(ArrayAttr[AffineMapAttr])
    iterator_types = prop_def(ArrayAttr[IteratorTypeAttr])
    doc = opt_prop_def(StringAttr)
    library_call = opt_prop_def(StringAttr)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self,
        inputs: Sequence[SSAValue],
        outputs: Sequence[SSAValue],
        body: Region,
        indexing_maps: Sequence[AffineMapAttr] | ArrayAttr[AffineMapAttr],
        iterator_types: Sequence[Attribute] | ArrayAttr[Attribute],
        result_types: Sequence[Attribute] = (),
        doc: StringAttr | None = None,
        library_call: StringAttr | None = None,
    ) -> None:
        super().__init__(
            operands=[inputs, outputs],
            result_types=[result_types],
            properties={
                "indexing_maps": ArrayAttr(indexing_maps),
                "iterator_types": ArrayAttr(iterator_types),
                "doc": doc,
                "library_call": library_call,
            },
            regions=[body],
        )

    def get_indexing_maps(self) -> ArrayAttr[AffineMapAttr]:
        return self.indexing_maps

    def get_iterator_types(self) -> ArrayAttr[IteratorTypeAttr]:
        return self.iterator_types

    def print(self, printer: Printer) -> None:
        words = ArrayAttr(StringAttr(str(kind.data)) for kind in self.iterator_types)
        front: dict[str, Attribute] = {"indexing_maps": self.indexing_maps, "iterator_types": words}
        front |= {name: value for name in ("doc", "library_call") if (value := self.properties.get(name)) is not None}
        printer.print_op_attributes(front)
        _print_group(printer, "ins", self.inputs)
        _print_group(printer, "outs", self.outputs)
        if self.attributes:
            printer.print_string(" attrs = ")
            printer.print_attr_dict(self.attributes)
        printer.print_string(" ")
        printer.print_region(self.body)
        _print_results(printer, self.res.types)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        position = parser.pos
        properties = parser.parse_optional_attr_dict()
        for name in ("indexing_maps", "iterator_types"):
            if not isinstance(properties.get(name), ArrayAttr):
                parser.raise_error(f"expected an array {name} for linalg.generic", position)
        words = cast(ArrayAttr[Attribute], properties["iterator_types"])  # an array: just checked
        properties["iterator_types"] = ArrayAttr(_iterator(parser, kind) for kind in words)
        inputs, outputs = _parse_group(parser, "ins"), _parse_group(parser, "outs")
        attributes: dict[str, Attribute] = {}
        if parser.parse_optional_keyword("attrs"):
            parser.parse_punctuation("=")
            attributes = parser.parse_optional_attr_dict()
        body = parser.parse_region()
        types = _parse_results(parser)
        known = {name: properties.pop(name) for name in ("indexing_maps", "iterator_types", "doc", "library_call") if name in properties}
        return cls.create(
            operands=[*inputs, *outputs],
            result_types=types,
            properties={"operandSegmentSizes": segments(len(inputs), len(outputs)), **known},
            attributes=properties | attributes,
            regions=[body],
        )


def _iterator(parser: Parser, kind: Attribute) -> IteratorTypeAttr:
    if isinstance(kind, IteratorTypeAttr):
        return kind
    words = [str(word) for word in IteratorType]
    if not isinstance(kind, StringAttr) or kind.data not in words:
        parser.raise_error(f"unknown iterator type {kind}, expected one of {', '.join(words)}")
    return IteratorTypeAttr(IteratorType(kind.data))


@irdl_op_definition
class YieldOp(AbstractYieldOperation[Attribute]):
    """The new elements of the outputs at one point."""

    name = "linalg.yield"

    traits = traits_def(IsTerminator(), Pure())


@irdl_op_definition
class IndexOp(IRDLOperation):
    """Coordinate `dim` of the current point of the surrounding `linalg.generic`."""

    name = "linalg.index"

    dim = prop_def(IntegerAttr[i64])
    result = result_def(IndexType)

    traits = traits_def(HasParent(GenericOp), Pure())

    assembly_format = "$dim attr-dict `:` type($result)"

    def __init__(self, dim: int) -> None:
        super().__init__(properties={"dim": IntegerAttr(dim, i64)}, result_types=[IndexType()])


class Whole(IRDLOperation):
    """An op on whole operands, one input and one output; upstream's hidden region is left out."""

    inputs = var_operand_def()
    outputs = var_operand_def(ShapedType)
    hidden_region = opt_region_def()
    res = var_result_def(TensorType)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self, inputs: Sequence[SSAValue | Operation], outputs: Sequence[SSAValue | Operation], res: Sequence[Attribute] | None = None
    ) -> None:
        types = [type_ for value in outputs if isinstance(type_ := SSAValue.get(value).type, TensorType)] if res is None else res
        super().__init__(operands=[inputs, outputs], result_types=[types], regions=[None])

    def verify_(self) -> None:
        if len(self.inputs) != 1 or len(self.outputs) != 1:
            raise VerifyException(f"{self.name}: expected one input and one output, got {len(self.inputs)} and {len(self.outputs)}")
        expected = [type_ for type_ in self.outputs.types if isinstance(type_, TensorType)]
        if list(self.res.types) != expected:
            wanted, found = (", ".join(map(str, types)) or "none" for types in (expected, self.res.types))
            raise VerifyException(f"{self.name}: results must be the types of the tensor outputs, {wanted}, found {found}")

    def print(self, printer: Printer) -> None:
        _print_group(printer, "ins", self.inputs)
        _print_group(printer, "outs", self.outputs)
        if self.attributes:
            printer.print_string(" attrs = ")
            printer.print_attr_dict(self.attributes)
        _print_results(printer, self.res.types)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        inputs, outputs = _parse_group(parser, "ins"), _parse_group(parser, "outs")
        attributes: dict[str, Attribute] = {}
        if parser.parse_optional_keyword("attrs"):
            parser.parse_punctuation("=")
            attributes = parser.parse_optional_attr_dict()
        return cls.create(
            operands=[*inputs, *outputs],
            result_types=_parse_results(parser),
            properties={"operandSegmentSizes": segments(len(inputs), len(outputs))},
            attributes=attributes,
        )

    def get_indexing_maps(self) -> ArrayAttr[AffineMapAttr]:
        """The maps that a `linalg.generic` of the same meaning would have."""
        output = self.outputs[0].type
        assert isinstance(output, ShapedType)
        identity = AffineMapAttr(AffineMap.identity(len(output.get_shape())))
        return ArrayAttr([identity if isinstance(self.inputs[0].type, ShapedType) else _nothing(output), identity])


def _nothing(output: ShapedType) -> AffineMapAttr:
    return AffineMapAttr(AffineMap(len(output.get_shape()), 0, ()))


@irdl_op_definition
class FillOp(Whole):
    """`out[i] = value` for every `i`; `value` is a scalar."""

    name = "linalg.fill"


@irdl_op_definition
class CopyOp(Whole):
    """`out[i] = input[i]` for every `i`."""

    name = "linalg.copy"


Linalg = extended(xdsl_linalg.Linalg, [GenericOp, YieldOp, IndexOp, FillOp, CopyOp])
