"""Elementwise ops, also the further mathematics, parts of complex numbers and bits."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from gradir.dialects.types import element_of, numpy_dtype
from tests.autodiff.jax_counterparts.registry import counterpart, plain


def _sign(x: Any) -> Any:
    """JAX's sign of complex numbers has derivative 0."""
    return x / jnp.abs(x) if jnp.iscomplexobj(x) else lax.sign(x)


def _trunc(x: Any) -> Any:
    return lax.sign(x) * lax.floor(abs(x))


def _cbrt(x: Any) -> Any:
    return lax.exp(lax.log(x) / 3) if jnp.iscomplexobj(x) else lax.cbrt(x)


def _acosh(x: Any) -> Any:
    """The formula, since JAX's derivative takes the other root where the real part is negative."""
    if not jnp.iscomplexobj(x):
        return lax.acosh(x)
    return lax.log(x + lax.sqrt(x + 1) * lax.sqrt(x - 1))


plain(
    {
        "relu": jax.nn.relu,
        "neg": lax.neg,
        "abs": lax.abs,
        "sign": _sign,
        "exp": lax.exp,
        "expm1": lax.expm1,
        "log": lax.log,
        "log1p": lax.log1p,
        "sqrt": lax.sqrt,
        "rsqrt": lax.rsqrt,
        "tanh": lax.tanh,
        "logistic": lambda x: 1 / (1 + lax.exp(-x)) if jnp.iscomplexobj(x) else lax.logistic(x),
        "erf": lax.erf,
        "sin": lax.sin,
        "cos": lax.cos,
        "floor": lax.floor,
        "ceil": lax.ceil,
        "add": lax.add,
        "sub": lax.sub,
        "mul": lax.mul,
        "mul_strong": lax.mul,
        "div": lax.div,
        "rem": lax.rem,
        "pow": lax.pow,
        "max": lax.max,
        "min": lax.min,
        "atan2": lax.atan2,
        "select": lax.select,
        "clamp": lambda lo, x, hi: lax.min(lax.max(x, lo), hi),
        "round_even": lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN),
        "round_away": lambda x: lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO),
        "trunc": _trunc,
        "cbrt": _cbrt,
        "tan": lax.tan,
        "asin": lax.asin,
        "acos": lax.acos,
        "atan": lax.atan,
        "sinh": lax.sinh,
        "cosh": lax.cosh,
        "asinh": lax.asinh,
        "acosh": _acosh,
        "atanh": lax.atanh,
        "erfc": lax.erfc,
        "erf_inv": lax.erf_inv,
        "real": lax.real,
        "imag": lax.imag,
        "complex": lax.complex,
        "conj": lax.conj,
        "silu": jax.nn.silu,
        "softplus": jax.nn.softplus,
        "fma": lambda a, b, c: a * b + c,
    }
)

COMPARE = {"eq": lax.eq, "ne": lax.ne, "lt": lax.lt, "le": lax.le, "gt": lax.gt, "ge": lax.ge}


@counterpart("compare")
def compare(run: Any, op: Any, x: Any, y: Any) -> Any:
    x, y = jnp.broadcast_arrays(x, y)
    return COMPARE[op.direction.data.value](x, y)


@counterpart("convert")
def convert(run: Any, op: Any, x: Any) -> Any:
    """Of complex numbers the real part, as numpy's real, where the result is real."""
    dtype = numpy_dtype(element_of(op.result))
    return lax.convert_element_type(lax.real(x) if jnp.iscomplexobj(x) and dtype.kind != "c" else x, dtype)


@counterpart("reduce_precision")
def reduce_precision(run: Any, op: Any, x: Any) -> Any:
    return lax.reduce_precision(x, op.number("exponent_bits"), op.number("mantissa_bits"))


@counterpart("gelu")
def gelu(run: Any, op: Any, x: Any) -> Any:
    return jax.nn.gelu(x, approximate=bool(op.approximate.value.data))


@counterpart("dequantize")
def dequantize(run: Any, op: Any, x: Any, scale: Any, zero: Any) -> Any:
    """(x - zero) * scale, scale and zero along `axis`"""
    if np.ndim(scale):
        spread = [1] * np.ndim(x)
        spread[op.number("axis")] = -1
        scale, zero = jnp.reshape(scale, spread), jnp.reshape(zero, spread)
    return (jnp.asarray(x, scale.dtype) - jnp.asarray(zero, scale.dtype)) * scale


@counterpart("constant")
def constant(run: Any, op: Any) -> Any:
    return jnp.asarray(op.evaluate())
