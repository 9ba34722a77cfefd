"""What a compiled module says about its part for a GPU: kernels and their parameters, launches, constants, scratch memory. Plain JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ParameterSpec:
    """A parameter of a kernel: a number of `bytes` bytes, or memory (`element` bytes an element) with None for what a later parameter
    tells: its dynamic sizes, then its dynamic strides, follow it. `strides` None: no gaps. `access`: read, write, readwrite or unknown."""

    bytes: int
    element: int = 0
    sizes: tuple[int | None, ...] = ()
    strides: tuple[int | None, ...] | None = None
    access: str = ""

    @property
    def dynamic(self) -> int:
        """How many parameters after it describe it."""
        return self.sizes.count(None) + (self.strides.count(None) if self.strides is not None else 0)


@dataclass(frozen=True)
class KernelSpec:
    """A function of the device. `registers`, `shared` and `spills` in bytes are what the assembler said; -1: nobody asked it."""

    name: str
    parameters: tuple[ParameterSpec, ...]
    dynamic_shared: int = 0
    """The most dynamic shared memory that a launch asks for."""
    registers: int = -1
    shared: int = -1
    spills: int = -1


@dataclass(frozen=True)
class LaunchSpec:
    """A place in the host code that runs `kernel`; `op_id` is its number in the source map."""

    kernel: str
    op_id: int


@dataclass(frozen=True)
class DeviceSpec:
    """The GPU that a module was compiled for, and where its parts are among the module's objects (-1: there is none)."""

    arch: str
    ptx: int
    cubin: int = -1
    constants: int = -1
    constant_bytes: tuple[int, ...] = ()
    """Sizes of the constants, which follow each other at multiples of `CONSTANT_ALIGNMENT`."""
    scratch: int = 0
    kernels: tuple[KernelSpec, ...] = ()
    launches: tuple[LaunchSpec, ...] = ()


CONSTANT_ALIGNMENT = 256


def constant_places(sizes: tuple[int, ...]) -> list[int]:
    """Offsets of constants of these sizes in their object."""
    places, at = list[int](), 0
    for size in sizes:
        places.append(at)
        at += -(-size // CONSTANT_ALIGNMENT) * CONSTANT_ALIGNMENT
    return places


def device_from_json(value: Mapping[str, Any] | None) -> DeviceSpec | None:
    """Read `asdict(DeviceSpec)`; None for a module without a GPU."""
    if value is None:
        return None
    return DeviceSpec(
        str(value["arch"]),
        int(value["ptx"]),
        int(value["cubin"]),
        int(value["constants"]),
        tuple(map(int, value["constant_bytes"])),
        int(value["scratch"]),
        tuple(_kernel(row) for row in value["kernels"]),
        tuple(LaunchSpec(str(row["kernel"]), int(row["op_id"])) for row in value["launches"]),
    )


def _kernel(row: Mapping[str, Any]) -> KernelSpec:
    parameters = tuple(
        ParameterSpec(
            int(p["bytes"]), int(p["element"]), tuple(p["sizes"]), None if p["strides"] is None else tuple(p["strides"]), p["access"]
        )
        for p in row["parameters"]
    )
    return KernelSpec(
        str(row["name"]), parameters, int(row["dynamic_shared"]), int(row["registers"]), int(row["shared"]), int(row["spills"])
    )
