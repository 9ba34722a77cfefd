"""Ops that move elements without changing them: `result[i] = operand[map(i)]`.

In lowering most of these are views (an index map) and never reach memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

from xdsl.dialects.builtin import IndexType, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def, var_operand_def
from xdsl.parser import Parser
from xdsl.printer import Printer

from gradir import size_algebra
from gradir.dialects.nd.base import I64, I64_ARRAY, TENSOR, NdOp, new
from gradir.dialects.nd.checks import (
    check_at_least,
    check_dims,
    check_element,
    check_length,
    check_same_element,
    check_same_types,
    check_shape,
)
from gradir.dialects.text import INDEX, Clause, parse_clauses, parse_tensor, print_clauses, resolve
from gradir.dialects.types import Dim, element_of, i64_array, i64_attr, rank_of, shape_of, shape_text, sizes_agree, tensor

TO_END = -1


@irdl_op_definition
class ReshapeOp(NdOp):
    """`result[i] = operand[j]` where i and j have the same row-major position.

    Run-time sizes of the result are named: `tensor<?x?xf32, ["b", "t"]>` to `tensor<?xf32, ["b*t"]>`. A size without a name is what the
    others leave. StableHLO: reshape, dynamic_reshape. ONNX: Reshape, Squeeze, Unsqueeze.
    """

    name = "nd.reshape"
    FAMILY: ClassVar[str] = "shape"
    TYPES: ClassVar[str] = "map"

    operand = operand_def(TENSOR)
    result = result_def(TENSOR)

    def verify_(self) -> None:
        check_element(self, "operand", self.operand, "any")
        check_same_element(self, "result", self.result, "operand", self.operand)
        before, after = shape_of(self.operand), shape_of(self.result)
        if not size_algebra.same_count(size_algebra.product(before), size_algebra.product(after)):
            self.fail(f"numbers of elements differ: operand has shape {shape_text(before)}, result has {shape_text(after)}")

    @classmethod
    def make(cls, operand: SSAValue, shape: Sequence[Dim]) -> Self:
        """The operand's elements in row-major order, in that shape."""
        return new(cls, (operand,), tensor(element_of(operand), shape))


@irdl_op_definition
class TransposeOp(NdOp):
    """`result[i] = operand[j]` with `j[perm[d]] = i[d]`: result dimension d is operand dimension perm[d].

    StableHLO: transpose. ONNX: Transpose.
    """

    name = "nd.transpose"
    FAMILY: ClassVar[str] = "shape"
    CLAUSES: ClassVar[tuple[Clause, ...]] = (Clause("perm", "perm"),)
    TYPES: ClassVar[str] = "map"

    operand = operand_def(TENSOR)
    perm = prop_def(I64_ARRAY)
    result = result_def(TENSOR)

    def verify_(self) -> None:
        perm, shape = self.numbers("perm"), shape_of(self.operand)
        check_element(self, "operand", self.operand, "any")
        check_length(self, "perm", perm, len(shape), "one per dimension of the operand")
        check_dims(self, "perm", perm, len(shape))
        check_same_element(self, "result", self.result, "operand", self.operand)
        check_shape(self, [shape[d] for d in perm], self.result)

    @staticmethod
    def infer(operand: SSAValue, perm: Sequence[int]) -> TensorType[Any]:
        """The operand's sizes in the order of `perm`."""
        shape = shape_of(operand)
        return tensor(element_of(operand), (shape[d] for d in perm))

    @classmethod
    def make(cls, operand: SSAValue, perm: Sequence[int]) -> Self:
        """Result dimension d is operand dimension perm[d]."""
        return new(cls, (operand,), cls.infer(operand, perm), {"perm": i64_array(perm)})


@irdl_op_definition
class BroadcastOp(NdOp):
    """`result[i] = operand[j]` with `j[k] = i[dims[k]]`: operand dimension k is result dimension dims[k], of the same size.

    `sizes` are the run-time sizes of the result's `?`, in order. StableHLO: broadcast_in_dim (which also stretches size 1; here reshape
    first). ONNX: Expand.
    """

    name = "nd.broadcast"
    FAMILY: ClassVar[str] = "shape"
    CLAUSES: ClassVar[tuple[Clause, ...]] = (Clause("dims", "dims"),)

    operand = operand_def(TENSOR)
    sizes = var_operand_def(IndexType)
    dims = prop_def(I64_ARRAY)
    result = result_def(TENSOR)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        operand = parser.parse_unresolved_operand()
        properties = parse_clauses(parser, cls.CLAUSES)
        sizes = parse_sizes(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        position = parser.pos
        values = resolve(parser, [operand], [parse_tensor(parser)], position)
        parser.parse_punctuation("->")
        return cls.create(operands=(*values, *sizes), result_types=(parse_tensor(parser),), properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.operand)
        print_clauses(self, printer, self.CLAUSES, 0)
        print_sizes(printer, self.sizes)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.operand.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.result.type)

    def verify_(self) -> None:
        dims, operand, result = self.numbers("dims"), shape_of(self.operand), shape_of(self.result)
        check_element(self, "operand", self.operand, "any")
        check_same_element(self, "result", self.result, "operand", self.operand)
        check_length(self, "dims", dims, len(operand), "one per dimension of the operand")
        check_dims(self, "dims", dims, len(result), "the result")
        for k, d in enumerate(dims):
            if not sizes_agree(operand[k], result[d]):
                self.fail(f"sizes differ: operand dim {k} has {operand[k]}, result dim {d} has {result[d]}")
        check_sizes(self, self.sizes, result)

    @classmethod
    def make(cls, operand: SSAValue, dims: Sequence[int], shape: Sequence[Dim], sizes: Sequence[SSAValue] = ()) -> Self:
        """The operand repeated along the dimensions of `shape` that `dims` does not name."""
        return new(cls, (operand, *sizes), tensor(element_of(operand), shape), {"dims": i64_array(dims)})


def parse_sizes(parser: Parser) -> list[SSAValue]:
    """`sizes (%n, %m)`, or nothing."""
    if parser.parse_optional_keyword("sizes") is None:
        return []
    position = parser.pos
    names = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)
    return resolve(parser, names, [INDEX] * len(names), position)


def print_sizes(printer: Printer, sizes: Sequence[SSAValue]) -> None:
    """` sizes (%n, %m)`, or nothing."""
    if not sizes:
        return
    printer.print_string(" sizes ")
    with printer.in_parens():
        printer.print_list(sizes, printer.print_operand)


def check_sizes(op: NdOp, sizes: Sequence[SSAValue], result: Sequence[Dim]) -> None:
    """One run-time size per `?` of the result."""
    unknown = sum(not isinstance(n, int) for n in result)
    if len(sizes) != unknown:
        op.fail(f"result has {unknown} run-time sizes, {len(sizes)} are given after `sizes`")


@irdl_op_definition
class SliceOp(NdOp):
    """`result[i] = operand[start + i * stride]` for `start + i * stride < limit`. limit -1 stands for the size itself, for run-time sizes;
    -1 - k for the size less k.

    Static bounds only; run-time starts are `nd.dynamic_slice`. StableHLO: slice. ONNX: Slice.
    """

    name = "nd.slice"
    FAMILY: ClassVar[str] = "shape"
    CLAUSES: ClassVar[tuple[Clause, ...]] = (
        Clause("start", "start"),
        Clause("limit", "limit"),
        Clause("stride", "stride", optional=True, fill=1, count="rank"),
    )
    TYPES: ClassVar[str] = "map"

    operand = operand_def(TENSOR)
    start = prop_def(I64_ARRAY)
    limit = prop_def(I64_ARRAY)
    stride = prop_def(I64_ARRAY)
    result = result_def(TENSOR)

    def verify_(self) -> None:
        start, limit, stride = (self.numbers(prop) for prop in ("start", "limit", "stride"))
        shape = shape_of(self.operand)
        check_element(self, "operand", self.operand, "any")
        check_same_element(self, "result", self.result, "operand", self.operand)
        for prop, numbers in (("start", start), ("limit", limit), ("stride", stride)):
            check_length(self, prop, numbers, len(shape), "one per dimension of the operand")
        check_at_least(self, "start", start, 0)
        check_at_least(self, "stride", stride, 1)
        for d, size in enumerate(shape):
            end = limit_of(size, limit[d])
            if isinstance(end, int) and not (start[d] <= end and (not isinstance(size, int) or end <= size)):
                self.fail(f"dim {d}: start {start[d]} and limit {end} must satisfy 0 <= start <= limit <= {'?' if size is None else size}")
        check_shape(self, self.result_shape(shape, start, limit, stride), self.result)

    @staticmethod
    def result_shape(shape: Sequence[Dim], start: Sequence[int], limit: Sequence[int], stride: Sequence[int]) -> tuple[Dim, ...]:
        """`ceil((limit - start) / stride)` per dimension, 0 where that is negative."""
        lengths = (size_algebra.minus(limit_of(size, high), low) for size, low, high in zip(shape, start, limit))
        return tuple(size_algebra.maximum(size_algebra.ceildiv(length, step), 0) for length, step in zip(lengths, stride))

    @classmethod
    def make(cls, operand: SSAValue, start: Sequence[int], limit: Sequence[int], stride: Sequence[int] | None = None) -> Self:
        """Bounds per dimension; limit -1 takes a run-time dimension to its end, -1 - k leaves k elements out."""
        stride = stride or (1,) * len(start)
        kind = tensor(element_of(operand), cls.result_shape(shape_of(operand), start, limit, stride))
        properties: dict[str, Attribute] = {"start": i64_array(start), "limit": i64_array(limit), "stride": i64_array(stride)}
        return new(cls, (operand,), kind, properties)


def limit_of(size: Dim, limit: int) -> Dim:
    """The limit of a slice: numbers below 0 count from the end, from `TO_END`, which is the size itself."""
    return limit if limit >= 0 else size_algebra.plus(size, limit - TO_END)


@irdl_op_definition
class PadOp(NdOp):
    """`result[low + i * (interior + 1)] = operand[i]`, elsewhere `value`; negative low or high remove elements after the interior padding.

    StableHLO: pad. ONNX: Pad(constant).
    """

    name = "nd.pad"
    FAMILY: ClassVar[str] = "shape"
    CLAUSES: ClassVar[tuple[Clause, ...]] = (
        Clause("low", "low"),
        Clause("high", "high"),
        Clause("interior", "interior", optional=True, fill=0, count="rank"),
    )
    TYPES: ClassVar[str] = "map"

    operand = operand_def(TENSOR)
    value = operand_def(TENSOR)
    low = prop_def(I64_ARRAY)
    high = prop_def(I64_ARRAY)
    interior = prop_def(I64_ARRAY)
    result = result_def(TENSOR)

    def verify_(self) -> None:
        low, high, interior = (self.numbers(prop) for prop in ("low", "high", "interior"))
        shape = shape_of(self.operand)
        check_element(self, "operand", self.operand, "any")
        check_same_element(self, "value", self.value, "operand", self.operand)
        check_same_element(self, "result", self.result, "operand", self.operand)
        check_shape(self, (), self.value, "value")
        for prop, numbers in (("low", low), ("high", high), ("interior", interior)):
            check_length(self, prop, numbers, len(shape), "one per dimension of the operand")
        check_at_least(self, "interior", interior, 0)
        for d, size in enumerate(padded_shape(shape, low, high, interior)):
            if isinstance(size, int) and size < 0:
                self.fail(f"dim {d}: size {shape[d]} with low {low[d]}, high {high[d]}, interior {interior[d]} leaves {size} elements")
        check_shape(self, padded_shape(shape, low, high, interior), self.result)

    @classmethod
    def make(
        cls, operand: SSAValue, value: SSAValue, low: Sequence[int], high: Sequence[int], interior: Sequence[int] | None = None
    ) -> Self:
        """`value` has rank 0; one number per dimension in the rest."""
        interior = interior or (0,) * len(low)
        kind = tensor(element_of(operand), padded_shape(shape_of(operand), low, high, interior))
        properties: dict[str, Attribute] = {"low": i64_array(low), "high": i64_array(high), "interior": i64_array(interior)}
        return new(cls, (operand, value), kind, properties)


def padded_shape(shape: Sequence[Dim], low: Sequence[int], high: Sequence[int], interior: Sequence[int]) -> tuple[Dim, ...]:
    """`size + max(size - 1, 0) * interior + low + high` per dimension."""
    sizes: list[Dim] = []
    for size, before, after, between in zip(shape, low, high, interior):
        gaps = size_algebra.times(size_algebra.maximum(size_algebra.minus(size, 1), 0), between)
        sizes.append(size_algebra.plus(size_algebra.plus(size, gaps), before + after))
    return tuple(sizes)


@irdl_op_definition
class ConcatenateOp(NdOp):
    """`result = inputs one after the other along dim`. StableHLO: concatenate. ONNX: Concat."""

    name = "nd.concatenate"
    FAMILY: ClassVar[str] = "shape"
    CLAUSES: ClassVar[tuple[Clause, ...]] = (Clause("dim", "dim", "int"),)
    TYPES: ClassVar[str] = "map"

    inputs = var_operand_def(TENSOR)
    dim = prop_def(I64)
    result = result_def(TENSOR)

    def verify_(self) -> None:
        if not self.inputs:
            self.fail("expected at least one input, found 0")
        dim, first = self.number("dim"), self.inputs[0]
        check_element(self, "input 0", first, "any")
        check_dims(self, "dim", (dim,), rank_of(first), "input 0")
        shape = shape_of(first)
        for k, value in enumerate(self.inputs):
            check_same_element(self, f"input {k}", value, "input 0", first)
            other = shape_of(value)
            if len(other) != len(shape) or any(d != dim and not sizes_agree(shape[d], other[d]) for d in range(len(shape))):
                self.fail(f"shapes differ outside dimension {dim}: input 0 has {shape_text(shape)}, input {k} has {shape_text(other)}")
        check_same_element(self, "result", self.result, "input 0", first)
        check_shape(self, self.result_shape(self.inputs, dim), self.result)

    @staticmethod
    def result_shape(inputs: Sequence[SSAValue], dim: int) -> tuple[Dim, ...]:
        """Sizes along `dim` add up."""
        total: Dim = 0
        for value in inputs:
            total = size_algebra.plus(total, shape_of(value)[dim])
        shape = shape_of(inputs[0])
        return (*shape[:dim], total, *shape[dim + 1 :])

    @classmethod
    def make(cls, inputs: Sequence[SSAValue], dim: int) -> Self:
        """The inputs one after the other along `dim` (not negative)."""
        kind = tensor(element_of(inputs[0]), cls.result_shape(inputs, dim))
        return new(cls, inputs, kind, {"dim": i64_attr(dim)})


@irdl_op_definition
class ReverseOp(NdOp):
    """`result[i] = operand[j]` with `j[d] = size[d] - 1 - i[d]` for d in dims, else i[d]. StableHLO: reverse."""

    name = "nd.reverse"
    FAMILY: ClassVar[str] = "shape"
    CLAUSES: ClassVar[tuple[Clause, ...]] = (Clause("dims", "dims"),)

    operand = operand_def(TENSOR)
    dims = prop_def(I64_ARRAY)
    result = result_def(TENSOR)

    def verify_(self) -> None:
        check_element(self, "operand", self.operand, "any")
        check_same_types(self, ("operand", "result"), (self.operand, self.result))
        check_dims(self, "dims", self.numbers("dims"), rank_of(self.operand))

    @classmethod
    def make(cls, operand: SSAValue, dims: Sequence[int]) -> Self:
        """The operand read backwards along `dims`."""
        return new(cls, (operand,), operand.type, {"dims": i64_array(dims)})


@irdl_op_definition
class DimOp(NdOp):
    """`result = the size of dimension dim`, an index: `nd.dim %x dim 0 : tensor<?x4xf32>`. StableHLO: get_dimension_size. ONNX: Shape."""

    name = "nd.dim"
    FAMILY: ClassVar[str] = "shape"
    CLAUSES: ClassVar[tuple[Clause, ...]] = (Clause("dim", "dim", "int"),)

    operand = operand_def(TENSOR)
    dim = prop_def(I64)
    result = result_def(IndexType)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        operand = parser.parse_unresolved_operand()
        properties = parse_clauses(parser, cls.CLAUSES)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        position = parser.pos
        values = resolve(parser, [operand], [parse_tensor(parser)], position)
        return cls.create(operands=values, result_types=(INDEX,), properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.operand)
        print_clauses(self, printer, self.CLAUSES, 0)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.operand.type)

    def verify_(self) -> None:
        check_element(self, "operand", self.operand, "any")
        check_dims(self, "dim", (self.number("dim"),), rank_of(self.operand))

    @classmethod
    def make(cls, operand: SSAValue, dim: int) -> Self:
        """The size of dimension `dim`."""
        return new(cls, (operand,), INDEX, {"dim": i64_attr(dim)})


OPS = (ReshapeOp, TransposeOp, BroadcastOp, SliceOp, PadOp, ConcatenateOp, ReverseOp, DimOp)
