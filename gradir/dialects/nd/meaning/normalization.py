"""Meaning of the normalisations, in f64 whatever their type and rounded once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradir.dialects.nd.meaning.rounding import F64, Array, from_f64

_TINY = float(np.finfo(F64).tiny)


def standardized(x: Array, axes: Sequence[int], epsilon: float) -> tuple[Array, Array, Array]:
    """Normalised values, mean and variance; shifted by the maximum and scaled by the spread before anything is squared."""
    over = tuple(axes)
    wide = x.astype(F64)
    top = np.max(wide, axis=over, keepdims=True, initial=-np.inf)
    half = 0.5 * wide - 0.5 * top
    spread = np.maximum(-np.min(half, axis=over, keepdims=True, initial=0.0), max(epsilon**0.5 / 2, _TINY))
    unit = half / spread
    count = float(np.prod([x.shape[d] for d in over]))
    middle = np.sum(unit, axis=over, keepdims=True) / count
    centred = unit - middle
    variance = np.sum(centred * centred, axis=over, keepdims=True) / count
    root = np.sqrt(np.maximum(variance + epsilon / 4 / spread / spread, _TINY))
    mean = np.squeeze(2 * (middle * spread) + top, over)
    return centred / root, mean, np.squeeze(4 * (variance * spread * spread), over)


def _along(vector: Array, x: Array, dim: int) -> Array:
    return vector.astype(F64).reshape([n if d == dim else 1 for d, n in enumerate(x.shape)])


def batch_norm_train(op: Any, x: Array, scale: Array, bias: Array) -> tuple[Array, ...]:
    dim = op.number("dim")
    normal, mean, var = standardized(x, [d for d in range(x.ndim) if d != dim], op.epsilon)
    result = normal * _along(scale, x, dim) + _along(bias, x, dim)
    return tuple(from_f64(value, x.dtype) for value in (result, mean, var))


def batch_norm_infer(op: Any, x: Array, scale: Array, bias: Array, mean: Array, var: Array) -> Array:
    dim = op.number("dim")
    normal = (x.astype(F64) - _along(mean, x, dim)) / np.sqrt(_along(var, x, dim) + op.epsilon)
    return from_f64(normal * _along(scale, x, dim) + _along(bias, x, dim), x.dtype)


def group_norm(op: Any, x: Array, scale: Array, bias: Array) -> Array:
    groups, channels = op.number("groups"), x.shape[-1]
    grouped = x.reshape(*x.shape[:-1], groups, channels // groups)
    normal, _, _ = standardized(grouped, [*range(1, x.ndim - 1), x.ndim], op.epsilon)
    return from_f64(normal.reshape(x.shape) * scale.astype(F64) + bias.astype(F64), x.dtype)


def rms_norm(op: Any, x: Array, scale: Array) -> Array:
    wide = x.astype(F64)
    size = np.maximum(np.max(np.abs(wide), axis=-1, keepdims=True, initial=0.0), max(op.epsilon**0.5, _TINY))
    unit = wide / size
    square = np.sum(unit * unit, axis=-1, keepdims=True) / x.shape[-1] if x.shape[-1] else np.zeros(size.shape)
    root = np.sqrt(np.maximum(square + op.epsilon / size / size, _TINY))
    return from_f64(unit / root * scale.astype(F64), x.dtype)


EVALUATE: dict[str, Callable[..., Any]] = {
    "nd.batch_norm_train": batch_norm_train,
    "nd.batch_norm_infer": batch_norm_infer,
    "nd.group_norm": group_norm,
    "nd.rms_norm": rms_norm,
}
