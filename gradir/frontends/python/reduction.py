"""Reductions, numpy's names: `axis` is None (all), an int or a tuple; `keepdims` keeps size-1 dimensions."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, i32, i64
from xdsl.ir import Attribute, Operation

from gradir.dialects import nd
from gradir.dialects.types import i64_array, i64_attr, tensor
from gradir.frontends.python import promotion
from gradir.frontends.python.arrays import OPERATORS, Array
from gradir.frontends.python.elementwise import divide, multiply, sqrt, square, subtract, where as choose
from gradir.frontends.python.operands import as_array, astype, broadcast_to, normalize_axes, one_axis, with_shape
from gradir.frontends.python.shape import reshape
from gradir.frontends.python.sizes import whole
from gradir.frontends.python.trace import apply, user_error

Axis: TypeAlias = int | tuple[int, ...] | None


def _reduce(kind: type[Operation], x: Array, axis: Axis, keepdims: bool) -> Array:
    axes = normalize_axes(x, axis)
    shape = tuple(n for k, n in enumerate(x.shape) if k not in axes)
    out = x if not axes else apply(kind, [x], with_shape(x, shape), dims=i64_array(axes))
    return reshape(out, tuple(1 if k in axes else n for k, n in enumerate(x.shape))) if keepdims else out


def _counted(x: Any) -> Array:
    """Booleans are counted in i32."""
    x = as_array(x)
    return astype(x, np.int32) if promotion.is_bool(x.dtype) else x


def sum(x: Any, axis: Axis = None, keepdims: bool = False, where: Any = None) -> Array:
    """Sum (of the elements `where` a mask holds); floats accumulate in f32 at least"""
    x = _counted(x)
    return _reduce(nd.ReduceSumOp, x if where is None else choose(where, x, 0), axis, keepdims)


def prod(x: Any, axis: Axis = None, keepdims: bool = False) -> Array:
    """Product; its derivative never divides by an element"""
    return _reduce(nd.ReduceProdOp, _counted(x), axis, keepdims)


def max(x: Any, axis: Axis = None, keepdims: bool = False) -> Array:
    """Largest element, NaN if there is one; ties share the derivative"""
    x = as_array(x)
    _not_empty("max", x, axis)
    return _reduce(nd.ReduceAnyOp if promotion.is_bool(x.dtype) else nd.ReduceMaxOp, x, axis, keepdims)


def min(x: Any, axis: Axis = None, keepdims: bool = False) -> Array:
    """Smallest element, NaN if there is one; ties share the derivative"""
    x = as_array(x)
    _not_empty("min", x, axis)
    return _reduce(nd.ReduceAllOp if promotion.is_bool(x.dtype) else nd.ReduceMinOp, x, axis, keepdims)


def any(x: Any, axis: Axis = None, keepdims: bool = False) -> Array:
    """True where some element is not 0"""
    return _reduce(nd.ReduceAnyOp, astype(x, np.bool_), axis, keepdims)


def all(x: Any, axis: Axis = None, keepdims: bool = False) -> Array:
    """True where no element is 0"""
    return _reduce(nd.ReduceAllOp, astype(x, np.bool_), axis, keepdims)


def mean(x: Any, axis: Axis = None, keepdims: bool = False, where: Any = None) -> Array:
    """Arithmetic mean (of the elements `where` a mask holds); NaN of an empty axis. f16 and bf16 are summed and divided in f32"""
    x = as_array(x)
    if where is not None:
        return _masked_mean(x, axis, keepdims, where)
    dtype = x.dtype if promotion.is_inexact(x.dtype) else promotion.FLOAT32
    wide = dtype if dtype.itemsize >= 8 else promotion.FLOAT32
    count = math.prod(x.shape[k] for k in normalize_axes(x, axis))
    return astype(divide(sum(astype(x, wide), axis, keepdims), as_array(count, wide)), dtype)


def _masked_mean(x: Array, axis: Axis, keepdims: bool, where: Any) -> Array:
    dtype = x.dtype if promotion.is_inexact(x.dtype) else promotion.FLOAT32
    wide = dtype if dtype.itemsize >= 8 else promotion.FLOAT32
    count = sum(choose(where, as_array(np.ones(x.shape, wide)), 0), axis, keepdims)
    return astype(divide(sum(astype(x, wide), axis, keepdims, where), count), dtype)


def average(x: Any, axis: Axis = None, weights: Any = None, keepdims: bool = False) -> Array:
    """The mean with weights of the shape of `x`, or one for each index of `axis`; without them `mean`"""
    if weights is None:
        return mean(x, axis, keepdims)
    x, weights = as_array(x), as_array(weights)
    if len(weights.shape) == 1 and isinstance(axis, int) and len(x.shape) > 1:
        along = one_axis(x, axis)
        weights = reshape(weights, tuple(-1 if k == along else 1 for k in range(len(x.shape))))
    return divide(sum(multiply(x, weights), axis, keepdims), sum(broadcast_to(weights, x.shape), axis, keepdims))


def count_nonzero(x: Any, axis: Axis = None, keepdims: bool = False) -> Array:
    """How many elements are not 0, i32"""
    return sum(astype(x, np.bool_), axis, keepdims)


def var(x: Any, axis: Axis = None, keepdims: bool = False, correction: int = 0, ddof: int = 0) -> Array:
    """Mean squared distance from the mean, in two passes; `correction` (or `ddof`) is subtracted from the count (1: sample variance)"""
    x = as_array(x)
    correction = correction or ddof
    if promotion.is_complex(x.dtype):
        far = subtract(x, mean(x, axis, True))
        squares = sum(square(OPERATORS["abs"](far)), axis, keepdims)
        count = math.prod(x.shape[k] for k in normalize_axes(x, axis))
        return divide(squares, as_array(count - correction, squares.dtype))
    if not promotion.is_float(x.dtype):
        x = astype(x, promotion.FLOAT32)
    return _over(nd.VarianceOp, x, axis, keepdims, correction=i64_attr(whole("the correction", correction)))


def _over(kind: type[Operation], x: Array, axis: Axis, keepdims: bool, **more: Attribute) -> Array:
    axes = normalize_axes(x, axis)
    out = apply(kind, [x], with_shape(x, tuple(n for k, n in enumerate(x.shape) if k not in axes)), dims=i64_array(axes), **more)
    return reshape(out, tuple(1 if k in axes else n for k, n in enumerate(x.shape))) if keepdims else out


def std(x: Any, axis: Axis = None, keepdims: bool = False, correction: int = 0, ddof: int = 0) -> Array:
    """Square root of the variance; its derivative where all elements are equal is 0"""
    return sqrt(var(x, axis, keepdims, correction, ddof))


def norm(x: Any, axis: Axis = None, ord: float = 2, keepdims: bool = False) -> Array:
    """Length of the vectors along `axis`: ord 2, 1, or inf; without overflow inside, its derivative at 0 is 0"""
    x = as_array(x)
    if ord not in (1, 2, math.inf):
        raise user_error("unknown order of a norm", code="GR112", op="nd.norm", expected="1, 2 or inf", found=repr(ord))
    if promotion.is_complex(x.dtype):
        x = OPERATORS["abs"](x)
    if not promotion.is_float(x.dtype):
        x = astype(x, promotion.FLOAT32)
    if ord == 2:
        return _over(nd.NormOp, x, axis, keepdims)
    size = OPERATORS["abs"](x)
    return sum(size, axis, keepdims) if ord == 1 else max(size, axis, keepdims)


def _arg(kind: type[Operation], name: str, x: Any, axis: int | None) -> Array:
    x = as_array(x)
    if axis is None:
        x, axis = reshape(x, (-1,)), 0
    dim = one_axis(x, axis)
    _not_empty(name, x, dim)
    shape = tuple(n for k, n in enumerate(x.shape) if k != dim)
    return apply(kind, [x], tensor(i32, shape), dim=IntegerAttr(dim, i64))


def argmax(x: Any, axis: int | None = None) -> Array:
    """Position of the first largest element (of the first NaN), i32"""
    return _arg(nd.ArgmaxOp, "argmax", x, axis)


def argmin(x: Any, axis: int | None = None) -> Array:
    """Position of the first smallest element (of the first NaN), i32"""
    return _arg(nd.ArgminOp, "argmin", x, axis)


def _not_empty(name: str, x: Array, axis: Axis) -> None:
    axes = normalize_axes(x, axis)
    if any_zero := [k for k in axes if x.shape[k] == 0]:
        raise user_error(
            f"{name} of an empty axis", code="GR104", expected="at least one element", found=f"shape {x.shape}, axis {any_zero[0]}"
        )


OPERATORS.update(sum=sum, prod=prod, max=max, min=min, mean=mean, var=var, std=std, any=any, all=all, argmax=argmax, argmin=argmin)
