"""Arithmetic of two values in one register: f16x2 and bf16x2, s16x2 and u16x2."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from gradir.ptx.instructions import arithmetic, integers
from gradir.ptx.instructions.arithmetic import maximum, minimum
from gradir.ptx.instructions.forms import Array, has, pointwise, saturated, types_of
from gradir.ptx.instructions.rounding import narrowed, odd_sum
from gradir.ptx.machine import Step
from gradir.ptx.syntax import Instruction

HALVES: dict[str, Any] = {"f16x2": np.float16, "bf16x2": ml_dtypes.bfloat16}


def unpacked(bits: Array, kind: str) -> Array:
    """[..., 2] values in f64 of packed halves: low half first."""
    return np.ascontiguousarray(bits).view(HALVES[kind]).reshape(*bits.shape, 2).astype(np.float64)


def packed(values: Array, kind: str) -> Array:
    """The register of [..., 2] values in f64, each rounded once more."""
    return np.ascontiguousarray(narrowed(values, np.dtype(HALVES[kind]))).view(np.uint32).reshape(values.shape[:-1])


def _multiply_add(a: Array, b: Array, c: Array) -> Array:
    return odd_sum(a * b, c)


_FUNCTIONS: dict[str, Callable[..., Array]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "min": minimum, "max": maximum, "neg": np.negative, "abs": np.abs,
    "fma": _multiply_add, "ex2": np.exp2, "tanh": np.tanh,
}  # fmt: skip


_INTEGERS: dict[str, Callable[..., Array]] = {"add": np.add, "min": np.minimum, "max": np.maximum}
_PAIRS: dict[str, Any] = {"s16x2": np.int16, "u16x2": np.uint16}


def _compile_pair(op: Instruction, kind: str) -> Step | None:
    """Two integers of 16 bits in a register (sm_90)."""
    function = _INTEGERS.get(op.opcode[0])
    if function is None:
        return None

    def both(*bits: Array) -> Array:
        found = function(*(np.ascontiguousarray(b, np.uint32)[..., None].view(_PAIRS[kind]) for b in np.broadcast_arrays(*bits)))
        found = np.maximum(found, 0) if has(op, "relu") else found
        return np.ascontiguousarray(found).view(np.uint32).reshape(found.shape[:-1])

    return pointwise(op, both, ["b32"] * (len(op.operands) - 1))


def compile_packed(op: Instruction) -> Step | None:
    if op.opcode[-1] in _PAIRS:
        return _compile_pair(op, op.opcode[-1])
    kind = (types_of(op) or [""])[-1]
    function = _FUNCTIONS.get(op.opcode[0])
    if kind not in HALVES or function is None:
        return None

    def both(*bits: Array) -> Array:
        found = function(*(unpacked(b, kind) for b in np.broadcast_arrays(*bits)))
        if has(op, "NaN"):
            found = np.where(np.any([np.isnan(unpacked(b, kind)) for b in np.broadcast_arrays(*bits)], axis=0), np.nan, found)
        found = saturated(found) if has(op, "sat") else found
        return packed(np.maximum(found, 0.0) if has(op, "relu") else found, kind)

    return pointwise(op, both, ["b32"] * (len(op.operands) - 1))


def _or(other: Callable[[Instruction], Step | None]) -> Callable[[Instruction], Step | None]:
    return lambda op: compile_packed(op) or other(op)


_OTHERS: dict[str, Callable[[Instruction], Step | None]] = {**arithmetic.COMPILERS, **integers.COMPILERS}
COMPILERS = {name: _or(_OTHERS[name]) for name in _FUNCTIONS}
