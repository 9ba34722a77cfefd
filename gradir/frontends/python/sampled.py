"""Functions given by samples or coefficients: `searchsorted`, `interp`, `diff`, `trapezoid`, `polyval`, `vander`, with numpy's meaning."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradir.frontends.python import promotion
from gradir.frontends.python.arrays import Array
from gradir.frontends.python.creation import ones_like, zeros
from gradir.frontends.python.elementwise import (
    add,
    divide,
    equal,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    multiply,
    not_equal,
    subtract,
    where,
)
from gradir.frontends.python.indexing import take
from gradir.frontends.python.mathematics import isnan
from gradir.frontends.python.operands import as_array, astype, common_dtype, float_dtype, one_axis
from gradir.frontends.python.rearrange import moveaxis
from gradir.frontends.python.reduction import sum
from gradir.frontends.python.shape import expand_dims, stack
from gradir.frontends.python.sizes import whole
from gradir.frontends.python.trace import user_error


def searchsorted(a: Any, v: Any, side: str = "left") -> Array:
    """The positions (i32) at which elements of `v` keep the vector `a` in ascending order: how many are smaller ("right": or equal). Every
    element is compared with every other; NaN is larger than all"""
    if side not in ("left", "right"):
        raise user_error("searchsorted: no such side", code="GR104", expected="left or right", found=repr(side))
    (x, y), dtype = (as_array(a), as_array(v)), common_dtype(a, v)
    x, y = _vector("searchsorted", x, 0), expand_dims(astype(y, dtype), -1)
    x = astype(x, dtype)
    before = less(x, y) if side == "left" else less_equal(x, y)
    if promotion.is_float(dtype):
        before = logical_or(before, logical_and(isnan(y), logical_not(isnan(x))) if side == "left" else isnan(y))
    return sum(astype(before, np.int32), -1)


def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None) -> Array:
    """The function through the points (`xp`, `fp`), `xp` ascending, at `x`: linear inside, `left` (fp[0]) and `right` (fp[-1]) outside"""
    dtype = float_dtype(x, xp, fp)
    at, places, values = (as_array(v, dtype) for v in (x, xp, fp))
    count = _vector("interp", places, 1).shape[0]
    if _vector("interp", values, 1).shape != (count,):
        expected, found = f"shape {places.shape}", f"shape {values.shape}"
        raise user_error("interp: xp and fp differ", code="GR001", op="gradir.interp", expected=expected, found=found)
    first, last = values[0], values[count - 1]
    before = first if left is None else as_array(left, dtype)
    after = last if right is None else as_array(right, dtype)
    if count == 1:
        inside = add(multiply(at, 0.0), first)
    else:
        after_one = searchsorted(places[1 : count - 1], at, side="right")  # 0 .. count - 2: the interval
        x0, x1 = take(places, after_one), take(places, add(after_one, 1))
        y0, y1 = take(values, after_one), take(values, add(after_one, 1))
        width = subtract(x1, x0)
        empty = equal(width, 0.0)
        inside = where(empty, y0, add(y0, multiply(divide(subtract(at, x0), where(empty, 1.0, width)), subtract(y1, y0))))
    return where(less(at, places[0]), before, where(less(places[count - 1], at), after, inside))


def diff(x: Any, n: int = 1, axis: int = -1) -> Array:
    """Differences of neighbours along `axis`, `n` times; of booleans whether they differ"""
    x = as_array(x)
    if x.ndim == 0:
        raise user_error("diff of a number", code="GR104", op="gradir.diff", expected="rank >= 1", found="shape ()")
    axis = one_axis(x, axis)
    for _ in range(whole("diff: n", n, 0)):
        x = moveaxis(x, axis, 0)
        step = not_equal if promotion.is_bool(x.dtype) else subtract
        x = moveaxis(step(x[1:], x[:-1]), 0, axis)
    return x


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Array:
    """The integral of samples `y` along `axis` at the places `x` (one vector, or like `y`), else `dx` apart, by the trapezoidal rule"""
    y = as_array(y, float_dtype(y) if x is None else float_dtype(y, x))
    y = moveaxis(y, one_axis(y, axis), -1)
    if x is None:
        width: Any = dx
    else:
        places = as_array(x)
        width = diff(places if places.ndim == 1 else moveaxis(places, axis, -1))
    return sum(multiply(multiply(width, add(y[..., 1:], y[..., :-1])), 0.5), -1)


def polyval(p: Any, x: Any) -> Array:
    """The polynomial with the coefficients `p`, that of the highest power first, at `x`, by Horner's rule"""
    dtype = common_dtype(p, x)
    p, x = _vector("polyval", as_array(p, dtype), 0), as_array(x, dtype)
    found = multiply(x, zeros((), dtype))
    for k in range(p.shape[0]):
        found = add(multiply(found, x), p[k])
    return found


def vander(x: Any, N: int | None = None, increasing: bool = False) -> Array:
    """Powers of the vector `x` as columns, `N` of them (as many as elements), the highest first unless `increasing`"""
    x = _vector("vander", as_array(x), 0)
    count = whole("vander: N", x.shape[0] if N is None else N, 0)
    if count == 0:
        return zeros((x.shape[0], 0), x.dtype)
    powers = [ones_like(x)]
    for _ in range(count - 1):
        powers.append(multiply(powers[-1], x))
    return stack(powers if increasing else powers[::-1], -1)


def _vector(name: str, x: Array, at_least: int) -> Array:
    """`x`, which has one dimension and not fewer elements."""
    if x.ndim != 1 or x.shape[0] < at_least:
        wanted = "a vector" + (f" of at least {at_least} elements" if at_least else "")
        raise user_error(f"{name}: not a vector", code="GR001", op=f"gradir.{name}", expected=wanted, found=f"shape {x.shape}")
    return x
