"""Arrays of other libraries in the memory of a GPU: what they look like, without touching a value."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradir.runtime.cuda.array import DeviceArray
from gradir.runtime.dtypes import ML_NAMES, NUMPY_NAMES, numpy_dtype

ON_HOST = 1
"""DLPack's number for memory of the host."""


def seen_elsewhere(value: Any) -> tuple[tuple[int, ...], np.dtype[Any]] | None:
    """(shape, element type) of an array that lies in the memory of a GPU; None for anything else."""
    if isinstance(value, DeviceArray):
        return value.shape, value.dtype
    if isinstance(value, np.ndarray | np.generic) or not hasattr(value, "__dlpack_device__"):
        return None
    if value.__dlpack_device__()[0] == ON_HOST:
        return None
    name = element_named(str(value.dtype))
    return None if name is None else (tuple(int(n) for n in value.shape), numpy_dtype(name))


def element_named(dtype: str) -> str | None:
    """Our name of an element type as numpy, cupy, torch or jax print it (`torch.bfloat16`, `float32`)."""
    word = dtype.rpartition(".")[2]
    return {numpy: ours for ours, numpy in (*NUMPY_NAMES.items(), *ML_NAMES.items()) if ours != "index"}.get(word)
