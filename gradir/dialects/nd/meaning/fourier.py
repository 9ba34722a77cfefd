"""Fourier transforms by numpy in complex128, rounded once; and the rows `fft.*` of functions called by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradir import size_algebra
from gradir.dialects.custom_calls import Config, CustomCall, define
from gradir.dialects.types import element_of, numpy_dtype, shape_of

Array = NDArray[Any]


def transform(kind: str, x: Array, dims: int, shape: Sequence[int], dtype: Any) -> Array:
    """`kind` over the last `dims` dimensions, as an array of that shape and dtype."""
    axes = tuple(range(x.ndim - dims, x.ndim))
    if 0 in shape or 0 in x.shape:
        return np.zeros(shape, dtype)
    wide = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
    if kind == "irfft":
        return np.fft.irfftn(wide, [shape[axis] for axis in axes], axes).astype(dtype)
    function = {"fft": np.fft.fftn, "ifft": np.fft.ifftn, "rfft": np.fft.rfftn}[kind]
    return np.asarray(function(wide, axes=axes)).astype(dtype)


def _evaluate(kind: str) -> Callable[..., Any]:
    def evaluate(op: Any, x: Array, sizes: Mapping[str, int] | None = None) -> Array:
        shape = list(x.shape)
        if kind == "rfft":
            shape[-1] = x.shape[-1] // 2 + 1 if x.shape[-1] else 0
        if kind == "irfft":
            last = shape_of(op.result)[-1]
            known = isinstance(last, int) or (last is not None and set(size_algebra.names_in(last)) <= set(sizes or ()))
            shape[-1] = size_algebra.evaluate(last, sizes or {}) if known else 2 * (x.shape[-1] - 1)
        return transform(kind, x, op.number("dims"), shape, numpy_dtype(element_of(op.result)))

    return evaluate


def _row(kind: str) -> None:
    def evaluate(config: Config, shapes: Sequence[Any], x: Array) -> Sequence[Array]:
        ((shape, dtype),) = shapes
        sizes = [n if n is not None else m for n, m in zip(shape, x.shape)]
        return (transform(kind, x, config["dims"], sizes, dtype),)

    define(CustomCall(f"fft.{kind}", evaluate))


KINDS = ("fft", "ifft", "rfft", "irfft")
EVALUATE: Mapping[str, Callable[..., Any]] = {f"nd.{kind}": _evaluate(kind) for kind in KINDS}
for _kind in KINDS:
    _row(_kind)
