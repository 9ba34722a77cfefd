"""Arithmetic, comparison and choice. `z = x + iy`, `w = u + iv`."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import f32, f64
from xdsl.ir import Operation, SSAValue

from gradir.dialects import nd
from gradir.dialects.types import element_of, is_complex, real_of
from gradir.lowering.split_complex.mathematics import divided, exp, log
from gradir.lowering.split_complex.parts import Pair, Parts, Rule, is_complex_type, partwise


def product(parts: Parts, z: Pair, w: Pair) -> Pair:
    """`z w = (x u - y v) + i (x v + y u)`"""
    (x, y), (u, v) = z, w
    return parts.sub(parts.mul(x, u), parts.mul(y, v)), parts.add(parts.mul(x, v), parts.mul(y, u))


def split_mul(parts: Parts, op: nd.MulOp) -> Sequence[Pair]:
    """`z w`"""
    return [product(parts, parts.pair(op.lhs), parts.pair(op.rhs))]


def is_zero(parts: Parts, z: Pair) -> SSAValue:
    """`x = 0 and y = 0`"""
    return parts.both(parts.compare("eq", z[0], 0.0), parts.compare("eq", z[1], 0.0))


def split_mul_strong(parts: Parts, op: nd.MulStrongOp) -> Sequence[Pair]:
    """`0 if z = 0 or w = 0, else z w`"""
    z, w = parts.pair(op.lhs), parts.pair(op.rhs)
    vanishes = parts.either(is_zero(parts, z), is_zero(parts, w))
    re, im = product(parts, z, w)
    return [(parts.choose(vanishes, 0.0, re), parts.choose(vanishes, 0.0, im))]


def split_div(parts: Parts, op: nd.DivOp) -> Sequence[Pair]:
    """`z / w`"""
    return [divided(parts, parts.pair(op.lhs), parts.pair(op.rhs))]


def split_abs(parts: Parts, op: nd.AbsOp) -> Sequence[SSAValue]:
    """`|z| = hypot(x, y)`"""
    return [parts.hypot(*parts.pair(op.operand))]


def split_sign(parts: Parts, op: nd.SignOp) -> Sequence[Pair]:
    """`z / |z|`, both divided by the larger part first; 0 at 0"""
    z = parts.pair(op.operand)
    _, _, large, factor = parts.scaled(*z)
    vanishes = is_zero(parts, z)
    re, im = (parts.choose(vanishes, part, parts.div(parts.div(part, large), factor)) for part in z)
    return [(re, im)]


def split_pow(parts: Parts, op: nd.PowOp) -> Sequence[Pair]:
    """`z**w = e**(w log z)`, f32 in f64; `0**w` is 1 for w = 0 and 0 for u > 0"""
    z, w = parts.pair(op.lhs), parts.pair(op.rhs)
    wide_z, wide_w = ((_in(parts, part, f64) for part in pair) for pair in (z, w))
    (x, y), (u, v) = tuple(wide_z), tuple(wide_w)
    result = exp(parts, product(parts, (u, v), log(parts, (x, y))))
    base, exponent = is_zero(parts, (x, y)), is_zero(parts, (u, v))
    nothing = parts.choose(parts.compare("gt", u, 0.0), 0.0, parts.fill(float("nan"), u))
    re = parts.choose(exponent, 1.0, parts.choose(base, nothing, result[0]))
    im = parts.choose(exponent, 0.0, parts.choose(base, nothing, result[1]))
    narrow = element_of(z[0])
    return [(_in(parts, re, narrow), _in(parts, im, narrow))]


def _in(parts: Parts, x: SSAValue, element: object) -> SSAValue:
    """`x` in f32 or f64."""
    return x if element_of(x) == element else parts.emit(nd.ConvertOp.make(x, f32 if element == f32 else f64))


def split_compare(parts: Parts, op: nd.CompareOp) -> Sequence[SSAValue]:
    """`z = w` where both parts are equal"""
    (x, y), (u, v) = parts.pair(op.lhs), parts.pair(op.rhs)
    equal = parts.both(parts.compare("eq", x, u), parts.compare("eq", y, v))
    return [equal if op.direction.data is nd.Direction.EQ else parts.emit(nd.NotOp.make(equal))]


def split_convert(parts: Parts, op: nd.ConvertOp) -> Sequence[SSAValue | Pair]:
    """To complex both parts, the imaginary one 0 where there is none; to anything else the real part"""
    wanted = element_of(op.result)
    part = real_of(wanted)
    if not is_complex_type(op.operand.type):
        re = op.operand if element_of(op.operand) == part else parts.emit(nd.ConvertOp.make(op.operand, part))
        return [(re, parts.zero(re))]
    z = parts.pair(op.operand)
    re, im = (x if element_of(x) == part else parts.emit(nd.ConvertOp.make(x, part)) for x in (z if is_complex(wanted) else (z[0], z[0])))
    return [(re, im) if is_complex(wanted) else re]


RULES: dict[type[Operation], Rule] = {
    nd.AddOp: partwise,
    nd.SubOp: partwise,
    nd.NegOp: partwise,
    nd.SelectOp: partwise,
    nd.MulOp: split_mul,
    nd.MulStrongOp: split_mul_strong,
    nd.DivOp: split_div,
    nd.AbsOp: split_abs,
    nd.SignOp: split_sign,
    nd.PowOp: split_pow,
    nd.CompareOp: split_compare,
    nd.ConvertOp: split_convert,
}
