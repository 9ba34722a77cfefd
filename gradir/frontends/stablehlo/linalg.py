"""cholesky and triangular_solve."""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import bf16, f16, f32
from xdsl.ir import Operation, SSAValue

from gradir.dialects import nd
from gradir.dialects.types import element_of
from gradir.frontends.stablehlo.attributes import word_of
from gradir.frontends.stablehlo.conversion import Conversion, Rule, UnsupportedError, Values
from gradir.frontends.stablehlo.dialect import attribute, number


def cholesky(conversion: Conversion, op: Operation) -> Values:
    """`L L* = operand`, or with lower = false `U* U = operand`."""
    (operand,) = conversion.operands(op)
    found = conversion.emit(nd.CholeskyOp.make(_widened(conversion, operand), bool(number(op, "lower"))))
    return [_narrowed(conversion, found, operand)]


def _widened(conversion: Conversion, x: SSAValue) -> SSAValue:
    """Halves in f32, in which they are computed."""
    return conversion.emit(nd.ConvertOp.make(x, f32)) if element_of(x) in (f16, bf16) else x


def _narrowed(conversion: Conversion, x: SSAValue, like: SSAValue) -> SSAValue:
    return x if element_of(x) == element_of(like) else conversion.emit(nd.ConvertOp.make(x, element_of(like)))


def triangular_solve(conversion: Conversion, op: Operation) -> Values:
    """`op(a) x = b`, or with left_side = false `x op(a) = b`."""
    a, b = conversion.operands(op)
    turned = word_of(attribute(op, "transpose_a"), "NO_TRANSPOSE")
    letters: dict[str, Any] = {"NO_TRANSPOSE": "N", "TRANSPOSE": "T", "ADJOINT": "C"}
    if turned not in letters:
        raise UnsupportedError(f"transpose_a = {turned}")
    flags = {name: bool(number(op, key)) for name, key in (("left", "left_side"), ("lower", "lower"), ("unit_diagonal", "unit_diagonal"))}
    wide = _widened(conversion, a), _widened(conversion, b)
    return [_narrowed(conversion, conversion.emit(nd.TriangularSolveOp.make(*wide, **flags, transposition=letters[turned])), b)]


RULES: dict[str, Rule] = {"stablehlo.cholesky": cholesky, "stablehlo.triangular_solve": triangular_solve}
