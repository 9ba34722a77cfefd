"""Meaning of the ops without tensor operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr

from gradir.dialects.nd.complex import ComplexAttr
from gradir.dialects.nd.meaning.rounding import Array, convert, is_float, is_inexact
from gradir.dialects.nd.meaning.shape import result_sizes
from gradir.dialects.nd.resource import ResourceAttr
from gradir.dialects.types import element_of, numpy_dtype, static_shape


def constant(op: Any) -> Array:
    value, dtype, shape = op.value, numpy_dtype(element_of(op.result)), static_shape(op.result)
    if isinstance(value, ResourceAttr):
        return value.array
    if isinstance(value, DenseIntOrFPElementsAttr):
        numbers: list[Any] = [complex(*pair) if isinstance(pair, tuple) else pair for pair in value.get_values()]
        items = np.array(numbers, np.float64 if is_float(dtype) else object if dtype.kind in "iu" else None)
        return np.broadcast_to(items.astype(dtype), [len(numbers)]).reshape(shape) if len(numbers) > 1 else np.full(shape, items[0], dtype)
    number = value.number if isinstance(value, ComplexAttr) else value.value.data
    return np.full(shape, bool(number) if dtype == np.bool_ else number, dtype)


def iota(op: Any, *sizes: Any) -> Array:
    shape, dim = result_sizes(op, sizes), op.number("dim")
    counted = convert(np.arange(shape[dim], dtype=np.int64), numpy_dtype(element_of(op.result)))
    return np.broadcast_to(counted.reshape([-1 if d == dim else 1 for d in range(len(shape))]), shape).copy()


def empty(op: Any, *sizes: Any) -> Array:
    """NaN, or the least integer: whoever reads it sees that it was never written."""
    dtype = numpy_dtype(element_of(op.result))
    if dtype == np.bool_:
        return np.zeros(result_sizes(op, sizes), dtype)
    return np.full(result_sizes(op, sizes), np.nan if is_inexact(dtype) else np.iinfo(dtype).min, dtype)


EVALUATE: dict[str, Callable[..., Any]] = {"nd.constant": constant, "nd.iota": iota, "nd.empty": empty}
