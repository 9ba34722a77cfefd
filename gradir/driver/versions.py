"""What besides the program decides the machine code: versions, our own source files, plugins. Part of every cache key."""

from __future__ import annotations

import os
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import gradir
from gradir.driver.passes import PASSES

ARTEFACT_VERSIONS = ("xdsl", "llvmlite", "numpy")


@cache
def versions() -> dict[str, str]:
    """Versions that a manifest records."""
    import llvmlite.binding as llvm

    found = {"gradir": gradir.__version__, "llvm": ".".join(map(str, llvm.llvm_version_info))}
    for package in ARTEFACT_VERSIONS:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "unknown"
    return found


@cache
def source_fingerprint() -> str:
    """Names, sizes and times of gradir's own source files: an edited compiler never finds the code of the one before."""
    rows: list[str] = []
    for folder, _, files in os.walk(Path(gradir.__file__).parent):
        for name in files:
            if name.endswith(".py"):
                stat = os.stat(os.path.join(folder, name))
                rows.append(f"{folder}/{name} {stat.st_size} {stat.st_mtime_ns}")
    return "\n".join(sorted(rows))


def toolchain() -> str:
    """One text of all of it."""
    passes = "\n".join(f"{name} {target}" for name, (target, _) in PASSES.items())
    return "\n".join([*(f"{name} {number}" for name, number in versions().items()), source_fingerprint(), passes])
