"""Elementwise functions, numpy's names. Operands are promoted and broadcast; see `promotion` for the types."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, i1
from xdsl.ir import Operation

from gradir.dialects import ad, nd
from gradir.dialects.types import real_of, tensor
from gradir.frontends.python import promotion
from gradir.frontends.python.arrays import OPERATORS, Array
from gradir.frontends.python.operands import as_array, astype, broadcast_shapes, broadcast_to, common_dtype, float_dtype, together
from gradir.frontends.python.trace import apply, user_error


def name_functions(names: dict[str, Any]) -> None:
    """The functions made here under the names that a module gives them: what `help` and tracebacks show."""
    for name, value in names.items():
        if getattr(value, "__qualname__", "").endswith(".<locals>.function"):
            value.__name__ = value.__qualname__ = name


def unary(kind: type[Operation], doc: str, *, floats: bool = True) -> Callable[[Any], Array]:
    """The function that applies a unary op; `floats`: integers and booleans become f32 first."""

    def function(x: Any) -> Array:
        x = as_array(x)
        if floats and not promotion.is_inexact(x.dtype):
            x = astype(x, promotion.FLOAT32)
        if promotion.is_complex(x.dtype) and "complex" not in getattr(kind, "ELEMENTS", "complex"):
            raise user_error(f"{kind.name} of complex numbers", code="GR002", op=kind.name, expected="real numbers", found=str(x.dtype))
        return apply(kind, [x], x.type)

    function.__doc__ = doc
    return function


exp = unary(nd.ExpOp, "e ** x")
expm1 = unary(nd.Expm1Op, "e ** x - 1, accurate near 0")
log = unary(nd.LogOp, "Natural logarithm")
log1p = unary(nd.Log1pOp, "log(1 + x), accurate near 0")
sqrt = unary(nd.SqrtOp, "Square root")
rsqrt = unary(nd.RsqrtOp, "1 / sqrt(x)")
tanh = unary(nd.TanhOp, "Hyperbolic tangent")
sigmoid = unary(nd.LogisticOp, "1 / (1 + exp(-x))")
erf = unary(nd.ErfOp, "Error function")
sin = unary(nd.SinOp, "Sine")
cos = unary(nd.CosOp, "Cosine")
floor = unary(nd.FloorOp, "Largest integer not above x")
ceil = unary(nd.CeilOp, "Smallest integer not below x")
relu = unary(nd.ReluOp, "max(x, 0); derivative 0 at 0", floats=False)
negative = unary(nd.NegOp, "-x", floats=False)
sign = unary(nd.SignOp, "-1, 0 or 1; the sign of zero is kept; of complex x: x / |x|", floats=False)
invert = unary(nd.NotOp, "Bitwise not; logical not of booleans", floats=False)
stop_gradient = unary(ad.StopGradientOp, "x, with derivative 0", floats=False)


def abs(x: Any) -> Array:
    """|x|, real of complex x; derivative 0 at 0"""
    x = as_array(x)
    return apply(nd.AbsOp, [x], tensor(real_of(x.type.element_type), x.shape))


def square(x: Any) -> Array:
    """x * x"""
    return multiply(x, x)


def isfinite(x: Any) -> Array:
    """Neither infinite nor NaN, in both parts"""
    x = as_array(x)
    if promotion.is_complex(x.dtype):
        return logical_and(*(isfinite(part(x)) for part in (OPERATORS["real"], OPERATORS["imag"])))
    if not promotion.is_float(x.dtype):
        return equal(x, x)
    return apply(nd.IsFiniteOp, [x], tensor(i1, x.shape))


def _binary(kind: type[Operation], name: str, doc: str, *, floats: bool = False, integers: bool = False) -> Callable[[Any, Any], Array]:
    def function(x: Any, y: Any) -> Array:
        dtype = float_dtype(x, y) if floats else common_dtype(x, y)
        if promotion.is_complex(dtype) and "complex" not in getattr(kind, "ELEMENTS", "") and kind not in (nd.AddOp, nd.MulOp):
            raise user_error(f"{name} of complex numbers", code="GR002", op=kind.name, expected="real numbers", found=str(dtype))
        if integers and promotion.is_float(dtype):
            raise user_error(
                f"{name} of floating-point operands", code="GR002", op=kind.name, expected="integers or booleans", found=str(dtype)
            )
        a, b = together(name, x, y, dtype=dtype)
        return apply(kind, [a, b], a.type)

    function.__doc__ = doc
    return function


_add = _binary(nd.AddOp, "add", "x + y")
multiply = _binary(nd.MulOp, "multiply", "x * y")
maximum = _binary(nd.MaxOp, "maximum", "The larger one, NaN if either is; a tie shares the derivative")
minimum = _binary(nd.MinOp, "minimum", "The smaller one, NaN if either is; a tie shares the derivative")
divide = _binary(nd.DivOp, "divide", "x / y in floating point", floats=True)
fmod = _binary(nd.RemOp, "fmod", "Remainder with the sign of x")
arctan2 = _binary(nd.Atan2Op, "arctan2", "Angle of the point (y, x)", floats=True)
bitwise_and = _binary(nd.AndOp, "bitwise_and", "x & y", integers=True)
bitwise_or = _binary(nd.OrOp, "bitwise_or", "x | y", integers=True)
bitwise_xor = _binary(nd.XorOp, "bitwise_xor", "x ^ y", integers=True)
left_shift = _binary(nd.ShlOp, "left_shift", "x << y; 0 from the width on", integers=True)


def add(x: Any, y: Any) -> Array:
    """x + y; of booleans: or"""
    return _add(x, y)


def subtract(x: Any, y: Any) -> Array:
    """x - y"""
    dtype = common_dtype(x, y)
    if promotion.is_bool(dtype):
        raise user_error("subtraction of booleans", code="GR002", op="nd.sub", expected="numbers", found="bool", hint="use ^ or astype")
    a, b = together("subtract", x, y, dtype=dtype)
    return apply(nd.SubOp, [a, b], a.type)


def right_shift(x: Any, y: Any) -> Array:
    """x >> y: arithmetic on signed, logical on unsigned integers"""
    a, b = together("right_shift", x, y)
    kind = nd.ShrUOp if a.dtype.kind == "u" else nd.ShrSOp
    return apply(kind, [a, b], a.type)


def power(x: Any, y: Any) -> Array:
    """x ** y; small whole exponents are products"""
    if isinstance(y, int) and not isinstance(y, bool) and 1 <= y <= 4:
        x = as_array(x)
        if promotion.is_bool(x.dtype):
            x = astype(x, np.int32)
        half = x if y == 1 else multiply(x, x)
        return half if y <= 2 else multiply(half, x if y == 3 else half)
    if isinstance(y, float) and y == 0.5:
        return sqrt(x)
    a, b = together("power", x, y)
    return apply(nd.PowOp, [a, b], a.type)


def mod(x: Any, y: Any) -> Array:
    """Remainder with the sign of y: r = rem(x, y); r != 0 and signs differ: r + y; a zero takes y's sign"""
    a, b = together("mod", x, y)
    r = apply(nd.RemOp, [a, b], a.type)
    zero = _filled(0, a)
    nonzero = not_equal(r, zero)
    differ = not_equal(less(r, zero), less(b, zero))
    out = where(bitwise_and(nonzero, differ), add(r, b), r)
    if promotion.is_float(a.dtype):
        out = where(equal(r, zero), multiply(abs(r), sign(b)), out)
    return out


def floor_divide(x: Any, y: Any) -> Array:
    """Largest integer not above x / y, from the exact remainder: 1 // 0.1 is 9"""
    a, b = together("floor_divide", x, y)
    if promotion.is_float(a.dtype):
        return floor(add(divide(subtract(a, mod(a, b)), b), 0.5))
    quotient = apply(nd.DivOp, [a, b], a.type)
    r = apply(nd.RemOp, [a, b], a.type)
    zero = _filled(0, a)
    down = bitwise_and(bitwise_and(not_equal(r, zero), not_equal(b, zero)), not_equal(less(r, zero), less(b, zero)))
    return where(down, subtract(quotient, _filled(1, a)), quotient)


def _filled(value: int, like: Array) -> Array:
    return as_array(np.full((), value, like.dtype))


def _comparison(direction: str, name: str) -> Callable[[Any, Any], Array]:
    def function(x: Any, y: Any) -> Array:
        a, b = together(name, x, y)
        if promotion.is_complex(a.dtype) and direction not in ("eq", "ne"):
            message, hint = f"{name} of complex numbers", "compare their real parts or their absolute values"
            raise user_error(message, code="GR002", op="nd.compare", expected="real numbers", found=str(a.dtype), hint=hint)
        return apply(nd.CompareOp, [a, b], tensor(i1, a.shape), direction=nd.DirectionAttr(nd.Direction(direction)))

    function.__doc__ = f"Elementwise {direction}; comparisons with NaN are false, `ne` true"
    return function


equal = _comparison("eq", "equal")
not_equal = _comparison("ne", "not_equal")
less = _comparison("lt", "less")
less_equal = _comparison("le", "less_equal")
greater = _comparison("gt", "greater")
greater_equal = _comparison("ge", "greater_equal")


def logical_not(x: Any) -> Array:
    """not x, elementwise"""
    return invert(astype(x, np.bool_))


def logical_and(x: Any, y: Any) -> Array:
    """x and y, elementwise"""
    return bitwise_and(astype(x, np.bool_), astype(y, np.bool_))


def logical_or(x: Any, y: Any) -> Array:
    """x or y, elementwise"""
    return bitwise_or(astype(x, np.bool_), astype(y, np.bool_))


def where(condition: Any, x: Any, y: Any) -> Array:
    """x where the condition holds, else y; the branch not taken never poisons a gradient"""
    dtype = common_dtype(x, y)
    pred, a, b = as_array(condition, np.dtype(np.bool_)), as_array(x, dtype), as_array(y, dtype)
    a, b = together("where", a, b, dtype=dtype)
    shape = broadcast_shapes("where", pred.shape, a.shape)
    pred, a, b = broadcast_to(pred, shape), broadcast_to(a, shape), broadcast_to(b, shape)
    return apply(nd.SelectOp, [pred, a, b], a.type)


def clip(x: Any, lo: Any = None, hi: Any = None) -> Array:
    """min(max(x, lo), hi); without one of the bounds, max or min alone"""
    if lo is None or hi is None:
        return as_array(x) if lo is hi else minimum(x, hi) if lo is None else maximum(x, lo)
    dtype = common_dtype(x, lo, hi)
    low, mid, high = together("clip", lo, x, hi, dtype=dtype)
    return apply(nd.ClampOp, [low, mid, high], mid.type)


def gelu(x: Any, approximate: bool = True) -> Array:
    """x Phi(x); the tanh approximation unless `approximate=False`"""
    x = as_array(x)
    if not promotion.is_float(x.dtype):
        x = astype(x, promotion.FLOAT32)
    return apply(nd.GeluOp, [x], x.type, approximate=IntegerAttr(int(approximate), i1))


pi, inf, nan = math.pi, math.inf, math.nan
name_functions(globals())
OPERATORS.update(
    add=add, subtract=subtract, multiply=multiply, divide=divide, floor_divide=floor_divide, mod=mod, power=power, bitwise_and=bitwise_and,
    bitwise_or=bitwise_or, bitwise_xor=bitwise_xor, left_shift=left_shift, right_shift=right_shift, less=less, less_equal=less_equal,
    greater=greater, greater_equal=greater_equal, equal=equal, not_equal=not_equal, negative=negative, abs=abs, invert=invert, clip=clip,
)  # fmt: skip
