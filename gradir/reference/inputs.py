"""Inputs for any function, from its argument types alone: reproducible, with run-time sizes that include 0 and 1."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, MemRefType, TensorType
from xdsl.ir import Attribute

from gradir import size_algebra
from gradir.dialects.size_limits import Limits
from gradir.dialects.types import shape_of
from gradir.dialects.upstream.func import FuncOp
from gradir.errors import GradirError
from gradir.reference.values import dtype_of, element_type_of

Array = np.ndarray[Any, Any]

LARGEST = 1 << 26
"""Elements of all inputs of a function: an evaluator that runs op by op is not for more."""

SIZES = ((3, 2, 4, 5), (1,), (0,), (5, 3, 2, 4), (2, 1, 0))
"""Run-time sizes of the names in the first samples, in turn: apart, all 1, all 0, apart again, mixed; later ones are drawn."""


def generate(
    types: Sequence[Attribute], seed: int, sample: int, *, special: bool = False, limits: Mapping[str, Limits] | None = None
) -> list[Array]:
    """Arrays of these types: floats are normal, integers small (they may be labels or indices), each sample has its own run-time sizes.

    With `special` a quarter of the elements are NaN, infinities, zeros of both signs, limits and other corners of the type. Sizes keep
    within `limits`, and fit together: one value for each name, a size `2*b+1` is computed from that of `b`.
    """
    rng = np.random.default_rng([seed, sample])
    names = _draw_names(types, rng, sample, limits or {})
    shapes = [tuple(_size(size, names) for size in _dims(type_)) for type_ in types]
    count = sum(math.prod(shape) for shape in shapes)
    if count > LARGEST:
        raise GradirError(
            "the inputs are too large to be evaluated",
            part="operator",
            code="OP114",
            expected=f"at most {LARGEST} elements",
            found=str(count),
        )
    floats = [shape for type_, shape in zip(types, shapes) if dtype_of(type_).kind not in "iub" and shape]
    limit = max(1, min((shape[-1] for shape in floats), default=4))
    arrays = [_array(rng, type_, shape, limit) for type_, shape in zip(types, shapes)]
    return [_with_corners(rng, array) if special and not isinstance(type_, IndexType) else array for type_, array in zip(types, arrays)]


def _draw_names(types: Sequence[Attribute], rng: np.random.Generator, sample: int, limits: Mapping[str, Limits]) -> dict[str | None, int]:
    """A size for every name; `?` without a name are all equal."""
    names: dict[str | None, int] = {}
    for size in (size for type_ in types for size in _dims(type_) if not isinstance(size, int)):
        wanted: tuple[str | None, ...] = (None,) if size is None else size_algebra.names_in(size)
        for name in (name for name in wanted if name not in names):
            row = SIZES[sample] if sample < len(SIZES) else ()
            drawn = row[len(names) % len(row)] if row else int(rng.integers(0, 9))
            names[name] = limits[name].nearest(drawn) if name is not None and name in limits else drawn
    return names


def _size(size: int | str | None, names: Mapping[str | None, int]) -> int:
    if size is None:
        return names[None]
    return max(0, size_algebra.evaluate(size, {name: value for name, value in names.items() if name is not None}))


def _dims(type_: Attribute) -> Sequence[int | str | None]:
    if isinstance(type_, TensorType):
        return shape_of(type_)
    if isinstance(type_, MemRefType):
        return [None if size == DYNAMIC_INDEX else size for size in type_.get_shape()]
    return ()


def _array(rng: np.random.Generator, type_: Attribute, shape: Sequence[int], limit: int) -> Array:
    dtype = dtype_of(type_)
    if dtype == np.bool_:
        return np.asarray(rng.integers(0, 2, shape)).astype(np.bool_)
    if dtype.kind in "iu":
        high = 4 if isinstance(element_type_of(type_), IndexType) else limit
        return np.asarray(rng.integers(0, high, shape)).astype(dtype)
    if dtype.kind == "c":
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    return np.asarray(rng.standard_normal(shape)).astype(dtype)


def _with_corners(rng: np.random.Generator, array: Array) -> Array:
    """`array` with a quarter of its elements replaced."""
    if array.dtype == np.bool_:
        return array
    if array.dtype.kind in "iu":
        limits = np.iinfo(array.dtype)
        corners = np.array([limits.min, limits.max, limits.max - 1, 0, 1, 7, 31], array.dtype)
    else:
        corners = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1.0, -1.0, 0.5, 2.5, 1e-40, 3e4]).astype(array.dtype)
    chosen = corners[rng.integers(0, len(corners), array.shape)]
    return np.asarray(np.where(rng.random(array.shape) < 0.25, chosen, array)).astype(array.dtype)


def has_run_time_sizes(function: FuncOp) -> bool:
    """Whether some argument has a size that its type does not fix."""
    return any(not isinstance(size, int) for argument in function.body.block.args for size in _dims(argument.type))
