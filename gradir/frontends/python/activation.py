"""Activations of neural networks. Each is finite and has a finite derivative wherever the exact one is."""

from __future__ import annotations

from typing import Any

from xdsl.ir import Operation

from gradir.dialects import nd
from gradir.frontends.python import promotion
from gradir.frontends.python.arrays import Array
from gradir.frontends.python.elementwise import add, clip, divide, expm1, maximum, multiply, negative, sigmoid, tanh, where
from gradir.frontends.python.operands import as_array, astype, one_axis
from gradir.frontends.python.shape import split
from gradir.frontends.python.trace import apply

SELU = (1.6732632423543772, 1.0507009873554805)
"""alpha and scale of G. Klambauer et al., "Self-normalizing neural networks", 2017."""


def floats(x: Any) -> Array:
    """`x` as an array of floats: integers and booleans become f32"""
    x = as_array(x)
    return x if promotion.is_float(x.dtype) else astype(x, promotion.FLOAT32)


def _unary(kind: type[Operation], x: Any) -> Array:
    x = floats(x)
    return apply(kind, [x], x.type)


def silu(x: Any) -> Array:
    """x * sigmoid(x), also called swish; -0 at -inf"""
    return _unary(nd.SiluOp, x)


def softplus(x: Any) -> Array:
    """log(1 + exp(x)) without overflow"""
    return _unary(nd.SoftplusOp, x)


def log_sigmoid(x: Any) -> Array:
    """log(sigmoid(x)) = -softplus(-x)"""
    return negative(softplus(negative(floats(x))))


def mish(x: Any) -> Array:
    """x * tanh(softplus(x)); -0 at -inf"""
    x = floats(x)
    return multiply(maximum(x, -1.0e4), tanh(softplus(x)))


def elu(x: Any, alpha: float = 1.0) -> Array:
    """x where x > 0, else alpha * (exp(x) - 1)"""
    x = floats(x)
    above = x > 0
    return where(above, x, multiply(expm1(where(above, 0.0, x)), alpha))


def celu(x: Any, alpha: float = 1.0) -> Array:
    """x where x > 0, else alpha * (exp(x / alpha) - 1)"""
    x = floats(x)
    above = x > 0
    return where(above, x, multiply(expm1(divide(where(above, 0.0, x), alpha)), alpha))


def selu(x: Any) -> Array:
    """scale * elu(x, alpha) with the constants for which a normal distribution keeps mean 0 and variance 1"""
    alpha, scale = SELU
    return multiply(elu(x, alpha), scale)


def leaky_relu(x: Any, negative_slope: float = 0.01) -> Array:
    """x where x >= 0, else negative_slope * x"""
    x = floats(x)
    return where(x >= 0, x, multiply(x, negative_slope))


def relu6(x: Any) -> Array:
    """x within 0 and 6"""
    return clip(floats(x), 0.0, 6.0)


def hard_tanh(x: Any) -> Array:
    """x within -1 and 1"""
    return clip(floats(x), -1.0, 1.0)


def hard_sigmoid(x: Any) -> Array:
    """relu6(x + 3) / 6"""
    return divide(relu6(add(floats(x), 3.0)), 6.0)


def hard_silu(x: Any) -> Array:
    """x * hard_sigmoid(x), also called hard swish; 0 below -3"""
    x = floats(x)
    return where(x <= -3, 0.0, multiply(x, hard_sigmoid(x)))


def glu(x: Any, axis: int = -1) -> Array:
    """a * sigmoid(b), a and b the halves of `x` along `axis`"""
    x = floats(x)
    dim = one_axis(x, axis)
    a, b = split(x, 2, dim)
    return multiply(a, sigmoid(b))
