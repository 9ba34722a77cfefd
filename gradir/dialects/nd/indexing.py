"""Ops whose positions are values: gather, scatter, dynamic slices, and the in-bounds forms that loops use.

Meaning: docs/numerics.md, "Shape, indexing, order": starts and gathered indices are clamped, scattered updates outside are dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

from xdsl.dialects.builtin import IndexType, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def, var_operand_def
from xdsl.parser import Parser
from xdsl.printer import Printer

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
from gradir.dialects.text import INDEX, Clause, parse_tensor, resolve
from gradir.dialects.types import Dim, element_of, i64_array, i64_attr, shape_of, shape_text, tensor

RUN_TIME = -1
"""In `sizes` of `nd.dynamic_slice`: a run-time size."""


def _around(shape: Sequence[Dim], dim: int, middle: Sequence[Dim] = ()) -> tuple[Dim, ...]:
    """`shape` with `middle` in place of dimension `dim`."""
    return (*shape[:dim], *middle, *shape[dim + 1 :])


@irdl_op_definition
class GatherOp(NdOp):
    """`result[a, i, b] = operand[a, clamp(indices[i], 0, size - 1), b]` where the middle index is dimension `dim` of the operand.

    operand [A.., size, B..], indices [I..] integers, result [A.., I.., B..]. Negative indices clamp to 0. NumPy: take(mode="clip").
    StableHLO: gather with one collapsed dimension. ONNX: Gather.
    """

    name = "nd.gather"
    FAMILY: ClassVar[str] = "indexing"
    CLAUSES: ClassVar[tuple[Clause, ...]] = (Clause("dim", "dim", "int"),)
    TYPES: ClassVar[str] = "map"

    operand = operand_def(TENSOR)
    indices = operand_def(TENSOR)
    dim = prop_def(I64)
    result = result_def(TENSOR)

    def verify_(self) -> None:
        dim, shape = self.number("dim"), shape_of(self.operand)
        check_element(self, "operand", self.operand, "any")
        check_element(self, "indices", self.indices, "integer")
        check_dims(self, "dim", (dim,), len(shape))
        check_same_element(self, "result", self.result, "operand", self.operand)
        expected = _around(shape, dim, shape_of(self.indices))
        if shape[dim] == 0 and 0 not in expected:
            self.fail(f"dimension {dim} has size 0: no element to read for the {shape_text(expected)} elements of the result")
        check_shape(self, expected, self.result)

    @staticmethod
    def infer(operand: SSAValue, indices: SSAValue, dim: int) -> TensorType[Any]:
        """[A.., I.., B..]."""
        return tensor(element_of(operand), _around(shape_of(operand), dim, shape_of(indices)))

    @classmethod
    def make(cls, operand: SSAValue, indices: SSAValue, dim: int) -> Self:
        """Rows of `operand` along `dim`."""
        return new(cls, (operand, indices), cls.infer(operand, indices, dim), {"dim": i64_attr(dim)})


@irdl_op_definition
class ScatterAddOp(NdOp):
    """`result = operand; result[a, indices[i], b] += updates[a, i, b]` for i in row-major order; indices outside the operand are dropped.

    operand [A.., size, B..], indices [I..] integers, updates [A.., I.., B..]. Sums run in f32 at least and are rounded once. NumPy: add.at.
    StableHLO: scatter with add. ONNX: ScatterND(add).
    """

    name = "nd.scatter_add"
    FAMILY: ClassVar[str] = "indexing"
    CLAUSES: ClassVar[tuple[Clause, ...]] = (Clause("dim", "dim", "int"),)
    TYPES: ClassVar[str] = "map"

    operand = operand_def(TENSOR)
    indices = operand_def(TENSOR)
    updates = operand_def(TENSOR)
    dim = prop_def(I64)
    result = result_def(TENSOR)

    def verify_(self) -> None:
        dim, shape = self.number("dim"), shape_of(self.operand)
        check_element(self, "operand", self.operand, "number or complex")
        check_element(self, "indices", self.indices, "integer")
        check_dims(self, "dim", (dim,), len(shape))
        check_same_element(self, "updates", self.updates, "operand", self.operand)
        check_shape(self, _around(shape, dim, shape_of(self.indices)), self.updates, "updates")
        check_same_types(self, ("operand", "result"), (self.operand, self.result))

    @classmethod
    def make(cls, operand: SSAValue, indices: SSAValue, updates: SSAValue, dim: int) -> Self:
        """`operand` with `updates` added at `indices` along `dim`."""
        return new(cls, (operand, indices, updates), operand.type, {"dim": i64_attr(dim)})


def _check_starts(op: NdOp, starts: Sequence[SSAValue], rank: int) -> None:
    if len(starts) != rank:
        op.fail(f"{len(starts)} starts are given, expected {rank}, one per dimension of the operand")
    for k, start in enumerate(starts):
        check_element(op, f"start {k}", start, "integer")
        check_shape(op, (), start, f"start {k}")


@irdl_op_definition
class DynamicSliceOp(NdOp):
    """`result[i] = operand[s + i]` with `s = clamp(starts, 0, size - sizes)`: the slice always fits.

    starts are rank-0 integer tensors, one per dimension; sizes the result's shape, -1 where its type names a run-time size that fits.
    StableHLO: dynamic_slice, real_dynamic_slice.
    """

    name = "nd.dynamic_slice"
    FAMILY: ClassVar[str] = "indexing"
    CLAUSES: ClassVar[tuple[Clause, ...]] = (Clause("sizes", "sizes"),)
    TYPES: ClassVar[str] = "map"

    operand = operand_def(TENSOR)
    starts = var_operand_def(TENSOR)
    sizes = prop_def(I64_ARRAY)
    result = result_def(TENSOR)

    def verify_(self) -> None:
        sizes, shape = self.numbers("sizes"), shape_of(self.operand)
        check_element(self, "operand", self.operand, "any")
        _check_starts(self, self.starts, len(shape))
        check_length(self, "sizes", sizes, len(shape), "one per dimension of the operand")
        check_at_least(self, "sizes", sizes, RUN_TIME)
        for d, (size, total) in enumerate(zip(sizes, shape)):
            if isinstance(total, int) and size > total:
                self.fail(f"dim {d}: a slice of {size} does not fit in {total}")
        check_same_element(self, "result", self.result, "operand", self.operand)
        for d, (size, taken) in enumerate(zip(sizes, shape_of(self.result))):
            if (size == RUN_TIME) != (not isinstance(taken, int)):
                self.fail(f"dim {d}: sizes has {size}, result has {taken}; {RUN_TIME} stands for a run-time size")
        check_shape(self, [None if size == RUN_TIME else size for size in sizes], self.result)

    @classmethod
    def make(cls, operand: SSAValue, starts: Sequence[SSAValue], sizes: Sequence[Dim]) -> Self:
        """`starts` are rank-0 integer tensors; a run-time size is a name."""
        numbers = i64_array(size if isinstance(size, int) else RUN_TIME for size in sizes)
        return new(cls, (operand, *starts), tensor(element_of(operand), sizes), {"sizes": numbers})


@irdl_op_definition
class DynamicUpdateSliceOp(NdOp):
    """`result = operand; result[s + i] = update[i]` with `s = clamp(starts, 0, size - size of update)`. StableHLO: dynamic_update_slice."""

    name = "nd.dynamic_update_slice"
    FAMILY: ClassVar[str] = "indexing"
    TYPES: ClassVar[str] = "map"

    operand = operand_def(TENSOR)
    update = operand_def(TENSOR)
    starts = var_operand_def(TENSOR)
    result = result_def(TENSOR)

    def verify_(self) -> None:
        shape, part = shape_of(self.operand), shape_of(self.update)
        check_element(self, "operand", self.operand, "any")
        check_same_element(self, "update", self.update, "operand", self.operand)
        if len(part) != len(shape):
            self.fail(f"ranks differ: operand has {len(shape)}, update has {len(part)}")
        for d, (size, total) in enumerate(zip(part, shape)):
            if isinstance(size, int) and isinstance(total, int) and size > total:
                self.fail(f"dim {d}: an update of {size} does not fit in {total}")
        _check_starts(self, self.starts, len(shape))
        check_same_types(self, ("operand", "result"), (self.operand, self.result))

    @classmethod
    def make(cls, operand: SSAValue, update: SSAValue, starts: Sequence[SSAValue]) -> Self:
        """`starts` are rank-0 integer tensors."""
        return new(cls, (operand, update, *starts), operand.type)


@irdl_op_definition
class IndexAtOp(NdOp):
    """`result[a, b] = operand[a, at, b]` where `at` is an index of dimension `dim`, in bounds by construction."""

    name = "nd.index_at"
    FAMILY: ClassVar[str] = "indexing"
    CLAUSES: ClassVar[tuple[Clause, ...]] = (Clause("dim", "dim", "int"),)

    operand = operand_def(TENSOR)
    at = operand_def(IndexType)
    dim = prop_def(I64)
    result = result_def(TENSOR)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        operand = parser.parse_unresolved_operand()
        at, dim = _parse_at(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        position = parser.pos
        values = resolve(parser, [operand], [parse_tensor(parser)], position)
        parser.parse_punctuation("->")
        return cls.create(operands=(*values, at), result_types=(parse_tensor(parser),), properties={"dim": dim}, attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.operand)
        _print_at(self, printer, self.at)
        printer.print_string(" : ")
        printer.print_attribute(self.operand.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.result.type)

    def verify_(self) -> None:
        dim, shape = self.number("dim"), shape_of(self.operand)
        check_element(self, "operand", self.operand, "any")
        check_dims(self, "dim", (dim,), len(shape))
        check_same_element(self, "result", self.result, "operand", self.operand)
        check_shape(self, _around(shape, dim), self.result)

    @staticmethod
    def infer(operand: SSAValue, dim: int) -> TensorType[Any]:
        """The operand's type without `dim`."""
        return tensor(element_of(operand), _around(shape_of(operand), dim))

    @classmethod
    def make(cls, operand: SSAValue, at: SSAValue, dim: int) -> Self:
        """The slice at index `at` of dimension `dim`."""
        return new(cls, (operand, at), cls.infer(operand, dim), {"dim": i64_attr(dim)})


@irdl_op_definition
class UpdateAtOp(NdOp):
    """`result = operand; result[a, at, b] = value[a, b]` where `at` is an index of dimension `dim`, in bounds by construction."""

    name = "nd.update_at"
    FAMILY: ClassVar[str] = "indexing"
    CLAUSES: ClassVar[tuple[Clause, ...]] = (Clause("dim", "dim", "int"),)

    value = operand_def(TENSOR)
    operand = operand_def(TENSOR)
    at = operand_def(IndexType)
    dim = prop_def(I64)
    result = result_def(TENSOR)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        value = parser.parse_unresolved_operand()
        parser.parse_keyword("into")
        operand = parser.parse_unresolved_operand()
        at, dim = _parse_at(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        position = parser.pos
        kind = parse_tensor(parser)
        parser.parse_punctuation("->")
        result = parse_tensor(parser)
        values = resolve(parser, [value, operand], [kind, result], position)
        return cls.create(operands=(*values, at), result_types=(result,), properties={"dim": dim}, attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.value)
        printer.print_string(" into ")
        printer.print_operand(self.operand)
        _print_at(self, printer, self.at)
        printer.print_string(" : ")
        printer.print_attribute(self.value.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.result.type)

    def verify_(self) -> None:
        dim, shape = self.number("dim"), shape_of(self.operand)
        check_element(self, "operand", self.operand, "any")
        check_dims(self, "dim", (dim,), len(shape))
        check_same_element(self, "value", self.value, "operand", self.operand)
        check_shape(self, _around(shape, dim), self.value, "value")
        check_same_types(self, ("operand", "result"), (self.operand, self.result))

    @classmethod
    def make(cls, value: SSAValue, operand: SSAValue, at: SSAValue, dim: int) -> Self:
        """`operand` with the slice at index `at` of dimension `dim` replaced by `value`."""
        return new(cls, (value, operand, at), operand.type, {"dim": i64_attr(dim)})


def _parse_at(parser: Parser) -> tuple[SSAValue, Attribute]:
    parser.parse_punctuation("[")
    position = parser.pos
    at = resolve(parser, [parser.parse_unresolved_operand()], [INDEX], position)[0]
    parser.parse_punctuation("]")
    parser.parse_keyword("dim")
    return at, i64_attr(parser.parse_integer(allow_boolean=False))


def _print_at(op: NdOp, printer: Printer, at: SSAValue) -> None:
    with printer.in_square_brackets():
        printer.print_operand(at)
    printer.print_string(f" dim {op.number('dim')}")
    printer.print_op_attributes(op.attributes)


OPS = (GatherOp, ScatterAddOp, DynamicSliceOp, DynamicUpdateSliceOp, IndexAtOp, UpdateAtOp)
