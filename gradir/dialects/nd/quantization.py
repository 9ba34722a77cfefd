"""Numbers as small integers: `value = (stored - zero) * scale`, one scale and zero point for a tensor or for each index of one dimension.

StableHLO's uniform quantization. Composites: `decompose` spells them out. Meaning: docs/numerics.md, "Elementwise", row `quantize`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

from xdsl.dialects.builtin import IntegerType, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def

from gradir.dialects.nd.base import I64, I64_ARRAY, TENSOR, NdOp, emit, new
from gradir.dialects.nd.checks import check_dims, check_element, check_same_element, check_shape
from gradir.dialects.nd.comparison import ClampOp
from gradir.dialects.nd.composite import Composite
from gradir.dialects.nd.elementwise import ConvertOp
from gradir.dialects.nd.expansion import Expansion
from gradir.dialects.nd.mathematics import RoundEvenOp
from gradir.dialects.text import Clause
from gradir.dialects.types import element_of, i64_array, i64_attr, is_unsigned, rank_of, shape_of, tensor

if TYPE_CHECKING:
    from gradir.ir.builder import Builder

WHOLE = -1
"""The axis of one scale for the whole tensor."""


def limits_of(element: Attribute) -> tuple[int, int]:
    """The least and the greatest number of an integer type."""
    assert isinstance(element, IntegerType), "verified"
    width = element.width.data
    return (0, (1 << width) - 1) if is_unsigned(element) else (-(1 << (width - 1)), (1 << (width - 1)) - 1)


class Quantized(Composite):
    """What both directions share: operands `operand`, `scale` and `zero`, and the axis of the last two."""

    FAMILY: ClassVar[str] = "quantization"
    TYPES: ClassVar[str] = "map"

    operand = operand_def(TENSOR)
    scale = operand_def(TENSOR)
    zero = operand_def(TENSOR)
    axis = prop_def(I64)
    result = result_def(TENSOR)

    def verify_parameters(self) -> None:
        """Scales and zero points: one, or one per index of `axis`."""
        axis, shape = self.number("axis"), shape_of(self.operand)
        if axis != WHOLE:
            check_dims(self, "axis", (axis,), rank_of(self.operand))
        expected = () if axis == WHOLE else (shape[axis],)
        check_shape(self, expected, self.scale, "scale")
        check_shape(self, expected, self.zero, "zero")
        check_shape(self, shape, self.result)

    def spread(self, e: Expansion, parameter: SSAValue, like: SSAValue) -> SSAValue:
        """A scale or zero point at every index of `like`."""
        axis = self.number("axis")
        return e.broadcast(parameter, (), shape_of(like)) if axis == WHOLE else e.along(parameter, like, axis)


@irdl_op_definition
class QuantizeOp(Quantized):
    """`result = nearest even integer of clamp(operand / scale + zero)`, in f32 at least; NaN gives 0.

    operand, scale of one float type; zero and result of one integer type. `axis k`: scale and zero are [C] for dimension k of size C, else
    of rank 0. The clamp is to `range [low, high]`, by default to what the type holds. No derivative. StableHLO: uniform_quantize.
    """

    name = "nd.quantize"
    CLAUSES: ClassVar[tuple[Clause, ...]] = (
        Clause("axis", "axis", "int", optional=True, fill=WHOLE),
        Clause("range", "range", optional=True),
    )

    range = prop_def(I64_ARRAY)

    def verify_(self) -> None:
        check_element(self, "operand", self.operand, "float")
        check_element(self, "result", self.result, "integer")
        check_same_element(self, "scale", self.scale, "operand", self.operand)
        check_same_element(self, "zero", self.zero, "result", self.result)
        self.verify_parameters()
        low, high = limits_of(element_of(self.result))
        given = self.numbers("range")
        if given and not (len(given) == 2 and low <= given[0] <= given[1] <= high):
            self.fail(f"range must be [low, high] within [{low}, {high}], found {list(given)}")

    @property
    def limits(self) -> tuple[int, int]:
        """The least and the greatest number that is stored."""
        given = self.numbers("range")
        return (given[0], given[1]) if given else limits_of(element_of(self.result))

    @classmethod
    def make(cls, operand: SSAValue, scale: SSAValue, zero: SSAValue, axis: int = WHOLE, range: Sequence[int] = ()) -> Self:
        """The integers have the type of `zero`."""
        kind = tensor(element_of(zero), shape_of(operand))
        return new(cls, (operand, scale, zero), kind, {"axis": i64_attr(axis), "range": i64_array(range)})

    def decompose(self, builder: Builder, operands: Sequence[SSAValue]) -> list[SSAValue]:
        e = Expansion(builder)
        x, scale = e.widen(operands[0]), e.widen(operands[1])
        zero = emit(builder, ConvertOp.make(operands[2], element_of(x)))
        moved = e.add(e.div(x, self.spread(e, scale, x)), self.spread(e, zero, x))
        low, high = self.limits
        inside = emit(builder, ClampOp.make(e.fill(float(low), moved), moved, e.fill(float(high), moved)))
        return [emit(builder, ConvertOp.make(emit(builder, RoundEvenOp.make(inside)), element_of(self.result)))]


@irdl_op_definition
class DequantizeOp(Quantized):
    """`result = (operand - zero) * scale`, in f32 at least, rounded once to the type of scale.

    operand and zero of one integer type, result and scale of one float type; axis as in nd.quantize. A derivative by scale.
    StableHLO: uniform_dequantize. ONNX: DequantizeLinear.
    """

    name = "nd.dequantize"
    CLAUSES: ClassVar[tuple[Clause, ...]] = (Clause("axis", "axis", "int", optional=True, fill=WHOLE),)

    def verify_(self) -> None:
        check_element(self, "operand", self.operand, "integer")
        check_element(self, "result", self.result, "float")
        check_same_element(self, "zero", self.zero, "operand", self.operand)
        check_same_element(self, "scale", self.scale, "result", self.result)
        self.verify_parameters()

    @staticmethod
    def infer(operand: SSAValue, scale: SSAValue) -> TensorType[Any]:
        """The shape of `operand`, the element type of `scale`."""
        return tensor(element_of(scale), shape_of(operand))

    @classmethod
    def make(cls, operand: SSAValue, scale: SSAValue, zero: SSAValue, axis: int = WHOLE) -> Self:
        """The numbers have the type of `scale`."""
        return new(cls, (operand, scale, zero), cls.infer(operand, scale), {"axis": i64_attr(axis)})

    def decompose(self, builder: Builder, operands: Sequence[SSAValue]) -> list[SSAValue]:
        e = Expansion(builder)
        scale = e.widen(operands[1])
        numbers, zero = (emit(builder, ConvertOp.make(value, element_of(scale))) for value in (operands[0], operands[2]))
        moved = e.sub(numbers, self.spread(e, zero, numbers))
        return [e.narrow(e.mul(moved, self.spread(e, scale, numbers)), self.result.type)]


OPS: tuple[type[NdOp], ...] = (QuantizeOp, DequantizeOp)
