"""Meaning of attention, in f64 and rounded once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradir.dialects.nd.meaning.rounding import F64, Array, from_f64


def attention(op: Any, q: Array, k: Array, v: Array, *more: Array) -> Array:
    given = iter(more)
    mask = next(given) if op.mask is not None else None
    bias = next(given) if op.bias is not None else None
    heads, shared = q.shape[2], k.shape[2]
    times = heads // shared if shared else 0
    wide_k, wide_v = (np.repeat(x.astype(F64), times, axis=2) for x in (k, v))
    scores = np.einsum("bihd,bjhd->bhij", q.astype(F64), wide_k) * op.factor
    if bias is not None:
        scores = scores + bias.astype(F64)
    if op.is_causal:
        scores = np.where(np.tri(q.shape[1], k.shape[1], dtype=bool), scores, -np.inf)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    top = np.maximum(np.max(scores, axis=3, keepdims=True, initial=-np.inf), -np.finfo(F64).max)
    powers = np.exp(scores - top)
    total = np.sum(powers, axis=3, keepdims=True)
    weights = powers / np.where(total == 0, 1.0, total)
    return from_f64(np.einsum("bhij,bjhe->bihe", weights, wide_v), q.dtype)


EVALUATE: dict[str, Callable[..., Any]] = {"nd.attention": attention}
