"""What LLVM's processor names stand for, as far as code generation here asks: vector width, registers, fma, f16c, SSE 4.1,
products of narrow types.

The names are those of `llc -march=x86-64 -mcpu=help` (LLVM 22) that are 64-bit processors, and the commoner ones of `-march=aarch64`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Isa:
    """Lanes of f32 in a register, number of vector registers, and the features that the emitter asks for."""

    lanes: int
    registers: int
    features: frozenset[str]


SSE2 = Isa(4, 16, frozenset())
SSE4 = Isa(4, 16, frozenset({"sse4.1"}))
AVX = Isa(8, 16, frozenset({"sse4.1", "avx"}))
AVX_F16C = Isa(8, 16, frozenset({"sse4.1", "avx", "f16c"}))
AVX_FMA = Isa(8, 16, frozenset({"sse4.1", "avx", "f16c", "fma"}))
AVX2 = Isa(8, 16, frozenset({"sse4.1", "avx", "f16c", "fma", "avx2"}))
AVX512_F = Isa(16, 32, AVX2.features | {"avx512f"})
AVX512 = Isa(16, 32, AVX512_F.features | {"avx512bw", "avx512vl"})
AVX512_VNNI = Isa(16, 32, AVX512.features | {"avx512vnni"})
AVX512_BF16 = Isa(16, 32, AVX512_VNNI.features | {"avx512bf16"})
NEON = Isa(4, 32, frozenset({"sse4.1", "fma", "f16c"}))
"""AArch64: rounding, fma and f16 conversions are in the base instruction set."""

_NAMES: dict[Isa, str] = {
    SSE2: (
        "generic x86-64 k8 k8-sse3 opteron opteron-sse3 athlon64 athlon64-sse3 athlon-fx nocona core2 amdfam10 barcelona btver1 "
        "bonnell atom"
    ),
    SSE4: "x86-64-v2 penryn nehalem corei7 westmere silvermont slm goldmont goldmont-plus goldmont_plus tremont",
    AVX: "sandybridge corei7-avx bdver1",
    AVX_F16C: "ivybridge core-avx-i btver2",
    AVX_FMA: "bdver2 bdver3",
    AVX2: (
        "x86-64-v3 haswell core-avx2 broadwell skylake bdver4 znver1 znver2 znver3 alderlake raptorlake meteorlake gracemont arrowlake "
        "arrowlake-s arrowlake_s lunarlake pantherlake wildcatlake sierraforest grandridge clearwaterforest"
    ),
    AVX512_F: "knl",
    AVX512: "x86-64-v4 skylake-avx512 skx cannonlake novalake",
    AVX512_VNNI: "cascadelake icelake-client icelake_client icelake-server icelake_server rocketlake tigerlake",
    AVX512_BF16: "cooperlake sapphirerapids emeraldrapids graniterapids graniterapids-d graniterapids_d diamondrapids znver4 znver5",
}
X86_CPUS: dict[str, Isa] = {name: isa for isa, names in _NAMES.items() for name in names.split()}

AARCH64_TRIPLE = "aarch64-unknown-linux-gnu"
_AARCH64 = (
    "aarch64 cortex-a53 cortex-a55 cortex-a72 cortex-a76 cortex-a78 cortex-x1 cortex-x2 neoverse-n1 neoverse-n2 neoverse-v1 neoverse-v2 "
    "a64fx ampere1 apple-m1 apple-m2 apple-m3"
)
AARCH64_CPUS = frozenset(_AARCH64.split())
"""Processors that a machine of another kind can name as a target; `aarch64` is any of them (LLVM's `generic`)."""
