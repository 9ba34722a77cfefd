"""Activations whose formula needs care: stable for large arguments, right at infinities, f16 and bf16 rounded once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Self

from xdsl.ir import SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, result_def

from gradir.dialects.nd.base import TENSOR, new
from gradir.dialects.nd.checks import check_element, check_same_types
from gradir.dialects.nd.composite import Composite
from gradir.dialects.nd.expansion import Expansion

if TYPE_CHECKING:
    from gradir.ir.builder import Builder


class Activation(Composite):
    """One float tensor in, one of its type out."""

    FAMILY: ClassVar[str] = "activation"

    operand = operand_def(TENSOR)
    result = result_def(TENSOR)

    def verify_(self) -> None:
        check_element(self, "operand", self.operand, "float")
        check_same_types(self, ("operand", "result"), (self.operand, self.result))

    @classmethod
    def make(cls, operand: SSAValue) -> Self:
        """Of each element."""
        return new(cls, (operand,), operand.type)


@irdl_op_definition
class SiluOp(Activation):
    """`result = x / (1 + e**-x)`; -inf gives -0. JAX: nn.silu. torch: nn.functional.silu. ONNX: Swish."""

    name = "nd.silu"

    def decompose(self, builder: Builder, operands: Sequence[SSAValue]) -> list[SSAValue]:
        e = Expansion(builder)
        x = e.widen(operands[0])
        # x e**min(x, 0) / (1 + e**-|x|): no exponential overflows. Below -10**4 the first factor is 0, whatever x: also for -inf
        scaled = e.mul(e.max(x, -1.0e4), e.exp(e.min(x, 0.0)))
        return [e.narrow(e.div(scaled, e.add(e.exp(e.neg(e.abs(x))), 1.0)), self.result.type)]


@irdl_op_definition
class SoftplusOp(Activation):
    """`result = ln(1 + e**x) = max(x, 0) + ln(1 + e**-|x|)`. JAX: nn.softplus. ONNX: Softplus."""

    name = "nd.softplus"

    def decompose(self, builder: Builder, operands: Sequence[SSAValue]) -> list[SSAValue]:
        e = Expansion(builder)
        x = e.widen(operands[0])
        return [e.narrow(e.add(e.max(x, 0.0), e.log1p(e.exp(e.neg(e.abs(x))))), self.result.type)]


OPS = (SiluOp, SoftplusOp)
