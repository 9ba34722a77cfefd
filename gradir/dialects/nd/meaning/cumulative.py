"""Meaning of the cumulative ops (docs/numerics.md, "Reductions and composites")."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradir.dialects.nd.meaning.elementwise import max_, min_
from gradir.dialects.nd.meaning.rounding import Array, accumulator, from_f64, greatest, is_inexact, least

Join = Callable[[Array, Array], Array]
Identity = Callable[[np.dtype[Any]], Any]


def scan(join: Join, identity: Identity) -> Callable[..., Array]:
    """The op that folds prefixes one element after the other: in f64 for floats, in their own type for integers."""

    def evaluate(op: Any, x: Array) -> Array:
        wide = np.moveaxis(x, op.number("dim"), 0).astype(accumulator(x.dtype))
        order = range(len(wide))[::-1] if op.is_reverse else range(len(wide))
        result, total = np.empty_like(wide), np.full(wide.shape[1:], identity(wide.dtype), wide.dtype)
        for i in order:
            following = join(total, wide[i])
            result[i] = total if op.is_exclusive else following
            total = following
        back = np.moveaxis(result, 0, op.number("dim"))
        return from_f64(back, x.dtype) if is_inexact(x.dtype) else back.copy()

    return evaluate


def _constant(value: int) -> Identity:
    return lambda dtype: dtype.type(value)


def _log_add(total: Array, x: Array) -> Array:
    """ln(e**total + e**x)"""
    return np.asarray(np.logaddexp(total, x))


EVALUATE: dict[str, Callable[..., Any]] = {
    "nd.cumsum": scan(lambda total, x: np.asarray(total + x), _constant(0)),
    "nd.cumprod": scan(lambda total, x: np.asarray(total * x), _constant(1)),
    "nd.cummax": scan(lambda total, x: max_(None, total, x), least),
    "nd.cumlogsumexp": scan(_log_add, lambda dtype: dtype.type(-np.inf)),
    "nd.cummin": scan(lambda total, x: min_(None, total, x), greatest),
}
