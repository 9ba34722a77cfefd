"""A loader for tests: level-4 text -> object -> ORC LLJIT -> a function on numpy arrays, with a context written in ctypes.

The product's loader is `gradir.runtime.loader`; this one has no caches, no threads and no checks.
"""

from __future__ import annotations

import ctypes
import itertools
import re
import subprocess
import tempfile
from collections.abc import Sequence

import llvmlite.binding as llvm
import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from gradir.dialects.registry import make_context
from gradir.dialects.target import CpuTargetAttr, abi, host_target
from gradir.targets.cpu import compile_object, target_machine
from gradir.targets.llvm.module import translate

_numbers = itertools.count()
_PARALLEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
_BODY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
_ALLOCATE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
_FREE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)


def parse(text: str) -> ModuleOp:
    return Parser(make_context(), text).parse_module()


class Context:
    """The ABI's context: parallel loops run in two halves, allocation is counted and fails above `memory` bytes."""

    def __init__(self, memory: int = 1 << 30) -> None:
        self.ranges: list[tuple[int, int]] = []
        self.live: dict[int, object] = {}
        self.error = (ctypes.c_int64 * 6)()
        self.memory = memory

        def parallel(ctx: int, fn: int, closure: int, n: int, grain: int) -> None:
            for lo, hi in ((0, n // 2), (n // 2, n)):
                if hi > lo:
                    self.ranges.append((lo, hi))
                    _BODY(fn)(ctx, closure, lo, hi)

        def allocate(_: int, size: int, align: int) -> int | None:
            if size > self.memory:
                return None
            block = ctypes.create_string_buffer(size + align)
            address = -(-ctypes.addressof(block) // align) * align
            self.live[address] = block
            return address

        def free(_: int, p: int) -> None:
            del self.live[p]

        self.callbacks = (_PARALLEL(parallel), _ALLOCATE(allocate), _FREE(free))
        addresses = [ctypes.cast(c, ctypes.c_void_p).value for c in self.callbacks]
        self.table = (ctypes.c_int64 * 9)(abi.VERSION, *addresses, ctypes.addressof(self.error), 2, 0, 0, 0)


class Compiled:
    """The entries of one level-4 module."""

    _jit = None

    def __init__(self, text: str | ModuleOp, target: CpuTargetAttr | None = None) -> None:
        self.module = parse(text) if isinstance(text, str) else text
        self.target = target or host_target()
        self.translation = translate(self.module, target=self.target)
        self.object = compile_object(self.translation.text, self.target)
        if Compiled._jit is None:
            Compiled._jit = llvm.create_lljit_compiler(target_machine(host_target()), use_jit_link=False)
        builder = llvm.JITLibraryBuilder().add_object_img(self.object).add_current_process()
        names = [name + ".packed" for name in self.translation.entries]
        for name in names:
            builder = builder.export_symbol(name)
        self.library = builder.link(Compiled._jit, f"test{next(_numbers)}")
        self.context = Context()

    def __call__(self, name: str, *arguments: np.ndarray | int | float, sizes: Sequence[Sequence[int]] = ()) -> int:
        """Call `@name.packed`; `sizes[i]` are the dynamic sizes that follow argument i. Returns the status."""
        slots: list[int] = []
        for k, argument in enumerate(arguments):
            if isinstance(argument, np.ndarray):
                slots += [argument.ctypes.data, *(sizes[k] if k < len(sizes) else ())]
            elif isinstance(argument, float | np.floating):
                slots.append(int.from_bytes(np.asarray(argument).tobytes().ljust(8, b"\0"), "little", signed=True))
            else:
                slots.append(int(argument))
        packed = (ctypes.c_int64 * len(slots))(*slots)
        entry = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)(self.library[name + ".packed"])
        return entry(ctypes.addressof(self.context.table), ctypes.addressof(packed))


def undefined_symbols(obj: bytes) -> set[str]:
    """What `nm -u` says of an object."""
    with tempfile.NamedTemporaryFile(suffix=".o") as file:
        file.write(obj)
        file.flush()
        text = subprocess.run(["nm", "-u", file.name], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"U (\S+)", text))
