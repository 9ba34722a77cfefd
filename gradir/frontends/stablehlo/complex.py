"""Complex numbers and their parts; a real number is its own real part."""

from __future__ import annotations

from xdsl.ir import Operation

from gradir.dialects import nd
from gradir.dialects.types import element_of, is_complex
from gradir.frontends.stablehlo.conversion import Conversion, Rule, Values, like


def real(conversion: Conversion, op: Operation) -> Values:
    """The real part."""
    (operand,) = conversion.operands(op)
    return [conversion.emit(nd.RealOp.make(operand)) if is_complex(element_of(operand)) else operand]


def imag(conversion: Conversion, op: Operation) -> Values:
    """The imaginary part, 0 of a real number."""
    (operand,) = conversion.operands(op)
    return [conversion.emit(nd.ImagOp.make(operand)) if is_complex(element_of(operand)) else like(conversion, 0.0, operand)]


def complex_op(conversion: Conversion, op: Operation) -> Values:
    """`re + im * i`"""
    return [conversion.emit(nd.ComplexOp.make(*conversion.operands(op)))]


def conj(conversion: Conversion, op: Operation) -> Values:
    """The conjugate; of a real number the number itself."""
    (operand,) = conversion.operands(op)
    return [conversion.emit(nd.ConjOp.make(operand)) if is_complex(element_of(operand)) else operand]


RULES: dict[str, Rule] = {"stablehlo.real": real, "stablehlo.imag": imag, "stablehlo.complex": complex_op, "chlo.conj": conj}
