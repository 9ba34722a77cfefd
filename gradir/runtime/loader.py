"""Object code into the process: one ORC LLJIT, one library per object, explicit lifetimes.

A library lives as long as its `Library` object: whoever holds an address holds the library (dropping one that is still called
segfaults, and ORC never lets a name be used twice). Objects of the emitter need memcpy, memmove and memset and nothing else.
"""

from __future__ import annotations

import ctypes
import itertools
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import llvmlite.binding as llvm

from gradir.errors import GradirError

ALLOWED_SYMBOLS = ("memcpy", "memmove", "memset")

_names = itertools.count()
_lock = threading.Lock()


class Library:
    """One linked object: `address(symbol)` of every symbol that was asked for; unloads when collected."""

    __slots__ = ("_tracker", "depends")

    def __init__(self, tracker: Any, depends: Sequence[Library] = ()) -> None:
        self._tracker = tracker
        self.depends = tuple(depends)

    def address(self, symbol: str) -> int:
        """Where `symbol` lies in this process."""
        return self._tracker[symbol]


@cache
def initialise_llvm() -> None:
    """Make the host's code generator known to LLVM, once."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()


def target_machine() -> Any:
    """A code generator for this host: baseline features, position independent, opt 0 (10 ms for the runtime's own code instead of 35)."""
    initialise_llvm()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    return target.create_target_machine(opt=0, reloc="pic", codemodel="default", jit=False)


@cache
def _engine() -> Any:
    # never disposed (llvmlite skips that at exit): sleeping workers and running calls are inside its code
    return llvm.create_lljit_compiler(target_machine(), use_jit_link=False)


@cache
def _libc() -> Mapping[str, int]:
    libc = ctypes.CDLL(None)
    return {name: ctypes.cast(getattr(libc, name), ctypes.c_void_p).value or 0 for name in ALLOWED_SYMBOLS}


def load_object(
    data: bytes, exports: Sequence[str], *, imports: Mapping[str, int] | None = None, depends: Sequence[Library] = ()
) -> Library:
    """Link one object file and find `exports` in it.

    `imports` are addresses for its undefined symbols beside memcpy, memmove and memset; `depends` are kept alive with it.
    `GradirError` RT010 when LLVM refuses the object or a symbol is missing.
    """
    builder = llvm.JITLibraryBuilder().add_object_img(data)
    for name, address in {**_libc(), **(imports or {})}.items():
        builder.import_symbol(name, address)
    for name in exports:
        builder.export_symbol(name)
    try:
        with _lock:
            tracker = builder.link(_engine(), f"gradir.{next(_names)}")
    except RuntimeError as error:
        raise GradirError(
            f"the object cannot be linked: {error}",
            part="runtime",
            code="RT010",
            expected="an object for this machine that defines " + ", ".join(exports) + " and needs only memcpy, memmove, memset",
            found=f"{len(data)} bytes",
            hint="compile the module again on this machine",
        ) from error
    return Library(tracker, depends)


def compile_text(text: str) -> bytes:
    """Object code of LLVM IR text for this host; for the runtime's own code, a mistake in it is ours (`RuntimeError`)."""
    initialise_llvm()
    module = llvm.parse_assembly(text)
    module.triple = llvm.get_process_triple()
    module.verify()
    return target_machine().emit_object(module)
