"""How types and constants are spelled in LLVM IR.

A vector of rank n is a list of rows: one LLVM vector of the innermost dimension for every index of the outer ones.
f16 and bf16 travel as `i16`: LLVM would turn their conversions and arithmetic into library calls. i1 is one byte in memory.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerType,
    MemRefType,
    NoneAttr,
    StridedLayoutAttr,
    VectorType,
)
from xdsl.ir import Attribute

from gradir.errors import GradirError


@dataclass(frozen=True, slots=True)
class ValueType:
    """A scalar, or one row of a vector.

    `text` is LLVM's type of the row, `element` that of one lane, `memory` that of the row in memory; `lanes` is 0 for a scalar;
    `shape` is the vector's whole shape; `suffix` names intrinsics (`v8f32`); `half` is `half`, `bfloat` or empty.
    """

    text: str
    element: str
    memory: str
    memory_element: str
    lanes: int
    shape: tuple[int, ...]
    suffix: str
    half: str
    bytes: int

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def rows(self) -> int:
        """How many rows the value has: 1 for scalars and vectors of rank 0 and 1."""
        return prod(self.shape[:-1])

    @property
    def is_float(self) -> bool:
        return self.element in ("float", "double") or bool(self.half)


@dataclass(frozen=True, slots=True)
class BufferType:
    """A memref: its element, sizes and strides (None where dynamic), and how its pointer is spelled."""

    element: ValueType
    sizes: tuple[int | None, ...]
    strides: tuple[int | None, ...] | None
    """None: contiguous, whatever the dynamic sizes are."""
    pointer: str

    @property
    def identity(self) -> bool:
        return self.strides is None


_SPACES = {"workgroup": 3, "global": 1, "private": 5}


def element_spelling(element: Attribute) -> tuple[str, str, int]:
    """LLVM's type of an element, which half format it is, and its bytes in memory."""
    if isinstance(element, Float32Type):
        return "float", "", 4
    if isinstance(element, Float64Type):
        return "double", "", 8
    if isinstance(element, Float16Type):
        return "i16", "half", 2
    if isinstance(element, BFloat16Type):
        return "i16", "bfloat", 2
    if isinstance(element, IndexType):
        return "i64", "", 8
    if isinstance(element, IntegerType) and element.width.data <= 64:
        return f"i{element.width.data}", "", max(1, element.width.data // 8)
    raise GradirError(
        f"no LLVM type for {element}",
        part="operator",
        code="OP040",
        expected="f16, bf16, f32, f64, index or an integer of at most 64 bits",
        found=str(element),
        hint="the lowering to loops splits other element types before the emitter",
    )


def value_type(t: Attribute) -> ValueType:
    """The spelling of a scalar or vector type."""
    if isinstance(t, VectorType):
        element, half, size = element_spelling(t.element_type)
        shape = tuple(t.get_shape())
        lanes = shape[-1] if shape else 1
        memory = "i8" if element == "i1" else element
        short = {"float": "f32", "double": "f64"}.get(element, element)
        return ValueType(
            f"<{lanes} x {element}>", element, f"<{lanes} x {memory}>", memory, lanes, shape or (1,), f"v{lanes}{short}", half, size
        )
    element, half, size = element_spelling(t)
    memory = "i8" if element == "i1" else element
    return ValueType(element, element, memory, memory, 0, (), {"float": "f32", "double": "f64"}.get(element, element), half, size)


def with_element(t: ValueType, element: str = "float") -> ValueType:
    """The same shape with elements of type `element` (`float`, `double`, `i32`, ...)."""
    lanes = t.lanes
    text = f"<{lanes} x {element}>" if lanes else element
    short = {"float": "f32", "double": "f64"}.get(element, element)
    size = {"float": 4, "double": 8}.get(element) or max(1, int(element[1:]) // 8)
    memory = "i8" if element == "i1" else element
    return ValueType(
        text,
        element,
        f"<{lanes} x {memory}>" if lanes else memory,
        memory,
        lanes,
        t.shape,
        f"v{lanes}{short}" if lanes else short,
        "",
        size,
    )


def vector_of(element: str, lanes: int) -> ValueType:
    """The 1-D vector of `lanes` integers or floats of LLVM type `element`."""
    return with_element(ValueType("", "", "", "", lanes, (lanes,), "", "", 0), element)


def memory_space(t: MemRefType) -> int:
    """The address space of a memref: 0, or what `#gpu.address_space` or an integer says."""
    space = t.memory_space
    if isinstance(space, NoneAttr):
        return 0
    value = getattr(space, "value", None)
    if value is not None and hasattr(value, "data"):
        return int(value.data)
    word = getattr(space, "data", "")
    return _SPACES.get(str(getattr(word, "value", word)), 0)


def buffer_type(t: MemRefType, pointer: str = "ptr") -> BufferType:
    """The spelling of a memref type; `pointer` is that of address space 0."""
    sizes = tuple(None if n == DYNAMIC_INDEX else n for n in t.get_shape())
    strides = None
    if isinstance(t.layout, StridedLayoutAttr):
        strides = tuple(None if isinstance(s, NoneAttr) else s.data for s in t.layout.strides.data)
    space = memory_space(t)
    return BufferType(value_type(t.element_type), sizes, strides, f"ptr addrspace({space})" if space else pointer)


def float_bits(value: float, half: str) -> int:
    """The 16 bits of `value` in f16 or bf16, rounded to nearest even."""
    if half == "half":
        try:
            return struct.unpack("<H", struct.pack("<e", value))[0]
        except OverflowError:
            return 0xFC00 if value < 0 else 0x7C00
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    if value != value:
        return 0x7FC0
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 & 0xFFFF


def float_literal(value: float, t: ValueType) -> str:
    """A float constant of `t`'s element type, exact."""
    if t.half:
        return str(float_bits(value, t.half))
    if t.element == "float":
        try:
            value = struct.unpack("<f", struct.pack("<f", value))[0]
        except OverflowError:
            value = float("inf") if value > 0 else float("-inf")
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def int_literal(value: int, t: ValueType) -> str:
    """An integer constant; i1 as `true` or `false`, others in two's complement of their width."""
    if t.element == "i1":
        return "true" if value & 1 else "false"
    return str(value)


def splat_literal(literal: str, t: ValueType) -> str:
    """One row (or the scalar) whose lanes all are `literal`."""
    return f"splat ({t.element} {literal})" if t.lanes else literal


def symbol(name: str) -> str:
    """`@name`, quoted where LLVM asks for it."""
    plain = name.replace("_", "a").replace(".", "a").replace("$", "a").replace("-", "a")
    return f"@{name}" if plain.isalnum() and plain.isascii() and not name[0].isdigit() else f'@"{name}"'
