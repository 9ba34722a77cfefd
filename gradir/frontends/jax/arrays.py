"""Arrays between JAX and the runtime: by DLPack and shared memory where both sides allow it, converted where types differ.

JAX is optional: nothing here imports it before it is called.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from gradir.errors import GradirError

SHARED = 1 << 14
"""Results of so many bytes become jax arrays that share memory; copying smaller ones takes less time than sharing them."""


@cache
def jax() -> Any:
    """The package jax; GradirError GR130 where it is not installed."""
    try:
        return import_module("jax")
    except ImportError as error:
        raise GradirError(
            "jax is not installed",
            part="graph",
            code="GR130",
            expected="the package jax",
            found=str(error),
            hint="pip install gradir[jax]",
        ) from error


def is_key(dtype: Any) -> bool:
    """Whether it is the type of JAX's random keys, which are numbers with a dress on."""
    return bool(jax().dtypes.issubdtype(dtype, jax().dtypes.prng_key))


def to_runtime(leaf: Any, aval: Any) -> Any:
    """What the runtime takes for an argument that JAX traced as `aval`: shared memory for a jax or numpy array of its type."""
    if is_key(aval.dtype):
        return np.asarray(jax().random.key_data(leaf))
    array = np.asarray(leaf)
    return array if array.dtype == aval.dtype else array.astype(aval.dtype)


def to_jax(array: Any, aval: Any) -> Any:
    """A result as a jax array: the runtime's memory itself where JAX takes it (DLPack has no bfloat16, and JAX wants 64-byte alignment)."""
    if is_key(aval.dtype):
        return jax().random.wrap_key_data(array, impl=aval.dtype._impl.name)  # key_impl wants an array, not a type
    if array.nbytes >= SHARED and array.dtype.kind in "biufc":
        return jax().dlpack.from_dlpack(array)
    return jax().numpy.asarray(array)
