"""Bits of registers and values of types: what a literal means, what a register holds of a value, what a value is read of a register."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradir.ptx.syntax import Immediate

Array = np.ndarray[Any, np.dtype[Any]]


def literal(operand: Immediate, dtype: np.dtype[Any]) -> Array:
    """A literal as a [1, 1] array of a type."""
    if operand.bits is not None:
        if dtype.kind in "ui":
            return np.full((1, 1), operand.bits & ((1 << 8 * dtype.itemsize) - 1), f"u{dtype.itemsize}").view(dtype)
        return np.full((1, 1), operand.value).astype(dtype)
    if dtype.kind in "uib" and isinstance(operand.value, int):
        bits = operand.value & ((1 << 8 * dtype.itemsize) - 1)
        return np.full((1, 1), bool(bits), dtype) if dtype.kind == "b" else np.full((1, 1), bits, f"u{dtype.itemsize}").view(dtype)
    if isinstance(operand.value, int) and dtype.kind not in "ui":
        bits = operand.value & ((1 << 8 * dtype.itemsize) - 1)
        return np.full((1, 1), bits, f"u{dtype.itemsize}").view(dtype)
    return np.full((1, 1), operand.value).astype(dtype)


def bits_of(values: Array, dtype: np.dtype[Any]) -> Array:
    """The bits of values as the unsigned integers that a register of that width holds; signed integers are extended by their sign."""
    if values.dtype == dtype:
        return values
    if dtype.kind == "b":
        return values.astype(np.bool_)
    if values.dtype.kind == "b":
        return values.astype(dtype)
    if values.dtype.itemsize == dtype.itemsize:
        return values.view(dtype)
    if values.dtype.kind == "i":
        return values.astype(f"i{dtype.itemsize}").view(dtype)
    return np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}").astype(dtype)


def read_as(bits: Array, dtype: np.dtype[Any]) -> Array:
    """Bits of a register read as a type of maybe another width: the low bits."""
    if dtype.kind == "b":
        return bits.astype(np.bool_)
    if bits.dtype.kind == "b":
        return bits.astype(dtype)
    if bits.dtype.itemsize != dtype.itemsize:
        bits = bits.astype(f"u{dtype.itemsize}")
    return bits.view(dtype)
