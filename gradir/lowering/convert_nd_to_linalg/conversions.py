"""`nd.convert` on one element: one rounding to floats, saturation from floats to integers, wrapping between integers."""

from __future__ import annotations

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, Float64Type, IntegerType, f32, f64, i1, i64
from xdsl.ir import Attribute, SSAValue

from gradir.dialects.types import is_unsigned
from gradir.dialects.upstream import arith
from gradir.lowering.convert_nd_to_linalg.elements import lowered, width
from gradir.lowering.convert_nd_to_linalg.scalars import Scalars

_BITS: dict[type[Attribute], int] = {Float64Type: 64, Float32Type: 32, Float16Type: 16, BFloat16Type: 16}
EXACT_IN_F64 = 53


def convert(s: Scalars, x: SSAValue, source: Attribute, target: Attribute) -> SSAValue:
    """`x` of level-1 element type `source` in the level-1 element type `target`; the result has the lowered type."""
    to = lowered(target)
    if source == target:
        return x
    if isinstance(source, IntegerType):
        if target == i1:
            return s.cmpi("ne", x, s.like(0, x))
        signed = source != i1 and not is_unsigned(source)
        return _resize(s, x, to, signed) if isinstance(to, IntegerType) else _integer_to_float(s, x, to, signed)
    if target == i1:
        return s.cmpf("une", widen(s, x), s.like(0, widen(s, x)))
    if isinstance(to, IntegerType):
        return _float_to_integer(s, widen(s, x), to, is_unsigned(target))
    return float_to_float(s, x, to)


def widen(s: Scalars, x: SSAValue) -> SSAValue:
    """f16 and bf16 in f32, which holds them exactly."""
    return s.to(arith.ExtFOp, x, f32) if isinstance(x.type, Float16Type | BFloat16Type) else x


def float_to_float(s: Scalars, x: SSAValue, to: Attribute) -> SSAValue:
    """One rounding: between f16 and bf16 by way of f32, which is exact on the way up."""
    have, want = _BITS[type(x.type)], _BITS[type(to)]
    if have == want:
        return s.to(arith.TruncFOp, widen(s, x), to) if x.type != to else x
    return s.to(arith.ExtFOp if want > have else arith.TruncFOp, x, to)


def _resize(s: Scalars, x: SSAValue, to: IntegerType, signed: bool) -> SSAValue:
    have, want = width(x.type), width(to)
    if want < have:
        return s.to(arith.TruncIOp, x, to)
    return s.to(arith.ExtSIOp if signed else arith.ExtUIOp, x, to) if want > have else x


def _integer_to_float(s: Scalars, x: SSAValue, to: Attribute, signed: bool) -> SSAValue:
    """f16 and bf16: through a float that holds the integer exactly, so that there is one rounding."""
    kind = arith.SIToFPOp if signed else arith.UIToFPOp
    if not isinstance(to, Float16Type | BFloat16Type):
        return s.to(kind, x, to)
    if width(x.type) <= 16:
        return s.to(arith.TruncFOp, s.to(kind, x, f32), to)
    if width(x.type) == 64:
        x = _sticky(s, x, signed)
    return s.to(arith.TruncFOp, s.to(kind, x, f64), to)


def _sticky(s: Scalars, x: SSAValue, signed: bool) -> SSAValue:
    """An i64 that f64 holds exactly and that rounds to f16 and bf16 as x does: beyond 2^53 the 11 low bits become one sticky bit."""
    low = s.i(arith.AndIOp, x, s.constant(0x7FF, i64))
    any_low = s.to(arith.ExtUIOp, s.cmpi("ne", low, s.constant(0, i64)), i64)
    kept = s.i(arith.AndIOp, x, s.constant(-0x800, i64))
    rounded = s.i(arith.OrIOp, kept, s.i(arith.ShLIOp, any_low, s.constant(11, i64)))
    offset = s.i(arith.AddiOp, x, s.constant(1 << EXACT_IN_F64, i64)) if signed else x
    return s.select(s.cmpi("ugt", offset, s.constant(1 << (EXACT_IN_F64 + signed), i64)), rounded, x)


def _float_to_integer(s: Scalars, x: SSAValue, to: IntegerType, unsigned: bool) -> SSAValue:
    """Truncate, saturate, NaN is 0. The bounds are powers of two, exact in f32; only values in between reach the cast."""
    bits = width(to)
    low, high = (0.0, 2.0**bits) if unsigned else (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1))
    at_least, below = s.cmpf("oge", x, s.like(low, x)), s.cmpf("olt", x, s.like(high, x))
    safe = s.select(s.i(arith.AndIOp, at_least, below), x, s.like(0, x))
    converted = s.to(arith.FPToUIOp if unsigned else arith.FPToSIOp, safe, to)
    least = 0 if unsigned else -(1 << (bits - 1))
    most = (1 << bits) - 1 if unsigned else (1 << (bits - 1)) - 1
    above = s.cmpf("oge", x, s.like(high, x))
    under = s.cmpf("olt", x, s.like(low, x))
    return s.select(above, s.constant(most, to), s.select(under, s.constant(least, to), converted))
