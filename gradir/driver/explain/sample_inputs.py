"""Arguments for a function that somebody wants to measure and has no arguments for: random numbers of the declared types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gradir import size_algebra
from gradir.errors import GradirError
from gradir.runtime.dtypes import numpy_dtype
from gradir.runtime.manifest import Dim, FunctionSpec, TensorSpec

Array = np.ndarray[Any, np.dtype[Any]]


def sample_inputs(spec: FunctionSpec, sizes: Mapping[str, int] | None = None, seed: int = 0) -> list[Array]:
    """Standard normal floats, whole numbers from 0 to 9, coin flips. GradirError RT060 where a size is neither static nor in `sizes`."""
    generator = np.random.default_rng(seed)
    return [_sample(spec, tensor, sizes or {}, generator) for tensor in spec.inputs]


def sizes_of_call(spec: FunctionSpec, arrays: Sequence[Any]) -> dict[str, int]:
    """The named sizes that the arguments of a call bind."""
    found: dict[str, int] = {}
    for tensor, array in zip(spec.inputs, arrays):
        found.update((dim, size) for dim, size in zip(tensor.shape, np.shape(array)) if isinstance(dim, str) and size_algebra.is_name(dim))
    return found


def _size(dim: Dim, sizes: Mapping[str, int]) -> int | None:
    if dim is None or isinstance(dim, int):
        return dim
    return size_algebra.evaluate(dim, sizes) if set(size_algebra.names_in(dim)) <= set(sizes) else None


def _sample(spec: FunctionSpec, tensor: TensorSpec, sizes: Mapping[str, int], generator: np.random.Generator) -> Array:
    shape = tuple(n for dim in tensor.shape if (n := _size(dim, sizes)) is not None)
    if len(shape) != len(tensor.shape):
        raise GradirError(
            f"'{tensor.name}' has a size that only a call knows: give arguments",
            part="runtime",
            code="RT060",
            function=f"@{spec.name}",
            expected=f"an array of {tensor} for '{tensor.name}', or static sizes",
            found="no arguments",
            hint="explain(*arguments), tune with arguments, or --input on the command line",
        )
    dtype = np.dtype(numpy_dtype(tensor.dtype))
    if dtype == np.bool_:
        return np.asarray(generator.integers(0, 2, shape)).astype(dtype)
    if dtype.kind in "iu":
        return np.asarray(generator.integers(0, 10, shape)).astype(dtype)
    if dtype.kind == "c":
        return np.asarray(generator.standard_normal(shape) + 1j * generator.standard_normal(shape)).astype(dtype)
    return np.asarray(generator.standard_normal(shape)).astype(dtype)


__all__ = ["sample_inputs", "sizes_of_call"]
