"""Numbers as small integers, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradir.dialects import nd
from gradir.dialects.nd.quantization import WHOLE
from gradir.dialects.types import element_type, i64_array, i64_attr, tensor
from gradir.frontends.python import promotion
from gradir.frontends.python.arrays import Array
from gradir.frontends.python.operands import as_array, astype, supported_dtype
from gradir.frontends.python.sizes import axis_of
from gradir.frontends.python.trace import apply, user_error


def quantize(x: Any, scale: Any, zero: Any = 0, dtype: Any = np.int8, *, axis: int | None = None, range: Sequence[int] = ()) -> Array:
    """round(clamp(x / scale + zero)) as integers of `dtype`, halves to even, NaN as 0; `axis`: one scale and zero per index of it.

    The clamp is to `range`, by default to what `dtype` holds. No derivative.
    """
    x = as_array(x)
    x = x if promotion.is_float(x.dtype) else astype(x, promotion.FLOAT32)
    stored = supported_dtype(dtype)
    if stored.kind not in "iu":
        raise user_error(f"quantize to {stored}", code="GR002", op="nd.quantize", expected="integers", found=str(stored))
    at = WHOLE if axis is None else axis_of(axis, x.ndim)
    operands = [x, as_array(scale, x.dtype), as_array(zero, stored)]
    return apply(nd.QuantizeOp, operands, tensor(element_type(stored), x.shape), axis=i64_attr(at), range=i64_array(range))


def dequantize(x: Any, scale: Any, zero: Any = 0, *, axis: int | None = None) -> Array:
    """(x - zero) * scale in the type of scale; `axis`: one scale and zero per index of it"""
    x = as_array(x)
    if x.dtype.kind not in "iu":
        raise user_error(f"dequantize of {x.dtype}", code="GR002", op="nd.dequantize", expected="integers", found=str(x.dtype))
    factor = as_array(scale)
    factor = factor if promotion.is_float(factor.dtype) else astype(factor, promotion.FLOAT32)
    at = WHOLE if axis is None else axis_of(axis, x.ndim)
    operands = [x, factor, as_array(zero, x.dtype)]
    return apply(nd.DequantizeOp, operands, tensor(factor.type.element_type, x.shape), axis=i64_attr(at))
