"""Cumulative functions, names of numpy and `jax.lax`: `axis` None flattens, `reverse` goes from the end, `exclusive` leaves itself out."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradir.dialects import nd
from gradir.dialects.text import flag_attr
from gradir.dialects.types import i64_attr
from gradir.frontends.python import promotion
from gradir.frontends.python.arrays import OPERATORS, Array
from gradir.frontends.python.operands import as_array, astype, one_axis
from gradir.frontends.python.shape import reshape
from gradir.frontends.python.trace import apply


def _cumulative(kind: type[nd.Cumulative], x: Any, axis: int | None, reverse: bool, exclusive: bool) -> Array:
    x = as_array(x)
    if promotion.is_bool(x.dtype):
        x = astype(x, np.int32)
    if axis is None:
        x, axis = reshape(x, (-1,)), 0
    dim = one_axis(x, axis)
    return apply(kind, [x], x.type, dim=i64_attr(dim), reverse=flag_attr(reverse), exclusive=flag_attr(exclusive))


def cumsum(x: Any, axis: int | None = None, reverse: bool = False, exclusive: bool = False) -> Array:
    """Sums of the first elements; floats accumulate in f64, booleans count in i32"""
    return _cumulative(nd.CumsumOp, x, axis, reverse, exclusive)


def cumprod(x: Any, axis: int | None = None, reverse: bool = False, exclusive: bool = False) -> Array:
    """Products of the first elements; the derivative never divides by one"""
    return _cumulative(nd.CumprodOp, x, axis, reverse, exclusive)


def cumlogsumexp(x: Any, axis: int | None = None, reverse: bool = False, exclusive: bool = False) -> Array:
    """Logarithms of the sums of exponentials of the first elements; integers become f32"""
    x = as_array(x)
    if not promotion.is_float(x.dtype):
        x = astype(x, promotion.FLOAT32)
    return _cumulative(nd.CumlogsumexpOp, x, axis, reverse, exclusive)


def cummax(x: Any, axis: int | None = None, reverse: bool = False, exclusive: bool = False) -> Array:
    """Largest of the first elements, NaN if there is one; the derivative goes to the first that has it"""
    return _cumulative(nd.CummaxOp, x, axis, reverse, exclusive)


def cummin(x: Any, axis: int | None = None, reverse: bool = False, exclusive: bool = False) -> Array:
    """Smallest of the first elements, NaN if there is one; the derivative goes to the first that has it"""
    return _cumulative(nd.CumminOp, x, axis, reverse, exclusive)


OPERATORS.update(cumsum=cumsum, cumprod=cumprod)
