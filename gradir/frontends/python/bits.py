"""Functions of the bits of numbers."""

from __future__ import annotations

from typing import Any

from gradir.dialects import nd
from gradir.dialects.nd.bits import width_of
from gradir.dialects.types import element_type, i64_attr, tensor
from gradir.frontends.python import promotion
from gradir.frontends.python.arrays import Array
from gradir.frontends.python.operands import as_array, astype, float_dtype, supported_dtype, together
from gradir.frontends.python.sizes import whole
from gradir.frontends.python.trace import apply, user_error


def bitcast_convert(x: Any, dtype: Any) -> Array:
    """The bits of x read as `dtype`, as `jax.lax.bitcast_convert_type`: a type k times as narrow adds a last dimension of size k.

    A type k times as wide takes a last dimension of size k away. Little-endian; derivative 0.
    """
    x = as_array(x)
    wanted = supported_dtype(dtype)
    for kind in (x.dtype, wanted):
        if promotion.is_bool(kind):
            raise user_error("bits of booleans", code="GR002", op="nd.bitcast_convert", expected="floats or integers", found=str(kind))
    element = element_type(wanted)
    if element == x.type.element_type:
        return x
    shape = nd.BitcastConvertOp.shape(x.shape, width_of(x.type.element_type), width_of(element))
    return apply(nd.BitcastConvertOp, [x], tensor(element, shape))


def reduce_precision(x: Any, exponent_bits: int, mantissa_bits: int) -> Array:
    """x rounded to a float of so many bits of exponent and mantissa, in its own type; derivative 1"""
    x = as_array(x)
    if not promotion.is_inexact(x.dtype):
        x = astype(x, promotion.FLOAT32)
    exponent, mantissa = whole("the number of exponent bits", exponent_bits, 1), whole("the number of mantissa bits", mantissa_bits, 0)
    return apply(nd.ReducePrecisionOp, [x], x.type, exponent_bits=i64_attr(exponent), mantissa_bits=i64_attr(mantissa))


def nextafter(x: Any, y: Any) -> Array:
    """The float next to x in the direction of y; derivative 1 by x, 0 by y"""
    a, b = together("nextafter", x, y, dtype=float_dtype(x, y))
    return apply(nd.NextAfterOp, [a, b], a.type)
