"""Folds by a function of your own, sorting by one, windows that choose and scatter: the function becomes a region of the op."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradir.dialects import nd
from gradir.dialects.text import flag_attr
from gradir.dialects.types import i64_array, i64_attr
from gradir.frontends.python.arrays import Array
from gradir.frontends.python.contraction import padding_of, per_dim
from gradir.frontends.python.operands import as_array, normalize_axes, one_axis, with_shape
from gradir.frontends.python.regions import region_of
from gradir.frontends.python.trace import apply_several, user_error


def _together(name: str, operands: Any) -> list[Array]:
    """One array or several of one shape."""
    arrays = [as_array(x) for x in (operands if isinstance(operands, tuple | list) else (operands,))]
    if not arrays or any(x.shape != arrays[0].shape for x in arrays):
        raise user_error(
            f"{name} needs operands of one shape",
            code="GR001",
            expected="at least one operand, all of one shape",
            found=" and ".join(str(x.shape) for x in arrays) or "none",
        )
    return arrays


def reduce(function: Callable[..., Any], operands: Any, init: Any, axis: int | tuple[int, ...] | None = None) -> Any:
    """`acc = function(*acc, *elements)` from `init` over `axis` in index order, for one array or a tuple that is folded together"""
    arrays = _together("reduce", operands)
    starts = [as_array(v, x.dtype) for v, x in zip(init if isinstance(init, tuple | list) else (init,), arrays)]
    if len(starts) != len(arrays):
        raise user_error("reduce needs one initial value per operand", code="GR104", expected=str(len(arrays)), found=str(len(starts)))
    axes = normalize_axes(arrays[0], axis)
    shape = tuple(n for d, n in enumerate(arrays[0].shape) if d not in axes)
    dtypes = [x.dtype for x in arrays]
    found = apply_several(
        nd.ReduceOp,
        [*arrays, *starts],
        [with_shape(x, shape) for x in arrays],
        [region_of(function, [*dtypes, *dtypes])],
        dims=i64_array(axes),
    )
    return tuple(found) if isinstance(operands, tuple | list) else found[0]


def sort_by(before: Callable[..., Any], operands: Any, axis: int = -1) -> Any:
    """Sorted such that a comes before b where `before(a, b)` (one pair of arguments per operand) is true; stable"""
    arrays = _together("sort_by", operands)
    dim = one_axis(arrays[0], axis)
    pairs = [x.dtype for x in arrays for _ in range(2)]
    found = apply_several(
        nd.SortOp,
        arrays,
        [x.type for x in arrays],
        [region_of(before, pairs, [np.bool_])],
        dim=i64_attr(dim),
        keys=i64_attr(1),
        descending=flag_attr(False),
        total_order=flag_attr(False),
    )
    return tuple(found) if isinstance(operands, tuple | list) else found[0]


def select_and_scatter(
    x: Any,
    source: Any,
    init: Any,
    select: Callable[[Any, Any], Any],
    scatter: Callable[[Any, Any], Any],
    window: Sequence[int],
    strides: int | Sequence[int] = 1,
    padding: str | Sequence[Any] = "VALID",
) -> Array:
    """`init`, and each element of `source` joined by `scatter` to the place of its window that `select(chosen, other)` keeps"""
    x = as_array(x)
    w, s = per_dim("window", window, x.ndim), per_dim("strides", strides, x.ndim)
    pads = padding_of(padding, x.shape, w, s, (1,) * x.ndim)
    pair = [x.dtype, x.dtype]
    (found,) = apply_several(
        nd.SelectAndScatterGeneralOp,
        [x, as_array(source, x.dtype), as_array(init, x.dtype)],
        [x.type],
        [region_of(select, pair, [np.bool_]), region_of(scatter, pair)],
        window=i64_array(w),
        strides=i64_array(s),
        padding=i64_array(pads),
    )
    return found
