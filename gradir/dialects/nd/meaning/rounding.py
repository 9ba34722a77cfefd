"""Conversions between element types with one rounding each (docs/numerics.md, "Types and rounding").

numpy and ml_dtypes round f64 and i64 to bf16 twice (through f32) and leave float to integer out of range undefined; here both are defined.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

BF16 = np.dtype(ml_dtypes.bfloat16)
F16, F32, F64 = np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64)
E4M3, E5M2 = np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(ml_dtypes.float8_e5m2)
F8 = (E4M3, E5M2)
NARROW = (F16, BF16, *F8)


def is_float(dtype: np.dtype[Any]) -> bool:
    """True of f64, f32, f16, bf16, f8E4M3FN, f8E5M2."""
    return dtype.kind == "f" or dtype == BF16 or dtype in F8


def is_inexact(dtype: np.dtype[Any]) -> bool:
    """True of floats and of complex numbers: results are rounded."""
    return is_float(dtype) or dtype.kind == "c"


def in_f32(function: Callable[..., Array], *arrays: Array) -> Array:
    """`function` of the arrays; f16 and bf16 go through f32 and are rounded once."""
    dtype = arrays[0].dtype
    if dtype not in NARROW:
        return function(*arrays)
    return np.asarray(function(*(a.astype(F32) for a in arrays))).astype(dtype)


def in_f64(function: Callable[..., Array], *arrays: Array) -> Array:
    """`function` of the arrays in `accumulator`'s type, rounded to f32 and from there to a narrower type."""
    dtype = arrays[0].dtype
    wide = accumulator(dtype) if is_inexact(dtype) else F64
    result = np.asarray(function(*(a.astype(wide) for a in arrays)))
    return from_f64(result, dtype)


def from_f64(values: Array, dtype: np.dtype[Any]) -> Array:
    """Results of `accumulator`'s type in `dtype`; f16 and bf16 are rounded from f32."""
    if dtype.kind == "c":
        return np.asarray(values).astype(dtype)
    if dtype == F64:
        return np.asarray(values, F64)
    single = np.asarray(values).astype(F32)
    return single if dtype == F32 else single.astype(dtype)


def convert(values: Array, dtype: np.dtype[Any]) -> Array:
    """`values` in `dtype`: one rounding to floats, saturation from float to integer, wrapping between integers, `!= 0` to bool."""
    source = values.dtype
    if source == dtype:
        return values.copy()
    if source.kind == "c" and dtype.kind != "c":
        return convert(np.real(values), dtype)
    if dtype == np.bool_:
        return np.asarray(values != np.zeros((), source))
    if is_float(source) and not is_inexact(dtype):
        return float_to_int(values.astype(F64), dtype)
    if dtype == BF16:
        return to_bf16(values)
    if dtype in F8:  # beyond 2**24 integers overflow anyway
        return _to_odd_f32(values.astype(F64)).astype(dtype)
    return values.astype(dtype)


def float_to_int(values: Array, dtype: np.dtype[Any]) -> Array:
    """Truncate, saturate to the limits of `dtype`, NaN is 0."""
    limits = np.iinfo(dtype)
    whole = np.trunc(values)
    below, above = whole <= float(limits.min), whole >= float(limits.max)
    inside = np.where(np.isnan(whole) | below | above, 0.0, whole).astype(dtype)
    return np.where(above, dtype.type(limits.max), np.where(below, dtype.type(limits.min), inside))


def to_bf16(values: Array) -> Array:
    """Nearest bf16, one rounding: wide values are first rounded to odd in f32, which the second rounding cannot undo."""
    is_wide_int = values.dtype.kind in "iu" and values.dtype.itemsize == 8
    return _to_odd_f32(_int_to_odd_f64(values) if is_wide_int else values.astype(F64)).astype(BF16)


def _to_odd_f32(wide: Array) -> Array:
    """f64 in f32, rounded to odd."""
    nearest = wide.astype(F32)
    inexact = np.isfinite(wide) & (nearest.astype(F64) != wide)
    toward_zero = np.where(np.abs(nearest.astype(F64)) > np.abs(wide), np.nextafter(nearest, np.float32(0)), nearest)
    odd = np.asarray(np.asarray(toward_zero, F32).view(np.uint32) | np.uint32(1)).view(F32)
    return np.where(inexact, odd, nearest)


def _int_to_odd_f64(values: Array) -> Array:
    """64-bit integers in f64; of those above 2**40 the low 20 bits only count as "not zero"."""
    low = (values & values.dtype.type((1 << 20) - 1)) != 0
    high = (values >> values.dtype.type(20)) | low.astype(values.dtype)
    small = (values < (1 << 40)) & (values > -(1 << 40)) if values.dtype.kind == "i" else values < (1 << 40)
    return np.where(small, values.astype(F64), high.astype(F64) * float(1 << 20))


def least(dtype: np.dtype[Any]) -> Any:
    """The identity of max: -inf, the least integer, false."""
    if dtype == np.bool_:
        return np.bool_(False)
    if dtype == E4M3:  # without infinities
        return dtype.type(-448.0)
    return dtype.type(-np.inf) if is_float(dtype) else dtype.type(np.iinfo(dtype).min)


def greatest(dtype: np.dtype[Any]) -> Any:
    """The identity of min: inf, the greatest integer, true."""
    if dtype == np.bool_:
        return np.bool_(True)
    if dtype == E4M3:
        return dtype.type(448.0)
    return dtype.type(np.inf) if is_float(dtype) else dtype.type(np.iinfo(dtype).max)


def accumulator(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """In what sums of this type run: f64 for floats, twice the digits for complex numbers, the type itself for integers."""
    if dtype.kind == "c":
        return np.dtype(np.complex128 if dtype == np.complex64 else np.clongdouble)
    return F64 if is_float(dtype) else dtype
