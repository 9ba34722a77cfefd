"""`arith` on scalars, vectors, tensors and whole iteration grids alike: numpy's elementwise functions with upstream's corners.

f16 and bf16 are computed in f32 and rounded once. Poison (wide shifts, conversions out of range, broken flags) and undefined
behaviour (division by zero) are errors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
from xdsl.ir import Operation

from gradir.dialects.upstream import arith
from gradir.dialects.upstream.arith import FastMathFlagsAttr, IntegerOverflowAttr
from gradir.reference.machine import Machine, Value, evaluates
from gradir.reference.values import constant, dtype_of, is_index, whole

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


@evaluates(arith.ConstantOp)
def _constant(_machine: Machine, op: arith.ConstantOp) -> Value:
    return constant(op.value)


def unsigned(x: Any) -> Any:
    """The same bits read as unsigned."""
    array = np.asarray(x)
    return array if array.dtype == np.bool_ else array.view(f"u{array.dtype.itemsize}")


def signed(x: Any, like: Any) -> Any:
    """Unsigned bits back in the dtype of `like`."""
    return np.asarray(x).astype(unsigned(like).dtype).view(np.asarray(like).dtype)


def maximum(x: Any, y: Any) -> Any:
    """IEEE 754-2019 maximum: NaN wins, +0 is greater than -0."""
    return np.where((x == 0) & (y == 0), x + y, np.maximum(x, y)).astype(np.asarray(x).dtype)


def minimum(x: Any, y: Any) -> Any:
    """IEEE 754-2019 minimum: NaN wins, -0 is less than +0."""
    return np.where((x == 0) & (y == 0), -(-x - y), np.minimum(x, y)).astype(np.asarray(x).dtype)


def check_fastmath(machine: Machine, op: Operation, *values: Any) -> None:
    """nnan and ninf are promises: poison when broken."""
    flags = op.properties.get("fastmath")
    if not isinstance(flags, FastMathFlagsAttr) or not flags.data:
        return
    names = {flag.value for flag in flags.data}
    if names & {"nnan", "fast"} and any(np.isnan(value).any() for value in values):
        machine.fail(op, "OP103", "a NaN under the flag nnan")
    if names & {"ninf", "fast"} and any(np.isinf(value).any() for value in values):
        machine.fail(op, "OP103", "an infinity under the flag ninf")


def _float_op(function: Callable[..., Any]) -> Callable[..., Value]:
    def evaluate(machine: Machine, op: Operation, *values: Value) -> Value:
        values = tuple(whole(machine, op, value) for value in values)
        result = function(*values)
        if op.properties.get("fastmath") is not None:
            check_fastmath(machine, op, *values, result)
        return result

    return evaluate


def remainder(x: Any, y: Any) -> Any:
    """C's fmod; f16 and bf16 through f32, which is exact."""
    if np.asarray(x).dtype.itemsize == 2:
        return np.fmod(np.asarray(x, np.float32), np.asarray(y, np.float32)).astype(np.asarray(x).dtype)
    return np.fmod(x, y)


for _kind, _function in (
    (arith.AddfOp, np.add),
    (arith.SubfOp, np.subtract),
    (arith.MulfOp, np.multiply),
    (arith.DivfOp, np.divide),
    (arith.RemFOp, remainder),
    (arith.NegfOp, np.negative),
    (arith.MaximumfOp, maximum),
    (arith.MinimumfOp, minimum),
    (arith.MaxnumfOp, np.fmax),
    (arith.MinnumfOp, np.fmin),
):
    evaluates(_kind)(_float_op(_function))


def _integer_op(function: Callable[..., Any]) -> Callable[..., Value]:
    def evaluate(machine: Machine, op: Operation, x: Value, y: Value) -> Value:
        x, y = whole(machine, op, x), whole(machine, op, y)
        check_overflow(machine, op, function, x, y)
        return function(x, y)

    return evaluate


def check_overflow(machine: Machine, op: Operation, function: Callable[..., Any], x: Any, y: Any) -> None:
    """nsw and nuw are promises: poison when the exact result does not fit."""
    flags = op.properties.get("overflowFlags")
    if not isinstance(flags, IntegerOverflowAttr) or not flags.data:
        return
    for flag in flags.data:
        read = unsigned if flag.value == "nuw" else np.asarray
        exact = function(read(x).astype(object), read(y).astype(object))
        limits = np.iinfo(read(x).dtype)
        if np.any(exact < limits.min) or np.any(exact > limits.max):
            machine.fail(op, "OP103", f"the result overflows under the flag {flag.value}", found=f"{x}, {y}")


def _modulo_two(integer: Callable[..., Any], boolean: Callable[..., Any]) -> Callable[..., Any]:
    """numpy's bool arithmetic is logic; that of `i1` is modulo 2, and its signed order has true as -1."""

    def choose(x: Any, y: Any) -> Any:
        return (boolean if np.asarray(x).dtype == np.bool_ else integer)(x, y)

    return choose


def _by_bits(function: Callable[..., Any]) -> Callable[..., Any]:
    def by_bits(x: Any, y: Any) -> Any:
        return signed(function(unsigned(x), unsigned(y)), x)

    return by_bits


for _kind, _function in (
    (arith.AddiOp, _modulo_two(np.add, np.logical_xor)),
    (arith.SubiOp, _modulo_two(np.subtract, np.logical_xor)),
    (arith.MuliOp, _modulo_two(np.multiply, np.logical_and)),
    (arith.AndIOp, np.bitwise_and),
    (arith.OrIOp, np.bitwise_or),
    (arith.XOrIOp, np.bitwise_xor),
    (arith.MaxSIOp, _modulo_two(np.maximum, np.logical_and)),
    (arith.MinSIOp, _modulo_two(np.minimum, np.logical_or)),
    (arith.MaxUIOp, _by_bits(np.maximum)),
    (arith.MinUIOp, _by_bits(np.minimum)),
):
    evaluates(_kind)(_integer_op(_function))


def truncated_quotient(x: Any, y: Any) -> Any:
    """`x / y` toward zero."""
    quotient = np.floor_divide(x, y)
    return np.where((np.remainder(x, y) != 0) & ((x < 0) != (y < 0)), quotient + 1, quotient).astype(np.asarray(x).dtype)


def _ceiling_quotient(x: Any, y: Any) -> Any:
    return (np.floor_divide(x, y) + (np.remainder(x, y) != 0)).astype(np.asarray(x).dtype)


def _division(function: Callable[..., Any], *, by_bits: bool = False) -> Callable[..., Value]:
    def evaluate(machine: Machine, op: Operation, x: Value, y: Value) -> Value:
        x, y = whole(machine, op, x), whole(machine, op, y)
        if np.any(np.equal(y, 0)):
            machine.fail(op, "OP103", "division by zero", hint="select another divisor before the op")
        if by_bits:
            return signed(function(unsigned(x), unsigned(y)), x)
        if np.any((x == np.iinfo(np.asarray(x).dtype).min) & (y == -1)):
            machine.fail(op, "OP103", "MIN / -1 overflows", hint="select another divisor before the op")
        return function(x, y)

    return evaluate


for _kind, _function, _bits in (
    (arith.DivSIOp, truncated_quotient, False),
    (arith.RemSIOp, np.fmod, False),
    (arith.FloorDivSIOp, np.floor_divide, False),
    (arith.CeilDivSIOp, _ceiling_quotient, False),
    (arith.DivUIOp, np.floor_divide, True),
    (arith.RemUIOp, np.remainder, True),
    (arith.CeilDivUIOp, _ceiling_quotient, True),
):
    evaluates(_kind)(_division(_function, by_bits=_bits))


def _shift(function: Callable[..., Any], *, by_bits: bool = True) -> Callable[..., Value]:
    def evaluate(machine: Machine, op: Operation, x: Value, y: Value) -> Value:
        x, y = whole(machine, op, x), whole(machine, op, y)
        width = 1 if np.asarray(x).dtype == np.bool_ else np.asarray(x).dtype.itemsize * 8
        if np.any(unsigned(y) >= width):
            machine.fail(op, "OP103", f"shift by the width {width} or more", found=str(y), hint="guard wide shifts with a select")
        if width == 1:
            return x
        return signed(function(unsigned(x), unsigned(y)), x) if by_bits else function(x, y)

    return evaluate


evaluates(arith.ShLIOp)(_shift(np.left_shift))
evaluates(arith.ShRUIOp)(_shift(np.right_shift))
evaluates(arith.ShRSIOp)(_shift(np.right_shift, by_bits=False))


@evaluates(arith.AddUIExtendedOp)
def _add_extended(machine: Machine, op: Operation, x: Value, y: Value) -> Value:
    a, b = unsigned(whole(machine, op, x)), unsigned(whole(machine, op, y))
    total = a + b
    return signed(total, x), total < a


def _multiply_extended(read: Callable[[Any], Any]) -> Callable[..., Value]:
    def evaluate(machine: Machine, op: Operation, x: Value, y: Value) -> Value:
        a, b = whole(machine, op, x), whole(machine, op, y)
        bits = np.asarray(a).dtype.itemsize * 8
        exact = read(a).astype(object) * read(b).astype(object)
        mask = (1 << bits) - 1
        halves = (exact & mask, (exact >> bits) & mask)
        return tuple(np.asarray(half).astype(unsigned(a).dtype).view(np.asarray(a).dtype) for half in halves)

    return evaluate


evaluates(arith.MulUIExtendedOp)(_multiply_extended(unsigned))
evaluates(arith.MulSIExtendedOp)(_multiply_extended(np.asarray))

_FLOAT_ORDER = {"eq": np.equal, "gt": np.greater, "ge": np.greater_equal, "lt": np.less, "le": np.less_equal, "ne": np.not_equal}


@evaluates(arith.CmpfOp)
def _compare_floats(machine: Machine, op: arith.CmpfOp, x: Value, y: Value) -> Value:
    x, y = whole(machine, op, x), whole(machine, op, y)
    check_fastmath(machine, op, x, y)
    unordered = np.isnan(x) | np.isnan(y)
    name = op.predicate_name
    if name in ("true", "false"):
        return np.full(np.shape(unordered), name == "true")
    if name in ("ord", "uno"):
        return ~unordered if name == "ord" else unordered
    holds = _FLOAT_ORDER[name[1:]](x, y)
    return holds & ~unordered if name[0] == "o" else holds | unordered


@evaluates(arith.CmpiOp)
def _compare_integers(machine: Machine, op: arith.CmpiOp, x: Value, y: Value) -> Value:
    x, y = whole(machine, op, x), whole(machine, op, y)
    name = op.predicate_name
    if name in ("eq", "ne"):
        return _FLOAT_ORDER[name](x, y)
    if np.asarray(x).dtype == np.bool_:
        x, y = (np.asarray(value).astype(np.int8) * (-1 if name[0] == "s" else 1) for value in (x, y))
    elif name[0] == "u":
        x, y = unsigned(x), unsigned(y)
    return _FLOAT_ORDER[name[1:]](x, y)


@evaluates(arith.SelectOp)
def _select(machine: Machine, op: Operation, condition: Value, x: Value, y: Value) -> Value:
    condition = whole(machine, op, condition)
    if np.ndim(condition) == 0:
        return x if condition else y
    x, y = whole(machine, op, x), whole(machine, op, y)
    return np.where(condition, x, y).astype(np.asarray(x).dtype)


def rounded(x: Any, dtype: np.dtype[Any]) -> Any:
    """Floats as another float type, rounded once to nearest even (ml_dtypes alone rounds f64 to bf16 and f8 twice)."""
    x = np.asarray(x)
    if (dtype == BFLOAT16 or dtype.itemsize == 1) and x.dtype == np.float64:
        single = x.astype(np.float32)
        bits = single.view(np.uint32)
        # round to odd in f32: a second rounding to 8 bits then sees on which side the exact value lies
        inexact = (single.astype(np.float64) != x) & np.isfinite(single)
        too_far = inexact & (np.abs(single.astype(np.float64)) > np.abs(x))
        odd = np.where(too_far, bits - 1, bits)
        x = np.where(inexact, odd | 1, bits).astype(np.uint32).view(np.float32)
    return x.astype(dtype)[()]


@evaluates(arith.ExtFOp, arith.TruncFOp)
def _resize_float(machine: Machine, op: Operation, x: Value) -> Value:
    return rounded(whole(machine, op, x), dtype_of(op.results[0].type))


def _to_integer(*, is_signed: bool) -> Callable[..., Value]:
    def evaluate(machine: Machine, op: Operation, x: Value) -> Value:
        dtype = dtype_of(op.results[0].type)
        x = np.asarray(whole(machine, op, x))
        exact = np.trunc(x.astype(np.float64))
        bits = 1 if dtype == np.bool_ else dtype.itemsize * 8
        low, high = (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1)) if is_signed else (0.0, 2.0**bits)
        outside = ~((exact >= low) & (exact < high))
        if np.any(outside):
            message = f"a float does not fit {op.results[0].type}"
            machine.fail(op, "OP103", message, found=str(x[outside].reshape(-1)[0]), hint="clamp the operand first")
        if dtype == np.bool_:
            return (exact != 0)[()]
        return exact.astype(dtype if is_signed else f"u{dtype.itemsize}").view(dtype)[()]

    return evaluate


evaluates(arith.FPToSIOp)(_to_integer(is_signed=True))
evaluates(arith.FPToUIOp)(_to_integer(is_signed=False))


def _read_as(x: np.ndarray[Any, Any], is_signed: bool) -> np.ndarray[Any, Any]:
    """The bits of `x` as signed or unsigned numbers; a signed `true` is -1."""
    if x.dtype == np.bool_:
        return -x.astype(np.int8) if is_signed else x.astype(np.int8)
    return x if is_signed else unsigned(x)


def _to_float(*, is_signed: bool) -> Callable[..., Value]:
    def evaluate(machine: Machine, op: Operation, x: Value) -> Value:
        dtype = dtype_of(op.results[0].type)
        x = _read_as(np.asarray(whole(machine, op, x)), is_signed)
        if dtype.itemsize < 4 and x.dtype.itemsize > 2:
            return _integers_to_half(x, dtype)[()]
        return x.astype(dtype)[()]

    return evaluate


def _integers_to_half(x: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Through f64, with a sticky bit for what does not fit its 53 bits, so that the result is rounded once."""

    def sticky(number: int) -> float:
        magnitude = abs(number)
        if magnitude >= 2**53:
            magnitude = ((magnitude >> 11) | (magnitude & 2047 != 0)) << 11
        return float(-magnitude if number < 0 else magnitude)

    wide = np.array([sticky(int(number)) for number in x.reshape(-1)], np.float64)
    return np.asarray(rounded(wide, dtype)).reshape(x.shape)


evaluates(arith.SIToFPOp)(_to_float(is_signed=True))
evaluates(arith.UIToFPOp)(_to_float(is_signed=False))


def _resize_integer(*, is_signed: bool) -> Callable[..., Value]:
    def evaluate(machine: Machine, op: Operation, x: Value) -> Value:
        dtype = dtype_of(op.results[0].type)
        x = _read_as(np.asarray(whole(machine, op, x)), is_signed)
        if dtype == np.bool_:
            return ((x & 1) != 0)[()]
        return x.astype(dtype)[()]

    return evaluate


evaluates(arith.ExtSIOp, arith.IndexCastOp)(_resize_integer(is_signed=True))
evaluates(arith.ExtUIOp, arith.IndexCastUIOp, arith.TruncIOp)(_resize_integer(is_signed=False))


@evaluates(arith.BitcastOp)
def _bitcast(machine: Machine, op: Operation, x: Value) -> Value:
    x = np.asarray(whole(machine, op, x))
    if is_index(op.results[0].type):
        return x.astype(np.int64)[()]
    return np.ascontiguousarray(x).view(dtype_of(op.results[0].type)).reshape(x.shape)[()]
