"""Variance and length, as composites that neither cancel nor overflow. Meaning: docs/numerics.md, "Reductions and composites"."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, ClassVar, Self

from xdsl.ir import SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def

from gradir.dialects.nd.base import I64, I64_ARRAY, TENSOR, emit, new
from gradir.dialects.nd.checks import check_dims, check_element, check_same_element, check_shape
from gradir.dialects.nd.comparison import CompareOp
from gradir.dialects.nd.composite import Composite
from gradir.dialects.nd.elementwise import AbsOp, AndOp, IsFiniteOp
from gradir.dialects.nd.expansion import Expansion
from gradir.dialects.text import Clause
from gradir.dialects.types import Dim, element_of, i64_array, i64_attr, shape_of, tensor

if TYPE_CHECKING:
    from gradir.ir.builder import Builder


class OverDims(Composite):
    """A composite that reduces `dims` of a float operand."""

    FAMILY: ClassVar[str] = "statistics"
    TYPES: ClassVar[str] = "map"

    def check(self, operand: SSAValue, dims: Sequence[int], result: SSAValue) -> None:
        """`result` is `operand` without `dims`, of its element type."""
        check_element(self, "operand", operand, "float")
        check_dims(self, "dims", dims, len(shape_of(operand)))
        check_same_element(self, "result", result, "operand", operand)
        check_shape(self, _rest(operand, dims), result)


def _count(e: Expansion, x: SSAValue, dims: Sequence[int], like: SSAValue) -> SSAValue:
    """How many elements `x` has along `dims`, in the shape of `like`."""
    sizes = [n for d in dims if isinstance(n := shape_of(x)[d], int)]
    return e.fill(float(prod(sizes)), like) if len(sizes) == len(dims) else e.sum(e.fill(1.0, x), dims)


def _rest(operand: SSAValue, dims: Sequence[int]) -> list[Dim]:
    return [n for d, n in enumerate(shape_of(operand)) if d not in dims]


@irdl_op_definition
class VarianceOp(OverDims):
    """`result = sum over dims of (x - mean)**2 / (n - correction)`, in two passes over numbers shifted by an element: no cancellation.

    operand [A..] floats, result without `dims`; n elements each. correction 0 (default) is the biased one, 1 the sample variance; where
    n = 0, or n = correction and all is 0, NaN. numpy: var(ddof=correction). torch: var(correction=).
    """

    name = "nd.variance"
    CLAUSES: ClassVar[tuple[Clause, ...]] = (Clause("dims", "dims"), Clause("correction", "correction", "int", optional=True))

    operand = operand_def(TENSOR)
    dims = prop_def(I64_ARRAY)
    correction = prop_def(I64)
    result = result_def(TENSOR)

    def verify_(self) -> None:
        self.check(self.operand, self.numbers("dims"), self.result)
        if self.number("correction") < 0:
            self.fail(f"correction must be at least 0, found {self.number('correction')}")

    @classmethod
    def make(cls, operand: SSAValue, dims: Sequence[int], correction: int = 0) -> Self:
        """Over `dims`, which the result drops."""
        kind = tensor(element_of(operand), _rest(operand, dims))
        return new(cls, (operand,), kind, {"dims": i64_array(dims), "correction": i64_attr(correction)})

    def decompose(self, builder: Builder, operands: Sequence[SSAValue]) -> list[SSAValue]:
        e = Expansion(builder)
        x, dims = e.widen(operands[0]), self.numbers("dims")
        least = e.constant_in_ad(e.reduce_min(x, dims))  # the result does not depend on what all are shifted by
        shifted = e.sub(x, e.spread(least, x, dims))
        count = _count(e, x, dims, least)
        centred = e.sub(shifted, e.spread(e.div(e.sum(shifted, dims), count), x, dims))
        squares = e.sum(e.mul(centred, centred), dims)
        return [e.narrow(e.div(squares, e.sub(count, float(self.number("correction")))), self.result.type)]


@irdl_op_definition
class NormOp(OverDims):
    """`result = sqrt(sum over dims of x**2)`, scaled by the greatest element: finite wherever the result is. Its derivative at 0 is 0.

    operand [A..] floats, result without `dims`; of no elements 0. ONNX: ReduceL2. numpy: linalg.norm. torch: linalg.vector_norm.
    """

    name = "nd.norm"
    CLAUSES: ClassVar[tuple[Clause, ...]] = (Clause("dims", "dims"),)

    operand = operand_def(TENSOR)
    dims = prop_def(I64_ARRAY)
    result = result_def(TENSOR)

    def verify_(self) -> None:
        self.check(self.operand, self.numbers("dims"), self.result)

    @classmethod
    def make(cls, operand: SSAValue, dims: Sequence[int]) -> Self:
        """Over `dims`, which the result drops."""
        return new(cls, (operand,), tensor(element_of(operand), _rest(operand, dims)), {"dims": i64_array(dims)})

    def decompose(self, builder: Builder, operands: Sequence[SSAValue]) -> list[SSAValue]:
        e = Expansion(builder)
        x, dims = e.widen(operands[0]), self.numbers("dims")
        top = e.constant_in_ad(e.reduce_max(emit(builder, AbsOp.make(x)), dims))
        positive = emit(builder, CompareOp.make("gt", top, e.fill(0.0, top)))
        useful = emit(builder, AndOp.make(positive, emit(builder, IsFiniteOp.make(top))))
        scale = e.select(useful, top, 1.0)
        scaled = e.div(x, e.spread(scale, x, dims))
        return [e.narrow(e.mul(e.sqrt(e.sum(e.mul(scaled, scaled), dims)), scale), self.result.type)]


OPS = (VarianceOp, NormOp)
