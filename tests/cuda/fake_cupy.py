"""A stand-in for cupy and libcuda on memory of the host: work runs when a stream is waited for, kernels in the PTX emulator.

It has the functions that `gradir.runtime.cuda.cupy_device` calls, with the signatures of cupy 14, and refuses other arguments.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np

from gradir.ptx.launch import DeviceBuffer, launch
from gradir.ptx.parser import parse
from gradir.ptx.types import WIDTHS

LAUNCH = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, *[ctypes.c_uint] * 7, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
COPY = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)


class CUDARuntimeError(RuntimeError):
    pass


class CUDADriverError(RuntimeError):
    pass


class OutOfMemoryError(MemoryError):
    pass


class Bytes:
    """Memory of the host that plays memory of the device, or page-locked memory."""

    def __init__(self, size: int) -> None:
        self.data = np.full(size, 0xCD, np.uint8)
        self.ptr = self.data.ctypes.data


class FakeStream:
    def __init__(self, world: FakeCupy, ptr: int) -> None:
        self.world, self.ptr = world, ptr
        self.queue: list[Callable[[], None]] = []
        self.capturing: list[Callable[[], None]] | None = None

    def add(self, work: Callable[[], None]) -> None:
        (self.queue if self.capturing is None else self.capturing).append(work)

    def synchronize(self) -> None:
        if self.capturing is not None:
            raise CUDARuntimeError("cudaErrorStreamCaptureUnsupported")
        queue, self.queue = self.queue, []
        for work in queue:
            work()
        if self.world.failing:
            raise CUDARuntimeError(self.world.failing)

    def wait_event(self, event: FakeEvent) -> None:
        self.add(lambda: event.stream.synchronize() if event.stream is not self else None)

    def begin_capture(self, mode: int | None = None) -> None:
        assert self.ptr != 0, "the default stream cannot be captured"
        self.capturing = []

    def end_capture(self) -> Any:
        captured, self.capturing = self.capturing or [], None
        return SimpleNamespace(launch=lambda stream=None: [stream.add(work) for work in captured])

    def __enter__(self) -> FakeStream:
        self.world.stack.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        self.world.stack.pop()


class FakeEvent:
    def __init__(self, block: bool = False, disable_timing: bool = False, interprocess: bool = False) -> None:
        self.stream: Any = None
        self.over = False

    def record(self, stream: FakeStream) -> None:
        self.stream = stream
        stream.add(lambda: setattr(self, "over", True))

    @property
    def done(self) -> bool:
        return self.over

    def synchronize(self) -> None:
        self.stream.synchronize()


class FakeCupy:
    """`FakeCupy().module` is what `import cupy` gives, `.libcuda` the driver."""

    def __init__(self, memory: int = 1 << 24, devices: int = 2) -> None:
        self.failing = ""
        self.memory = memory
        self.streams = {0: FakeStream(self, 0)}
        self.stack: list[FakeStream] = []
        self.blocks: list[Bytes] = []
        self.functions: dict[int, tuple[str, Any]] = {}
        self.attributes: list[tuple[int, int, int]] = []
        self.maps: list[tuple[Any, ...]] = []
        self.launched: list[str] = []
        self._callbacks = (LAUNCH(self._launch), COPY(self._copy))
        runtime = SimpleNamespace(
            CUDARuntimeError=CUDARuntimeError,
            getDeviceCount=lambda: devices,
            getDeviceProperties=lambda device: {
                "name": b"Fake", "major": 8, "minor": 0, "multiProcessorCount": 4, "totalGlobalMem": memory, "sharedMemPerBlockOptin": 166912,
            },
            free=lambda ptr: None,
            deviceSynchronize=lambda: [stream.synchronize() for stream in self.streams.values()],
            memcpyAsync=self._memcpy,
        )  # fmt: skip
        cuda = SimpleNamespace(
            runtime=runtime,
            driver=SimpleNamespace(CUDADriverError=CUDADriverError),
            function=SimpleNamespace(Module=lambda: FakeModule(self)),
            Device=lambda number: nullcontext(),
            Event=FakeEvent,
            Stream=self._new_stream,
            get_current_stream=lambda device_id=-1: self.stack[-1] if self.stack else self.streams[0],
            get_elapsed_time=lambda start, end: 1.0,
            alloc_pinned_memory=Bytes,
        )
        self.module = SimpleNamespace(
            cuda=cuda,
            is_available=lambda: True,
            get_default_memory_pool=lambda: SimpleNamespace(malloc=self._malloc),
            asarray=lambda value: value.array,
            ascontiguousarray=lambda array: array,
        )
        self.libcuda = SimpleNamespace(
            cuLaunchKernel=self._callbacks[0],
            cuMemcpyDtoDAsync_v2=self._callbacks[1],
            cuFuncSetAttribute=self._set_attribute,
            cuStreamSynchronize=self._wait,
            cuGetErrorString=self._error_string,
            cuTensorMapEncodeTiled=self._encode,
        )

    def _new_stream(self, null: bool = False, non_blocking: bool = False) -> FakeStream:
        stream = self.streams[len(self.streams)] = FakeStream(self, len(self.streams))
        return stream

    def _malloc(self, size: int) -> Bytes:
        if sum(block.data.size for block in self.blocks) + size > self.memory:
            raise OutOfMemoryError
        self.blocks.append(Bytes(size))
        return self.blocks[-1]

    def _memcpy(self, dst: int, src: int, size: int, kind: int, stream: int) -> None:
        assert kind in (1, 2, 3)
        self.streams[stream].add(lambda: ctypes.memmove(dst, src, size) and None)

    def _copy(self, to: int, source: int, size: int, stream: int | None) -> int:
        self._memcpy(to, source, size, 3, stream or 0)
        return 0

    def _set_attribute(self, function: Any, attribute: int, value: int) -> int:
        self.attributes.append((function.value, attribute, value))
        return 0 if value <= 166912 else 1

    def _wait(self, stream: Any) -> int:
        try:
            self.streams[stream.value or 0].synchronize()
        except CUDARuntimeError:
            return 700
        return 0

    def _error_string(self, status: Any, text: Any) -> int:
        text._obj.value = {1: b"invalid argument", 700: b"an illegal memory access was encountered"}.get(status.value, b"unknown")
        return 0

    def _encode(self, target: Any, *arguments: Any) -> int:
        assert target.value % 64 == 0
        self.maps.append(arguments)
        ctypes.memset(target.value, 7, 128)
        return 0

    def _buffer(self, address: int) -> DeviceBuffer:
        block = next(b for b in self.blocks if b.ptr <= address < b.ptr + b.data.size)
        return DeviceBuffer(block.data[address - block.ptr :])

    def _launch(self, handle: int, *rest: Any) -> int:
        *sizes, shared, stream, parameters, _ = rest
        text, function = self.functions[handle]
        places = (ctypes.c_void_p * len(function.parameters)).from_address(parameters)
        raw = [ctypes.string_at(place, p.size or WIDTHS[p.type] // 8) for place, p in zip(places, function.parameters)]

        def run() -> None:
            self.launched.append(function.name)
            values = [
                self._buffer(number) if len(word) == 8 and (number := int.from_bytes(word, "little")) > 1 << 32 else word for word in raw
            ]
            launch(text, function.name, grid=tuple(sizes[:3]), block=tuple(sizes[3:]), args=values, shared=shared)

        self.streams[stream or 0].add(run)
        return 0


class FakeModule:
    """PTX text only."""

    def __init__(self, world: FakeCupy) -> None:
        self.world = world

    def load(self, cubin: bytes) -> None:
        if cubin[:4] == b"\x7fELF":
            raise CUDADriverError("CUDA_ERROR_NO_BINARY_FOR_GPU")
        self.text = cubin.decode()

    def get_function(self, name: str) -> Any:
        handle = 1000 + len(self.world.functions)
        self.world.functions[handle] = (self.text, parse(self.text).functions[name])
        return SimpleNamespace(ptr=handle)
