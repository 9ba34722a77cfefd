"""numpy's element types under numpy's names, and `bfloat16`."""

from ml_dtypes import bfloat16, float8_e4m3fn, float8_e5m2
from numpy import bool_, complex64, complex128, float16, float32, float64, int8, int16, int32, int64, uint8, uint16, uint32, uint64

__all__ = [
    "bfloat16", "bool_", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2", "float16", "float32", "float64",
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
]  # fmt: skip
