"""NaN, infinities, zeros and rounding: `nan_to_num`, `isclose`, `fmax`, `nansum`, `heaviside`, `sinc`, with numpy's meaning."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np

from gradir.frontends.python import promotion
from gradir.frontends.python.arrays import Array
from gradir.frontends.python.complex import complex, imag, real
from gradir.frontends.python.creation import ones_like, zeros_like
from gradir.frontends.python.elementwise import (
    abs,
    add,
    divide,
    equal,
    isfinite,
    less,
    less_equal,
    logical_and,
    logical_or,
    maximum,
    minimum,
    multiply,
    sin,
    subtract,
    where,
)
from gradir.frontends.python.mathematics import isnan
from gradir.frontends.python.operands import as_array, astype, float_dtype, together
from gradir.frontends.python.reduction import all, mean, sum
from gradir.frontends.python.sampled import polyval


def nan_to_num(x: Any, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Array:
    """`x` with NaN replaced by `nan`, infinities by `posinf` and `neginf` (the largest finite numbers); derivative 0 at what is replaced"""
    x = as_array(x)
    if promotion.is_complex(x.dtype):
        return complex(nan_to_num(real(x), nan, posinf, neginf), nan_to_num(imag(x), nan, posinf, neginf))
    if not promotion.is_float(x.dtype):
        return x
    limit = float(ml_dtypes.finfo(x.dtype).max)
    above, below = (as_array(v, x.dtype) for v in (limit if posinf is None else posinf, -limit if neginf is None else neginf))
    finite = where(isfinite(x), x, where(less(x, 0.0), below, above))
    return where(isnan(x), nan, finite)


def isclose(x: Any, y: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Array:
    """|x - y| <= atol + rtol |y|; infinities are close to themselves, NaN (with `equal_nan`) to NaN"""
    a, b = together("isclose", x, y, dtype=float_dtype(x, y))
    limit = add(multiply(abs(b), rtol), atol)
    near = logical_and(isfinite(b), less_equal(abs(subtract(a, b)), limit))
    found = logical_or(near, equal(a, b))
    return logical_or(found, logical_and(isnan(a), isnan(b))) if equal_nan else found


def allclose(x: Any, y: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Array:
    """Whether all elements are close, as `isclose` says"""
    return all(isclose(x, y, rtol, atol, equal_nan))


def heaviside(x: Any, at_zero: Any) -> Array:
    """0 below 0, 1 above, `at_zero` at 0, NaN of NaN; the derivative by x is 0"""
    a, b = together("heaviside", x, at_zero, dtype=float_dtype(x, at_zero))
    step = where(less(a, 0.0), zeros_like(a), ones_like(a))
    return where(isnan(a), float("nan"), where(equal(a, 0.0), b, step))


def fmax(x: Any, y: Any) -> Array:
    """The larger one; of a number and NaN the number. Derivatives go to what was chosen, half to each at ties"""
    a, b = together("fmax", x, y)
    if not promotion.is_float(a.dtype):
        return maximum(a, b)
    return where(isnan(a), b, where(isnan(b), a, maximum(a, b)))


def fmin(x: Any, y: Any) -> Array:
    """The smaller one; of a number and NaN the number"""
    a, b = together("fmin", x, y)
    if not promotion.is_float(a.dtype):
        return minimum(a, b)
    return where(isnan(a), b, where(isnan(b), a, minimum(a, b)))


def nansum(x: Any, axis: Any = None, keepdims: bool = False) -> Array:
    """The sum of what is not NaN"""
    x = as_array(x)
    return sum(where(isnan(x), 0.0, x) if promotion.is_inexact(x.dtype) else x, axis, keepdims)


def nanmean(x: Any, axis: Any = None, keepdims: bool = False) -> Array:
    """The mean of what is not NaN, NaN if nothing is left"""
    x = as_array(x)
    if not promotion.is_inexact(x.dtype):
        return mean(x, axis, keepdims)
    count = sum(astype(equal(x, x), x.dtype), axis, keepdims)
    return divide(nansum(x, axis, keepdims), count)


SERIES = tuple((-1) ** k / math.factorial(2 * k + 1) for k in reversed(range(8)))
"""sin(t) / t as a polynomial in t * t: the rest is below 1e-17 for |t| < 1/2."""


def sinc(x: Any) -> Array:
    """sin(pi x) / (pi x), 1 at 0; near 0 its series, so that derivatives of any order are those of the function"""
    x = as_array(x)
    t = multiply(astype(x, float_dtype(x)), math.pi)
    near = less(abs(t), 0.5)
    small, far = where(near, t, 0.0), where(near, 1.0, t)
    return where(near, polyval(np.asarray(SERIES, t.dtype), multiply(small, small)), divide(sin(far), far))
