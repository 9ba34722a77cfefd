"""Meaning of the ops on the bits of numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradir.dialects.nd.bits import FORMATS
from gradir.dialects.nd.meaning.rounding import Array
from gradir.dialects.types import element_of, numpy_dtype


def bitcast_convert(op: Any, x: Array) -> Array:
    target = numpy_dtype(element_of(op.result))
    x = np.ascontiguousarray(x).reshape(x.shape).astype(x.dtype.newbyteorder("<"), copy=False)  # ascontiguousarray makes rank 0 rank 1
    if target.itemsize == x.dtype.itemsize:
        return x.view(target).copy()
    if target.itemsize < x.dtype.itemsize:
        return x[..., None].view(target).copy()
    return x.view(target)[..., 0].copy()


def reduce_precision(op: Any, x: Array) -> Array:
    """StableHLO's interpreter, on the bits: round to nearest even, then overflow to inf and underflow to zero."""
    exponent, mantissa = FORMATS[type(element_of(op.operand))]
    wanted_exponent, wanted_mantissa = op.number("exponent_bits"), op.number("mantissa_bits")
    unsigned = np.dtype(f"uint{8 * x.dtype.itemsize}")
    bits = x.view(unsigned)
    sign = bits & unsigned.type(1 << (exponent + mantissa))
    magnitude = bits ^ sign
    top = unsigned.type(((1 << exponent) - 1) << mantissa)  # the bits of inf
    if wanted_mantissa < mantissa:
        dropped = mantissa - wanted_mantissa
        odd = (magnitude >> unsigned.type(dropped)) & unsigned.type(1)
        magnitude = magnitude + odd + unsigned.type((1 << (dropped - 1)) - 1)
        magnitude = magnitude & ~unsigned.type((1 << dropped) - 1)
    if wanted_exponent < exponent:
        bias, narrow_bias = (1 << (exponent - 1)) - 1, (1 << (wanted_exponent - 1)) - 1
        field = magnitude & top
        overflow = field > unsigned.type((bias + narrow_bias) << mantissa)
        underflow = field <= unsigned.type((bias - narrow_bias) << mantissa)
        magnitude = np.where(overflow, top, np.where(underflow, unsigned.type(0), magnitude))
    nan = np.isnan(x)
    rounded = (magnitude | sign).astype(unsigned).view(x.dtype)
    return np.where(nan, x if wanted_mantissa else (top | sign).astype(unsigned).view(x.dtype), rounded).astype(x.dtype)


def next_after(op: Any, x: Array, y: Array) -> Array:
    return np.asarray(np.nextafter(x, y))


EVALUATE: dict[str, Callable[..., Any]] = {
    "nd.bitcast_convert": bitcast_convert,
    "nd.reduce_precision": reduce_precision,
    "nd.next_after": next_after,
}
