"""`gradir.fft`: names and meaning of `numpy.fft`. f32 in f32, f64 in f64; forward not scaled, inverse divided by the number of points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradir.dialects import nd
from gradir.dialects.nd.fourier import half
from gradir.dialects.types import complex_of, i64_attr, real_of, tensor
from gradir.frontends.python import promotion
from gradir.frontends.python.arrays import Array
from gradir.frontends.python.complex import complex as complex_of_parts
from gradir.frontends.python.elementwise import multiply
from gradir.frontends.python.operands import as_array, astype, float_dtype
from gradir.frontends.python.rearrange import moveaxis
from gradir.frontends.python.shape import pad
from gradir.frontends.python.sizes import axis_of, whole
from gradir.frontends.python.trace import apply, user_error

Axes = Sequence[int] | None
Sizes = Sequence[int] | None


def fft(x: Any, n: int | None = None, axis: int = -1) -> Array:
    """The transform along `axis`, after cutting or padding it with zeros to n"""
    return fftn(x, None if n is None else (n,), (axis,))


def ifft(x: Any, n: int | None = None, axis: int = -1) -> Array:
    """The inverse of `fft`"""
    return ifftn(x, None if n is None else (n,), (axis,))


def rfft(x: Any, n: int | None = None, axis: int = -1) -> Array:
    """The first n//2 + 1 numbers of the transform of real numbers"""
    return rfftn(x, None if n is None else (n,), (axis,))


def irfft(x: Any, n: int | None = None, axis: int = -1) -> Array:
    """The n real numbers (default 2 (m - 1)) whose `rfft` is `x`"""
    return irfftn(x, None if n is None else (n,), (axis,))


def fft2(x: Any) -> Array:
    """The transform over the last two axes"""
    return fftn(x, None, (-2, -1))


def ifft2(x: Any) -> Array:
    """The inverse of `fft2`"""
    return ifftn(x, None, (-2, -1))


def fftn(x: Any, s: Sizes = None, axes: Axes = None) -> Array:
    """The transform over `axes` (all), after cutting or padding them to the sizes `s`"""
    return _complex_to_complex(nd.FftOp, x, s, axes)


def ifftn(x: Any, s: Sizes = None, axes: Axes = None) -> Array:
    """The inverse of `fftn`"""
    return _complex_to_complex(nd.IfftOp, x, s, axes)


def rfftn(x: Any, s: Sizes = None, axes: Axes = None) -> Array:
    """The transform of real numbers over `axes`; of the last of them the first n//2 + 1 numbers"""
    value = as_array(x)
    if promotion.is_complex(value.dtype):
        raise user_error("rfft of complex numbers", code="GR002", op="nd.rfft", expected="real numbers", found=str(value.dtype))
    value = astype(value, _wide(float_dtype(value)))
    moved, places = _last(value, axes)
    moved = _sized(moved, s, len(places))
    shape = (*moved.shape[:-1], half(moved.shape[-1]))
    kind = tensor(complex_of(moved.type.element_type), shape)
    return _back(apply(nd.RfftOp, [moved], kind, dims=i64_attr(len(places))), places)


def irfftn(x: Any, s: Sizes = None, axes: Axes = None) -> Array:
    """The real numbers whose `rfftn` is `x`; the last of `s` is their number along the last axis, default 2 (m - 1)"""
    moved, places = _last(_as_complex(x), axes)
    count = len(places)
    n = 2 * (moved.shape[-1] - 1) if s is None else whole("a size", s[-1], 1)
    sizes = [*(moved.shape[moved.ndim - count : -1] if s is None else s[:-1]), n // 2 + 1]
    moved = _sized(moved, sizes, count)
    kind = tensor(real_of(moved.type.element_type), (*moved.shape[:-1], n))
    return _back(apply(nd.IrfftOp, [moved], kind, dims=i64_attr(count)), places)


def fftfreq(n: int, d: float = 1.0) -> Array:
    """The frequencies of `fft`'s numbers, for points `d` apart, in f32"""
    return as_array(np.fft.fftfreq(whole("the number of points", n, 1), d).astype(np.float32))


def rfftfreq(n: int, d: float = 1.0) -> Array:
    """The frequencies of `rfft`'s numbers, for points `d` apart, in f32"""
    return as_array(np.fft.rfftfreq(whole("the number of points", n, 1), d).astype(np.float32))


def _complex_to_complex(kind: type[nd.Fourier], x: Any, s: Sizes, axes: Axes) -> Array:
    moved, places = _last(_as_complex(x), axes)
    moved = _sized(moved, s, len(places))
    return _back(apply(kind, [moved], moved.type, dims=i64_attr(len(places))), places)


def _wide(dtype: Any) -> Any:
    """f32 for f16 and bf16."""
    return np.dtype(np.float32) if dtype.itemsize < 4 else dtype


def _as_complex(x: Any) -> Array:
    value = as_array(x)
    if promotion.is_complex(value.dtype):
        return value
    value = astype(value, _wide(float_dtype(value)))
    return complex_of_parts(value, multiply(value, 0))


def _last(x: Array, axes: Axes) -> tuple[Array, tuple[int, ...]]:
    """`axes` moved behind the others, in their order."""
    places = tuple(range(x.ndim)) if axes is None else tuple(axis_of(axis, x.ndim) for axis in axes)
    if not places or len(set(places)) != len(places):
        raise user_error("a transform needs distinct axes", code="GR104", op="gradir.fft", expected="one axis or more", found=str(axes))
    return moveaxis(x, places, tuple(range(x.ndim - len(places), x.ndim))), places


def _back(x: Array, places: tuple[int, ...]) -> Array:
    return moveaxis(x, tuple(range(x.ndim - len(places), x.ndim)), places)


def _sized(x: Array, s: Sizes, count: int) -> Array:
    """The last `count` axes cut, or filled with zeros, to the sizes `s`."""
    if s is None:
        return x
    wanted = [whole("a size", n, 1) for n in s]
    if len(wanted) != count:
        raise user_error("one size per axis", code="GR104", op="gradir.fft", expected=f"{count} sizes", found=str(tuple(s)))
    for axis, n in zip(range(x.ndim - count, x.ndim), wanted):
        have = x.shape[axis]
        if n < have:
            index = tuple(slice(0, n) if k == axis else slice(None) for k in range(x.ndim))
            x = x[index]
        elif n > have:
            x = pad(x, [(0, n - have) if k == axis else (0, 0) for k in range(x.ndim)])
    return x


__all__ = ["fft", "fft2", "fftfreq", "fftn", "ifft", "ifft2", "ifftn", "irfft", "irfftn", "rfft", "rfftfreq", "rfftn"]
