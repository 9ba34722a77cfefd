"""Calls from Python: the plan that the native wrapper reads, and the plain ctypes call for everything out of the ordinary.

The native wrapper (`gradir.runtime.native.wrapper`) checks, allocates and calls within some 200 ns; it takes arrays that are exactly
what the signature asks for. `invoke` is its slow twin with already converted arrays. Both build one context per call in flight.
"""

from __future__ import annotations

import ctypes
import sys
import sysconfig
import threading
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from gradir import size_algebra
from gradir.runtime import abi
from gradir.runtime.dtypes import numpy_dtype
from gradir.runtime.manifest import FunctionSpec, TensorSpec
from gradir.runtime.memory import allocate, release
from gradir.runtime.native.library import native

Array = np.ndarray[Any, np.dtype[Any]]
Failure = Callable[..., Any]

METH_FASTCALL = 0x80
NEW_FROM_DESCR, SET_BASE_OBJECT = 94, 282
"""Places of PyArray_NewFromDescr and PyArray_SetBaseObject in numpy's function table, fixed since numpy 1.7."""


class Spec(ctypes.Structure):
    """One argument as the wrapper sees it; dims below zero are symbols, `~dim` is the symbol's number."""

    _fields_ = [("descr", ctypes.c_void_p), ("rank", ctypes.c_int64), ("dims", ctypes.c_void_p), ("itemsize", ctypes.c_int64)]


class Plan(ctypes.Structure):
    """What the wrapper knows of a function; its order is `%Plan` of the wrapper's IR."""

    _fields_ = [
        ("entry", ctypes.c_void_p),
        ("slow", ctypes.c_void_p),
        ("failed", ctypes.c_void_p),
        ("inputs", ctypes.c_int64),
        ("outputs", ctypes.c_int64),
        ("arena_bytes", ctypes.c_int64),
        ("slots", ctypes.c_int64),
        ("threads", ctypes.c_int64),
        ("symbols", ctypes.c_int64),
        ("specs", ctypes.c_void_p),
        ("ndarray", ctypes.c_void_p),
        ("new_array", ctypes.c_void_p),
        ("set_base", ctypes.c_void_p),
        ("callback", ctypes.c_void_p),
        ("user", ctypes.c_void_p),
        ("limits", ctypes.c_void_p),
    ]


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
    ]


class ErrorSlot(ctypes.Structure):
    """Where compiled code says which op failed."""

    _fields_ = [("code", ctypes.c_int64), ("op_id", ctypes.c_int64), ("operands", ctypes.c_int64 * abi.ERROR_OPERAND_COUNT)]


class _MethodDef(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p)]


@cache
def symbol_numbers(spec: FunctionSpec) -> dict[Any, int]:
    """Numbers of the sizes that a call binds: named ones by name, anonymous ones by (place, dim)."""
    numbers: dict[Any, int] = {}
    for place, tensor in enumerate(spec.inputs + spec.outputs):
        for k in tensor.dynamic_dims:
            numbers.setdefault(tensor.shape[k] or (place, k), len(numbers))
    return numbers


LIMITS = (-1 << 63, (1 << 63) - 1, 1)
"""min, max and multiple of a size without limits, and of one that no input binds."""


def _limit_table(spec: FunctionSpec, numbers: dict[Any, int]) -> Any:
    """min, max, multiple for each number of a size; None where no size has limits."""
    if not spec.sizes:
        return None
    table = [*LIMITS] * max(1, len(numbers))
    for size in spec.sizes:
        if size.name in numbers:
            at = 3 * numbers[size.name]
            table[at : at + 3] = [size.min, LIMITS[1] if size.max is None else size.max, size.multiple]
    return (ctypes.c_int64 * len(table))(*table)


def invoke(
    spec: FunctionSpec,
    entry: int,
    threads: int,
    inputs: Sequence[Any],
    outputs: Sequence[Array],
    failed: Failure,
    callbacks: tuple[int, int] = (0, 0),
) -> None:
    """Call `entry` with arrays (or integers, for scalars) that fit `spec`; `failed` raises when it returns a status.

    `callbacks`: the context's `callback` and `user`.
    """
    words: list[int] = []
    for tensor, value in zip(spec.inputs + spec.outputs, (*inputs, *outputs), strict=True):
        if tensor.kind == "scalar":
            words.append(scalar_word(value, tensor))
        else:
            words.append(value.ctypes.data)
            words += [value.shape[k] for k in tensor.dynamic_dims]
    arena = 0
    if spec.arena_bytes:
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
        lib.address("gradir.allocate"),
        lib.address("gradir.release"),
        ctypes.addressof(error),
        threads,
        callbacks[0] or None,
        callbacks[1] or None,
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


class FastCall:
    """The wrapper's builtin for one function: `call(*arrays) -> tuple`. `owner` (the code) lives as long as the builtin."""

    def __init__(
        self,
        spec: FunctionSpec,
        entry: int,
        threads: int,
        slow: Callable[..., Any],
        failed: Failure,
        owner: object,
        callbacks: tuple[int, int] = (0, 0),
    ) -> None:
        tensors = spec.inputs + spec.outputs
        numbers = symbol_numbers(spec)
        dims = [[d if isinstance(d, int) else ~numbers[d or (place, k)] for k, d in enumerate(t.shape)] for place, t in enumerate(tensors)]
        self._dims = [(ctypes.c_int64 * max(1, len(row)))(*row) for row in dims]
        self._descrs = [numpy_dtype(t.dtype) for t in tensors]
        rows = [
            Spec(id(descr), len(t.shape), ctypes.addressof(words), descr.itemsize)
            for t, descr, words in zip(tensors, self._descrs, self._dims, strict=True)
        ]
        self._specs = (Spec * max(1, len(rows)))(*rows)
        self._limits = _limit_table(spec, numbers)
        self._callables = (slow, failed, owner)
        table = _numpy_table()
        self._plan = Plan(
            entry,
            id(slow),
            id(failed),
            len(spec.inputs),
            len(spec.outputs),
            spec.arena_bytes,
            max(1, spec.slot_count),
            threads,
            max(1, len(numbers)),
            ctypes.addressof(self._specs),
            id(np.ndarray),
            table[NEW_FROM_DESCR],
            table[SET_BASE_OBJECT],
            callbacks[0] or None,
            callbacks[1] or None,
            ctypes.addressof(self._limits) if self._limits is not None else None,
        )

    def set_threads(self, threads: int) -> None:
        """How many threads later calls may use."""
        self._plan.threads = threads

    def builtin(self) -> Callable[..., tuple[Array, ...]]:
        """The callable; it holds this object."""
        new_capsule = _python_function("PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        new_function = _python_function("PyCFunction_NewEx", ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
        return new_function(ctypes.addressof(_method()), (new_capsule(ctypes.addressof(self._plan), None, None), self), None)


@cache
def _python_function(name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
    """A function of the interpreter with a prototype of our own: the attributes of `ctypes.pythonapi` are shared with other packages."""
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


_lock = threading.Lock()


@cache
def _method() -> _MethodDef:
    """The one definition that all builtins point to, for ever; made by the first caller, for whom others wait."""
    with _lock:
        return _make_method()


@cache
def _make_method() -> _MethodDef:
    return _MethodDef(b"gradir_call", native().address("gradir.call"), METH_FASTCALL, None)


@cache
def _numpy_table() -> Any:
    umath = sys.modules.get("numpy._core._multiarray_umath") or sys.modules["numpy.core._multiarray_umath"]
    pointer = _python_function("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    address = pointer(umath.__dict__["_ARRAY_API"], None)
    return ctypes.cast(address, ctypes.POINTER(ctypes.c_void_p))


def is_plain(tensor: TensorSpec, array: Any) -> bool:
    """Whether the wrapper accepts a checked array: no subclass, and the very dtype object that its plan names."""
    return type(array) is np.ndarray and array.dtype is numpy_dtype(tensor.dtype) and array.flags.c_contiguous and array.flags.aligned


@cache
def fast_call_works() -> bool:
    """Whether this interpreter and this numpy lay objects out as the wrapper's IR assumes (CPython with the GIL, numpy 1.26+)."""
    if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED") or ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    probe = np.arange(6, dtype=np.float32).reshape(2, 3)

    def word(offset: int) -> int | None:
        return ctypes.c_void_p.from_address(id(probe) + offset).value

    dims = (ctypes.c_int64 * 2).from_address(word(32) or 0)
    flags = ctypes.c_int32.from_address(id(probe) + 64).value
    return (
        word(8) == id(np.ndarray)
        and word(16) == probe.ctypes.data
        and ctypes.c_int32.from_address(id(probe) + 24).value == 2
        and list(dims) == [2, 3]
        and word(56) == id(probe.dtype)
        and flags & 257 == 257
        and probe.T.flags.c_contiguous is False
        and ctypes.c_int32.from_address(id(probe.T) + 64).value & 1 == 0
    )


def fast_call_takes(spec: FunctionSpec) -> bool:
    """Whether the wrapper can call a function of this signature: tensors only, sizes of outputs names that inputs bind."""
    if any(isinstance(dim, str) and not size_algebra.is_name(dim) for tensor in spec.inputs for dim in tensor.shape):
        return False
    tensors = (*spec.inputs, *spec.outputs)
    bound = {dim for tensor in spec.inputs for dim in tensor.shape if isinstance(dim, str)}
    needed = {tensor.shape[k] for tensor in spec.outputs for k in tensor.dynamic_dims}
    return fast_call_works() and all(tensor.kind == "tensor" for tensor in tensors) and needed <= bound
