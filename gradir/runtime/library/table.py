"""The library functions of one loaded module, as the rows that `callback` of the context looks up; what to raise when one fails.

A Python function sees numpy views of the buffers: inputs read-only, outputs to be filled, complex numbers joined. What it raises is
kept for its thread until the call into compiled code has returned, and becomes the cause of a `GradirError`.
"""

from __future__ import annotations

import ctypes
import json
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradir.errors import GradirError
from gradir.runtime import abi
from gradir.runtime.dtypes import numpy_dtype
from gradir.runtime.library import Array, Row, resolve
from gradir.runtime.manifest import LibrarySpec, SourceLine, TensorSpec
from gradir.runtime.native.library import native

_TRAMPOLINE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


class _Target(ctypes.Structure):
    """The data of a row for a C function."""

    _fields_ = [("function", ctypes.c_void_p), ("inputs", ctypes.c_int64), ("outputs", ctypes.c_int64), ("config", ctypes.c_char_p)]


class _Pending(threading.local):
    error: BaseException | None = None


_PENDING = _Pending()


class LibraryTable:
    """Rows for the library functions of a module, in the order of their ids. Lives as long as the code that calls them."""

    def __init__(self, specs: Sequence[LibrarySpec]) -> None:
        """Raises GradirError RT030 when a name is not registered."""
        self._keep: list[Any] = []
        self.counts = [(len(spec.inputs), len(spec.outputs)) for spec in specs]
        """Inputs and outputs of each function."""
        words: list[int | None] = []
        for spec in specs:
            row = resolve(spec.name)
            self._keep.append(row)
            words += self._row(spec, row)
        self._words = (ctypes.c_void_p * max(1, len(words)))(*words)
        self.callback = native().address("gradir.callback") if specs else 0
        self.user = ctypes.addressof(self._words) if specs else 0

    def _row(self, spec: LibrarySpec, row: Row) -> list[int | None]:
        if row.native is not None:
            function, data, keep = row.native(spec)
            self._keep.append(keep)
            return [function, data]
        return self._c_row(spec, row) if row.writer is None else [self._python_row(spec, row), 0]

    def _c_row(self, spec: LibrarySpec, row: Row) -> list[int | None]:
        config = json.dumps(spec.config, sort_keys=True).encode()
        target = _Target(row.address, len(spec.inputs), len(spec.outputs), config)
        self._keep.append((target, config))
        return [native().address("gradir.call_c"), ctypes.addressof(target)]

    def _python_row(self, spec: LibrarySpec, row: Row) -> int | None:
        writer = row.writer
        assert writer is not None
        views = [_View(tensor, k in spec.complex_parts) for k, tensor in enumerate((*spec.inputs, *spec.outputs))]
        inputs, count, config = len(spec.inputs), len(views), dict(spec.config)

        def run(_context: int, _data: int, buffers: int) -> int:
            try:
                words = (ctypes.c_int64 * (abi.BUFFER_WORDS * count)).from_address(buffers) if count else ()
                arrays = [view.array(words, abi.BUFFER_WORDS * k) for k, view in enumerate(views)]
                for array in arrays[:inputs]:
                    array.flags.writeable = False
                writer(dict(config), arrays[inputs:], *arrays[:inputs])
            except BaseException as error:
                _PENDING.error = error
                return 1
            return 0

        trampoline = _TRAMPOLINE(run)
        self._keep.append(trampoline)
        return ctypes.cast(trampoline, ctypes.c_void_p).value


class _View:
    """Makes a numpy array over one buffer of a call."""

    def __init__(self, tensor: TensorSpec, is_complex: bool) -> None:
        self._dtype = np.dtype(numpy_dtype(tensor.dtype))
        self._joined = np.result_type(self._dtype, np.complex64) if is_complex else None
        sizes = [n if isinstance(n, int) else -1 for n in tensor.shape]
        self._shape = tuple(sizes)
        self._dynamic = [k for k, n in enumerate(sizes) if n < 0]

    def array(self, words: Any, at: int) -> Array:
        shape = self._shape
        if self._dynamic:
            sizes = (ctypes.c_int64 * len(shape)).from_address(words[at + 3])
            shape = tuple(sizes)
        count = self._dtype.itemsize
        for n in shape:
            count *= n
        if count == 0:
            made: Array = np.empty(shape, self._dtype)
        else:
            memory: Any = (ctypes.c_char * count).from_address(words[at])
            made = np.ndarray(shape, self._dtype, memory)
        return made if self._joined is None else made.view(self._joined)[..., 0]


def failure(line: SourceLine | None, function: str, status: int) -> BaseException:
    """What to raise for a library function that failed in this thread; an interrupt goes on as it is."""
    cause, _PENDING.error = _PENDING.error, None
    if cause is not None and not isinstance(cause, Exception):
        return cause
    name = line.message if line is not None and line.message else "a library function"
    error = GradirError(
        f"{name} failed: {type(cause).__name__}: {cause}" if cause is not None else f"{name} failed with status {status}",
        part="runtime",
        code="RT032",
        op=line.op if line is not None else "",
        function=line.function if line is not None and line.function else function,
        location=line.location if line is not None else "",
        expected="a function that returns (in C: the status 0)",
        found=f"{type(cause).__name__}" if cause is not None else f"status {status}",
        hint="the cause is chained to this error" if cause is not None else "the C function says what its status means",
    )
    error.__cause__ = cause
    return error


def call_c(address: int, config: Any, inputs: Sequence[Array], outputs: Sequence[Array]) -> int:
    """The status of a C function on arrays in memory of their own: for the reference evaluator."""
    arrays = [np.ascontiguousarray(array) for array in inputs] + list(outputs)
    ranks = sum(array.ndim for array in arrays)
    sizes = (ctypes.c_int64 * max(1, 2 * ranks))()
    words = (ctypes.c_int64 * max(1, abi.BUFFER_WORDS * len(arrays)))()
    names = {np.dtype(numpy_dtype(name)): code for name, code in abi.ELEMENT_CODES.items() if not name.startswith("f8")}
    free = 0
    for k, array in enumerate(arrays):
        sizes[free : free + array.ndim] = array.shape
        sizes[free + array.ndim : free + 2 * array.ndim] = [n // array.itemsize for n in array.strides]
        at = ctypes.addressof(sizes) + 8 * free
        words[abi.BUFFER_WORDS * k : abi.BUFFER_WORDS * (k + 1)] = [
            array.ctypes.data, names[array.dtype], array.ndim, at, at + 8 * array.ndim,
        ]  # fmt: skip
        free += 2 * array.ndim
    text = json.dumps(config, sort_keys=True).encode()
    target = _Target(address, len(inputs), len(outputs), text)
    call = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(native().address("gradir.call_c"))
    return call(None, ctypes.addressof(target), ctypes.addressof(words))
