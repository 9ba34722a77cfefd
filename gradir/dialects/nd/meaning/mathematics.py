"""Meaning of the further functions of one number (docs/numerics.md, "Elementwise")."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradir.dialects.nd.meaning.elementwise import by_f32
from gradir.dialects.nd.meaning.rounding import Array


def _round_away(x: Array) -> Array:
    whole = np.trunc(x)  # x - whole is exact, so that 0.49999997 goes to 0
    return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(np.ones((), x.dtype), x), whole)


EVALUATE: dict[str, Callable[..., Any]] = {
    "nd.round_even": by_f32(np.rint),
    "nd.round_away": by_f32(_round_away),
    "nd.trunc": by_f32(np.trunc),
}
