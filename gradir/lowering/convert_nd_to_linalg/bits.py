"""Ops on the bits of numbers: `arith.bitcast` and integer arithmetic; floats are never widened here."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Attribute, SSAValue

from gradir.dialects import nd
from gradir.dialects.nd.bits import FORMATS, width_of
from gradir.dialects.types import element_of, i64_attr, shape_of
from gradir.dialects.upstream import arith, linalg
from gradir.lowering.convert_nd_to_linalg.elements import lowered
from gradir.lowering.convert_nd_to_linalg.function import Lowering
from gradir.lowering.convert_nd_to_linalg.rules import lowers
from gradir.lowering.convert_nd_to_linalg.scalars import INDEX, Scalars
from gradir.lowering.convert_nd_to_linalg.views import View, constant, dim, dims


def bits_of(s: Scalars, x: SSAValue) -> SSAValue:
    """A number as the integer of the same bits."""
    return s.to(arith.BitcastOp, x, IntegerType(width_of(x.type)))


def from_bits(s: Scalars, bits: SSAValue, element: Attribute) -> SSAValue:
    """An integer as the number of the same bits; `element` is of level 1."""
    return s.to(arith.BitcastOp, bits, lowered(element))


@lowers(nd.BitcastConvertOp)
def lower_bitcast_convert(lowering: Lowering, op: nd.BitcastConvertOp) -> View:
    """Each element of the result is a bitcast, a part of an element, or several elements put together."""
    view, target = lowering.view(op.operand), element_of(op.result)
    have, want = width_of(view.element), width_of(target)
    shape = shape_of(op.result)
    rank = len(shape)
    if have == want:
        inputs = [view]
    elif have > want:
        inputs = [view.over(dims(*range(rank - 1)))]
    else:
        inputs = [view.over([*map(dim, range(rank)), constant(part)]) for part in range(want // have)]

    def body(s: Scalars, *xs: SSAValue) -> SSAValue:
        if have > want:
            whole = IntegerType(have)
            at = s.builder(linalg.IndexOp, (), (INDEX,), {"dim": i64_attr(rank - 1)})
            count = s.i(arith.MuliOp, s.to(arith.IndexCastOp, at, whole), s.constant(want, whole))
            return from_bits(s, s.to(arith.TruncIOp, s.i(arith.ShRUIOp, bits_of(s, xs[0]), count), IntegerType(want)), target)
        if have == want:
            return from_bits(s, bits_of(s, xs[0]), target)
        whole = IntegerType(want)
        total = s.to(arith.ExtUIOp, bits_of(s, xs[0]), whole)
        for part, x in enumerate(xs[1:], 1):
            wide = s.to(arith.ExtUIOp, bits_of(s, x), whole)
            total = s.i(arith.OrIOp, total, s.i(arith.ShLIOp, wide, s.constant(part * have, whole)))
        return from_bits(s, total, target)

    return lowering.whole(lowering.nests.elementwise(inputs, target, shape, body, compute=False), target)


@lowers(nd.ReducePrecisionOp)
def lower_reduce_precision(lowering: Lowering, op: nd.ReducePrecisionOp) -> View:
    """Round the bits to nearest even, then make what leaves the narrow exponent inf or zero."""
    element = element_of(op.operand)
    exponent, mantissa = FORMATS[type(element)]
    narrow_exponent, narrow_mantissa = op.number("exponent_bits"), op.number("mantissa_bits")
    inf = ((1 << exponent) - 1) << mantissa

    def body(s: Scalars, x: SSAValue) -> SSAValue:
        bits = bits_of(s, x)
        sign = s.i(arith.AndIOp, bits, s.like(1 << (exponent + mantissa), bits))
        magnitude = start = s.i(arith.XOrIOp, bits, sign)
        if narrow_mantissa < mantissa:
            dropped = mantissa - narrow_mantissa
            odd = s.i(arith.AndIOp, s.i(arith.ShRUIOp, magnitude, s.like(dropped, bits)), s.like(1, bits))
            raised = s.i(arith.AddiOp, s.i(arith.AddiOp, magnitude, odd), s.like((1 << (dropped - 1)) - 1, bits))
            magnitude = s.i(arith.AndIOp, raised, s.like(-(1 << dropped), bits))
        if narrow_exponent < exponent:
            bias, narrow_bias = (1 << (exponent - 1)) - 1, (1 << (narrow_exponent - 1)) - 1
            # magnitudes are not negative, and one that rounded up past the largest exponent is inf already
            above = s.cmpi("uge", magnitude, s.like((bias + narrow_bias + 1) << mantissa, bits))
            below = s.cmpi("ult", magnitude, s.like((bias - narrow_bias + 1) << mantissa, bits))
            magnitude = s.select(above, s.like(inf, bits), s.select(below, s.like(0, bits), magnitude))
        result = s.i(arith.OrIOp, magnitude, sign)
        nan = s.cmpi("ugt", start, s.like(inf, bits))
        kept = bits if narrow_mantissa else s.i(arith.OrIOp, s.like(inf, bits), sign)
        return from_bits(s, s.select(nan, kept, result), element)

    return lowering.elementwise(op, [lowering.view(op.operand)], body, compute=False)


@lowers(nd.NextAfterOp)
def lower_next_after(lowering: Lowering, op: nd.NextAfterOp) -> View:
    """One up or down in the bits, whose order is that of the magnitudes; from zero to the least denormal of the sign of rhs."""
    element = element_of(op.lhs)
    exponent, mantissa = FORMATS[type(element)]
    inf, top = ((1 << exponent) - 1) << mantissa, 1 << (exponent + mantissa)

    def body(s: Scalars, x: SSAValue, y: SSAValue) -> SSAValue:
        a, b = bits_of(s, x), bits_of(s, y)
        rest = s.like(top - 1, a)
        size_a, size_b = s.i(arith.AndIOp, a, rest), s.i(arith.AndIOp, b, rest)
        sign_a, sign_b = s.i(arith.XOrIOp, a, size_a), s.i(arith.XOrIOp, b, size_b)
        one, zero = s.like(1, a), s.like(0, a)
        inward = s.any(s.cmpi("ugt", size_a, size_b), s.cmpi("ne", sign_a, sign_b))
        moved = s.i(arith.AddiOp, a, s.select(inward, s.like(-1, a), one))
        moved = s.select(s.cmpi("eq", size_a, zero), s.i(arith.OrIOp, sign_b, one), moved)
        both_zero = s.cmpi("eq", s.i(arith.OrIOp, size_a, size_b), zero)
        result = s.select(s.any(s.cmpi("eq", a, b), both_zero), b, moved)
        nan = s.like(inf | (1 << (mantissa - 1)), a)
        is_nan = s.any(s.cmpi("ugt", size_a, s.like(inf, a)), s.cmpi("ugt", size_b, s.like(inf, a)))
        return from_bits(s, s.select(is_nan, nan, result), element)

    return lowering.elementwise(op, [lowering.view(op.lhs), lowering.view(op.rhs)], body, compute=False)
