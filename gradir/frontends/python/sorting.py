"""Order, names of numpy, `jax.lax` and torch. NaN is the greatest number, sorting is stable, also in descending order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import i32

from gradir.dialects import nd
from gradir.dialects.text import flag_attr
from gradir.dialects.types import i64_attr, tensor
from gradir.frontends.python import promotion
from gradir.frontends.python.arrays import OPERATORS, Array
from gradir.frontends.python.elementwise import add, multiply, where
from gradir.frontends.python.mathematics import isnan
from gradir.frontends.python.operands import as_array, astype, one_axis, with_shape
from gradir.frontends.python.reduction import any as any_of
from gradir.frontends.python.shape import expand_dims, reshape, slice_
from gradir.frontends.python.sizes import whole
from gradir.frontends.python.trace import apply, apply_several, user_error


def sort(x: Any, axis: int | None = -1, descending: bool = False) -> Array:
    """Sorted along `axis` (None: flattened); NaN last, or first if descending"""
    x, dim = _along(x, axis)
    return _sort([x], dim, 1, descending)[0]


def argsort(x: Any, axis: int | None = -1, descending: bool = False) -> Array:
    """The i32 indices that sort `x` along `axis`; equal elements keep their order"""
    x, dim = _along(x, axis)
    return _sort([x, _positions(x, dim)], dim, 1, descending)[1]


def sort_together(operands: Sequence[Any], axis: int = -1, num_keys: int = 1, descending: bool = False) -> tuple[Array, ...]:
    """All operands in the order of the first `num_keys` of them, compared lexicographically; shapes must be equal"""
    arrays = [as_array(x) for x in operands]
    if not arrays or any(x.shape != arrays[0].shape for x in arrays):
        raise user_error(
            "sort_together needs operands of one shape",
            code="GR001",
            op="nd.sort",
            expected="at least one operand, all of one shape",
            found=" and ".join(str(x.shape) for x in arrays) or "none",
        )
    dim = one_axis(arrays[0], axis)
    num_keys = whole("num_keys", num_keys)
    if not 1 <= num_keys <= len(arrays):
        raise user_error("num_keys is out of range", code="GR104", op="nd.sort", expected=f"1 to {len(arrays)}", found=str(num_keys))
    return tuple(_sort(arrays, dim, num_keys, descending))


def top_k(x: Any, k: int, axis: int = -1) -> tuple[Array, Array]:
    """The k greatest elements along `axis`, greatest first, and their i32 indices; NaN is the greatest"""
    x, dim = _along(x, axis)
    size, k = x.shape[dim], whole("k", k)
    if k < 0 or (isinstance(size, int) and k > size):
        raise user_error("top_k takes more than there is", code="GR104", op="nd.top_k", expected=f"k in 0 to {size}", found=str(k))
    shape = (*x.shape[:dim], k, *x.shape[dim + 1 :])
    types = [with_shape(x, shape), tensor(i32, shape)]
    values, indices = apply_several(nd.TopKOp, [x], types, k=i64_attr(k), dim=i64_attr(dim))
    return values, indices


def median(x: Any, axis: int | None = None, keepdims: bool = False) -> Array:
    """The middle element along `axis` (None: all), the mean of the middle two of an even number; NaN if there is a NaN"""
    x = as_array(x)
    if not promotion.is_inexact(x.dtype):
        x = astype(x, promotion.FLOAT32)
    flat, dim = _along(x, axis)
    n = flat.shape[dim]
    if n == 0:
        raise user_error("the median of nothing", code="GR104", op="nd.sort", expected="at least one element", found=str(x.shape))
    ordered = sort(flat, dim)
    low, high = (_pick(ordered, dim, k) for k in ((n - 1) // 2, n // 2))
    middle = low if n % 2 else add(multiply(low, 0.5), multiply(high, 0.5))
    found = where(any_of(isnan(flat), axis=dim), _pick(ordered, dim, n - 1), middle)
    if not keepdims:
        return found
    return reshape(found, (1,) * x.ndim) if axis is None else expand_dims(found, dim)


def _pick(x: Array, dim: int, at: int) -> Array:
    start = [0] * x.ndim
    limit = list(x.shape)
    start[dim], limit[dim] = at, at + 1
    return reshape(slice_(x, start, limit, [1] * x.ndim), tuple(n for d, n in enumerate(x.shape) if d != dim))


def _along(x: Any, axis: int | None) -> tuple[Array, int]:
    x = as_array(x)
    if axis is None:
        return reshape(x, (-1,)), 0
    if x.ndim == 0:
        raise user_error("a scalar has no axis to sort along", code="GR104", op="nd.sort", expected="at least one axis", found="()")
    dim = one_axis(x, axis)
    return x, dim


def _positions(x: Array, dim: int) -> Array:
    """0, 1, 2, .. along `dim`, in the shape of `x`."""
    return apply(nd.IotaOp, [], tensor(i32, x.shape), dim=i64_attr(dim))


def _sort(arrays: Sequence[Array], dim: int, keys: int, descending: bool) -> list[Array]:
    return apply_several(
        nd.SortOp,
        arrays,
        [x.type for x in arrays],
        dim=i64_attr(dim),
        keys=i64_attr(keys),
        descending=flag_attr(descending),
        total_order=flag_attr(False),
    )


OPERATORS.update(argsort=argsort)
