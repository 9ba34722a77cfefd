"""Composites that only arrange: parts of a tensor, rows that name a class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Self

from xdsl.dialects.builtin import i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def, var_result_def

from gradir.dialects.nd.base import I64, I64_ARRAY, TENSOR, emit, new
from gradir.dialects.nd.checks import check_at_least, check_dims, check_element, check_length, check_same_element, check_shape
from gradir.dialects.nd.comparison import CompareOp
from gradir.dialects.nd.composite import Composite
from gradir.dialects.nd.creation import IotaOp
from gradir.dialects.nd.elementwise import ConvertOp
from gradir.dialects.nd.expansion import Expansion
from gradir.dialects.nd.regions import create
from gradir.dialects.nd.shape import TO_END, SliceOp
from gradir.dialects.text import Clause
from gradir.dialects.types import element_of, i64_array, i64_attr, rank_of, shape_of, tensor, with_size

if TYPE_CHECKING:
    from gradir.ir.builder import Builder


@irdl_op_definition
class SplitOp(Composite):
    """`results[k] = operand[.., sizes[0] + .. + sizes[k-1] : .. + sizes[k], ..]` along `dim`: neighbouring parts, all of the operand.

    operand [A.., N, B..], results [A.., sizes[k], B..]; the sizes sum to N. ONNX: Split. numpy, torch: split.
    """

    name = "nd.split"
    FAMILY: ClassVar[str] = "arrangement"
    CLAUSES: ClassVar[tuple[Clause, ...]] = (Clause("sizes", "sizes"), Clause("dim", "dim", "int"))
    TYPES: ClassVar[str] = "several"

    operand = operand_def(TENSOR)
    sizes = prop_def(I64_ARRAY)
    dim = prop_def(I64)
    parts = var_result_def(TENSOR)

    def verify_(self) -> None:
        dim, sizes, shape = self.number("dim"), self.numbers("sizes"), shape_of(self.operand)
        check_element(self, "operand", self.operand, "any")
        check_dims(self, "dim", (dim,), len(shape))
        check_length(self, "sizes", sizes, len(self.parts), "one per result")
        check_at_least(self, "sizes", sizes, 0)
        total = shape[dim]
        if not sizes:
            self.fail("expected at least one result, found none")
        if isinstance(total, int) and sum(sizes) != total:
            self.fail(f"sizes sum to {sum(sizes)}, dimension {dim} has size {total}")
        if not isinstance(total, int):
            self.fail(f"dimension {dim} must have a static size, found {self.operand.type}")
        for k, (part, size) in enumerate(zip(self.parts, sizes)):
            check_same_element(self, f"result {k}", part, "operand", self.operand)
            check_shape(self, with_size(shape, dim, size), part, f"result {k}")

    @classmethod
    def make(cls, operand: SSAValue, sizes: Sequence[int], dim: int) -> Self:
        """Parts of these sizes along `dim`."""
        shape = shape_of(operand)
        types = [tensor(element_of(operand), with_size(shape, dim, size)) for size in sizes]
        return create(cls, [operand], types, {"sizes": i64_array(sizes), "dim": i64_attr(dim)})

    def decompose(self, builder: Builder, operands: Sequence[SSAValue]) -> list[SSAValue]:
        """One slice per part."""
        (x,), dim, first = operands, self.number("dim"), 0
        found: list[SSAValue] = []
        for size in self.numbers("sizes"):
            start = with_size((0,) * rank_of(x), dim, first)
            limit = with_size(tuple(n if isinstance(n, int) else TO_END for n in shape_of(x)), dim, first + size)
            found.append(emit(builder, SliceOp.make(x, [n for n in start if isinstance(n, int)], [n for n in limit if isinstance(n, int)])))
            first += size
        return found


@irdl_op_definition
class OneHotOp(Composite):
    """`result[i, c] = 1 if indices[i] == c else 0`, c = 0 .. depth-1 in a new last dimension; an index outside gives a row of 0.

    indices [I..] integers, result [I.., depth] of any element type. ONNX: OneHot. JAX: nn.one_hot. torch: one_hot.
    """

    name = "nd.one_hot"
    FAMILY: ClassVar[str] = "arrangement"
    CLAUSES: ClassVar[tuple[Clause, ...]] = (Clause("depth", "depth", "int"),)
    TYPES: ClassVar[str] = "map"

    indices = operand_def(TENSOR)
    depth = prop_def(I64)
    result = result_def(TENSOR)

    def verify_(self) -> None:
        check_element(self, "indices", self.indices, "integer")
        check_element(self, "result", self.result, "any")
        check_at_least(self, "depth", (self.number("depth"),), 0)
        check_shape(self, (*shape_of(self.indices), self.number("depth")), self.result)

    @classmethod
    def make(cls, indices: SSAValue, depth: int, element: Attribute) -> Self:
        """Rows of `depth` elements of that type."""
        return new(cls, (indices,), tensor(element, (*shape_of(indices), depth)), {"depth": i64_attr(depth)})

    def decompose(self, builder: Builder, operands: Sequence[SSAValue]) -> list[SSAValue]:
        """The index, repeated, compared with the position; in i64 (a ui64 beyond it becomes negative: outside too)."""
        e = Expansion(builder)
        shape = shape_of(self.result)
        last = len(shape) - 1
        wide = e.narrow(operands[0], tensor(i64, shape[:last]))
        places = emit(builder, IotaOp.make(tensor(i64, shape), last, e.sizes(shape)))
        chosen = emit(builder, CompareOp.make("eq", e.broadcast(wide, range(last), shape), places))
        element = element_of(self.result)
        return [chosen if element == element_of(chosen) else emit(builder, ConvertOp.make(chosen, element))]


OPS = (SplitOp, OneHotOp)
