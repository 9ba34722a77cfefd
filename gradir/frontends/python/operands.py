"""From what the user wrote to operands of one type: conversion, promotion, numpy's broadcasting."""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.dialects.builtin import TensorType, i1

from gradir.dialects import nd
from gradir.dialects.text import flag_attr
from gradir.dialects.types import element_type, i64_array, shape_of, tensor
from gradir.frontends.python import promotion
from gradir.frontends.python.arrays import OPERATORS, Array
from gradir.frontends.python.dims import Dim
from gradir.frontends.python.run_time_sizes import size_array
from gradir.frontends.python.sizes import axis_of
from gradir.frontends.python.trace import apply, constant, user_error

Scalar = bool | int | float | complex


def is_scalar(x: Any) -> bool:
    """A Python number or a size: weakly typed."""
    return isinstance(x, Scalar | Dim) and not isinstance(x, np.generic)


def as_array(x: Any, dtype: np.dtype[Any] | None = None) -> Array:
    """`x` as an array; numbers and numpy arrays become constants."""
    if isinstance(x, Array):
        return x if dtype is None or x.dtype == dtype else astype(x, dtype)
    if isinstance(x, Dim):
        return size_array(x, dtype or promotion.weak_dtype(1))
    if is_scalar(x):
        try:
            return constant(x, dtype or promotion.weak_dtype(x))
        except OverflowError:
            raise user_error(
                f"the number {x} does not fit into {dtype or promotion.weak_dtype(x)}",
                code="GR103",
                expected="a number that the array's type holds",
                found=str(x)[:40],
                hint="convert the array to a wider type with astype, or pass a numpy scalar",
            ) from None
    if isinstance(x, np.ndarray | np.generic | list | tuple):
        try:
            data = np.asarray(x)
        except ValueError as error:
            raise user_error("a ragged list is not an array", code="GR103", expected="rows of equal lengths", found=str(error)) from None
        made = constant(data.astype(supported_dtype(data.dtype), copy=False))
        return made if dtype is None else astype(made, dtype)
    if hasattr(x, "__array__"):
        return as_array(np.asarray(x), dtype)
    raise user_error(
        f"a {type(x).__name__} is not an array",
        code="GR103",
        expected="an array, a numpy array or a number",
        found=repr(x)[:80],
        hint="name an argument that selects the program in static= of jit; a gradient traces all its arguments, so bind such a one before",
    )


def supported_dtype(dtype: Any) -> np.dtype[Any]:
    """What `numpy.dtype` makes of `dtype` (and "bfloat16"); GradirError GR103 if no tensor has such elements."""
    try:
        found = promotion.BFLOAT16 if isinstance(dtype, str) and dtype == "bfloat16" else np.dtype(dtype)
        element_type(found)
    except (KeyError, TypeError):
        raise user_error(
            f"no tensor holds elements of type {dtype}",
            code="GR103",
            expected="bool, int8..int64, uint8..uint64, float8_e4m3fn, float8_e5m2, float16, bfloat16, float32, float64, complex64, "
            "complex128",
            found=str(dtype),
        ) from None
    return found


def astype(x: Any, dtype: Any, *, saturate: bool = False) -> Array:
    """Elements converted; docs/numerics.md "Types and rounding" says how. `saturate`: to a float, overflow gives its largest number."""
    x = as_array(x)
    elem = element_type(supported_dtype(dtype))
    if elem == i1 and promotion.is_complex(x.dtype):
        return OPERATORS["not_equal"](x, 0)  # nd.convert looks at the real part
    more = {"saturate": flag_attr(True)} if saturate else {}
    same = elem == x.type.element_type and not saturate
    return x if same else apply(nd.ConvertOp, [x], tensor(elem, shape_of(x.type)), **more)


def broadcast_to(x: Array, shape: tuple[Any, ...]) -> Array:
    """numpy's rule: dimensions are matched from the right, size 1 is repeated."""
    have = x.shape
    if have == shape:
        return x
    offset = len(shape) - len(have)
    bad = offset < 0 or any(n not in (1, shape[offset + k]) for k, n in enumerate(have))
    if bad:
        raise user_error("cannot broadcast", code="GR001", expected=f"a shape that fits {shape}", found=str(have))
    kept = [k for k, n in enumerate(have) if n == shape[offset + k]]
    if len(kept) < len(have):
        x = apply(nd.ReshapeOp, [x], tensor(x.type.element_type, tuple(have[k] for k in kept)))
    return apply(nd.BroadcastOp, [x], tensor(x.type.element_type, shape), dims=i64_array(tuple(offset + k for k in kept)))


def broadcast_shapes(name: str, *shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The common shape; a mismatch names both shapes and the dimension."""
    rank = max(map(len, shapes))
    out: list[int] = []
    for k in range(1, rank + 1):
        sizes = {s[-k] for s in shapes if len(s) >= k}
        big = sizes - {1}
        if len(big) > 1:
            raise user_error(
                f"{name}: shapes do not broadcast: {' and '.join(map(str, shapes))} differ in dimension -{k}",
                code="GR001",
                op=f"gradir.{name}",
                expected="equal sizes, or 1",
                found=" and ".join(sorted(map(str, big))),
            )
        out.append(big.pop() if big else 1)
    return tuple(reversed(out))


def together(name: str, *operands: Any, dtype: np.dtype[Any] | None = None) -> list[Array]:
    """Operands promoted to one element type and broadcast to one shape."""
    if dtype is None:
        dtype = common_dtype(*operands)
    arrays = [as_array(x, dtype) for x in operands]
    shape = broadcast_shapes(name, *(x.shape for x in arrays))
    return [broadcast_to(x, shape) for x in arrays]


def common_dtype(*operands: Any) -> np.dtype[Any]:
    """Promotion over arrays first, then the weak scalars."""
    arrays = [x if isinstance(x, Array) else np.asarray(x) for x in operands if not is_scalar(x)]
    scalars = [x for x in operands if is_scalar(x)]
    if not arrays:
        dtype = promotion.weak_dtype(scalars[0])
        for s in scalars[1:]:
            dtype = promotion.with_scalar(dtype, s) if not promotion.is_float(dtype) or isinstance(s, complex) else dtype
        return dtype
    dtype = arrays[0].dtype
    for x in arrays[1:]:
        dtype = promotion.promote(dtype, x.dtype)
    for s in scalars:
        dtype = promotion.with_scalar(dtype, s)
    return dtype


def float_dtype(*operands: Any) -> np.dtype[Any]:
    """As `common_dtype`, integers and booleans become f32."""
    dtype = common_dtype(*operands)
    return dtype if promotion.is_inexact(dtype) else promotion.FLOAT32


def with_shape(x: Array, shape: tuple[Any, ...], dtype: Any = None) -> TensorType:
    """The type of `x` with another shape (and element type)."""
    return tensor(x.type.element_type if dtype is None else element_type(dtype), shape)


def normalize_axes(x: Array, axis: int | tuple[int, ...] | None) -> tuple[int, ...]:
    """Non-negative, sorted axes; None means all."""
    if axis is None:
        return tuple(range(x.ndim))
    axes = tuple(axis) if isinstance(axis, tuple | list) else (axis,)
    out = tuple(sorted(axis_of(a, x.ndim) for a in axes))
    if len(set(out)) != len(out):
        raise user_error("an axis is named twice", code="GR104", expected="distinct axes", found=str(axes))
    return out


def unknown_value(x: Array, what: str) -> Exception:
    """The error for Python code that needs the value of a traced array."""
    return user_error(
        f"{what} of a traced array: its value is known only when the compiled program runs",
        code="GR111",
        expected="Python control flow on shapes, dtypes and constants only",
        found=f"an array of type {x.type}",
        hint="use gradir.dynamic_slice for a window of static size at a run-time place, gradir.fori_loop for a loop"
        if what == "use as a Python index"
        else "use gradir.cond or gradir.where for a branch, gradir.fori_loop, gradir.while_loop or gradir.scan for a loop, "
        "or run the function under `with gradir.eager():`",
    )


def foreign_function(x: Array, name: str, into_array: bool) -> Exception:
    """The error for a function of numpy on a traced array."""
    return user_error(
        f"numpy.{name} of a traced array: its value is known only when the compiled program runs",
        code="GR111",
        expected="functions of gradir",
        found=f"an array of type {x.type}",
        hint="write a = a + x in place of a += x where `a` is a numpy array"
        if into_array
        else "use gradir's function of that name; docs/python-functions.md lists them all",
    )


OPERATORS["unknown_value"] = unknown_value
OPERATORS["foreign_function"] = foreign_function
OPERATORS["astype"] = astype
OPERATORS["as_array"] = as_array


def one_axis(x: Array, axis: Any) -> int:
    """The one axis that `axis` names; GradirError GR104 where it names none or several."""
    axes = normalize_axes(x, axis)
    if len(axes) != 1:
        raise user_error("one axis is needed", code="GR104", expected=f"one of -{x.ndim} to {x.ndim - 1}", found=str(axis))
    return axes[0]
