"""Meaning of the composites, computed in f64 whatever their type and rounded once (docs/numerics.md, "Reductions and composites")."""

from __future__ import annotations

from collections.abc import Callable
from math import erfc as scalar_erfc
from typing import Any

import numpy as np

from gradir.dialects.nd.meaning.rounding import F64, Array, from_f64

_ERFC = np.frompyfunc(scalar_erfc, 1, 1)
_MAX = float(np.finfo(F64).max)
_TINY = float(np.finfo(F64).tiny)


def _shifted(x: Array, dim: int) -> tuple[Array, Array]:
    """x - max and the sum of its exponentials, with a row of -inf staying at -inf (sum 0)."""
    wide = x.astype(F64)
    top = np.maximum(np.max(wide, axis=dim, keepdims=True, initial=-np.inf), -_MAX)
    shifted = wide - top
    return shifted, np.sum(np.exp(shifted), axis=dim, keepdims=True)


def softmax(op: Any, x: Array) -> Array:
    shifted, total = _shifted(x, op.number("dim"))
    return from_f64(np.exp(shifted) / np.where(total == 0, 1.0, total), x.dtype)


def log_softmax(op: Any, x: Array) -> Array:
    shifted, total = _shifted(x, op.number("dim"))
    return from_f64(shifted - np.log(np.where(total == 0, 1.0, total)), x.dtype)


def logsumexp(op: Any, x: Array) -> Array:
    dim = op.number("dim")
    wide = x.astype(F64)
    top = np.clip(np.max(wide, axis=dim, keepdims=True, initial=-np.inf), -_MAX, _MAX)
    result = np.log(np.sum(np.exp(wide - top), axis=dim, keepdims=True)) + top
    return from_f64(np.squeeze(result, dim), x.dtype)


def layer_norm(op: Any, x: Array, scale: Array, bias: Array) -> Array:
    wide = x.astype(F64)
    top = np.max(wide, axis=-1, keepdims=True, initial=-np.inf)
    half = 0.5 * wide - 0.5 * top
    spread = np.maximum(-np.min(half, axis=-1, keepdims=True, initial=0.0), max(op.epsilon**0.5 / 2, _TINY))
    unit = half / spread
    centred = unit - np.mean(unit, axis=-1, keepdims=True)
    variance = np.mean(centred * centred, axis=-1, keepdims=True)
    # (x - mean) / sqrt(var + eps) == centred / sqrt(variance + eps / (2 spread)**2)
    root = np.sqrt(np.maximum(variance + op.epsilon / 4 / spread / spread, _TINY))
    return from_f64(centred / root * scale.astype(F64) + bias.astype(F64), x.dtype)


def gelu(op: Any, x: Array) -> Array:
    wide = x.astype(F64)
    if op.is_approximate:
        inner = np.sqrt(2 / np.pi) * (wide + 0.044715 * wide**3)
        return from_f64(0.5 * wide * (1.0 + np.tanh(inner)), x.dtype)
    return from_f64(0.5 * wide * np.asarray(_ERFC(-wide / np.sqrt(2.0))).astype(F64), x.dtype)


def cross_entropy(op: Any, logits: Array, labels: Array) -> Array:
    shifted, total = _shifted(logits, 1)
    classes = logits.shape[1]
    chosen = np.array([min(max(int(label), 0), classes - 1) for label in labels], np.int64)
    picked = np.take_along_axis(shifted, chosen[:, None], axis=1)
    return from_f64((np.log(np.where(total == 0, 1.0, total)) - picked)[:, 0], logits.dtype)


EVALUATE: dict[str, Callable[..., Any]] = {
    "nd.softmax": softmax,
    "nd.log_softmax": log_softmax,
    "nd.logsumexp": logsumexp,
    "nd.layer_norm": layer_norm,
    "nd.gelu": gelu,
    "nd.cross_entropy": cross_entropy,
}
