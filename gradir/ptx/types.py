"""PTX's types as numpy's: registers hold bits, an instruction says how it reads them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

WIDTHS: dict[str, int] = {
    **{f"{kind}{bits}": bits for kind in "bus" for bits in (8, 16, 32, 64)},
    "b128": 128, "f16": 16, "f16x2": 32, "f32": 32, "f64": 64, "bf16": 16, "bf16x2": 32, "tf32": 32, "e4m3": 8, "e5m2": 8,
    "e4m3x2": 16, "e5m2x2": 16,
    "pred": 1, "texref": 64, "samplerref": 64, "surfref": 64,
}  # fmt: skip
"""Bits of a value of each type."""

DTYPES: dict[str, np.dtype[Any]] = {
    **{f"u{bits}": np.dtype(f"u{bits // 8}") for bits in (8, 16, 32, 64)},
    **{f"b{bits}": np.dtype(f"u{bits // 8}") for bits in (8, 16, 32, 64)},
    **{f"s{bits}": np.dtype(f"i{bits // 8}") for bits in (8, 16, 32, 64)},
    "f16": np.dtype(np.float16), "f32": np.dtype(np.float32), "f64": np.dtype(np.float64), "bf16": np.dtype(ml_dtypes.bfloat16),
    "tf32": np.dtype(np.float32), "e4m3": np.dtype(ml_dtypes.float8_e4m3fn), "e5m2": np.dtype(ml_dtypes.float8_e5m2),
    "pred": np.dtype(np.bool_),
}  # fmt: skip
"""How numpy reads the bits of a type. Packed pairs (f16x2) are read as two by the instructions that take them."""

STORAGE: dict[int, np.dtype[Any]] = {1: np.dtype(np.bool_), 8: np.dtype("u1"), 16: np.dtype("u2"), 32: np.dtype("u4"), 64: np.dtype("u8")}
"""Bits -> how a register of that width is stored."""


def storage(kind: str) -> np.dtype[Any]:
    """How a register declared with that type is stored: unsigned integers of its width, booleans for predicates."""
    return STORAGE[WIDTHS[kind]]
