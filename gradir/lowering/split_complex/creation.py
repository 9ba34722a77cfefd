"""Constants, counters and tensors to be written."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation

from gradir.dialects import nd
from gradir.lowering.split_complex.parts import Pair, Parts, Rule, partwise, real_type


def split_constant(parts: Parts, op: nd.ConstantOp) -> Sequence[Pair]:
    """A number for each part, or the parts of all elements."""
    value, kind = op.value, real_type(op.result.type)
    if isinstance(value, nd.ComplexAttr):
        number = value.number
        return [(parts.emit(nd.ConstantOp.splat(number.real, kind)), parts.emit(nd.ConstantOp.splat(number.imag, kind)))]
    elements = op.evaluate()
    return [(parts.emit(nd.ConstantOp.make(elements.real, "re")), parts.emit(nd.ConstantOp.make(elements.imag, "im")))]


def split_iota(parts: Parts, op: nd.IotaOp) -> Sequence[Pair]:
    """`i[dim] + 0i`"""
    positions = parts.again(op, 0)
    return [(positions, parts.zero(positions))]


RULES: dict[type[Operation], Rule] = {nd.ConstantOp: split_constant, nd.IotaOp: split_iota, nd.EmptyOp: partwise}
