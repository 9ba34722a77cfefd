"""Elementwise ops, casts and comparisons: most have a counterpart of their own; the others become exact sequences of such ops."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Operation, SSAValue

from gradir.dialects import nd
from gradir.dialects.types import element_of, is_float, numpy_dtype, rank_of, shape_of
from gradir.frontends.stablehlo import complex as complex_numbers
from gradir.frontends.stablehlo.attributes import word_of
from gradir.frontends.stablehlo.conversion import Conversion, Rule, Values, like, splat
from gradir.frontends.stablehlo.dialect import attribute

UNARY: dict[str, type[nd.Unary]] = {
    "stablehlo.abs": nd.AbsOp,
    "stablehlo.ceil": nd.CeilOp,
    "stablehlo.cosine": nd.CosOp,
    "stablehlo.exponential": nd.ExpOp,
    "stablehlo.exponential_minus_one": nd.Expm1Op,
    "stablehlo.floor": nd.FloorOp,
    "stablehlo.log": nd.LogOp,
    "stablehlo.log_plus_one": nd.Log1pOp,
    "stablehlo.logistic": nd.LogisticOp,
    "stablehlo.negate": nd.NegOp,
    "stablehlo.not": nd.NotOp,
    "stablehlo.round_nearest_afz": nd.RoundAwayOp,
    "stablehlo.round_nearest_even": nd.RoundEvenOp,
    "stablehlo.rsqrt": nd.RsqrtOp,
    "stablehlo.sign": nd.SignOp,
    "stablehlo.sine": nd.SinOp,
    "stablehlo.sqrt": nd.SqrtOp,
    "stablehlo.tanh": nd.TanhOp,
    "stablehlo.cbrt": nd.CbrtOp,
    "stablehlo.count_leading_zeros": nd.ClzOp,
    "stablehlo.popcnt": nd.PopcntOp,
    "stablehlo.tan": nd.TanOp,
    "chlo.acos": nd.AcosOp,
    "chlo.acosh": nd.AcoshOp,
    "chlo.asin": nd.AsinOp,
    "chlo.asinh": nd.AsinhOp,
    "chlo.atan": nd.AtanOp,
    "chlo.atanh": nd.AtanhOp,
    "chlo.cosh": nd.CoshOp,
    "chlo.erf": nd.ErfOp,
    "chlo.erf_inv": nd.ErfInvOp,
    "chlo.bessel_i1e": nd.BesselI1eOp,
    "chlo.digamma": nd.DigammaOp,
    "chlo.lgamma": nd.LgammaOp,
    "chlo.erfc": nd.ErfcOp,
    "chlo.sinh": nd.SinhOp,
    "chlo.tan": nd.TanOp,
}

BINARY: dict[str, type[nd.Binary]] = {
    "stablehlo.add": nd.AddOp,
    "stablehlo.and": nd.AndOp,
    "stablehlo.atan2": nd.Atan2Op,
    "stablehlo.divide": nd.DivOp,
    "stablehlo.maximum": nd.MaxOp,
    "stablehlo.minimum": nd.MinOp,
    "stablehlo.multiply": nd.MulOp,
    "stablehlo.or": nd.OrOp,
    "stablehlo.power": nd.PowOp,
    "stablehlo.remainder": nd.RemOp,
    "stablehlo.shift_left": nd.ShlOp,
    "stablehlo.shift_right_arithmetic": nd.ShrSOp,
    "stablehlo.shift_right_logical": nd.ShrUOp,
    "stablehlo.subtract": nd.SubOp,
    "stablehlo.xor": nd.XorOp,
    "chlo.next_after": nd.NextAfterOp,
    "chlo.polygamma": nd.PolygammaOp,
    "chlo.zeta": nd.ZetaOp,
}


def _same(kind: type[nd.Unary] | type[nd.Binary] | type[nd.Classification]) -> Rule:
    """The op on the same operands."""
    return lambda conversion, op: [conversion.emit(kind.make(*conversion.operands(op)))]


def convert(conversion: Conversion, op: Operation) -> Values:
    """A cast; to the same type: nothing."""
    (operand,) = conversion.operands(op)
    wanted = element_of(op.results[0])
    return [operand if element_of(operand) == wanted else conversion.emit(nd.ConvertOp.make(operand, wanted))]


def compare(conversion: Conversion, op: Operation) -> Values:
    """`lhs DIRECTION rhs`, with IEEE comparison."""
    lhs, rhs = conversion.operands(op)
    if word_of(attribute(op, "compare_type")) == "TOTALORDER" and is_float(element_of(lhs)):
        lhs, rhs = _in_total_order(conversion, lhs), _in_total_order(conversion, rhs)
    direction = word_of(attribute(op, "comparison_direction")).lower()
    return [conversion.emit(nd.CompareOp.make(direction, lhs, rhs))]


def _in_total_order(conversion: Conversion, x: SSAValue) -> SSAValue:
    """Signed integers that compare as the floats do in IEEE's total order: of negative numbers all bits but the sign are inverted."""
    width = numpy_dtype(element_of(x)).itemsize * 8
    bits = conversion.emit(nd.BitcastConvertOp.make(x, IntegerType(width)))
    sign = conversion.emit(nd.ShrSOp.make(bits, like(conversion, width - 1, bits)))
    return conversion.emit(nd.XorOp.make(bits, conversion.emit(nd.AndOp.make(sign, like(conversion, (1 << (width - 1)) - 1, bits)))))


def select(conversion: Conversion, op: Operation) -> Values:
    """`on_true if pred else on_false`; a rank-0 predicate decides for all."""
    pred, on_true, on_false = conversion.operands(op)
    return [conversion.emit(nd.SelectOp.make(_spread(conversion, pred, on_true), on_true, on_false))]


def clamp(conversion: Conversion, op: Operation) -> Values:
    """`min(max(x, lo), hi)`; bounds of rank 0 hold for all."""
    lo, operand, hi = conversion.operands(op)
    return [conversion.emit(nd.ClampOp.make(_spread(conversion, lo, operand), operand, _spread(conversion, hi, operand)))]


def _spread(conversion: Conversion, value: SSAValue, model: SSAValue) -> SSAValue:
    return splat(conversion, value, shape_of(model)) if rank_of(value) == 0 else value


def square(conversion: Conversion, op: Operation) -> Values:
    """`x * x`"""
    (x,) = conversion.operands(op)
    return [conversion.emit(nd.MulOp.make(x, x))]


RULES: dict[str, Rule] = {
    **{name: _same(kind) for name, kind in UNARY.items()},
    **{name: _same(kind) for name, kind in BINARY.items()},
    **complex_numbers.RULES,
    "stablehlo.is_finite": _same(nd.IsFiniteOp),
    "chlo.is_inf": _same(nd.IsInfOp),
    "stablehlo.convert": convert,
    "stablehlo.compare": compare,
    "stablehlo.select": select,
    "stablehlo.clamp": clamp,
    "chlo.square": square,
}
