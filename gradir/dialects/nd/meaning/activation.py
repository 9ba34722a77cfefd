"""Meaning of the activations, in f64 and rounded once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradir.dialects.nd.meaning.rounding import F64, Array, from_f64


def silu(_op: Any, x: Array) -> Array:
    wide = x.astype(F64)
    result = np.maximum(wide, -1e6) * np.exp(np.minimum(wide, 0.0)) / (1.0 + np.exp(-np.abs(wide)))
    return from_f64(result, x.dtype)


def softplus(_op: Any, x: Array) -> Array:
    wide = x.astype(F64)
    return from_f64(np.maximum(wide, 0.0) + np.log1p(np.exp(-np.abs(wide))), x.dtype)


EVALUATE: dict[str, Callable[..., Any]] = {"nd.silu": silu, "nd.softplus": softplus}
