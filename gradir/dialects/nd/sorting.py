"""Order: sorting along a dimension, the greatest elements. Meaning: docs/numerics.md, "Shape, indexing, order".

The order of floats is total: all NaNs are equal and greater than inf, -0 equals +0. Sorting is always stable.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Self

from xdsl.dialects.builtin import IntegerAttr, i1, i32
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_region_def, prop_def, result_def, var_operand_def, var_result_def
from xdsl.parser import Parser
from xdsl.printer import Printer

from gradir.dialects.nd.base import I64, TENSOR, emit
from gradir.dialects.nd.checks import check_dims, check_element, check_same_element, check_shape
from gradir.dialects.nd.composite import Composite
from gradir.dialects.nd.creation import IotaOp, SymbolOp
from gradir.dialects.nd.regions import RegionOp, create, parse_body, print_body
from gradir.dialects.nd.shape import TO_END, SliceOp
from gradir.dialects.text import (
    Clause,
    fill_defaults,
    flag_attr,
    parse_clauses,
    parse_operands,
    parse_tensors,
    print_clauses,
    resolve,
)
from gradir.dialects.types import element_of, i64_attr, shape_of, tensor, with_size

if TYPE_CHECKING:
    from gradir.ir.builder import Builder


@irdl_op_definition
class SortOp(RegionOp):
    """`results = operands`, rearranged along `dim` by one permutation per row for all of them, which puts the keys in order. Stable.

    The first `keys` operands are the keys, compared lexicographically; the others move along. Floats: all NaNs are equal and greater than
    inf (last, or first if `descending`), -0 = +0; `total_order`: -NaN < -inf < .. < -0 < +0 < .. < inf < +NaN. A region
    `(%a0, %b0, %a1, %b1, ..)` over one element pair per operand, yielding i1, replaces all of that: row i comes before row j where it is
    true, as written; i keeps its place before j where the region on (j, i) is false. StableHLO: sort. ONNX: TopK. numpy: sort(stable=True).
    """

    name = "nd.sort"
    FAMILY: ClassVar[str] = "sorting"
    CLAUSES: ClassVar[tuple[Clause, ...]] = (
        Clause("dim", "dim", "int"),
        Clause("keys", "keys", "int", optional=True, fill=1),
        Clause("descending", "descending", "flag", optional=True),
        Clause("total_order", "total_order", "flag", optional=True),
    )

    inputs = var_operand_def(TENSOR)
    dim = prop_def(I64)
    keys = prop_def(I64)
    descending = prop_def(IntegerAttr.constr(type=i1))
    total_order = prop_def(IntegerAttr.constr(type=i1))
    comparator = opt_region_def()
    outputs = var_result_def(TENSOR)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        operands = parse_operands(parser)
        properties = fill_defaults(parse_clauses(parser, cls.CLAUSES), cls.CLAUSES, 0)
        regions = [parse_body(parser)] if parser.parse_optional_keyword("by") else []
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        position = parser.pos
        types = parse_tensors(parser)
        values = resolve(parser, operands, types, position)
        return cls.create(operands=values, result_types=types, properties=properties, regions=regions, attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_operand)
        print_clauses(self, printer, self.CLAUSES, 0)
        if self.comparator is not None:
            printer.print_string(" by ")
            print_body(printer, self.comparator)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_list(self.value_types, printer.print_attribute)

    @property
    def is_descending(self) -> bool:
        """Greatest first."""
        return bool(self.number("descending"))

    @property
    def is_total(self) -> bool:
        """Signs of zeros and NaNs count."""
        return bool(self.number("total_order"))

    def verify_(self) -> None:
        if not self.inputs:
            self.fail("expected at least one operand, found none")
        if len(self.inputs) != len(self.outputs):
            self.fail(f"{len(self.inputs)} operands need as many results, found {len(self.outputs)}")
        shape = shape_of(self.inputs[0])
        check_dims(self, "dim", (self.number("dim"),), len(shape), "operand 0")
        for k, (value, result) in enumerate(zip(self.inputs, self.outputs)):
            check_element(self, f"operand {k}", value, "any")
            check_shape(self, shape, value, f"operand {k}")
            if value.type != result.type:
                self.fail(f"types differ: operand {k} has {value.type}, result {k} has {result.type}")
        keys = self.number("keys")
        for k, value in enumerate(self.inputs[:keys] if self.comparator is None else ()):
            check_element(self, f"key {k}", value, "ordered")
        if not 1 <= keys <= len(self.inputs):
            self.fail(f"keys must be in 1 to {len(self.inputs)}, the number of operands, found {keys}")
        if self.comparator is not None:
            if keys != 1 or self.is_descending or self.is_total:
                found = f"found keys {keys}, descending {self.is_descending}, total_order {self.is_total}".lower()
                self.fail(f"a comparator replaces keys, descending and total_order: expected none of them beside it, {found}")
            pairs = [element for value in self.inputs for element in (element_of(value), element_of(value))]
            self.scalar_code(self.comparator, "comparator", pairs, [i1])

    @classmethod
    def make(
        cls,
        inputs: Sequence[SSAValue],
        dim: int,
        *,
        keys: int = 1,
        descending: bool = False,
        total_order: bool = False,
        comparator: Region | None = None,
    ) -> Self:
        """All `inputs` along `dim`, by the first `keys` of them or by the comparator."""
        properties: dict[str, Attribute] = {
            "dim": i64_attr(dim),
            "keys": i64_attr(keys),
            "descending": flag_attr(descending),
            "total_order": flag_attr(total_order),
        }
        regions = [] if comparator is None else [comparator]
        return create(cls, inputs, [value.type for value in inputs], properties, regions)


@irdl_op_definition
class TopKOp(Composite):
    """`values[.., j, ..], indices[.., j, ..]`: the k greatest elements along `dim` in descending order, and where they are.

    operand [A.., N, B..], results [A.., k, B..], indices integers. NaN is the greatest; equal elements keep the order of their indices.
    CHLO: top_k. ONNX: TopK. torch: topk.
    """

    name = "nd.top_k"
    FAMILY: ClassVar[str] = "sorting"
    CLAUSES: ClassVar[tuple[Clause, ...]] = (Clause("k", "k", "int"), Clause("dim", "dim", "int"))
    TYPES: ClassVar[str] = "several"

    operand = operand_def(TENSOR)
    k = prop_def(I64)
    dim = prop_def(I64)
    values = result_def(TENSOR)
    indices = result_def(TENSOR)

    def verify_(self) -> None:
        dim, k, shape = self.number("dim"), self.number("k"), shape_of(self.operand)
        check_element(self, "operand", self.operand, "any")
        check_dims(self, "dim", (dim,), len(shape))
        size = shape[dim]
        if k < 0 or (isinstance(size, int) and k > size):
            self.fail(f"k must be in 0 to {size}, the size of dimension {dim}, found {k}")
        expected = with_size(shape, dim, k)
        check_same_element(self, "values", self.values, "operand", self.operand)
        check_shape(self, expected, self.values, "values")
        check_element(self, "indices", self.indices, "integer")
        check_shape(self, expected, self.indices, "indices")

    @classmethod
    def make(cls, operand: SSAValue, k: int, dim: int, index_element: Attribute = i32) -> Self:
        """The `k` greatest along `dim`."""
        shape = with_size(shape_of(operand), dim, k)
        types = [tensor(element_of(operand), shape), tensor(index_element, shape)]
        return create(cls, [operand], types, {"k": i64_attr(k), "dim": i64_attr(dim)})

    def decompose(self, builder: Builder, operands: Sequence[SSAValue]) -> list[SSAValue]:
        """Sort the operand and its indices, greatest first; the first k of both."""
        x, dim, k = operands[0], self.number("dim"), self.number("k")
        shape = shape_of(x)
        sizes = [emit(builder, SymbolOp.make(n)) for n in shape if isinstance(n, str)]
        places = emit(builder, IotaOp.make(tensor(element_of(self.indices), shape), dim, sizes))
        sort = SortOp.make([x, places], dim, descending=True)
        emit(builder, sort)
        start = [0] * len(shape)
        limit = [k if d == dim else n if isinstance(n, int) else TO_END for d, n in enumerate(shape)]
        return [emit(builder, SliceOp.make(value, start, limit)) for value in sort.outputs]


OPS = (SortOp, TopKOp)
