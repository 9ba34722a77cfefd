"""What the native wrapper knows of a compiled function: its plan, and whether it can call functions of that signature.

The wrapper (`gradir.runtime.native.wrapper`) takes arrays that are exactly what the signature asks for, exact Python numbers and numpy
scalars for rank 0; `gradir.runtime.dispatch` says in which containers.
"""

from __future__ import annotations

import ctypes
import sys
import sysconfig
import threading
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from gradir import size_algebra
from gradir.runtime.dtypes import numpy_dtype
from gradir.runtime.manifest import FunctionSpec, TensorSpec
from gradir.runtime.native.library import native

NEW_FROM_DESCR, GET_HANDLER = 94, 305
"""Places of PyArray_NewFromDescr and PyDataMem_GetHandler in numpy's function table, fixed since numpy 1.7 and 1.22."""

HANDLER_NAME = ctypes.create_string_buffer(b"mem_handler")
"""What numpy calls capsules of memory handlers."""


class Spec(ctypes.Structure):
    """One argument as the wrapper sees it; dims below zero are symbols, `~dim` is the symbol's number."""

    _fields_ = [("descr", ctypes.c_void_p), ("rank", ctypes.c_int64), ("dims", ctypes.c_void_p), ("itemsize", ctypes.c_int64)]


class Plan(ctypes.Structure):
    """What the wrapper knows of a function; its order is `%Plan` of the wrapper's IR. `brief`: it runs with the GIL held. `taken`: the
    donated input in whose memory each output lies."""

    _fields_ = [
        ("entry", ctypes.c_void_p),
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
        ("handler", ctypes.c_void_p),
        ("callback", ctypes.c_void_p),
        ("user", ctypes.c_void_p),
        ("limits", ctypes.c_void_p),
        ("brief", ctypes.c_int64),
        ("taken", ctypes.c_void_p),
    ]


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


def _taken_inputs(spec: FunctionSpec) -> Any:
    """For each output the input whose memory it takes, -1 for none; None where no output takes any."""
    if not spec.aliases:
        return None
    sources = {result: argument for argument, result in spec.aliases}
    return (ctypes.c_int64 * len(spec.outputs))(*(sources.get(k, -1) for k in range(len(spec.outputs))))


class CallPlan:
    """The plan of one function and all that it points to. `owner` (the code) lives as long."""

    def __init__(
        self, spec: FunctionSpec, entry: int, threads: int, failed: Callable[..., Any], owner: object, callbacks: tuple[int, int] = (0, 0)
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
        self._taken = _taken_inputs(spec)
        self._owned = (failed, owner)
        self.spec = spec
        self._plan = Plan(
            entry,
            id(failed),
            len(spec.inputs),
            len(spec.outputs),
            spec.arena_bytes,
            max(1, spec.slot_count),
            threads,
            max(1, len(numbers)),
            ctypes.addressof(self._specs),
            id(np.ndarray),
            _numpy_table()[NEW_FROM_DESCR],
            id(_memory_handler()),
            callbacks[0] or None,
            callbacks[1] or None,
            ctypes.addressof(self._limits) if self._limits is not None else None,
            int(spec.brief and callbacks == (0, 0)),
            ctypes.addressof(self._taken) if self._taken is not None else None,
        )

    @property
    def address(self) -> int:
        """Where the wrapper finds it."""
        return ctypes.addressof(self._plan)

    def set_threads(self, threads: int) -> None:
        """How many threads later calls may use."""
        self._plan.threads = threads


@cache
def python_function(name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
    """A function of the interpreter with a prototype of our own: the attributes of `ctypes.pythonapi` are shared with other packages."""
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


def capsule(address: int, name: Any = None) -> Any:
    """A PyCapsule over `address`; `name` is a buffer that lives as long."""
    new = python_function("PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
    return new(address, None if name is None else ctypes.addressof(name), None)


_handler_lock = threading.Lock()


@cache
def _memory_handler() -> Any:
    """The memory handler of arrays that the wrapper makes, for ever: numpy gives their blocks back to the pool. Made by the first caller,
    for whom others wait: plans point to the very object."""
    with _handler_lock:
        return _make_handler()


@cache
def _make_handler() -> Any:
    return capsule(native().address("gradir.memory_handler"), HANDLER_NAME)


@cache
def _numpy_table() -> Any:
    umath = sys.modules.get("numpy._core._multiarray_umath") or sys.modules["numpy.core._multiarray_umath"]
    pointer = python_function("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
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
    probe = np.array([[0, 1, 2], [3, 4, 5]], np.float32)
    turned = probe.T
    handler = ctypes.PYFUNCTYPE(ctypes.py_object)(_numpy_table()[GET_HANDLER])()

    def word(offset: int) -> int | None:
        return ctypes.c_void_p.from_address(id(probe) + offset).value

    dims = (ctypes.c_int64 * 2).from_address(word(32) or 0)
    flags = ctypes.c_int32.from_address(id(probe) + 64).value
    number = np.float64(3.25)
    return (
        np.ndarray.__basicsize__ >= 96
        and word(8) == id(np.ndarray)
        and word(16) == probe.ctypes.data
        and ctypes.c_int32.from_address(id(probe) + 24).value == 2
        and list(dims) == [2, 3]
        and word(56) == id(probe.dtype)
        and flags & 1285 == 1285
        and word(88) == id(handler)
        and turned.flags.c_contiguous is False
        and ctypes.c_int32.from_address(id(turned) + 64).value & 5 == 0
        and ctypes.c_double.from_address(id(number) + 16).value == 3.25
    )


def fast_call_takes(spec: FunctionSpec) -> bool:
    """Whether the wrapper can call a function of this signature: tensors only, sizes of outputs names that inputs bind, results of
    the type of the argument whose memory they take."""
    pairs = [(spec.inputs[argument], spec.outputs[result]) for argument, result in spec.aliases]
    if any(given.shape != made.shape or given.dtype != made.dtype for given, made in pairs):
        return False
    if any(isinstance(dim, str) and not size_algebra.is_name(dim) for tensor in spec.inputs for dim in tensor.shape):
        return False
    tensors = (*spec.inputs, *spec.outputs)
    bound = {dim for tensor in spec.inputs for dim in tensor.shape if isinstance(dim, str)}
    needed = {tensor.shape[k] for tensor in spec.outputs for k in tensor.dynamic_dims}
    return fast_call_works() and all(tensor.kind == "tensor" for tensor in tensors) and needed <= bound
