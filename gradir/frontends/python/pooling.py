"""Windows over an array: folds of a known kind or by a function of two elements, and the poolings of networks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from gradir.dialects import nd
from gradir.dialects.nd.convolution import window_count
from gradir.dialects.types import i64_array
from gradir.frontends.python.arrays import Array
from gradir.frontends.python.contraction import padding_of, per_dim
from gradir.frontends.python.dims import Dim, sized
from gradir.frontends.python.elementwise import divide, logical_and, logical_or, multiply
from gradir.frontends.python.operands import as_array, astype, broadcast_to, with_shape
from gradir.frontends.python.regions import region_of
from gradir.frontends.python.trace import apply, apply_several, user_error

WINDOW_KINDS = tuple(kind.value for kind in nd.WindowKind)
FOLDS: dict[str, tuple[Callable[[Any, Any], Any], Any]] = {"prod": (multiply, 1), "and": (logical_and, True), "or": (logical_or, False)}
"""Kinds without an op of their own: what joins two elements, and from what."""

Padding: TypeAlias = str | Sequence[Any]


def reduce_window(
    x: Any,
    kind: str | Callable[[Any, Any], Any],
    window: Sequence[int],
    strides: Sequence[int],
    padding: Padding = "VALID",
    dilations: int | Sequence[int] = 1,
    base_dilations: int | Sequence[int] = 1,
    init: Any = None,
) -> Array:
    """max, min, sum, prod, and, or over windows of every dimension, padded with the identity; a function folds from `init`"""
    x = as_array(x) if kind not in ("and", "or") else astype(x, np.bool_)
    window, strides = per_dim("window", window, x.ndim), per_dim("strides", strides, x.ndim)
    steps, base = per_dim("dilations", dilations, x.ndim), per_dim("base_dilations", base_dilations, x.ndim)
    spread = [max(0, n - 1) * b + min(n, 1) if b != 1 else n for n, b in zip(x.shape, base)]
    pads = padding_of(padding, spread, window, strides, steps)
    if isinstance(kind, str) and kind in WINDOW_KINDS and set(base) <= {1}:
        shape = [sized(window_count(n, window[k], strides[k], pads[2 * k], pads[2 * k + 1], steps[k])) for k, n in enumerate(x.shape)]
        properties = {"window": window, "strides": strides, "padding": pads, "dilations": steps}
        arrays = {name: i64_array(tuple(value)) for name, value in properties.items()}
        return apply(nd.ReduceWindowOp, [x], with_shape(x, tuple(shape)), kind=nd.WindowKindAttr(nd.WindowKind(kind)), **arrays)
    function, start = _fold(kind, x, init)
    counts = [sized(window_count(n, window[k], strides[k], pads[2 * k], pads[2 * k + 1], steps[k], base[k])) for k, n in enumerate(x.shape)]
    (found,) = apply_several(
        nd.ReduceWindowGeneralOp,
        [x, start],
        [with_shape(x, tuple(counts))],
        [region_of(function, [x.dtype, x.dtype])],
        window=i64_array(window),
        strides=i64_array(strides),
        padding=i64_array(pads),
        dilations=i64_array(steps),
        base_dilations=i64_array(base),
    )
    return found


def _fold(kind: str | Callable[[Any, Any], Any], x: Array, init: Any) -> tuple[Callable[[Any, Any], Any], Array]:
    if callable(kind):
        if init is None:
            raise user_error(
                "a window with a function needs init",
                code="GR112",
                op="nd.reduce_window_general",
                expected="the value to begin with",
                found="None",
            )
        return kind, as_array(init, x.dtype)
    least = -np.inf if x.dtype.kind not in "iub" else np.iinfo(x.dtype).min if x.dtype.kind in "iu" else False
    known: dict[str, tuple[Callable[[Any, Any], Any], Any]] = {
        **FOLDS,
        "sum": (lambda a, b: a + b, 0),
        "max": (_maximum, least),
        "min": (_minimum, np.inf if x.dtype.kind not in "iub" else np.iinfo(x.dtype).max if x.dtype.kind in "iu" else True),
    }
    if kind not in known:
        expected = ", ".join((*WINDOW_KINDS, *FOLDS))
        raise user_error("unknown kind of window", code="GR112", op="nd.reduce_window", expected=expected, found=repr(kind))
    function, start = known[kind]
    return function, as_array(start if init is None else init, x.dtype)


def _maximum(a: Array, b: Array) -> Array:
    return apply(nd.MaxOp, [a, b], a.type)


def _minimum(a: Array, b: Array) -> Array:
    return apply(nd.MinOp, [a, b], a.type)


# -- pooling


def _numbers(
    x: Array, window: int | Sequence[int], strides: int | Sequence[int] | None, padding: Padding, ceil_mode: bool
) -> tuple[tuple[int, ...], tuple[int, ...], list[tuple[int, int]], list[tuple[int, int]]]:
    """Window, strides, the padding asked for, and the padding that the windows reach, per spatial dimension.

    In ceil mode a last window that is cut off by the end counts too, unless it starts in the padding at the end.
    """
    rank, spatial = x.ndim - 2, x.shape[1:-1]
    w = per_dim("window", window, rank)
    s = w if strides is None else per_dim("strides", strides, rank)
    flat = padding_of(padding, spatial, w, s, (1,) * rank)
    asked = [(flat[2 * k], flat[2 * k + 1]) for k in range(rank)]
    if not ceil_mode:
        return w, s, asked, asked
    reach: list[tuple[int, int]] = []
    for n, k, step, (low, high) in zip(spatial, w, s, asked):
        if isinstance(n, Dim):
            raise user_error(
                "ceil_mode needs sizes known when the program is traced", code="GR104", expected="static sizes", found=str(x.shape)
            )
        count = max(0, -(-(n + low + high - k) // step) + 1)
        if count and (count - 1) * step >= n + low:
            count -= 1
        reach.append((low, (count - 1) * step + k - n - low if count else high))
    return w, s, asked, reach


def _over_windows(x: Array, kind: str, w: Sequence[int], s: Sequence[int], pads: Sequence[tuple[int, int]]) -> Array:
    return reduce_window(x, kind, (1, *w, 1), (1, *s, 1), [(0, 0), *pads, (0, 0)])


def max_pool(
    x: Any,
    window: int | Sequence[int],
    strides: int | Sequence[int] | None = None,
    padding: Padding = "VALID",
    ceil_mode: bool = False,
) -> Array:
    """Largest element of each window of `x` [N, spatial.., C]; the derivative goes to the first one. ceil_mode: as torch and ONNX"""
    x = as_array(x)
    w, s, _, reach = _numbers(x, window, strides, padding, ceil_mode)
    return _over_windows(x, "max", w, s, reach)


def avg_pool(
    x: Any,
    window: int | Sequence[int],
    strides: int | Sequence[int] | None = None,
    padding: Padding = "VALID",
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Array:
    """Mean of each window of `x` [N, spatial.., C]; padding counts as zeros if `count_include_pad`. ceil_mode: as torch and ONNX"""
    x = as_array(x)
    w, s, asked, reach = _numbers(x, window, strides, padding, ceil_mode)
    total = _over_windows(x, "sum", w, s, reach)
    whole = reach == asked and (count_include_pad or not any(n for pair in asked for n in pair))
    if whole:
        return divide(total, float(np.prod(w, dtype=np.int64)))
    counts = np.ones((1,) * x.ndim)
    for k, (n, size) in enumerate(zip(x.shape[1:-1], total.shape[1:-1])):
        if isinstance(n, Dim) or isinstance(size, Dim):
            raise user_error(
                "the divisor needs sizes known when the program is traced", code="GR104", expected="static sizes", found=str(x.shape)
            )
        low, high = asked[k] if count_include_pad else (0, 0)
        first = np.arange(size) * s[k] - asked[k][0]
        seen = np.minimum(first + w[k], n + high) - np.maximum(first, -low)
        counts = counts * seen.reshape([-1 if d == k + 1 else 1 for d in range(x.ndim)])
    divisor = as_array(counts.astype(np.float32), x.dtype)
    return divide(total, broadcast_to(divisor, total.shape))
