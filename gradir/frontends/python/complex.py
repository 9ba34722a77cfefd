"""Complex numbers and their parts, numpy's names. What a real number has no need of is the identity or 0."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradir.dialects import nd
from gradir.dialects.types import complex_of, real_of, tensor
from gradir.frontends.python import promotion
from gradir.frontends.python.arrays import OPERATORS, Array
from gradir.frontends.python.elementwise import arctan2
from gradir.frontends.python.operands import as_array, astype, broadcast_to, float_dtype, together
from gradir.frontends.python.trace import apply, user_error


def real(x: Any) -> Array:
    """The real part; a real array as it is"""
    x = as_array(x)
    return _part(nd.RealOp, x) if promotion.is_complex(x.dtype) else x


def imag(x: Any) -> Array:
    """The imaginary part; 0 of a real array"""
    x = as_array(x)
    return _part(nd.ImagOp, x) if promotion.is_complex(x.dtype) else broadcast_to(as_array(np.zeros((), x.dtype)), x.shape)


def _part(kind: type[nd.RealOp | nd.ImagOp], x: Array) -> Array:
    return apply(kind, [x], tensor(real_of(x.type.element_type), x.shape))


def conj(x: Any) -> Array:
    """The complex conjugate; a real array as it is"""
    x = as_array(x)
    return apply(nd.ConjOp, [x], x.type) if promotion.is_complex(x.dtype) else x


def angle(x: Any) -> Array:
    """The angle of the point (real, imag), in [-pi, pi]; derivative 0 at 0"""
    x = as_array(x)
    x = x if promotion.is_inexact(x.dtype) else astype(x, promotion.FLOAT32)
    return arctan2(imag(x), real(x))


def complex(re: Any, im: Any) -> Array:
    """re + im * i, part by part, of broadcast real operands: complex128 if one is f64, else complex64"""
    dtype = float_dtype(re, im)
    if promotion.is_complex(dtype):
        raise user_error("the parts of a complex number are complex", code="GR002", op="nd.complex", expected="real", found=str(dtype))
    wide = dtype if dtype == np.float64 else promotion.FLOAT32
    a, b = together("complex", re, im, dtype=wide)
    return apply(nd.ComplexOp, [a, b], tensor(complex_of(a.type.element_type), a.shape))


OPERATORS.update(real=real, imag=imag, conj=conj)
