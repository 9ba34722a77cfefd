"""`cvt` between integers and floats of all widths, with every rounding, saturation and packing of pairs."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from gradir.ptx.instructions.arithmetic import FLOATS, ROUNDINGS
from gradir.ptx.instructions.forms import Array, flushed, has, pointwise, saturated, types_of, unary
from gradir.ptx.instructions.rounding import directed, narrowed
from gradir.ptx.machine import Step
from gradir.ptx.syntax import Instruction
from gradir.ptx.types import DTYPES

_INTEGER_ROUNDINGS = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


def compile_cvt(op: Instruction) -> Step | None:
    """One type to another; `cvt.rn.bf16x2.f32 d, a, b` packs b into the low half."""
    kinds = types_of(op)
    if len(kinds) < 2:
        return None
    to, source = kinds[0], kinds[1]
    if to in ("f16x2", "bf16x2") and source == "f32":
        return _packed(op, to)
    if to in BYTES or source in BYTES:
        return _bytes(op, to, source)
    if to == "tf32":
        return unary(op, lambda x: to_tf32(x).view(np.uint32), ["f32"])
    return unary(op, lambda x: converted(op, x, to), [source])


BYTES: dict[str, np.dtype[Any]] = {"e4m3x2": np.dtype(ml_dtypes.float8_e4m3fn), "e5m2x2": np.dtype(ml_dtypes.float8_e5m2)}
"""Pairs of 8-bit floats."""


def _bytes(op: Instruction, to: str, source: str) -> Step | None:
    """`cvt.rn.satfinite.e4m3x2.f32 d, a, b` (b in the low byte), `cvt.rn.satfinite.e4m3x2.f16x2 d, a`, `cvt.rn.f16x2.e4m3x2 d, a`."""
    if to == "f16x2" and source in BYTES:

        def widened(pair: Array) -> Array:
            numbers = np.ascontiguousarray(pair).view(BYTES[source]).reshape(*pair.shape, 2).astype(np.float16)
            return np.ascontiguousarray(_positive(op, numbers)).view(np.uint32).reshape(pair.shape)

        return pointwise(op, widened, ["u16"])
    if to not in BYTES or source not in ("f32", "f16x2"):
        return None

    def narrowed_pair(*values: Array) -> Array:
        if source == "f16x2":
            numbers = np.ascontiguousarray(values[0]).view(np.float16).reshape(*values[0].shape, 2).astype(np.float32)
        else:
            numbers = np.stack(np.broadcast_arrays(values[1], values[0]), -1)
        largest = np.float32(ml_dtypes.finfo(BYTES[to]).max)
        limited = np.where(np.isnan(numbers), numbers, np.clip(_positive(op, numbers), -largest, largest))
        return np.ascontiguousarray(limited.astype(BYTES[to])).view(np.uint16).reshape(numbers.shape[:-1])

    return pointwise(op, narrowed_pair, ["u32"] if source == "f16x2" else ["f32", "f32"])


def _positive(op: Instruction, numbers: Array) -> Array:
    return np.where(numbers < 0, np.zeros((), numbers.dtype), numbers) if has(op, "relu") else numbers


def converted(op: Instruction, x: Array, to: str) -> Array:
    """`x` as the type `to`, with the modifiers of `op`."""
    source_float, to_float = x.dtype not in _INTEGERS, to in FLOATS
    dtype = DTYPES[to]
    if has(op, "ftz") and x.dtype == np.float32:
        x = flushed(x)
    if source_float and not to_float:
        return to_integer(x, dtype, next((part for part in op.opcode if part in _INTEGER_ROUNDINGS), "rzi"))
    if source_float:
        found = to_float_type(op, x, dtype)
        if has(op, "relu"):
            found = np.where(np.isnan(found), found, np.maximum(found, np.zeros((), found.dtype)))
        found = flushed(found) if has(op, "ftz") and dtype == np.float32 else found
        return saturated(found) if has(op, "sat") else found
    if to_float:
        return from_integer(op, x, dtype)
    if has(op, "sat"):
        limits = np.iinfo(dtype)
        low, high = max(limits.min, np.iinfo(x.dtype).min), min(limits.max, np.iinfo(x.dtype).max)
        return np.clip(x, low, high).astype(dtype)
    return x.astype(dtype)


_INTEGERS = frozenset(np.dtype(f"{kind}{size}") for kind in "iu" for size in (1, 2, 4, 8))


def to_integer(x: Array, dtype: np.dtype[Any], rounding: str) -> Array:
    """Rounded, then kept within the range; NaN is 0 (and the highest bit alone for 64-bit results of f32, as the hardware has it)."""
    wide = x.astype(np.float64)
    rounded = _INTEGER_ROUNDINGS[rounding](wide)
    limits = np.iinfo(dtype)
    inside = (rounded >= float(limits.min)) & (rounded < float(limits.max) + (1 if dtype.itemsize < 8 else 0))
    values = np.where(inside, rounded, 0).astype(dtype)
    values = np.where(rounded > float(limits.max) - (0 if dtype.itemsize < 8 else 1), dtype.type(limits.max), values)
    values = np.where(rounded < float(limits.min), dtype.type(limits.min), values)
    return np.where(np.isnan(wide), dtype.type(0), values)


def to_float_type(op: Instruction, x: Array, dtype: np.dtype[Any]) -> Array:
    """A float in another width (or rounded to a whole number in its own)."""
    whole = next((part for part in op.opcode if part in _INTEGER_ROUNDINGS), None)
    if whole is not None:
        return np.copysign(_INTEGER_ROUNDINGS[whole](x.astype(np.float64)), x.astype(np.float64)).astype(dtype)
    wide = x.astype(np.float64)
    found = x.astype(np.float32).astype(dtype) if x.dtype == np.float32 and dtype.itemsize == 2 else narrowed(wide, dtype)
    rounding = next((part for part in op.opcode if part in ROUNDINGS), None)
    if rounding is not None and dtype.itemsize < x.dtype.itemsize:
        found = _directed(found, wide, rounding)
    return found


def _directed(found: Array, wide: Array, rounding: str) -> Array:
    if found.dtype.kind == "f":
        return directed(found, wide, rounding)
    bits = found.view(np.uint16)
    over, under = np.abs(found.astype(np.float64)) > np.abs(wide), np.abs(found.astype(np.float64)) < np.abs(wide)
    smaller, larger = (bits - 1).view(found.dtype), (bits + 1).view(found.dtype)
    if rounding == "rz":
        return np.where(over, smaller, found)
    outward = (wide > 0) == (rounding == "rp")
    return np.where(over & ~outward, smaller, np.where(under & outward, larger, found))


def from_integer(op: Instruction, x: Array, dtype: np.dtype[Any]) -> Array:
    """An integer as a float, rounded once."""
    rounding = next((part for part in op.opcode if part in ROUNDINGS), None)
    if dtype.itemsize == 2:
        return narrowed(x.astype(np.float64), dtype)
    found = x.astype(dtype)
    if rounding is None:
        return found
    exact = x.astype(np.longdouble)
    over, under = found.astype(np.longdouble) > exact, found.astype(np.longdouble) < exact
    down, up = np.nextafter(found, dtype.type(-np.inf)), np.nextafter(found, dtype.type(np.inf))
    lower, upper = np.where(over, down, found), np.where(under, up, found)
    return {"rm": lower, "rp": upper, "rz": np.where(x < 0, upper, lower)}[rounding]


def to_tf32(x: Array) -> Array:
    """f32 with 10 bits of mantissa, rounded to nearest, ties away from zero (`.rna`)."""
    bits = x.astype(np.float32).view(np.uint32)
    rounded = ((bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32)
    return np.where(np.isfinite(x), rounded, x).astype(np.float32)


def _packed(op: Instruction, to: str) -> Step:
    half = "f16" if to == "f16x2" else "bf16"

    def function(upper: Array, lower: Array) -> Array:
        halves = [np.ascontiguousarray(converted(op, v, half)).view(np.uint16).astype(np.uint32) for v in (upper, lower)]
        return halves[0] << np.uint32(16) | halves[1]

    return pointwise(op, function, ["f32", "f32"])


COMPILERS = {"cvt": compile_cvt}
