"""Loads compiled modules, owns memory, threads and calls: execution only, no compiler, no xDSL.

`load(path)` gives a `Module`, `module["f"](*arrays)` runs it. Names load on first use, so that importing this package is cheap.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradir.runtime.buffer import Buffer
    from gradir.runtime.manifest import FunctionSpec, Manifest, TensorSpec
    from gradir.runtime.module import Function, Module, load

__all__ = ["Buffer", "Function", "FunctionSpec", "Manifest", "Module", "TensorSpec", "load"]

_HOME = {
    "Buffer": "buffer",
    "Function": "module",
    "FunctionSpec": "manifest",
    "Manifest": "manifest",
    "Module": "module",
    "TensorSpec": "manifest",
    "load": "module",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'gradir.runtime' has no attribute '{name}'")
    return getattr(importlib.import_module(f"gradir.runtime.{_HOME[name]}"), name)
