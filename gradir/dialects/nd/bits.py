"""Elementwise ops on the bits of numbers: reinterpreting them, the neighbouring float, fewer bits of a float.

Meaning: docs/numerics.md, "Types and rounding". Floats keep their own format here: nothing is widened to f32.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self, cast

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, Float64Type, IntegerType, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def

from gradir.dialects.nd.base import I64, TENSOR, NdOp, new
from gradir.dialects.nd.checks import check_at_least, check_element, check_same_types, check_shape
from gradir.dialects.nd.elementwise import Binary, Unary
from gradir.dialects.text import Clause
from gradir.dialects.types import F8, Shape, element_of, i64_attr, shape_of, sizes_agree, tensor

FORMATS: dict[type[Attribute], tuple[int, int]] = {Float64Type: (11, 52), Float32Type: (8, 23), Float16Type: (5, 10), BFloat16Type: (8, 7)}
"""Bits of the exponent and of the mantissa of the float types that have infinities and 16 bits or more."""


def width_of(element: Attribute) -> int:
    """Bits of a number."""
    if isinstance(element, IntegerType):
        return element.width.data
    return 8 if element in F8 else 1 + sum(FORMATS[type(element)])


@irdl_op_definition
class BitcastConvertOp(NdOp):
    """`result = the bits of x, read as the element type of the result`; nothing is changed, payloads of NaN neither.

    Types of one width: result has the shape of operand. A type k times as narrow: result [N.., k], `result[i, j]` being bits
    `j * width .. (j + 1) * width` of `operand[i]`, the lowest first (little-endian). A type k times as wide: the reverse, operand [N.., k].
    No derivative: 0, as in JAX. StableHLO: bitcast_convert. numpy: view.
    """

    name = "nd.bitcast_convert"
    FAMILY: ClassVar[str] = "bits"
    TYPES: ClassVar[str] = "map"

    operand = operand_def(TENSOR)
    result = result_def(TENSOR)

    def verify_(self) -> None:
        check_element(self, "operand", self.operand, "number")
        check_element(self, "result", self.result, "number")
        have, want = width_of(element_of(self.operand)), width_of(element_of(self.result))
        shape = shape_of(self.operand)
        if want > have and (not shape or not sizes_agree(shape[-1], want // have)):
            self.fail(
                f"{want // have} elements of {element_of(self.operand)} make one of {element_of(self.result)}: "
                f"the last dimension must have that size, found {self.operand.type}"
            )
        check_shape(self, self.shape(shape, have, want), self.result)

    @staticmethod
    def shape(shape: Shape, have: int, want: int) -> Shape:
        """The result's shape, for elements of `have` bits read as some of `want` bits."""
        return (*shape, have // want) if want < have else shape[:-1] if want > have else shape

    @classmethod
    def infer(cls, operand: SSAValue, element: Attribute) -> TensorType[Any]:
        """The type of `operand` with its bits read as `element`."""
        return tensor(element, cls.shape(shape_of(operand), width_of(element_of(operand)), width_of(element)))

    @classmethod
    def make(cls, operand: SSAValue, element: Attribute) -> Self:
        """The bits of `operand` as elements of that type."""
        return new(cls, (operand,), cls.infer(operand, element))


@irdl_op_definition
class ReducePrecisionOp(Unary):
    """`result = x rounded to a float of so many bits of exponent and mantissa`, kept in its type; derivative 1.

    To nearest even; beyond the largest number of that format inf, below its smallest normal number a zero of the same sign (its denormals
    are flushed, where its exponent has fewer bits). NaN stays NaN, with no mantissa bits it becomes inf. StableHLO: reduce_precision.
    """

    name = "nd.reduce_precision"
    FAMILY: ClassVar[str] = "bits"
    CLAUSES: ClassVar[tuple[Clause, ...]] = (Clause("exponent", "exponent_bits", "int"), Clause("mantissa", "mantissa_bits", "int"))

    exponent_bits = prop_def(I64)
    mantissa_bits = prop_def(I64)

    def verify_(self) -> None:
        check_element(self, "operand", self.operand, "wide float")
        check_same_types(self, ("operand", "result"), (self.operand, self.result))
        check_at_least(self, "exponent", (self.number("exponent_bits"),), 1)
        check_at_least(self, "mantissa", (self.number("mantissa_bits"),), 0)

    @classmethod
    def make(cls, operand: SSAValue, exponent_bits: int = 8, mantissa_bits: int = 23) -> Self:
        """`exponent_bits` at least 1, `mantissa_bits` at least 0."""
        properties = {"exponent_bits": i64_attr(exponent_bits), "mantissa_bits": i64_attr(mantissa_bits)}
        return cast("Self", new(cls, (operand,), operand.type, properties))


@irdl_op_definition
class NextAfterOp(Binary):
    """`result = the float next to lhs in the direction of rhs`, of their own format; rhs where they are equal, NaN if one is NaN.

    next_after(0, 1) is the least denormal. Derivative: 1 to lhs, 0 to rhs. CHLO: next_after. numpy, torch: nextafter.
    """

    name = "nd.next_after"
    FAMILY: ClassVar[str] = "bits"
    ELEMENTS: ClassVar[str] = "wide float"


OPS: tuple[type[NdOp], ...] = (BitcastConvertOp, ReducePrecisionOp, NextAfterOp)
