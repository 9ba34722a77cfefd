"""Names of element types as manifests spell them, and their numpy dtypes.

`i1` is one byte (numpy bool), `index` is a 64-bit integer, `bf16` comes from ml_dtypes (imported when first asked for).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

NUMPY_NAMES: dict[str, str] = {
    "f64": "float64",
    "f32": "float32",
    "f16": "float16",
    "complex<f64>": "complex128",
    "complex<f32>": "complex64",
    "i1": "bool",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "ui8": "uint8",
    "ui16": "uint16",
    "ui32": "uint32",
    "ui64": "uint64",
    "index": "int64",
}

ML_NAMES: dict[str, str] = {"bf16": "bfloat16", "f8E4M3FN": "float8_e4m3fn", "f8E5M2": "float8_e5m2"}
"""Element types that numpy lacks, under their names in ml_dtypes."""


@cache
def numpy_dtype(name: str) -> np.dtype[Any]:
    """The numpy dtype of element type `name`; `ValueError` for a name that no manifest may hold."""
    if name in ML_NAMES:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, ML_NAMES[name]))
    if name not in NUMPY_NAMES:
        raise ValueError(f"unknown element type '{name}', expected one of {', '.join(ML_NAMES)}, {', '.join(NUMPY_NAMES)}")
    return np.dtype(NUMPY_NAMES[name])


@cache
def dtype_name(dtype: np.dtype[Any]) -> str:
    """The element type of a numpy dtype, or numpy's own name for it when no program can hold it."""
    names = {numpy: ours for ours, numpy in (*NUMPY_NAMES.items(), *ML_NAMES.items()) if ours != "index"}
    return names.get(dtype.name, str(dtype)) if dtype.isnative else str(dtype)
