"""Which dialects exist, by name: nothing is imported until a program uses the name.

Plugins add to the table with `register`; tools make their parser's context with `make_context`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module

from xdsl.context import Context
from xdsl.ir import Dialect

DIALECTS: dict[str, str] = {
    "builtin": "xdsl.dialects.builtin:Builtin",
    "nd": "gradir.dialects.nd:Nd",
    "ad": "gradir.dialects.ad:Ad",
    "kernel": "gradir.dialects.kernel:Kernel",
    "target": "gradir.dialects.target:Target",
    "func": "gradir.dialects.upstream.func:Func",
    "arith": "gradir.dialects.upstream.arith:Arith",
    "math": "gradir.dialects.upstream.math:Math",
    "scf": "gradir.dialects.upstream.scf:Scf",
    "cf": "gradir.dialects.upstream.cf:Cf",
    "tensor": "gradir.dialects.upstream.tensor:Tensor",
    "linalg": "gradir.dialects.upstream.linalg:Linalg",
    "bufferization": "gradir.dialects.upstream.bufferization:Bufferization",
    "memref": "gradir.dialects.upstream.memref:MemRef",
    "vector": "gradir.dialects.upstream.vector:Vector",
    "affine": "gradir.dialects.upstream.affine:Affine",
    "gpu": "gradir.dialects.upstream.gpu:GPU",
    "nvgpu": "gradir.dialects.upstream.nvgpu:NVGPU",
    "nvvm": "gradir.dialects.upstream.nvvm:NVVM",
}
"""Name of a dialect -> `module:attribute` of its `Dialect` object."""


def load(name: str) -> Dialect:
    """The dialect called `name`; imports its module on first use. Raises `KeyError` for an unknown name."""
    module, attribute = DIALECTS[name].split(":")
    return getattr(import_module(module), attribute)


def register(name: str, place: str) -> None:
    """Add or replace a dialect: `place` is `module:attribute` of a `Dialect` object that the module holds."""
    module, _, attribute = place.partition(":")
    if not module or not attribute:
        raise ValueError(f"dialect {name}: expected 'module:attribute', found '{place}'")
    DIALECTS[name] = place


def register_loaded(dialect: Dialect, module: str) -> None:
    """Add a dialect that a plugin file already holds as a module-level name."""
    for attribute, value in vars(sys.modules[module]).items():
        if value is dialect:
            register(dialect.name, f"{module}:{attribute}")
            return
    raise ValueError(
        f"dialect {dialect.name}: module {module} has no name for it; write X = Dialect(...), then register_loaded(X, __name__)"
    )


def _factory(name: str) -> Callable[[], Dialect]:
    return lambda: load(name)


def make_context(*, allow_unregistered: bool = False) -> Context:
    """A parser context that knows every dialect of the table, each loaded when the program first uses it."""
    context = Context(allow_unregistered=allow_unregistered)
    for name in DIALECTS:
        context.register_dialect(name, _factory(name))
    context.load_registered_dialect("builtin")
    return context
