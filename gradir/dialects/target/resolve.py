"""From a word on a command line to a target attribute, and from a module to its target."""

from __future__ import annotations

import difflib
from typing import TypeAlias

from xdsl.ir import Operation

from gradir.dialects.target.cpu import CpuTargetAttr
from gradir.dialects.target.cuda import SMS, CudaTargetAttr
from gradir.dialects.target.host import host_target
from gradir.dialects.target.isa import AARCH64_CPUS, AARCH64_TRIPLE, X86_CPUS
from gradir.errors import GradirError

TARGET_ATTRIBUTE = "gradir.target"
TargetAttr: TypeAlias = CpuTargetAttr | CudaTargetAttr


def parse_target(target: str = "host", cpu: str = "", threads: int = 0) -> TargetAttr:
    """`host`; `cpu` with an LLVM processor name (empty: this machine's); `cuda` with an architecture in `cpu` or as `cuda:sm_90`.

    A CUDA target may also say where it runs, which matters to the runtime only: `cuda:1`, `cuda:emulated`, `cuda:emulated:sm_90a`.
    `threads` overrides the number of threads of a CPU. Raises `GradirError` OP041 for a word that names no target.
    """
    kind, _, detail = target.partition(":")
    name = cpu or detail
    if is_cuda(target):
        return _cuda(cpu or cuda_place(target)[1] or DEFAULT_CUDA)
    if kind not in ("host", "cpu"):
        raise _unknown("target", target, ["host", "cpu", "cuda", "cuda:sm_90"])
    host = host_target()
    if kind == "host" and name and name != host.cpu:
        raise _unknown("host processor", name, [host.cpu])
    described = host if name in ("", "native", host.cpu) else _named(name, host)
    if threads:
        described = CpuTargetAttr.of(described.cpu, **{f: getattr(described, f) for f in CpuTargetAttr.FIELDS} | {"threads": threads})
    return described


DEFAULT_CUDA = "sm_80"
"""The architecture where nothing names one."""


def is_cuda(target: str) -> bool:
    """Does the text name a GPU: `cuda`, `cuda:..`?"""
    return target.partition(":")[0] == "cuda"


def cuda_place(target: str) -> tuple[str, str]:
    """(device, architecture) of `cuda`, `cuda:1`, `cuda:sm_90`, `cuda:emulated:sm_90a`; the architecture is empty where it is not named."""
    words = target.split(":")[1:]
    device = words.pop(0) if words and (words[0].isdecimal() or words[0] == "emulated") else "0"
    return f"cuda:{device}", ":".join(words)


def _named(name: str, host: CpuTargetAttr) -> CpuTargetAttr:
    """A processor by its LLVM name; caches are those of the default, threads 1."""
    if host.triple:  # not x86-64: LLVM knows the names, we do not
        return CpuTargetAttr.of(name, vector=4, registers=32, triple=host.triple)
    if name in AARCH64_CPUS:
        return CpuTargetAttr.of("generic" if name == "aarch64" else name, vector=4, registers=32, triple=AARCH64_TRIPLE)
    isa = X86_CPUS.get(name)
    if isa is None:
        raise _unknown("processor", name, [*X86_CPUS, *AARCH64_CPUS])
    return CpuTargetAttr.of(name, vector=isa.lanes, registers=isa.registers)


def _cuda(arch: str) -> CudaTargetAttr:
    if arch not in SMS:
        raise _unknown("CUDA architecture", arch, list(SMS))
    return CudaTargetAttr.of(arch)


HINTS = {
    "target": "name the kind of machine, and its processor as cpu:znver4, cuda:sm_90, or in the option `cpu`",
    "host processor": "`host` is this machine; for another one say `cpu` with its name",
    "processor": "a processor's name is that of LLVM's -mcpu",
    "CUDA architecture": "compute capability 9.0 is sm_90",
}
"""What was unknown -> the next step."""


def _unknown(what: str, found: str, known: list[str]) -> GradirError:
    near = known if what == "target" else difflib.get_close_matches(found, known, n=3) or known
    return GradirError(
        f"unknown {what} '{found}'",
        part="operator",
        code="OP041",
        expected=", ".join(near[:12]),
        found=found,
        hint=HINTS[what],
    )


def target_of(op: Operation) -> TargetAttr:
    """The target of the module around `op`; this machine where none was set."""
    at: Operation | None = op
    while at is not None:
        found = at.attributes.get(TARGET_ATTRIBUTE)
        if isinstance(found, CpuTargetAttr | CudaTargetAttr):
            return found
        at = at.parent_op()
    return host_target()
