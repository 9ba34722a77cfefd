"""`uniform_quantize` and `uniform_dequantize`: between floats and quantized numbers, which are tensors of integers here."""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.ir import Operation, SSAValue

from gradir.dialects import nd
from gradir.dialects.nd.quantization import WHOLE
from gradir.dialects.types import element_of, numpy_dtype
from gradir.frontends.stablehlo.conversion import Conversion, Rule, UnsupportedError, Values
from gradir.frontends.stablehlo.quantized_types import QuantizedType, quantized


def _parameters(conversion: Conversion, kind: QuantizedType) -> tuple[SSAValue, SSAValue]:
    """Scale and zero point as constants."""

    def constant(numbers: tuple[Any, ...], dtype: Any) -> SSAValue:
        array = np.array(numbers if kind.axis != WHOLE else numbers[0], dtype)
        return conversion.emit(nd.ConstantOp.make(array))

    return constant(kind.scales, numpy_dtype(kind.expressed)), constant(kind.zeros, numpy_dtype(kind.storage))


def _type_of(value: SSAValue) -> QuantizedType:
    found = quantized(element_of(value))
    if found is None:
        raise UnsupportedError(
            f"element type {element_of(value)}: expected integers of 8 to 64 bits, one scale or one per index of an axis"
        )
    return found


def _numbers(conversion: Conversion, source: SSAValue) -> SSAValue:
    """The floats that quantized numbers stand for."""
    kind = _type_of(source)
    return conversion.emit(nd.DequantizeOp.make(conversion.values[source], *_parameters(conversion, kind), kind.axis))


def uniform_quantize(conversion: Conversion, op: Operation) -> Values:
    """From floats, or from other quantized numbers by way of floats."""
    (source,) = op.operands
    kind = _type_of(op.results[0])
    x = conversion.values[source] if quantized(element_of(source)) is None else _numbers(conversion, source)
    return [conversion.emit(nd.QuantizeOp.make(x, *_parameters(conversion, kind), kind.axis, kind.range))]


def uniform_dequantize(conversion: Conversion, op: Operation) -> Values:
    """To floats."""
    return [_numbers(conversion, op.operands[0])]


RULES: dict[str, Rule] = {"stablehlo.uniform_quantize": uniform_quantize, "stablehlo.uniform_dequantize": uniform_dequantize}
