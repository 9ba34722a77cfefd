"""Which element type a result has when operands differ.

- A Python scalar is *weak*: it takes the array's type; a float with an integer or boolean array gives f32, an integer with
  a boolean array gives i32.
- Two integers give the wider one; of equal width and different sign, the signed one of twice the width (i64 at most).
- An integer or boolean with a float gives the float. Two floats of one width (f16 and bf16, two of 8 bits) give f32. Otherwise the
  wider float.
- Nothing is ever widened to f64 unless an operand is f64 already.
- A complex number makes the result complex: complex64, or complex128 where an operand is f64 or complex128 already.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
FLOAT32 = np.dtype(np.float32)
COMPLEX64 = np.dtype(np.complex64)
_F8 = (np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(ml_dtypes.float8_e5m2))
_FLOATS = (*_F8, np.dtype(np.float16), BFLOAT16, FLOAT32, np.dtype(np.float64))
_SIGNED = {1: np.dtype(np.int8), 2: np.dtype(np.int16), 4: np.dtype(np.int32), 8: np.dtype(np.int64)}


def is_float(dtype: np.dtype[Any]) -> bool:
    return dtype in _FLOATS


def is_complex(dtype: np.dtype[Any]) -> bool:
    return dtype.kind == "c"


def is_inexact(dtype: np.dtype[Any]) -> bool:
    """A float or a complex number: what has a derivative."""
    return is_float(dtype) or is_complex(dtype)


def complex_of(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The complex type that holds numbers of this one."""
    return np.dtype(np.complex128) if dtype in (np.dtype(np.float64), np.dtype(np.complex128)) else COMPLEX64


def is_bool(dtype: np.dtype[Any]) -> bool:
    return dtype.kind == "b"


def weak_dtype(scalar: complex | str) -> np.dtype[Any]:
    """The type of a Python scalar that meets no array; a run-time size (a `Dim`, which is a text) counts as an integer."""
    if isinstance(scalar, bool):
        return np.dtype(np.bool_)
    if isinstance(scalar, complex):
        return COMPLEX64
    return np.dtype(np.int32) if isinstance(scalar, int | str) else FLOAT32


def with_scalar(dtype: np.dtype[Any], scalar: complex | str) -> np.dtype[Any]:
    """The type of an array of `dtype` combined with a Python scalar."""
    if isinstance(scalar, complex):
        return complex_of(dtype)
    if isinstance(scalar, bool) or is_inexact(dtype):
        return dtype
    if isinstance(scalar, int | str):
        return np.dtype(np.int32) if is_bool(dtype) else dtype
    return FLOAT32


def promote(a: np.dtype[Any], b: np.dtype[Any]) -> np.dtype[Any]:
    """The type of two arrays combined."""
    if a == b:
        return a
    if is_complex(a) or is_complex(b):
        return max(complex_of(a), complex_of(b), key=lambda d: d.itemsize)
    if is_float(a) and is_float(b):
        return FLOAT32 if a.itemsize == b.itemsize else max(a, b, key=lambda d: d.itemsize)
    if is_float(a) or is_float(b):
        return a if is_float(a) else b
    if is_bool(a) or is_bool(b):
        return b if is_bool(a) else a
    if a.kind == b.kind:
        return max(a, b, key=lambda d: d.itemsize)
    signed, unsigned = (a, b) if a.kind == "i" else (b, a)
    return signed if signed.itemsize > unsigned.itemsize else _SIGNED[min(8, 2 * unsigned.itemsize)]
