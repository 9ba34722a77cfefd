"""Ops on the bits of numbers."""

from __future__ import annotations

import re

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

from gradir.dialects import nd
from gradir.dialects.types import element_of
from gradir.frontends.stablehlo.conversion import Conversion, Rule, UnsupportedError, Values
from gradir.frontends.stablehlo.dialect import attribute, number

_FORMAT = re.compile(r"e(\d+)m(\d+)")


def bitcast_convert(conversion: Conversion, op: Operation) -> Values:
    """The same bits as another type; to the same type: nothing."""
    (operand,) = conversion.operands(op)
    wanted = element_of(op.results[0])
    return [operand if element_of(operand) == wanted else conversion.emit(nd.BitcastConvertOp.make(operand, wanted))]


def reduce_precision(conversion: Conversion, op: Operation) -> Values:
    """`format = e5m10`, or two numbers in the generic form."""
    (operand,) = conversion.operands(op)
    written = attribute(op, "format")
    if written is None:
        bits = number(op, "exponent_bits"), number(op, "mantissa_bits")
    else:
        match = _FORMAT.fullmatch(written.data) if isinstance(written, StringAttr) else None
        if match is None:
            raise UnsupportedError(f"format {written}")
        bits = int(match[1]), int(match[2])
    return [conversion.emit(nd.ReducePrecisionOp.make(operand, *bits))]


RULES: dict[str, Rule] = {
    "stablehlo.bitcast_convert": bitcast_convert,
    "stablehlo.reduce_precision": reduce_precision,
}
