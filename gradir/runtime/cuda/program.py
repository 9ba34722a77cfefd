"""The device's part of a loaded module, and one call of its host code.

A call takes an arena and results from the device's pool, builds the context with the device's table, and queues what host code launches on
the current stream. It waits for nothing, unless host code reads a value.
"""

from __future__ import annotations

import ctypes
import os
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradir.errors import GradirError
from gradir.runtime import abi
from gradir.runtime.call import Context, ErrorSlot
from gradir.runtime.cuda.calls import Call, current_call, entered
from gradir.runtime.cuda.device import Device, Graph, Launched, Stream
from gradir.runtime.cuda.errors import kernel_failed, launch_refused
from gradir.runtime.cuda.library import call_back
from gradir.runtime.cuda.pool import Block
from gradir.runtime.cuda.spec import DeviceSpec, constant_places
from gradir.runtime.library.table import LibraryTable
from gradir.runtime.manifest import SourceLine
from gradir.runtime.native.library import native

GRAPHS = 8
"""Captured calls that a function keeps."""
GRAPH_LAUNCHES = 3
"""Launches from which on a call is worth a graph."""
GRAPHS_VARIABLE = "GRADIR_CUDA_GRAPHS"
"""Environment variable: 0 turns graphs off."""

_ALLOCATE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
_FREE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
_MOVE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
_MAP = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)
_ENTRY = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)

FAILED = 700
"""The driver's numbers from here on say that a kernel failed, those below that something was refused."""

RAISED = -1
"""Status of a function that the host code called back and that left an exception."""


class DeviceTable(ctypes.Structure):
    """`gradir.runtime.abi`'s table of a device."""

    _fields_ = [
        ("launch", ctypes.c_void_p),
        ("stream", ctypes.c_void_p),
        ("functions", ctypes.c_void_p),
        ("constants", ctypes.c_void_p),
        ("scratch", ctypes.c_void_p),
        ("copy", ctypes.c_void_p),
        ("read", ctypes.c_void_p),
        ("write", ctypes.c_void_p),
        ("tensor_map", ctypes.c_void_p),
        ("launches", ctypes.c_int64),
        ("recent", ctypes.c_void_p),
        ("reads", ctypes.c_int64),
    ]


def _guarded(work: Callable[..., int]) -> Callable[..., int]:
    """What `work` raises ends the call of host code, and is raised when that has returned."""

    def run(*arguments: Any) -> int:
        call = current_call()
        try:
            return work(call, *arguments)
        except BaseException as error:
            call.error = error
            return RAISED

    return run


@_guarded
def _read(call: Call, _ctx: int, host: int, source: int, size: int) -> int:
    call.outside += 1
    target = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(host))
    call.device.copy_out(target, source or 0, call.stream)
    return 0


@_guarded
def _write(call: Call, _ctx: int, to: int, host: int, size: int) -> int:
    call.outside += 1
    call.device.copy_in(to or 0, np.frombuffer(ctypes.string_at(host, size), np.uint8), call.stream)
    return 0


@_guarded
def _tensor_map(call: Call, _ctx: int, target: int, base: int, words: int) -> int:
    call.outside += 1
    count = ctypes.c_int64.from_address(words).value
    data = call.device.tensor_map(base or 0, list((ctypes.c_int64 * count).from_address(words + 8)))
    ctypes.memmove(target, data, abi.TENSOR_MAP_BYTES)
    return 0


def _allocate(_ctx: int, size: int, _align: int) -> int:
    call = current_call()
    call.outside += 1
    try:
        block = call.device.pool.take(size, call.stream, f"a buffer that a run of @{call.function} sizes")
    except BaseException as error:
        call.error = error
        return 0
    call.blocks[block.address] = block
    return block.address


def _free(_ctx: int, address: int) -> None:
    current_call().blocks.pop(address, None)


_READ, _WRITE, _TENSOR_MAP = _MOVE(_read), _MOVE(_write), _MAP(_tensor_map)
_TAKE, _RELEASE = _ALLOCATE(_allocate), _FREE(_free)


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


class DeviceProgram:
    """A module's kernels, constants and scratch memory on one device; made once, used by all its functions."""

    def __init__(
        self, device: Device, spec: DeviceSpec, objects: Sequence[bytes], source_map: Any, table: LibraryTable, name: str = "the module"
    ) -> None:
        self.device, self.spec = device, spec
        self._lines: dict[int, SourceLine] = dict(source_map)
        with device.activate():
            handles, self._loaded = device.load_functions(spec, objects)
            by_name = {kernel.name: handle for kernel, handle in zip(spec.kernels, handles, strict=True)}
            functions = [by_name[launch.kernel] for launch in spec.launches]
            self._functions = (ctypes.c_void_p * max(1, len(functions)))(*functions)
            self._constant_block = self._upload(objects, name)
            self._scratch: dict[int, Block] = {}
        base = self._constant_block.address if self._constant_block is not None else 0
        places = [base + place for place in constant_places(spec.constant_bytes)]
        self._constants = (ctypes.c_void_p * max(1, len(places)))(*places)
        self._callback = _CALLBACK(call_back(table)) if table.callback else None
        self._name = name

    def _upload(self, objects: Sequence[bytes], name: str) -> Block | None:
        if self.spec.constants < 0:
            return None
        stream = self.device.current_stream()
        data = np.frombuffer(objects[self.spec.constants], np.uint8)
        block = self.device.pool.take(data.size, stream, f"constants of {name}")
        self.device.copy_in(block.address, data, stream)
        stream.synchronize()  # once: every stream may read them from here on
        return block

    def scratch(self, stream: Stream) -> int:
        """The address of the temporaries of kernels; each stream has its own."""
        if not self.spec.scratch:
            return 0
        block = self._scratch.get(stream.handle)
        if block is None:
            block = self._scratch[stream.handle] = self.device.pool.take(self.spec.scratch, stream, f"temporaries of {self._name}")
        self.device.forget(block.address, self.spec.scratch, stream)
        return block.address

    def line(self, op_id: int) -> SourceLine | None:
        """Where an op of the host code comes from."""
        return self._lines.get(op_id)

    def launch_place(self, number: int) -> tuple[str, str]:
        """(kernel, source line) of a launch."""
        launch = self.spec.launches[number]
        line = self._lines.get(launch.op_id)
        return launch.kernel, line.location if line is not None else ""

    def run(self, entry: int, words: Sequence[int], function: str, stream: Stream, threads: int, scratch: int) -> Outcome:
        """Call host code once; what it queues goes to `stream`."""
        slots = (ctypes.c_int64 * max(1, len(words)))(*words)
        recent = (ctypes.c_int32 * abi.RECENT_LAUNCHES)()
        driver = self.device.driver
        table = DeviceTable(
            driver.launch,
            stream.handle,
            ctypes.addressof(self._functions),
            ctypes.addressof(self._constants),
            scratch,
            driver.copy,
            _address(_READ),
            _address(_WRITE),
            _address(_TENSOR_MAP),
            0,
            ctypes.addressof(recent),
            0,
        )
        error = ErrorSlot()
        context = Context(
            abi.VERSION,
            native().address("gradir.parallel_for"),
            _address(_TAKE),
            _address(_RELEASE),
            ctypes.addressof(error),
            threads,
            _address(self._callback) if self._callback is not None else None,
            None,
            ctypes.addressof(table),
        )

        def place() -> tuple[str, str]:
            return self.launch_place(recent[(table.launches - 1) % abi.RECENT_LAUNCHES])

        call = Call(self.device, stream, function, place)
        with entered(call):
            status = _ENTRY(entry)(ctypes.byref(context), slots)
        count = table.launches
        last = [self.launch_place(recent[k % abi.RECENT_LAUNCHES]) for k in range(max(0, count - 8), count)]
        launched = Launched(function, tuple(last))
        stream.note(launched)
        return Outcome(status, call, count, (error.code, error.op_id, *error.operands), launched)

    def refused(self, function: str, op_id: int, status: int) -> GradirError:
        """The error of host code that the driver refused something."""
        line = self.line(op_id)
        what = f"the launch of {line.message}" if line is not None and line.message else "a copy"
        detail = self.device.describe_status(status)
        if status >= FAILED and line is not None:
            return kernel_failed(self.device.name, line.message.removeprefix("@"), line.location, function, (), (), detail)
        return launch_refused(self.device.name, what, detail, line.location if line is not None else "", f"@{function}")


class Outcome:
    """How a call of host code ended."""

    __slots__ = ("call", "error", "launched", "launches", "status")

    def __init__(self, status: int, call: Call, launches: int, error: tuple[int, ...], launched: Launched) -> None:
        self.status, self.call, self.launches, self.error, self.launched = status, call, launches, error, launched

    @property
    def repeatable(self) -> bool:
        """Whether the same words would queue the same work again."""
        return self.status == 0 and not self.call.outside


@dataclass(frozen=True)
class Captured:
    """A graph, and what it launches."""

    graph: Graph
    launched: Launched


class GraphCache:
    """Captured calls by the words that they were called with; a call is captured when it comes for the second time."""

    def __init__(self) -> None:
        self.enabled = os.environ.get(GRAPHS_VARIABLE, "1") != "0"
        self._graphs: OrderedDict[Any, Captured | None] = OrderedDict()

    def find(self, key: Any) -> Captured | None:
        """The graph of a key."""
        found = self._graphs.get(key)
        if found is not None:
            self._graphs.move_to_end(key)
        return found

    def seen(self, key: Any) -> bool:
        """Whether `note` was told of the key."""
        return key in self._graphs

    def note(self, key: Any) -> None:
        """A call with this key went well and can be repeated."""
        self._keep(key, None)

    def store(self, key: Any, graph: Captured) -> None:
        """Keep a graph; the one that was not used for longest goes."""
        self._keep(key, graph)

    def _keep(self, key: Any, graph: Captured | None) -> None:
        self._graphs[key] = graph
        self._graphs.move_to_end(key)
        while len(self._graphs) > GRAPHS:
            self._graphs.popitem(last=False)


__all__ = ["Captured", "DeviceProgram", "GraphCache", "Outcome"]
