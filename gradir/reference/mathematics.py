"""`math`: computed in double precision and rounded once; inf, NaN and the signs of zeros as C99 has them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.ir import Operation

from gradir.dialects.upstream import math as ops
from gradir.reference.machine import Machine, Value, evaluates
from gradir.reference.scalars import check_fastmath, maximum, minimum, rounded, unsigned
from gradir.reference.values import whole

_ERF = np.vectorize(math.erf, otypes=[np.float64])
_ERFC = np.vectorize(math.erfc, otypes=[np.float64])


def erf(x: Any) -> Any:
    """The error function; sizes of 0 are fine."""
    x = np.asarray(x, np.float64)
    return _ERF(x) if x.size else x


def erfc(x: Any) -> Any:
    """1 - erf."""
    x = np.asarray(x, np.float64)
    return _ERFC(x) if x.size else x


def power(x: Any, y: Any) -> Any:
    """IEEE pow (numpy's is C's)."""
    return np.power(np.asarray(x, np.float64), np.asarray(y, np.float64))


def reciprocal_root(x: Any) -> Any:
    """`1 / sqrt(x)`."""
    return 1.0 / np.sqrt(x)


def clamp(x: Any, low: Any, high: Any) -> Any:
    """`minimum(maximum(x, low), high)`."""
    return minimum(maximum(x, low), high)


def round_away(x: Any) -> Any:
    """To nearest, halves away from zero; exact also for 0.49999999999999994."""
    whole_part = np.trunc(x)
    return np.where(np.abs(x - whole_part) >= 0.5, whole_part + np.copysign(1.0, x), np.copysign(whole_part, x))


def fused(x: Any, y: Any, z: Any, dtype: np.dtype[Any]) -> Any:
    """`x * y + z`, rounded once: exact for f64; narrower types from an f64 sum that is rounded to odd."""
    if dtype == np.float64:
        return np.vectorize(_exact_fma, otypes=[np.float64])(x, y, z) if np.size(x * y * z) else x * y + z
    product, addend = np.asarray(x, np.float64) * np.asarray(y, np.float64), np.asarray(z, np.float64)
    total = np.asarray(product + addend)
    other = total - product
    error = (product - (total - other)) + (addend - other)
    bits = total.view(np.int64)
    beside = np.where((error > 0) == (total > 0), bits + 1, bits - 1)
    return rounded(np.where((error != 0) & np.isfinite(total) & (bits & 1 == 0), beside, bits).view(np.float64), dtype)


def _exact_fma(x: float, y: float, z: float) -> float:
    if not (math.isfinite(x) and math.isfinite(y)) or x == 0 or y == 0:
        return x * y + z
    if not math.isfinite(z):
        return z
    (a, b), (c, d), (e, f) = x.as_integer_ratio(), y.as_integer_ratio(), z.as_integer_ratio()
    numerator, denominator = a * c * f + e * b * d, b * d * f
    if numerator == 0:
        return x * y + z
    try:
        return numerator / denominator  # Python's integer division rounds once
    except OverflowError:
        return math.inf if numerator > 0 else -math.inf


_FUNCTIONS: tuple[tuple[type[Operation], Callable[..., Any]], ...] = (
    (ops.AbsFOp, np.abs),
    (ops.AcosOp, np.arccos),
    (ops.AcoshOp, np.arccosh),
    (ops.AsinOp, np.arcsin),
    (ops.AsinhOp, np.arcsinh),
    (ops.AtanOp, np.arctan),
    (ops.AtanhOp, np.arctanh),
    (ops.Atan2Op, np.arctan2),
    (ops.CbrtOp, np.cbrt),
    (ops.CeilOp, np.ceil),
    (ops.CopySignOp, np.copysign),
    (ops.CosOp, np.cos),
    (ops.CoshOp, np.cosh),
    (ops.ErfOp, erf),
    (ops.ErfcOp, erfc),
    (ops.ExpOp, np.exp),
    (ops.Exp2Op, np.exp2),
    (ops.ExpM1Op, np.expm1),
    (ops.FloorOp, np.floor),
    (ops.FPowIOp, power),
    (ops.LogOp, np.log),
    (ops.Log10Op, np.log10),
    (ops.Log1pOp, np.log1p),
    (ops.Log2Op, np.log2),
    (ops.PowFOp, power),
    (ops.RoundOp, round_away),
    (ops.RoundEvenOp, np.rint),
    (ops.RsqrtOp, reciprocal_root),
    (ops.SinOp, np.sin),
    (ops.SinhOp, np.sinh),
    (ops.SqrtOp, np.sqrt),
    (ops.TanOp, np.tan),
    (ops.TanhOp, np.tanh),
    (ops.TruncOp, np.trunc),
    (ops.ClampFOp, clamp),
)


def _in_double(function: Callable[..., Any]) -> Callable[..., Value]:
    def evaluate(machine: Machine, op: Operation, *values: Value) -> Value:
        values = tuple(np.asarray(whole(machine, op, value)) for value in values)
        result = rounded(function(*(value.astype(np.float64) for value in values)), values[0].dtype)
        check_fastmath(machine, op, *values, result)
        return result

    return evaluate


for _kind, _function in _FUNCTIONS:
    evaluates(_kind)(_in_double(_function))


@evaluates(ops.FmaOp)
def _fma(machine: Machine, op: Operation, *values: Value) -> Value:
    x, y, z = (np.asarray(whole(machine, op, value)) for value in values)
    return np.asarray(fused(x, y, z, x.dtype))[()]


@evaluates(ops.IsFiniteOp)
def _isfinite(machine: Machine, op: Operation, x: Value) -> Value:
    return np.isfinite(whole(machine, op, x))


@evaluates(ops.IsInfOp)
def _isinf(machine: Machine, op: Operation, x: Value) -> Value:
    return np.isinf(whole(machine, op, x))


@evaluates(ops.IsNaNOp)
def _isnan(machine: Machine, op: Operation, x: Value) -> Value:
    return np.isnan(whole(machine, op, x))


@evaluates(ops.IsNormalOp)
def _isnormal(machine: Machine, op: Operation, x: Value) -> Value:
    x = np.asarray(whole(machine, op, x))
    return np.isfinite(x) & (np.abs(x.astype(np.float64)) >= float(np.finfo(x.dtype).smallest_normal) if x.dtype != "bfloat16" else x != 0)


def _bits(function: Callable[[int, int], int]) -> Callable[..., Value]:
    def evaluate(machine: Machine, op: Operation, x: Value) -> Value:
        x = np.asarray(whole(machine, op, x))
        width = x.dtype.itemsize * 8
        counted = [function(int(number), width) for number in unsigned(x).reshape(-1)]
        return np.asarray(counted, x.dtype).reshape(x.shape)[()]

    return evaluate


evaluates(ops.CountLeadingZerosOp)(_bits(lambda number, width: width - number.bit_length()))
evaluates(ops.CountTrailingZerosOp)(_bits(lambda number, width: (number & -number).bit_length() - 1 if number else width))
evaluates(ops.CtPopOp)(_bits(lambda number, _width: number.bit_count()))


@evaluates(ops.AbsIOp)
def _absolute_integer(machine: Machine, op: Operation, x: Value) -> Value:
    return np.abs(whole(machine, op, x))


@evaluates(ops.IPowIOp)
def _integer_power(machine: Machine, op: Operation, x: Value, y: Value) -> Value:
    x, y = np.broadcast_arrays(whole(machine, op, x), whole(machine, op, y))
    dtype = x.dtype
    bits = dtype.itemsize * 8

    def one(base: int, exponent: int) -> int:
        if exponent < 0:
            if base == 0:
                machine.fail(op, "OP103", "0 to a negative power")
            return {1: 1, -1: -1 if exponent % 2 else 1}.get(base, 0)
        return pow(base, exponent, 1 << bits)

    flat = [one(int(a), int(b)) & ((1 << bits) - 1) for a, b in zip(x.reshape(-1), y.reshape(-1))]
    return np.asarray(flat, f"u{dtype.itemsize}").view(dtype).reshape(x.shape)[()]
