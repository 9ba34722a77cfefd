"""What this machine can run, and whether code compiled for some machine may run here."""

from __future__ import annotations

from functools import cache

import llvmlite.binding as llvm

from gradir.errors import GradirError
from gradir.runtime.manifest import Target


@cache
def host_target() -> Target:
    """Triple, CPU name and features of this machine, as LLVM names them."""
    features = tuple(sorted(name for name, present in llvm.get_host_cpu_features().items() if present))
    return Target(llvm.get_process_triple(), llvm.get_host_cpu_name(), features)


def check_target(target: Target) -> None:
    """Raise `GradirError` RT014 when objects for `target` cannot run here: another platform, or CPU features that are missing."""
    host = host_target()
    missing = sorted(set(target.features) - set(host.features))
    if _platform(target.triple) == _platform(host.triple) and not missing:
        return
    raise GradirError(
        "the module was compiled for another machine",
        part="runtime",
        code="RT014",
        expected=f"{host.triple}, {host.cpu}",
        found=f"{target.triple}, {target.cpu}" + (f", which needs {', '.join(missing)}" if missing else ""),
        hint="compile it again with target=host, or for a CPU that both machines have",
    )


def _platform(triple: str) -> tuple[str, ...]:
    """Architecture, system and ABI; vendors (`unknown`, `pc`) do not matter."""
    parts = triple.split("-")
    return (parts[0], *parts[2:])
