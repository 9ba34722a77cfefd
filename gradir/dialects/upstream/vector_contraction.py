"""`vector` ops that combine elements and that xDSL lacks: outerproduct, contract, multi_reduction.

https://mlir.llvm.org/docs/Dialects/Vector/
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import ClassVar, Self

from xdsl.dialects.arith import FastMathFlagsAttr
from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, DenseArrayBase, StringAttr, VectorType, i64
from xdsl.dialects.utils import EnumAttribute
from xdsl.dialects.vector import CombiningKindAttr, CombiningKindFlag
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    ParsePropInAttrDict,
    VarConstraint,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from .extend import parse_operand_list, parse_types, print_operands, print_types


@irdl_op_definition
class OuterProductOp(IRDLOperation):
    """`result[i, j] = combine(acc[i, j], lhs[i] * rhs[j])`; with a scalar `rhs`: `result[i] = combine(acc[i], lhs[i] * rhs)`."""

    name = "vector.outerproduct"

    lhs = operand_def(VectorType)
    rhs = operand_def()
    acc = opt_operand_def(VectorType)
    kind = prop_def(CombiningKindAttr, default_value=CombiningKindAttr(CombiningKindFlag.ADD))
    result = result_def(VectorType)

    traits = traits_def(Pure())

    def __init__(
        self,
        lhs: SSAValue | Operation,
        rhs: SSAValue | Operation,
        acc: SSAValue | Operation | None = None,
        kind: CombiningKindAttr | None = None,
    ) -> None:
        types = SSAValue.get(lhs).type, SSAValue.get(rhs).type
        super().__init__(operands=[lhs, rhs, acc], result_types=[outer_product_type(*types)], properties={"kind": kind})

    def verify_(self) -> None:
        expected = outer_product_type(self.lhs.type, self.rhs.type)
        if self.result.type != expected or (self.acc is not None and self.acc.type != expected):
            raise VerifyException(f"{self.name}: accumulator and result must be {expected}, got {self.result.type}")

    def print(self, printer: Printer) -> None:
        print_operands(printer, self.operands)
        printer.print_op_attributes({"kind": self.kind, **self.attributes})
        print_types(printer, [self.lhs.type, self.rhs.type])

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        position = parser.pos
        names = parse_operand_list(parser)
        attributes = parser.parse_optional_attr_dict()
        kind = attributes.pop("kind", CombiningKindAttr(CombiningKindFlag.ADD))
        lhs, rhs = parse_types(parser)
        result = outer_product_type(lhs, rhs)
        operands = parser.resolve_operands(names, [lhs, rhs, result][: len(names)], position)
        return cls.create(operands=operands, result_types=[result], properties={"kind": kind}, attributes=attributes)


def outer_product_type(lhs: Attribute, rhs: Attribute) -> VectorType:
    """Type of `lhs x rhs`."""
    if not isinstance(lhs, VectorType):
        raise VerifyException(f"vector.outerproduct: expected a vector, got {lhs}")
    columns = rhs.get_shape() if isinstance(rhs, VectorType) else ()
    return VectorType(lhs.element_type, [*lhs.get_shape(), *columns])


@irdl_op_definition
class MultiReductionOp(IRDLOperation):
    """`dest[kept dims] = combine(acc[kept dims], source over reduction_dims)`, in any order."""

    name = "vector.multi_reduction"

    T: ClassVar = VarConstraint("T", AnyAttr())

    kind = prop_def(CombiningKindAttr)
    source = operand_def(VectorType)
    acc = operand_def(T)
    reduction_dims = prop_def(DenseArrayBase.constr(i64))
    fastmath = prop_def(FastMathFlagsAttr, default_value=FastMathFlagsAttr("none"))
    dest = result_def(T)

    traits = traits_def(Pure())
    irdl_options = (ParsePropInAttrDict(),)

    assembly_format = "$kind `,` $source `,` $acc attr-dict $reduction_dims `:` type($source) `to` type($dest)"

    def __init__(self, kind: CombiningKindAttr, source: SSAValue, acc: SSAValue, reduction_dims: Sequence[int]) -> None:
        super().__init__(
            operands=[source, acc],
            result_types=[acc.type],
            properties={"kind": kind, "reduction_dims": DenseArrayBase.from_list(i64, reduction_dims)},
        )

    def verify_(self) -> None:
        reduced = set(self.reduction_dims.get_values())
        source = self.source.type
        assert isinstance(source, VectorType)
        rank = source.get_num_dims()
        for dim in reduced:
            if not 0 <= dim < rank:
                raise VerifyException(f"{self.name}: reduction_dims names dimension {dim}, the source has rank {rank}")
        kept = [size for dim, size in enumerate(source.get_shape()) if dim not in reduced]
        expected = VectorType(source.element_type, kept) if kept else source.element_type
        if self.dest.type != expected:
            raise VerifyException(f"{self.name}: result must be {expected}, got {self.dest.type}")


class IteratorType(StrEnum):
    """Role of one loop of a contraction."""

    PARALLEL = "parallel"
    REDUCTION = "reduction"


@irdl_attr_definition
class IteratorTypeAttr(EnumAttribute[IteratorType]):
    """`#vector.iterator_type<parallel>`"""

    name = "vector.iterator_type"

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(self.data)

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> IteratorType:
        with parser.in_angle_brackets():
            return IteratorType(parser.parse_identifier())


@irdl_op_definition
class ContractionOp(IRDLOperation):
    """`result[o(d)] = combine(acc[o(d)], sum over reduction dims of lhs[l(d)] * rhs[r(d)])`, maps `l`, `r`, `o`."""

    name = "vector.contract"

    lhs = operand_def(VectorType)
    rhs = operand_def(VectorType)
    acc = operand_def()
    indexing_maps = prop_def(ArrayAttr[AffineMapAttr])
    iterator_types = prop_def(ArrayAttr[IteratorTypeAttr])
    kind = prop_def(CombiningKindAttr, default_value=CombiningKindAttr(CombiningKindFlag.ADD))
    fastmath = prop_def(FastMathFlagsAttr, default_value=FastMathFlagsAttr("none"))
    result = result_def()

    traits = traits_def(Pure())

    def __init__(
        self,
        lhs: SSAValue,
        rhs: SSAValue,
        acc: SSAValue,
        indexing_maps: ArrayAttr[AffineMapAttr],
        iterator_types: Sequence[str],
        kind: CombiningKindAttr | None = None,
    ) -> None:
        iterators = ArrayAttr(IteratorTypeAttr(IteratorType(word)) for word in iterator_types)
        super().__init__(
            operands=[lhs, rhs, acc],
            result_types=[acc.type],
            properties={"indexing_maps": indexing_maps, "iterator_types": iterators, "kind": kind},
        )

    def verify_(self) -> None:
        sizes: dict[int, int] = {}
        if len(self.indexing_maps) != len(self.operands):
            raise VerifyException(
                f"{self.name}: {len(self.operands)} operands need {len(self.operands)} maps, found {len(self.indexing_maps)}"
            )
        for value, mapping in zip(self.operands, self.indexing_maps, strict=True):
            shape = value.type.get_shape() if isinstance(value.type, VectorType) else ()
            results = mapping.data.results
            if len(results) != len(shape):
                raise VerifyException(f"{self.name}: map {mapping.data} has {len(results)} results for {value.type}")
            for expr, size in zip(results, shape, strict=True):
                if not isinstance(expr, AffineDimExpr):
                    raise VerifyException(f"{self.name}: map {mapping.data} must be a projected permutation, found {expr}")
                if sizes.setdefault(expr.position, size) != size:
                    raise VerifyException(f"{self.name}: loop {expr.position} has {sizes[expr.position]} and {size} steps")
        if self.result.type != self.acc.type:
            raise VerifyException(f"{self.name}: result must be {self.acc.type}, got {self.result.type}")

    def print(self, printer: Printer) -> None:
        words = ArrayAttr(StringAttr(kind.data) for kind in self.iterator_types)
        named: dict[str, Attribute] = {"indexing_maps": self.indexing_maps, "iterator_types": words, "kind": self.kind}
        if self.fastmath.data:
            named["fastmath"] = self.fastmath
        printer.print_op_attributes({**named, **self.attributes})
        print_operands(printer, self.operands)
        print_types(printer, [self.lhs.type, self.rhs.type])
        printer.print_string(" into ")
        printer.print_attribute(self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        attributes = parser.parse_optional_attr_dict()
        properties = {name: attributes.pop(name) for name in ("indexing_maps", "iterator_types", "kind", "fastmath") if name in attributes}
        position = parser.pos
        if missing := {"indexing_maps", "iterator_types"} - properties.keys():
            parser.raise_error(f"expected {', '.join(sorted(missing))}", position)
        words = properties["iterator_types"]
        assert isinstance(words, ArrayAttr)
        properties["iterator_types"] = ArrayAttr(
            IteratorTypeAttr(IteratorType(word.data)) if isinstance(word, StringAttr) else word for word in words
        )
        names = parse_operand_list(parser)
        lhs, rhs = parse_types(parser)
        parser.parse_keyword("into")
        result = parser.parse_type()
        operands = parser.resolve_operands(names, [lhs, rhs, result], position)
        return cls.create(operands=operands, result_types=[result], properties=properties, attributes=attributes)


@cache
def contract_properties(rows: int) -> dict[str, Attribute]:
    """Properties of `acc[i.., j] + sum over c of lhs[i.., c] * rhs[j, c]`, with `rows` dimensions i."""
    rank = rows + 2
    i, j, c = range(rows), rows, rows + 1
    maps = [(*i, c), (j, c), (*i, j)]
    words = [IteratorType("parallel")] * (rows + 1) + [IteratorType("reduction")]
    return {
        "indexing_maps": ArrayAttr([AffineMapAttr(AffineMap(rank, 0, tuple(AffineDimExpr(d) for d in m))) for m in maps]),
        "iterator_types": ArrayAttr([IteratorTypeAttr(word) for word in words]),
        "kind": CombiningKindAttr(CombiningKindFlag.ADD),
        "fastmath": FastMathFlagsAttr("none"),
    }
