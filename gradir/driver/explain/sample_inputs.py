"""Arguments for a function that somebody wants to measure and has no arguments for: random numbers of the declared types."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradir.errors import GradirError
from gradir.runtime.dtypes import numpy_dtype
from gradir.runtime.manifest import FunctionSpec, TensorSpec

Array = np.ndarray[Any, np.dtype[Any]]


def sample_inputs(spec: FunctionSpec, seed: int = 0) -> list[Array]:
    """Standard normal floats, whole numbers from 0 to 9, coin flips. GradirError RT060 where only a call knows a size."""
    generator = np.random.default_rng(seed)
    return [_sample(spec, tensor, generator) for tensor in spec.inputs]


def _sample(spec: FunctionSpec, tensor: TensorSpec, generator: np.random.Generator) -> Array:
    if tensor.dynamic_dims:
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
    shape = tuple(n for n in tensor.shape if isinstance(n, int))
    if dtype == np.bool_:
        return np.asarray(generator.integers(0, 2, shape)).astype(dtype)
    if dtype.kind in "iu":
        return np.asarray(generator.integers(0, 10, shape)).astype(dtype)
    if dtype.kind == "c":
        return np.asarray(generator.standard_normal(shape) + 1j * generator.standard_normal(shape)).astype(dtype)
    return np.asarray(generator.standard_normal(shape)).astype(dtype)


__all__ = ["sample_inputs"]
