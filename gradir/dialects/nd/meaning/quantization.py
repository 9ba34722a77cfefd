"""Meaning of quantization: the formulas in f32, or f64 of f64, so that ties fall alike everywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradir.dialects.nd.meaning.rounding import F32, F64, Array, convert, float_to_int
from gradir.dialects.types import element_of, numpy_dtype


def _along(op: Any, parameter: Array, rank: int) -> Array:
    axis = op.number("axis")
    return parameter if axis < 0 else parameter.reshape([-1 if d == axis else 1 for d in range(rank)])


def quantize(op: Any, x: Array, scale: Array, zero: Array) -> Array:
    inside = F64 if x.dtype == F64 else F32
    low, high = op.limits
    moved = x.astype(inside) / _along(op, scale.astype(inside), x.ndim) + _along(op, convert(zero, inside), x.ndim)
    clamped = np.minimum(np.maximum(moved, inside.type(low)), inside.type(high))
    return float_to_int(np.rint(clamped).astype(F64), numpy_dtype(element_of(op.result)))


def dequantize(op: Any, x: Array, scale: Array, zero: Array) -> Array:
    inside = F64 if scale.dtype == F64 else F32
    moved = convert(x, inside) - _along(op, convert(zero, inside), x.ndim)
    return np.asarray(moved * _along(op, scale.astype(inside), x.ndim)).astype(scale.dtype)


EVALUATE: dict[str, Callable[..., Any]] = {"nd.quantize": quantize, "nd.dequantize": dequantize}
