"""What NVIDIA's architectures and cards can do, as tables: schedules, occupancy and rooflines read them, correctness never depends on them.

Architectures: CUDA C++ Programming Guide, "Compute Capabilities" (technical specifications per compute capability), and the PTX ISA for
the shapes of `mma`. Cards: data sheets; peaks are dense (no sparsity), with f32 accumulation, in operations a second.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

Shape: TypeAlias = tuple[int, int, int]
"""(m, n, k) of one matrix instruction."""

WARP = 32
REGISTER_UNIT = 256
"""Registers are handed out to a warp in this granularity."""


@dataclass(frozen=True)
class Architecture:
    """Limits of one multiprocessor and of one block. Bytes, threads and registers; `mma` by element type of the operands."""

    name: str
    shared_per_sm: int
    shared_per_block: int
    """With opt-in (`cudaFuncAttributeMaxDynamicSharedMemorySize`); 48 KB without."""
    shared_reserved: int
    """Bytes of shared memory that the system takes of every block."""
    warps_per_sm: int
    blocks_per_sm: int
    mma: Mapping[str, tuple[Shape, ...]]
    asynchronous: bool = False
    """`cp.async` from global to shared memory."""
    tensor_maps: bool = False
    """Bulk and tensor copies (TMA), mbarriers with transaction counts, clusters."""
    wgmma: bool = False
    registers_per_sm: int = 65536
    registers_per_thread: int = 255
    threads_per_block: int = 1024

    @property
    def threads_per_sm(self) -> int:
        return self.warps_per_sm * WARP


STATIC_SHARED = 48 << 10
"""Bytes of shared memory of a block without opt-in, on every architecture."""

_VOLTA: dict[str, tuple[Shape, ...]] = {"f16": ((8, 8, 4),)}
_TURING: dict[str, tuple[Shape, ...]] = {"f16": ((16, 8, 8),), "i8": ((8, 8, 16),)}
_AMPERE: dict[str, tuple[Shape, ...]] = {
    "f16": ((16, 8, 16), (16, 8, 8)),
    "bf16": ((16, 8, 16), (16, 8, 8)),
    "tf32": ((16, 8, 8), (16, 8, 4)),
    "i8": ((16, 8, 32), (16, 8, 16)),
    "f64": ((8, 8, 4),),
}
_ADA: dict[str, tuple[Shape, ...]] = {**_AMPERE, "f8E4M3FN": ((16, 8, 32),), "f8E5M2": ((16, 8, 32),)}
_HOPPER: dict[str, tuple[Shape, ...]] = {**_ADA, "f64": ((8, 8, 4), (16, 8, 4), (16, 8, 8), (16, 8, 16))}

_K = 1 << 10
ARCHITECTURES: dict[str, Architecture] = {
    a.name: a
    for a in (
        Architecture("sm_70", 96 * _K, 96 * _K, 0, 64, 32, _VOLTA),
        Architecture("sm_75", 64 * _K, 64 * _K, 0, 32, 16, _TURING),
        Architecture("sm_80", 164 * _K, 163 * _K, _K, 64, 32, _AMPERE, asynchronous=True),
        Architecture("sm_86", 100 * _K, 99 * _K, _K, 48, 16, _AMPERE, asynchronous=True),
        Architecture("sm_87", 164 * _K, 163 * _K, _K, 48, 16, _AMPERE, asynchronous=True),
        Architecture("sm_89", 100 * _K, 99 * _K, _K, 48, 24, _ADA, asynchronous=True),
        Architecture("sm_90", 228 * _K, 227 * _K, _K, 64, 32, _HOPPER, asynchronous=True, tensor_maps=True),
        Architecture("sm_90a", 228 * _K, 227 * _K, _K, 64, 32, _HOPPER, asynchronous=True, tensor_maps=True, wgmma=True),
        Architecture("sm_100", 228 * _K, 227 * _K, _K, 64, 32, _HOPPER, asynchronous=True, tensor_maps=True),
        Architecture("sm_100a", 228 * _K, 227 * _K, _K, 64, 32, _HOPPER, asynchronous=True, tensor_maps=True),
        Architecture("sm_120", 100 * _K, 99 * _K, _K, 48, 24, _ADA, asynchronous=True, tensor_maps=True),
    )
}


@dataclass(frozen=True)
class Card:
    """One product: multiprocessors, bytes a second of its memory, bytes of L2, operations a second by element type."""

    name: str
    arch: str
    sms: int
    bandwidth: float
    l2: int
    memory: int
    peaks: Mapping[str, float]

    def peak(self, element: str) -> float:
        """Operations a second on `element` (a multiply-add is two); the f32 rate for what has no unit of its own."""
        return self.peaks.get(element, self.peaks["f32"])


_T = 1e12
_M, _G = 1 << 20, 1 << 30


def _peaks(f64: float, f32: float, **tensor: float) -> dict[str, float]:
    return {name: value * _T for name, value in {"f64": f64, "f32": f32, **tensor}.items()}


CARDS: dict[str, Card] = {
    c.name: c
    for c in (
        Card("v100", "sm_70", 80, 0.9 * _T, 6 * _M, 32 * _G, _peaks(7.8, 15.7, f16=125)),
        Card("t4", "sm_75", 40, 0.32 * _T, 4 * _M, 16 * _G, _peaks(0.25, 8.1, f16=65, i8=130)),
        Card("a100", "sm_80", 108, 2.039 * _T, 40 * _M, 80 * _G, _peaks(9.7, 19.5, tf32=156, bf16=312, f16=312, i8=624)),
        Card("a10", "sm_86", 72, 0.6 * _T, 6 * _M, 24 * _G, _peaks(0.49, 31.2, tf32=62.5, bf16=125, f16=125, i8=250)),
        Card(
            "rtx4090", "sm_89", 128, 1.008 * _T, 72 * _M, 24 * _G, _peaks(1.29, 82.6, tf32=82.6, bf16=165.2, f16=165.2, f8=330.3, i8=660.6)
        ),
        Card("l40s", "sm_89", 142, 0.864 * _T, 96 * _M, 48 * _G, _peaks(1.43, 91.6, tf32=183, bf16=362, f16=362, f8=733, i8=733)),
        Card(
            "h100", "sm_90a", 132, 3.35 * _T, 50 * _M, 80 * _G, _peaks(33.5, 66.9, tf32=494.7, bf16=989.4, f16=989.4, f8=1978.9, i8=1978.9)
        ),
        Card(
            "h200", "sm_90a", 132, 4.8 * _T, 50 * _M, 141 * _G, _peaks(33.5, 66.9, tf32=494.7, bf16=989.4, f16=989.4, f8=1978.9, i8=1978.9)
        ),
        Card("b200", "sm_100a", 148, 8.0 * _T, 126 * _M, 180 * _G, _peaks(37, 75, tf32=1100, bf16=2250, f16=2250, f8=4500, i8=4500)),
        Card(
            "rtx5090", "sm_120", 170, 1.792 * _T, 96 * _M, 32 * _G, _peaks(1.64, 104.8, tf32=104.8, bf16=209.5, f16=209.5, f8=419, i8=838)
        ),
    )
}


def architecture(arch: str) -> Architecture:
    """The facts of an architecture; those of sm_80 for a name that the table lacks."""
    return ARCHITECTURES.get(arch, ARCHITECTURES["sm_80"])
