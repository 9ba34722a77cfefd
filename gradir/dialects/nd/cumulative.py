"""Cumulative ops: `result[.., i, ..] = fold of operand[.., 0 .. i, ..]` along one dimension.

`reverse` folds from the end, `exclusive` leaves out the element itself. Meaning: docs/numerics.md, "Reductions and composites".
"""

from __future__ import annotations

from typing import ClassVar, Self

from xdsl.dialects.builtin import IntegerAttr, i1
from xdsl.ir import SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def

from gradir.dialects.nd.base import I64, TENSOR, NdOp, new
from gradir.dialects.nd.checks import check_dims, check_element, check_same_types
from gradir.dialects.text import Clause, flag_attr
from gradir.dialects.types import i64_attr, rank_of


class Cumulative(NdOp):
    """`result[i] = fold of operand[j] over j <= i` along `dim`; `reverse`: j >= i; `exclusive`: without j = i."""

    FAMILY: ClassVar[str] = "cumulative"
    ELEMENTS: ClassVar[str] = "number"
    CLAUSES: ClassVar[tuple[Clause, ...]] = (
        Clause("dim", "dim", "int"),
        Clause("reverse", "reverse", "flag", optional=True),
        Clause("exclusive", "exclusive", "flag", optional=True),
    )

    operand = operand_def(TENSOR)
    dim = prop_def(I64)
    reverse = prop_def(IntegerAttr.constr(type=i1))
    exclusive = prop_def(IntegerAttr.constr(type=i1))
    result = result_def(TENSOR)

    def verify_(self) -> None:
        check_element(self, "operand", self.operand, self.ELEMENTS)
        check_dims(self, "dim", (self.number("dim"),), rank_of(self.operand))
        check_same_types(self, ("operand", "result"), (self.operand, self.result))

    @property
    def is_reverse(self) -> bool:
        """From the end."""
        return bool(self.number("reverse"))

    @property
    def is_exclusive(self) -> bool:
        """Without the element itself; the first result is the identity."""
        return bool(self.number("exclusive"))

    @classmethod
    def make(cls, operand: SSAValue, dim: int, reverse: bool = False, exclusive: bool = False) -> Self:
        """The fold of all prefixes (`reverse`: suffixes) along `dim`."""
        properties = {"dim": i64_attr(dim), "reverse": flag_attr(reverse), "exclusive": flag_attr(exclusive)}
        return new(cls, (operand,), operand.type, properties)


@irdl_op_definition
class CumsumOp(Cumulative):
    """`result[i] = sum over j <= i of operand[j]`, in f64 and rounded for each element; integers wrap. ONNX: CumSum. numpy: cumsum."""

    name = "nd.cumsum"
    ELEMENTS: ClassVar[str] = "number or complex"


@irdl_op_definition
class CumprodOp(Cumulative):
    """`result[i] = product over j <= i of operand[j]`, in f64 and rounded for each element; integers wrap. numpy: cumprod."""

    name = "nd.cumprod"
    ELEMENTS: ClassVar[str] = "number or complex"


@irdl_op_definition
class CummaxOp(Cumulative):
    """`result[i] = max over j <= i of operand[j]`; NaN wins; the identity is -inf or the least integer. JAX: lax.cummax."""

    name = "nd.cummax"


@irdl_op_definition
class CumminOp(Cumulative):
    """`result[i] = min over j <= i of operand[j]`; NaN wins; the identity is inf or the greatest integer. JAX: lax.cummin."""

    name = "nd.cummin"


@irdl_op_definition
class CumlogsumexpOp(Cumulative):
    """`result[i] = ln(sum over j <= i of e**operand[j])`, floats only, in f64 and rounded for each element; the identity is -inf.

    Finite wherever the exact result is in range; NaN wins, then +inf. JAX: lax.cumlogsumexp. torch: logcumsumexp.
    """

    name = "nd.cumlogsumexp"
    ELEMENTS: ClassVar[str] = "float"


OPS: tuple[type[Cumulative], ...] = (CumsumOp, CumprodOp, CummaxOp, CumminOp, CumlogsumexpOp)
