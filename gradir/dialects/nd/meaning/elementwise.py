"""Meaning of the elementwise ops (docs/numerics.md, "Elementwise")."""

from __future__ import annotations

from collections.abc import Callable
from math import erf as scalar_erf
from typing import Any

import numpy as np

from gradir.dialects.nd.meaning.rounding import F32, F64, Array, convert, from_f64, in_f32, in_f64, is_float, is_inexact
from gradir.dialects.nd.saturation import LARGEST
from gradir.dialects.types import element_of, numpy_dtype

_ERF = np.frompyfunc(scalar_erf, 1, 1)


def erf64(x: Array) -> Array:
    """erf of f64 values."""
    return np.asarray(_ERF(x)).astype(F64)


def by_f64(function: Callable[..., Any]) -> Callable[..., Array]:
    """The op that computes `function` in f64 and rounds."""

    def evaluate(op: Any, *arrays: Array) -> Array:
        return in_f64(function, *arrays)

    return evaluate


def by_f32(function: Callable[..., Any]) -> Callable[..., Array]:
    """The op that computes `function` in the operands' type, f16 and bf16 through f32."""

    def evaluate(op: Any, *arrays: Array) -> Array:
        return in_f32(function, *arrays)

    return evaluate


def bitwise(function: Callable[..., Any]) -> Callable[..., Array]:
    """The op that computes `function` in the operands' type."""

    def evaluate(op: Any, *arrays: Array) -> Array:
        return np.asarray(function(*arrays))

    return evaluate


# unary
def _rsqrt(x: Array) -> Array:
    return 1.0 / np.sqrt(x)


def relu(op: Any, x: Array) -> Array:
    return np.where((x > 0) | (x != x), x, np.zeros((), x.dtype))


def sign(op: Any, x: Array) -> Array:
    one = np.ones((), x.dtype)
    return np.where(x > 0, one, np.where(x < 0, -one, x))


def logistic(op: Any, x: Array) -> Array:
    if x.dtype == F64:
        return 1.0 / (1.0 + np.exp(-x))
    power = np.exp(-x.astype(F64)).astype(F32)  # overflows as f32 does, so that the quotient is 0 there
    return np.asarray(np.float32(1) / (np.float32(1) + power)).astype(x.dtype)


def is_finite(op: Any, x: Array) -> Array:
    return np.isfinite(x.astype(F64))


def invert(op: Any, x: Array) -> Array:
    return np.invert(x)


def convert_op(op: Any, x: Array) -> Array:
    dtype = numpy_dtype(element_of(op.result))
    if not op.saturates:
        return convert(x, dtype)
    most = LARGEST[type(element_of(op.result))]
    if is_float(x.dtype):
        wide = x.astype(F64)
        return convert(np.where(np.abs(wide) > most, np.copysign(most, wide), wide), dtype)
    limits = (0, 1) if x.dtype == np.bool_ else (np.iinfo(x.dtype).min, np.iinfo(x.dtype).max)
    return convert(np.clip(x, max(limits[0], -int(most)), min(limits[1], int(most))).astype(x.dtype), dtype)


# binary
def add(op: Any, x: Array, y: Array) -> Array:
    return x | y if x.dtype == np.bool_ else in_f32(np.add, x, y)


def mul(op: Any, x: Array, y: Array) -> Array:
    if x.dtype.kind == "c":
        return in_f64(np.multiply, x, y)
    return x & y if x.dtype == np.bool_ else in_f32(np.multiply, x, y)


def mul_strong(op: Any, x: Array, y: Array) -> Array:
    zero = np.zeros((), x.dtype)
    return np.where((x == zero) | (y == zero), zero, mul(op, x, y))


def div(op: Any, x: Array, y: Array) -> Array:
    if x.dtype.kind == "c":
        return in_f64(np.divide, x, y)
    return in_f32(np.divide, x, y) if is_float(x.dtype) else integer_div_rem(x, y)[0]


def rem(op: Any, x: Array, y: Array) -> Array:
    return in_f32(np.fmod, x, y) if is_float(x.dtype) else integer_div_rem(x, y)[1]


def integer_div_rem(x: Array, y: Array) -> tuple[Array, Array]:
    """Quotient toward zero and remainder; x / 0 is all ones, x % 0 is x; MIN / -1 is MIN, MIN % -1 is 0."""
    dtype = x.dtype
    zero = y == 0
    overflow = (y == -1) if dtype.kind == "i" else np.zeros(y.shape, np.bool_)
    divisor = np.where(zero | overflow, dtype.type(1), y)
    quotient = np.asarray(x // divisor)
    if dtype.kind == "i":  # numpy rounds down
        quotient = quotient + ((quotient * divisor != x) & ((x < 0) != (divisor < 0))).astype(dtype)
    remainder = x - quotient * divisor
    ones = np.invert(np.zeros((), dtype))
    quotient = np.where(zero, ones, np.where(overflow, np.negative(x), quotient))
    return quotient.astype(dtype), np.where(zero, x, np.where(overflow, dtype.type(0), remainder)).astype(dtype)


def pow_(op: Any, x: Array, y: Array) -> Array:
    return in_f64(np.power, x, y) if is_inexact(x.dtype) else integer_pow(x, y)


def integer_pow(x: Array, y: Array) -> Array:
    """x ** y, wrapping; a negative exponent gives 0 unless x is 1 or -1."""
    dtype = x.dtype
    one = np.ones((), dtype)
    result, power = np.broadcast_to(one, x.shape).copy(), x.copy()
    exponent = np.where(y < 0, y & one, y)  # of 1 and -1 only the parity counts
    while np.any(exponent != 0):
        result = np.where((exponent & one) != 0, result * power, result)
        power, exponent = power * power, exponent >> one
    if dtype.kind != "i":
        return result
    return np.where((y < 0) & (x != 1) & (x != -1), dtype.type(0), result)


def max_(op: Any, x: Array, y: Array) -> Array:
    if not is_float(x.dtype):
        return np.maximum(x, y)
    return in_f32(_float_max, x, y)


def _float_max(x: Array, y: Array) -> Array:
    return np.where((x == 0) & (y == 0), x + y, np.maximum(x, y))  # the sum of two zeros is -0 only if both are


def min_(op: Any, x: Array, y: Array) -> Array:
    if not is_float(x.dtype):
        return np.minimum(x, y)
    return in_f32(_float_min, x, y)


def _float_min(x: Array, y: Array) -> Array:
    return np.where((x == 0) & (y == 0), -((-x) + (-y)), np.minimum(x, y))


def clamp(op: Any, lo: Array, x: Array, hi: Array) -> Array:
    return min_(op, max_(op, x, lo), hi)


def _shift_range(x: Array, y: Array) -> tuple[Array, Array]:
    """Which counts, read as unsigned, are below the width; those counts."""
    width = 8 * x.dtype.itemsize
    inside = (y >= 0) & (y < width)
    return inside, np.where(inside, y, 0).astype(x.dtype)


def shl(op: Any, x: Array, y: Array) -> Array:
    inside, count = _shift_range(x, y)
    return np.where(inside, np.left_shift(x, count), x.dtype.type(0))


def shr_s(op: Any, x: Array, y: Array) -> Array:
    signed = np.dtype(f"int{8 * x.dtype.itemsize}")
    inside, count = _shift_range(x, y)
    value = x.view(signed)
    fill = np.where(value < 0, signed.type(-1), signed.type(0))
    return np.where(inside, np.right_shift(value, count.view(signed)), fill).view(x.dtype)


def shr_u(op: Any, x: Array, y: Array) -> Array:
    unsigned = np.dtype(f"uint{8 * x.dtype.itemsize}")
    inside, count = _shift_range(x, y)
    return np.where(inside, np.right_shift(x.view(unsigned), count.view(unsigned)), unsigned.type(0)).view(x.dtype)


COMPARE: dict[str, Callable[[Array, Array], Any]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def compare(op: Any, x: Array, y: Array) -> Array:
    widened = (x.astype(F64), y.astype(F64)) if is_float(x.dtype) else (x, y)
    return np.asarray(COMPARE[op.direction.data.value](*widened))


def select(op: Any, pred: Array, on_true: Array, on_false: Array) -> Array:
    return np.where(pred, on_true, on_false)


def from_double(function: Callable[..., Any]) -> Callable[..., Array]:
    """As `by_f64`, for a function of f64 values that is not a numpy ufunc."""

    def evaluate(op: Any, x: Array) -> Array:
        return from_f64(function(x.astype(F64)), x.dtype)

    return evaluate


EVALUATE: dict[str, Callable[..., Any]] = {
    "nd.relu": relu,
    "nd.neg": by_f32(np.negative),
    "nd.abs": by_f32(np.abs),
    "nd.sign": sign,
    "nd.exp": by_f64(np.exp),
    "nd.expm1": by_f64(np.expm1),
    "nd.log": by_f64(np.log),
    "nd.log1p": by_f64(np.log1p),
    "nd.sqrt": by_f32(np.sqrt),
    "nd.rsqrt": by_f64(_rsqrt),
    "nd.tanh": by_f64(np.tanh),
    "nd.logistic": logistic,
    "nd.erf": from_double(erf64),
    "nd.sin": by_f64(np.sin),
    "nd.cos": by_f64(np.cos),
    "nd.floor": by_f32(np.floor),
    "nd.ceil": by_f32(np.ceil),
    "nd.is_finite": is_finite,
    "nd.not": invert,
    "nd.convert": convert_op,
    "nd.add": add,
    "nd.sub": by_f32(np.subtract),
    "nd.mul": mul,
    "nd.mul_strong": mul_strong,
    "nd.div": div,
    "nd.rem": rem,
    "nd.pow": pow_,
    "nd.max": max_,
    "nd.min": min_,
    "nd.atan2": by_f64(np.arctan2),
    "nd.and": bitwise(np.bitwise_and),
    "nd.or": bitwise(np.bitwise_or),
    "nd.xor": bitwise(np.bitwise_xor),
    "nd.shl": shl,
    "nd.shr_s": shr_s,
    "nd.shr_u": shr_u,
    "nd.compare": compare,
    "nd.select": select,
    "nd.clamp": clamp,
}
