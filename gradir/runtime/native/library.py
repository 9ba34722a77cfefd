"""The runtime's own native library, compiled on first use and never unloaded; its functions as Python callables."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from functools import cache
from typing import Any

import llvmlite.binding as llvm

from gradir.runtime.loader import Library, compile_text, load_object
from gradir.runtime.native.callbacks import CALLBACKS_IR
from gradir.runtime.native.memory import memory_ir, memory_symbols
from gradir.runtime.native.system import system_of
from gradir.runtime.native.threads import threads_ir
from gradir.runtime.native.wrapper import PYTHON_SYMBOLS, WRAPPER_IR

EXPORTS = (
    "gradir.allocate",
    "gradir.call",
    "gradir.call_c",
    "gradir.callback",
    "gradir.memory_handler",
    "gradir.parallel_for",
    "gradir.pool",
    "gradir.pool_unlock",
    "gradir.release",
    "gradir.threads_reset",
    "gradir.trim",
    "gradir.workers",
)


class Native:
    """Addresses of the library and the few functions that Python calls (all short, so with the GIL held)."""

    def __init__(self, library: Library) -> None:
        self._library = library
        void, word = None, ctypes.c_void_p
        allocate = self._function(word, "gradir.allocate", word, ctypes.c_int64, ctypes.c_int64)
        release = self._function(void, "gradir.release", word, word)
        self.allocate: Callable[[int], int | None] = lambda nbytes: allocate(None, nbytes, 64)
        self.release: Callable[[int], None] = lambda address: release(None, address)
        self.trim: Callable[[], None] = self._function(void, "gradir.trim")
        self.pool_unlock: Callable[[], None] = self._function(void, "gradir.pool_unlock")
        self.threads_reset: Callable[[], None] = self._function(void, "gradir.threads_reset")

    def address(self, symbol: str) -> int:
        """Where one of `EXPORTS` lies."""
        return self._library.address(symbol)

    def _function(self, result: type | None, symbol: str, *arguments: type) -> Callable[..., Any]:
        return ctypes.PYFUNCTYPE(result, *arguments)(self.address(symbol))


_lock = threading.Lock()


@cache
def native() -> Native:
    """The one library of the process; compiled by the first caller, for whom others wait."""
    with _lock:
        return _build()


@cache
def _build() -> Native:
    """Compile and link it. A forked child starts without workers and with the memory pool unlocked.

    Nothing is locked before a fork: whoever waits for the pool may hold the GIL, which the hooks of the fork need. The free lists are
    whole after every single store, so a child that inherits an operation of another thread half done loses one block at most.
    """
    triple = llvm.get_process_triple()
    imports = {name: _address(_library(library), name) for name, library in system_of(triple).imports.items()}
    imports |= {name: _address(_library(""), name) for name in memory_symbols(triple)}
    imports |= {name: _address(ctypes.pythonapi, name) for name in PYTHON_SYMBOLS}
    code = compile_text(native_ir(triple))
    found = Native(load_object(code, EXPORTS, imports=imports))

    def in_child() -> None:
        found.pool_unlock()
        found.threads_reset()

    os.register_at_fork(after_in_child=in_child)
    return found


def native_ir(triple: str) -> str:
    """The text of the library for the machine that an LLVM triple names."""
    return threads_ir(triple) + memory_ir(triple) + WRAPPER_IR + CALLBACKS_IR


def _library(name: str) -> ctypes.CDLL:
    return ctypes.CDLL(name or None)


def _address(library: ctypes.CDLL, name: str) -> int:
    return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
