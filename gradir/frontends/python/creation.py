"""New arrays. The default float type is f32, the default integer type i32."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, i64

from gradir import size_algebra
from gradir.dialects import nd
from gradir.dialects.types import element_type, i64_attr, tensor
from gradir.frontends.python import promotion
from gradir.frontends.python.arrays import Array
from gradir.frontends.python.dims import Dim, at_least
from gradir.frontends.python.elementwise import add, multiply
from gradir.frontends.python.operands import as_array, astype, broadcast_to, common_dtype, is_scalar, supported_dtype
from gradir.frontends.python.shape import stack
from gradir.frontends.python.sizes import axis_of, size, sizes, whole
from gradir.frontends.python.trace import apply, constant, user_error


def asarray(x: Any, dtype: Any = None) -> Array:
    """`x` as an array of this mode; numpy's element type unless `dtype` is given. Lists may hold arrays, `[[c, -s], [s, c]]`"""
    made = _joined(x) if _holds_arrays(x) else as_array(x)
    return made if dtype is None else astype(made, dtype)


array = asarray


def _holds_arrays(x: Any) -> bool:
    """A list, of lists, with an array in it, which numpy could not read."""
    return isinstance(x, list | tuple) and any(isinstance(part, Array) or _holds_arrays(part) for part in cast("list[Any]", x))


def _joined(x: Any) -> Array:
    """Arrays and numbers of nested lists along new leading dimensions, in one type; numbers take the type of the arrays."""
    dtype = common_dtype(*_leaves(x))

    def join(part: Any) -> Array:
        return stack([join(inner) for inner in part], 0) if isinstance(part, list | tuple) else as_array(part, dtype)

    return join(x)


def _leaves(x: Any) -> list[Any]:
    return [leaf for part in x for leaf in _leaves(part)] if isinstance(x, list | tuple) else [x]


def full(shape: int | Sequence[int], fill_value: Any, dtype: Any = None) -> Array:
    """Filled with one value"""
    value = fill_value
    wanted = sizes("a size", shape)
    if isinstance(value, Array):
        return broadcast_to(value if dtype is None else astype(value, dtype), wanted)
    kind = supported_dtype(dtype) if dtype is not None else promotion.weak_dtype(value) if is_scalar(value) else None
    if isinstance(value, complex | np.complexfloating) and kind is not None and not promotion.is_complex(kind):
        raise user_error("a complex number does not fit into a real array", code="GR103", expected=f"a number of {kind}", found=str(value))
    if not is_scalar(value) and not (isinstance(value, np.generic) and kind is not None):
        return broadcast_to(as_array(value, kind), wanted)
    if isinstance(value, Dim) or any(isinstance(n, Dim) for n in wanted):
        return broadcast_to(as_array(value, kind), wanted)
    return constant(np.broadcast_to(np.asarray(value, kind), wanted))


def zeros(shape: int | Sequence[int], dtype: Any = np.float32) -> Array:
    """Filled with 0"""
    return full(shape, 0, dtype)


def ones(shape: int | Sequence[int], dtype: Any = np.float32) -> Array:
    """Filled with 1"""
    return full(shape, 1, dtype)


def empty(shape: int | Sequence[int], dtype: Any = np.float32) -> Array:
    """As in JAX: `zeros`"""
    return zeros(shape, dtype)


def zeros_like(x: Any, dtype: Any = None) -> Array:
    """0 in the shape (and type) of x"""
    return full_like(x, 0, dtype)


def ones_like(x: Any, dtype: Any = None) -> Array:
    """1 in the shape (and type) of x"""
    return full_like(x, 1, dtype)


def full_like(x: Any, value: Any, dtype: Any = None) -> Array:
    """One value in the shape (and type) of x"""
    x = as_array(x)
    return full(x.shape, value, x.dtype if dtype is None else dtype)


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Array:
    """start, start + step, .. before stop; 0, 1, .. start - 1 of one number. i32, of a number with a point f32, unless `dtype` is given"""
    if any(isinstance(n, float | np.floating) for n in (start, stop, step)):
        wanted = supported_dtype(np.float32 if dtype is None else dtype)
        return constant(np.arange(*((start,) if stop is None else (start, stop)), step=step).astype(wanted))
    dtype = np.int32 if dtype is None else dtype
    first, by = (0, 1) if stop is None else (size("the start", start, None), whole("the step", step))
    end = size("the length", start, 0) if stop is None else size("the stop", stop, None)
    if by == 0:
        raise user_error("the step of arange is 0", code="GR112", expected="a step other than 0", found="0")
    distance = end - first if by > 0 else first - end
    steps = iota((at_least(size_algebra.ceildiv(distance, by if by > 0 else -by), 0),), 0, dtype)
    scaled = steps if by == 1 else multiply(steps, as_array(by, steps.dtype))
    return scaled if first == 0 else add(scaled, as_array(first, steps.dtype))


def iota(shape: Sequence[int], axis: int, dtype: Any = np.int32) -> Array:
    """The position along `axis`"""
    wanted = sizes("a size", shape)
    return apply(nd.IotaOp, [], tensor(element_type(supported_dtype(dtype)), wanted), dim=IntegerAttr(axis_of(axis, len(wanted)), i64))


def one_hot(labels: Any, classes: int, dtype: Any = np.float32) -> Array:
    """1 at the label, 0 elsewhere, in a new last dimension; a label out of range gives a row of 0"""
    labels = as_array(labels)
    if labels.dtype.kind not in "iu":
        raise user_error(
            "one_hot needs integer labels", code="GR002", op="nd.one_hot", expected="an integer array", found=str(labels.dtype)
        )
    depth = whole("the number of classes", classes, 0)
    kind = tensor(element_type(supported_dtype(dtype)), (*labels.shape, depth))
    return apply(nd.OneHotOp, [labels], kind, depth=i64_attr(depth))
