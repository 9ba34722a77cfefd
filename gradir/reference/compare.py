"""When are two results equal? docs/numerics.md, "Comparison".

Integers, booleans, indices and moved data: exactly; NaN equals NaN. A float lies within its tolerance, which `expectations` takes from runs
with perturbed rounding (see `noise`). An element that depends on a comparison closer than the error of its operands is counted, not
compared; more than 1 % of such elements is a failure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from gradir.reference.noise import Noise, is_float, spacing
from gradir.reference.run import run

Array = np.ndarray[Any, Any]

SPREAD = 4.0
"""Tolerance over the largest deviation that the perturbed runs showed."""

FLOOR = 4.0
"""Units in the last place that every rounded element is granted."""


@dataclass(frozen=True)
class Expectation:
    """One result: its elements, how far each may be off (0: exact), and which are not compared.

    Of complex elements both parts may be off by what their absolute value grants; tolerance and `unstable` have an axis for the parts.
    """

    value: Array
    tolerance: Array
    unstable: Array


@dataclass(frozen=True)
class Difference:
    """The first element that differs; `index` is None when shape or dtype differ."""

    index: tuple[int, ...] | None
    expected: str
    found: str
    count: int = 1


def expectations(module: ModuleOp, entry: str, inputs: Sequence[Array | None], *, samples: int = 4, seed: int = 0) -> list[Expectation]:
    """What `@entry` gives on `inputs`, with the tolerance that docs/numerics.md grants to any other way of computing it."""
    values = run(module, entry, inputs, seed=seed)
    shapes = [value.shape for value in values]
    runs = [run(module, entry, inputs, seed=seed, watch=Noise(seed * 1000 + k), result_shapes=shapes) for k in range(samples)]
    return [_expectation(value, [results[k] for results in runs]) for k, value in enumerate(values)]


def as_reals(values: Array) -> Array:
    """The elements in f64, the two parts of complex ones along a last axis."""
    if values.dtype.kind != "c":
        return values.astype(np.float64)
    return np.stack([values.real, values.imag], axis=-1).astype(np.float64)


def _expectation(value: Array, others: Sequence[Array]) -> Expectation:
    if not is_float(value):
        changed = np.any([other != value for other in others], axis=0) if others else np.zeros(value.shape, np.bool_)
        return Expectation(value, np.zeros(value.shape), np.asarray(changed))
    exact = as_reals(value)
    with np.errstate(all="ignore"):
        deviations = [np.abs(as_reals(other) - exact) for other in others]
        patterns = [np.isfinite(as_reals(other)) != np.isfinite(exact) for other in others]
    unstable = np.asarray(np.any(patterns, axis=0)) if patterns else np.zeros(exact.shape, np.bool_)
    largest = np.max([np.where(np.isfinite(d), d, 0.0) for d in deviations], axis=0) if deviations else np.zeros(exact.shape)
    moved = np.asarray(largest > 0)
    if 2 * np.count_nonzero(moved) > np.count_nonzero(np.isfinite(exact)):
        moved = np.ones_like(moved)  # errors of two ops cancel in all the runs for a few of very many elements
    tolerance = np.where(moved, SPREAD * largest + FLOOR * spacing(value), 0.0)
    return Expectation(value, np.where(np.isfinite(exact), tolerance, 0.0), unstable)


def compare(expected: Expectation, found: Array) -> Difference | None:
    """The first element of `found` that is not what `expected` allows."""
    value = expected.value
    found = np.asarray(found)
    if found.dtype != value.dtype and {found.dtype.kind, value.dtype.kind} <= {"i", "u"} and found.dtype.itemsize == value.dtype.itemsize:
        found = found.view(value.dtype)  # from level 2 on uiN is iN
    if value.dtype.kind == "c" and found.shape == (*value.shape, 2) and found.dtype == value.real.dtype:
        found = np.ascontiguousarray(found).view(value.dtype).reshape(value.shape)  # as `split-complex` passes it
    if value.dtype.itemsize == found.dtype.itemsize == 1 and value.dtype.kind not in "iub" and found.dtype.kind == "i":
        found = found.view(value.dtype)  # 8-bit floats, as `f8-to-bits` passes them
    if found.shape != value.shape or found.dtype != value.dtype:
        return Difference(None, f"{value.dtype}{list(value.shape)}", f"{found.dtype}{list(found.shape)}")
    if is_float(value):
        a, b = as_reals(value), as_reals(found)
        with np.errstate(all="ignore"):
            near = np.abs(a - b) <= expected.tolerance
        good = near | (a == b) | (np.isnan(a) & np.isnan(b))
    else:
        good = found == value
    bad = np.argwhere(~(good | expected.unstable))
    if not len(bad):
        return None
    index = tuple(int(i) for i in bad[0])
    tolerance = float(np.asarray(expected.tolerance)[index])
    index = index[: value.ndim]
    return Difference(index, f"{value[index]}" + (f" +- {tolerance:.3g}" if tolerance else ""), str(found[index]), len(bad))


def unstable_share(results: Sequence[Expectation]) -> tuple[int, int]:
    """Elements that are not compared, and all elements."""
    return sum(int(np.count_nonzero(each.unstable)) for each in results), sum(each.value.size for each in results)
