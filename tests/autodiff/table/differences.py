"""Derivatives by differences that are good to about 1e-11: central differences extrapolated to step 0.

Ridders, "Accurate computation of F'(x) and F'(x) F''(x)" (1982): steps are halved, Neville's scheme takes out one even power of the step
after the other, and for each element of the result the entry counts that agrees best with its neighbours. Near a kink the entries of wide
steps disagree, so that a step that stays on one side decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

WIDEST, LEVELS, ENOUGH = 0.05, 14, 3e-13
"""The first step, how often it is halved at most, and the relative disagreement that ends it."""


def slope(f: Callable[[float], Sequence[Array]]) -> list[Array]:
    """The derivative at 0 of every float or complex result of `f`; NaN where no two steps agree. Integer results: zeros."""
    previous: list[list[Array]] = []
    best: list[Array] = []
    errors: list[Array] = []
    for level in range(LEVELS):
        step = WIDEST / 2**level
        row = [_differences(f, step)]
        for j, coarse in enumerate(previous):
            row.append([fine + (fine - old) / (4.0 ** (j + 1) - 1) for fine, old in zip(row[j], coarse)])
            for k, (value, fine, old) in enumerate(zip(row[-1], row[j], coarse)):
                error = np.maximum(abs(value - fine), abs(value - old))
                error = np.where(np.isnan(error), np.inf, error)
                if len(best) <= k:
                    best.append(value)
                    errors.append(error)
                better = error < errors[k]
                best[k], errors[k] = np.where(better, value, best[k]), np.where(better, error, errors[k])
        previous = row
        if level >= 3 and all(np.all(e <= ENOUGH * np.maximum(abs(v), 1.0)) for v, e in zip(best, errors)):
            break
    return [np.where(np.isinf(e), np.nan, v) for v, e in zip(best, errors)]


def _differences(f: Callable[[float], Sequence[Array]], step: float) -> list[Array]:
    """Central differences; what does not move, an infinity included, has slope 0."""
    found: list[Array] = []
    with np.errstate(all="ignore"):
        for up, down in zip(map(np.asarray, f(step)), map(np.asarray, f(-step))):
            if up.dtype.kind not in "fc":
                found.append(np.zeros(up.shape))
                continue
            found.append(np.where(up == down, 0.0, up - down) / (2 * step))
    return found


def directions(x: Array) -> list[Array]:
    """One unit direction per element, two (1 and i) per complex one."""
    units = (1.0, 1.0j) if x.dtype.kind == "c" else (1.0,)
    found: list[Array] = []
    for index in np.ndindex(x.shape):
        for unit in units:
            direction = np.zeros(x.shape, x.dtype)
            direction[index] = unit
            found.append(direction)
    return found
