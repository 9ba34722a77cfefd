"""What schedules need to know of a CPU, read from the module's `#target.cpu`, and of types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from xdsl.dialects.builtin import IndexType, MemRefType, ModuleOp, TensorType
from xdsl.ir import Attribute, SSAValue

from gradir.dialects.target import TARGET_ATTRIBUTE, CpuTargetAttr

LINE_BYTES = 64
"""A line of every cache of the processors that targets name."""


@dataclass(frozen=True)
class Machine:
    """Lanes of f32 in a vector register, number of vector registers, threads, cache sizes in bytes (0: unknown)."""

    lanes: int = 8
    registers: int = 16
    threads: int = 1
    l1: int = 32 << 10
    l2: int = 512 << 10
    l3: int = 0
    joins: frozenset[str] = frozenset()
    """Elements of which one instruction multiplies and adds neighbours: `i16` (into i32), `bf16` (into f32)."""

    def lanes_of(self, element_bytes: int) -> int:
        """Lanes of elements of that size in one register."""
        return max(1, self.lanes * 4 // element_bytes)


def machine_of(module: ModuleOp) -> Machine:
    """The machine of the module's target; AVX2-like when it has none, or one that is no CPU."""
    target = module.attributes.get(TARGET_ATTRIBUTE)
    if not isinstance(target, CpuTargetAttr):
        return Machine()
    x86 = not target.triple.startswith(("aarch64", "arm64"))
    joins = {"i16"} if x86 else set[str]()
    joins |= {"bf16"} if target.has("avx512bf16") else set[str]()
    return Machine(target.vector, target.registers, target.threads, target.l1, target.l2, target.l3, frozenset(joins))


def element_bytes(element: Attribute) -> int:
    """Bytes of one element in memory; a boolean takes one."""
    if isinstance(element, IndexType):
        return 8
    return max(1, cast("Any", element).bitwidth // 8)


def bytes_of(value: SSAValue) -> int:
    """Bytes of one element of a tensor or memref."""
    return element_bytes(cast("TensorType[Any] | MemRefType[Any]", value.type).element_type)


def element_of(value: SSAValue) -> str:
    """The element type of a tensor or memref, `f32`."""
    return str(cast("TensorType[Any] | MemRefType[Any]", value.type).element_type)


def extent_or(extent: int | str | None, otherwise: int) -> int:
    """A known extent, or what to take an unknown one for."""
    return extent if isinstance(extent, int) else otherwise
