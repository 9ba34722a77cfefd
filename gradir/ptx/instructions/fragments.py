"""Fragments of matrices in the registers of a warp, as the PTX ISA lays them out for `mma.sync` (sections "Matrix Fragments for mma.m...").

Lane l is in group g = l / 4 with number t = l % 4. A register of 32 bits holds `per` elements that lie side by side in k; rows come in
eights (one per group), k in steps of 4 * per. One rule covers every shape: of A, register r holds rows g + 8 * (r % rows) and elements
4 * per * (r / rows) + per * t + e; of B, register r the same elements of column g; of C two neighbours 2 * t + e of row g + 8 * i.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from gradir.ptx.instructions.forms import Array
from gradir.ptx.machine import Machine
from gradir.ptx.state import LANES, Gang
from gradir.ptx.syntax import Operand

Numbers = Callable[[Array], Array]


def _halves(bits: Array) -> Array:
    return bits.view(np.float16).astype(np.float32)


def _brain(bits: Array) -> Array:
    return (bits.view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)


def _tf32(bits: Array) -> Array:
    """The low 13 bits are ignored."""
    return (bits & np.uint32(0xFFFFE000)).view(np.float32)


def _nibbles(signed: bool) -> Numbers:
    def numbers(bits: Array) -> Array:
        four = (bits[..., None] >> (np.arange(8, dtype=np.uint32) * np.uint32(4)) & np.uint32(15)).astype(np.float32)
        values = np.where(four > 7, four - 16, four) if signed else four
        return values.reshape(*bits.shape[:-1], -1)

    return numbers


def _viewed(dtype: Any) -> Numbers:
    return lambda bits: bits.view(dtype).astype(np.float32)


ELEMENTS: dict[str, tuple[int, Numbers]] = {
    "f16": (2, _halves), "bf16": (2, _brain), "tf32": (1, _tf32), "f64": (1, lambda bits: bits.view(np.float64)),
    "s8": (4, _viewed(np.int8)), "u8": (4, _viewed(np.uint8)), "s4": (8, _nibbles(True)), "u4": (8, _nibbles(False)),
    "e4m3": (4, _viewed(ml_dtypes.float8_e4m3fn)), "e5m2": (4, _viewed(ml_dtypes.float8_e5m2)),
}  # fmt: skip
"""Type -> elements of a register, and how its bits [..., registers] become numbers [..., elements] that products of are exact in."""


def registers_of(machine: Machine, gang: Gang, operands: Sequence[Operand], bits: int) -> Array:
    """[warp, register, lane] bits of the registers of a fragment."""
    found = np.empty((len(gang.warps), len(operands), LANES), f"u{bits // 8}")
    for k, operand in enumerate(operands):
        found[:, k] = machine.read(gang, operand, f"u{bits}")
    return found


def numbers_of(registers: Array, kind: str) -> Array:
    """[warp, register, lane, element] numbers of a fragment of A or B."""
    per, numbers = ELEMENTS[kind]
    return numbers(np.ascontiguousarray(registers)).reshape(*registers.shape, per)


def matrix_a(fragment: Array, rows: int) -> Array:
    """[warp, m, k] of [warp, register, lane, element]; `rows`: how many eights of rows."""
    warps, registers, _, per = fragment.shape
    split = fragment.reshape(warps, registers // rows, rows, 8, 4, per)
    return split.transpose(0, 2, 3, 1, 4, 5).reshape(warps, 8 * rows, -1)


def matrix_b(fragment: Array) -> Array:
    """[warp, k, 8] of [warp, register, lane, element]."""
    warps, registers, _, per = fragment.shape
    return fragment.reshape(warps, registers, 8, 4, per).transpose(0, 1, 3, 4, 2).reshape(warps, -1, 8)


def matrix_c(registers: Array, kind: str) -> Array:
    """[warp, m, 8] accumulators of [warp, register, lane] bits."""
    warps, count, _ = registers.shape
    if kind == "f16":
        return np.ascontiguousarray(registers).view(np.float16).reshape(warps, 8 * count, 8)
    values = registers.view({"f32": np.float32, "f64": np.float64, "s32": np.int32}[kind])
    return values.reshape(warps, count // 2, 2, 8, 4).transpose(0, 1, 3, 4, 2).reshape(warps, 4 * count, 8)


def fragment_c(matrix: Array, kind: str) -> Array:
    """[register, warp, lane] bits of accumulators [warp, m, 8]."""
    warps, m, _ = matrix.shape
    if kind == "f16":
        bits = np.ascontiguousarray(matrix).view(np.uint32).reshape(warps, m // 8, LANES)
        return np.ascontiguousarray(bits.transpose(1, 0, 2))
    split = matrix.reshape(warps, m // 8, 8, 4, 2).transpose(1, 4, 0, 2, 3)
    bits = np.ascontiguousarray(split).reshape(m // 4, warps, LANES)
    return bits.view(f"u{bits.dtype.itemsize}")
