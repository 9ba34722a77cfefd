"""Reductions: `result[rest] = fold of operand[rest, dims]`; the reduced dimensions are dropped.

Meaning: docs/numerics.md, "Reductions and composites" (empty axes, accumulation, accuracy).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

from xdsl.dialects.builtin import TensorType, i32
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def

from gradir.dialects.nd.base import I64, I64_ARRAY, TENSOR, NdOp, new
from gradir.dialects.nd.checks import check_dims, check_element, check_same_element, check_shape
from gradir.dialects.text import Clause
from gradir.dialects.types import element_of, i64_array, i64_attr, rank_of, shape_of, tensor


class Reduce(NdOp):
    """`result[rest] = fold of operand[rest, dims]`."""

    FAMILY: ClassVar[str] = "reduction"
    CLAUSES: ClassVar[tuple[Clause, ...]] = (Clause("dims", "dims"),)
    TYPES: ClassVar[str] = "map"
    ELEMENTS: ClassVar[str] = "number"

    operand = operand_def(TENSOR)
    dims = prop_def(I64_ARRAY)
    result = result_def(TENSOR)

    def verify_(self) -> None:
        dims = self.numbers("dims")
        check_element(self, "operand", self.operand, self.ELEMENTS)
        check_dims(self, "dims", dims, rank_of(self.operand))
        check_same_element(self, "result", self.result, "operand", self.operand)
        check_shape(self, [n for dim, n in enumerate(shape_of(self.operand)) if dim not in dims], self.result)

    @staticmethod
    def infer(operand: SSAValue, dims: Sequence[int]) -> TensorType[Any]:
        """The operand's type without `dims`."""
        return tensor(element_of(operand), (n for dim, n in enumerate(shape_of(operand)) if dim not in dims))

    @classmethod
    def make(cls, operand: SSAValue, dims: Sequence[int]) -> Self:
        """The fold over `dims` (not negative)."""
        return new(cls, (operand,), cls.infer(operand, dims), {"dims": i64_array(dims)})


@irdl_op_definition
class ReduceSumOp(Reduce):
    """`result[r] = sum over d of operand[r, d]`, from +0, in f32 at least; integers wrap. StableHLO: reduce with add. ONNX: ReduceSum."""

    name = "nd.reduce_sum"
    ELEMENTS: ClassVar[str] = "number or complex"


@irdl_op_definition
class ReduceProdOp(Reduce):
    """`result[r] = product over d of operand[r, d]`, from 1, in f32 at least; integers wrap. StableHLO: reduce with multiply.

    ONNX: ReduceProd.
    """

    name = "nd.reduce_prod"
    ELEMENTS: ClassVar[str] = "number or complex"


@irdl_op_definition
class ReduceMaxOp(Reduce):
    """`result[r] = max over d of operand[r, d]`; NaN wins, empty: -inf or the least integer. StableHLO: reduce with maximum.

    ONNX: ReduceMax.
    """

    name = "nd.reduce_max"


@irdl_op_definition
class ReduceMinOp(Reduce):
    """`result[r] = min over d of operand[r, d]`; NaN wins, empty: inf or the greatest integer.

    StableHLO: reduce with minimum. ONNX: ReduceMin.
    """

    name = "nd.reduce_min"


@irdl_op_definition
class ReduceAnyOp(Reduce):
    """`result[r] = or over d of operand[r, d]`, i1; empty: false. StableHLO: reduce with or."""

    name = "nd.reduce_any"
    ELEMENTS: ClassVar[str] = "bool"


@irdl_op_definition
class ReduceAllOp(Reduce):
    """`result[r] = and over d of operand[r, d]`, i1; empty: true. StableHLO: reduce with and."""

    name = "nd.reduce_all"
    ELEMENTS: ClassVar[str] = "bool"


class ArgReduce(NdOp):
    """`result[r] = position of the extreme element along dim`."""

    FAMILY: ClassVar[str] = "reduction"
    CLAUSES: ClassVar[tuple[Clause, ...]] = (Clause("dim", "dim", "int"),)
    TYPES: ClassVar[str] = "map"

    operand = operand_def(TENSOR)
    dim = prop_def(I64)
    result = result_def(TENSOR)

    def verify_(self) -> None:
        dim, shape = self.number("dim"), shape_of(self.operand)
        check_element(self, "operand", self.operand, "ordered")
        check_element(self, "result", self.result, "integer")
        check_dims(self, "dim", (dim,), len(shape))
        if shape[dim] == 0:
            self.fail(f"dimension {dim} has size 0: no element has a position")
        check_shape(self, shape[:dim] + shape[dim + 1 :], self.result)

    @staticmethod
    def infer(operand: SSAValue, dim: int, element: Attribute = i32) -> TensorType[Any]:
        """The operand's shape without `dim`, in the integer type `element`."""
        shape = shape_of(operand)
        return tensor(element, shape[:dim] + shape[dim + 1 :])

    @classmethod
    def make(cls, operand: SSAValue, dim: int, element: Attribute = i32) -> Self:
        """Positions along `dim` as integers of type `element`."""
        return new(cls, (operand,), cls.infer(operand, dim, element), {"dim": i64_attr(dim)})


@irdl_op_definition
class ArgmaxOp(ArgReduce):
    """`result[r] = least d with operand[r, d] = max over d`; the first NaN if there is one; -0 = +0. ONNX: ArgMax(keepdims=0)."""

    name = "nd.argmax"


@irdl_op_definition
class ArgminOp(ArgReduce):
    """`result[r] = least d with operand[r, d] = min over d`; the first NaN if there is one; -0 = +0. ONNX: ArgMin(keepdims=0)."""

    name = "nd.argmin"


OPS = (ReduceSumOp, ReduceProdOp, ReduceMaxOp, ReduceMinOp, ReduceAnyOp, ReduceAllOp, ArgmaxOp, ArgminOp)
