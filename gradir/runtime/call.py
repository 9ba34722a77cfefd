"""The plain call through ctypes, for everything out of the ordinary: the slow twin of the native wrapper, with already converted arrays.

Both build one context per call in flight.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradir.runtime import abi
from gradir.runtime.dtypes import numpy_dtype
from gradir.runtime.manifest import FunctionSpec, TensorSpec
from gradir.runtime.memory import allocate, release
from gradir.runtime.native.library import native

Array = np.ndarray[Any, np.dtype[Any]]
Failure = Callable[..., Any]


class Context(ctypes.Structure):
    """`gradir.runtime.abi`'s context."""

    _fields_ = [
        ("version", ctypes.c_int64),
        ("parallel_for", ctypes.c_void_p),
        ("allocate", ctypes.c_void_p),
        ("free", ctypes.c_void_p),
        ("error", ctypes.c_void_p),
        ("threads", ctypes.c_int64),
        ("callback", ctypes.c_void_p),
        ("user", ctypes.c_void_p),
        ("device", ctypes.c_void_p),
    ]


class ErrorSlot(ctypes.Structure):
    """Where compiled code says which op failed."""

    _fields_ = [("code", ctypes.c_int64), ("op_id", ctypes.c_int64), ("operands", ctypes.c_int64 * abi.ERROR_OPERAND_COUNT)]


@dataclass(frozen=True)
class Lent:
    """Memory for one call: the address of its arena, and the addresses of the two functions that the context allocates and frees by."""

    arena: int
    allocate: int
    free: int


def invoke(
    spec: FunctionSpec,
    entry: int,
    threads: int,
    inputs: Sequence[Any],
    outputs: Sequence[Array],
    failed: Failure,
    callbacks: tuple[int, int] = (0, 0),
    lent: Lent | None = None,
) -> None:
    """Call `entry` with arrays (or integers, for scalars) that fit `spec`; `failed` raises when it returns a status.

    `callbacks`: the context's `callback` and `user`. `lent`: an arena and an allocator to use instead of the pool's.
    """
    words: list[int] = []
    for tensor, value in zip(spec.inputs + spec.outputs, (*inputs, *outputs), strict=True):
        if tensor.kind == "scalar":
            words.append(scalar_word(value, tensor))
        else:
            words.append(value.ctypes.data)
            words += [value.shape[k] for k in tensor.dynamic_dims]
    arena = 0
    if spec.arena_bytes and lent is not None:
        words.append(lent.arena)
    elif spec.arena_bytes:
        try:
            arena = allocate(spec.arena_bytes)
        except MemoryError:
            failed(abi.STATUS_OUT_OF_MEMORY)
        words.append(arena)
    slots = (ctypes.c_int64 * len(words))(*words)
    error = ErrorSlot()
    lib = native()
    context = Context(
        abi.VERSION,
        lib.address("gradir.parallel_for"),
        lent.allocate if lent is not None else lib.address("gradir.allocate"),
        lent.free if lent is not None else lib.address("gradir.release"),
        ctypes.addressof(error),
        threads,
        callbacks[0] or None,
        callbacks[1] or None,
        None,
    )
    try:
        status = _ENTRY(entry)(ctypes.byref(context), slots)
    finally:
        if arena:
            release(arena)
    if status != abi.STATUS_OK:
        failed(status, error.code, error.op_id, *error.operands)


_ENTRY = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)


def scalar_word(value: Any, tensor: TensorSpec) -> int:
    """The 64-bit slot of a number passed by value: integers sign-extended, floats as their bits."""
    raw = np.asarray(value, numpy_dtype(tensor.dtype))
    if raw.dtype.kind in "iub":
        return int(raw) if int(raw) < 1 << 63 else int(raw) - (1 << 64)
    return int.from_bytes(raw.tobytes(), "little", signed=raw.itemsize == 8)
