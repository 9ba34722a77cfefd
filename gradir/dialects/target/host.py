"""The machine that runs this process, as a `#target.cpu`.

LLVM names the processor; the features that matter here are listed too, because virtual machines hide some of what the name implies.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from gradir.dialects.target.cpu import CpuTargetAttr
from gradir.dialects.target.isa import X86_CPUS

_ASKED = ("sse4.1", "avx", "avx2", "fma", "f16c", "bmi", "bmi2", "lzcnt", "popcnt", "avx512f")
_ASKED_512 = ("avx512vl", "avx512bw", "avx512dq", "avx512cd", "avx512vnni", "avx512bf16", "avx512fp16", "avx512vbmi", "avx512ifma")


@cache
def host_target() -> CpuTargetAttr:
    """This machine: LLVM's name for it, its vector width, the threads that this process may use, its caches."""
    import llvmlite.binding as llvm  # lazy: 50 ms that a program with a target in its text need not pay

    cpu, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features()
    triple = llvm.get_process_triple()
    threads, (l1, l2, l3) = _threads(), _caches()
    if not triple.startswith("x86_64"):
        return CpuTargetAttr.of(cpu, vector=4, registers=32, threads=threads, l1=l1, l2=l2, l3=l3, triple=triple)
    has_512 = features.get("avx512f", False)
    asked = _ASKED + (_ASKED_512 if has_512 else ())
    known = X86_CPUS.get(cpu)
    changes = [
        ("+" if features.get(f) else "-") + f
        for f in asked
        if known is None or features.get(f, False) != (f in known.features or f in _implied(cpu))
    ]
    lanes = 16 if has_512 else 8 if features.get("avx") else 4
    return CpuTargetAttr.of(
        cpu, features=",".join(changes), vector=lanes, registers=32 if has_512 else 16, threads=threads, l1=l1, l2=l2, l3=l3
    )


def _implied(cpu: str) -> frozenset[str]:
    """Features of `_ASKED` beyond `Isa.features` that every processor of that name has."""
    features = X86_CPUS[cpu].features
    if "avx2" in features:
        return frozenset({"bmi", "bmi2", "lzcnt", "popcnt"})
    return frozenset({"popcnt"}) if "sse4.1" in features and cpu != "penryn" else frozenset()


def _threads() -> int:
    """CPUs that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _caches() -> tuple[int, int, int]:
    """Bytes of the data caches of the first CPU, from Linux's sysfs; the usual sizes where there is none."""
    sizes = {1: 32768, 2: 524288, 3: 0}
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        try:
            level, kind, size = ((index / name).read_text().strip() for name in ("level", "type", "size"))
        except OSError:
            continue
        if kind != "Instruction" and size[-1:] in "KM" and int(level) in sizes:
            sizes[int(level)] = int(size[:-1]) * (1024 if size[-1] == "K" else 1024 * 1024)
    return sizes[1], sizes[2], sizes[3]
