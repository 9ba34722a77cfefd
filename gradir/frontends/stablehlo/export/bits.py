"""Ops on the bits of numbers, and random words: the counter-based generators are composites."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import SSAValue

from gradir.dialects import nd
from gradir.dialects.nd.random import UI32, UI64
from gradir.dialects.types import element_of, static_shape, tensor
from gradir.frontends.stablehlo.export.composites import by_ops, expands
from gradir.frontends.stablehlo.export.writer import ExportRule, Values, Writer, kind_of
from gradir.ir.builder import Builder


def bitcast_convert(w: Writer, op: nd.BitcastConvertOp, operands: Values) -> Values:
    """The same bits as another type."""
    return [w.one("stablehlo.bitcast_convert", operands, kind_of(op.result.type))]


def reduce_precision(w: Writer, op: nd.ReducePrecisionOp, operands: Values) -> Values:
    """Rounded to fewer bits."""
    attributes = f"exponent_bits = {op.number('exponent_bits')} : i32, mantissa_bits = {op.number('mantissa_bits')} : i32"
    return [w.one("stablehlo.reduce_precision", operands, operands[0].type, attributes)]


def random_bits(op: nd.RandomBitsOp, builder: Builder, operands: Sequence[SSAValue]) -> list[SSAValue]:
    """Threefry of the row-major position of each element."""
    shape, element = static_shape(op.result), element_of(op.result)
    count = 1
    for size in shape:
        count *= size

    def emit(made: nd.NdOp) -> SSAValue:
        return nd.emit(builder, made)

    place = emit(nd.IotaOp.make(tensor(UI64, (count,)), 0))
    high = emit(nd.ConvertOp.make(emit(nd.ShrUOp.make(place, emit(nd.ConstantOp.splat(32, place.type)))), UI32))
    block = nd.Threefry2x32Op.make(operands[0], high, emit(nd.ConvertOp.make(place, UI32)))
    emit(block)
    if cast("IntegerType", element).width.data == 64:
        upper, lower = (emit(nd.ConvertOp.make(word, element)) for word in block.results)
        words = emit(nd.OrOp.make(emit(nd.ShlOp.make(upper, emit(nd.ConstantOp.splat(32, upper.type)))), lower))
    else:
        words = emit(nd.XorOp.make(*block.results))
        words = words if element == UI32 else emit(nd.ConvertOp.make(words, element))
    return [emit(nd.ReshapeOp.make(words, shape))]


RULES: dict[str, ExportRule] = {
    "nd.bitcast_convert": bitcast_convert,
    "nd.reduce_precision": reduce_precision,
    "nd.random_bits": expands(by_ops(random_bits)),
}
