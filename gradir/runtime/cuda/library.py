"""Library functions that host code of a program for CUDA calls by name: they run on the host, on copies of their buffers.

Each call waits for its inputs and is counted as one synchronisation for each of them. A function of the GPU's own libraries is called by
a kernel's schedule instead, and does not come here.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from gradir.runtime import abi
from gradir.runtime.call import Context, ErrorSlot
from gradir.runtime.cuda.calls import current_call
from gradir.runtime.dtypes import numpy_dtype
from gradir.runtime.library.table import LibraryTable
from gradir.runtime.native.library import native
from gradir.runtime.threads import available_threads

_NATIVE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)
_NAMES = {code: name for name, code in abi.ELEMENT_CODES.items()}


def call_back(table: LibraryTable) -> Callable[[int, int, int], int]:
    """What the context's `callback` is for the library functions of a module."""

    def run(_ctx: int, number: int, buffers: int) -> int:
        call = current_call()
        call.outside += 1
        inputs, outputs = table.counts[number]
        count = inputs + outputs
        words = (ctypes.c_int64 * (abi.BUFFER_WORDS * count)).from_address(buffers) if count else (0,)
        staged: list[tuple[int, np.ndarray[Any, Any]]] = []
        copies = (ctypes.c_int64 * max(1, len(words)))(*words)
        try:
            for k in range(count):
                address, code, rank, sizes = words[abi.BUFFER_WORDS * k : abi.BUFFER_WORDS * k + 4]
                shape = tuple((ctypes.c_int64 * rank).from_address(sizes)) if rank else ()
                array = np.zeros(shape, numpy_dtype(_NAMES[code]))
                if k < inputs and array.nbytes:
                    call.device.copy_out(array, address, call.stream)
                staged.append((address, array))
                copies[abi.BUFFER_WORDS * k] = array.ctypes.data
            status = _on_host(table, number, copies)
            for address, array in staged[inputs:] if status == 0 else ():
                call.device.copy_in(address, array, call.stream)
        except BaseException as error:
            call.error = error
            return -1
        return status

    return run


def _on_host(table: LibraryTable, number: int, buffers: Any) -> int:
    error, lib = ErrorSlot(), native()
    context = Context(
        abi.VERSION,
        lib.address("gradir.parallel_for"),
        lib.address("gradir.allocate"),
        lib.address("gradir.release"),
        ctypes.addressof(error),
        available_threads(),
        table.callback,
        table.user,
        None,
    )
    return _NATIVE(table.callback)(ctypes.addressof(context), number, ctypes.addressof(buffers))
