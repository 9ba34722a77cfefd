"""Meaning of variance and length (docs/numerics.md, "Reductions and composites")."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradir.dialects.nd.meaning.reduction import reduced_last
from gradir.dialects.nd.meaning.rounding import F64, Array, from_f64


def variance(op: Any, x: Array) -> Array:
    rows = reduced_last(x, op.numbers("dims")).astype(F64)
    shifted = rows - np.min(rows, axis=-1, keepdims=True, initial=np.inf)
    count = np.float64(rows.shape[-1])
    centred = shifted - np.add.reduce(shifted, axis=-1, keepdims=True) / count
    return from_f64(np.add.reduce(centred * centred, axis=-1) / (count - op.number("correction")), x.dtype)


def norm(op: Any, x: Array) -> Array:
    rows = reduced_last(x, op.numbers("dims")).astype(F64)
    top = np.max(np.abs(rows), axis=-1, initial=0.0)
    scale = np.where((top > 0) & np.isfinite(top), top, 1.0)
    scaled = rows / scale[..., None]
    return from_f64(np.sqrt(np.add.reduce(scaled * scaled, axis=-1)) * scale, x.dtype)


EVALUATE: dict[str, Callable[..., Any]] = {"nd.variance": variance, "nd.norm": norm}
