"""GPUs through cupy 14: memory, streams, events, graphs and modules are cupy's, launches go from host code straight to the driver.

`libcuda` is called through ctypes where cupy has nothing: launching from compiled code, the limit of dynamic shared memory, tensor maps.
"""

from __future__ import annotations

import ctypes
import os
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any

import numpy as np

from gradir.errors import GradirError
from gradir.runtime.cuda.array import DeviceArray
from gradir.runtime.cuda.device import Array, Device, Driver, Event, Graph, Limits, Memory, Stream
from gradir.runtime.cuda.errors import late_failure, launch_refused, no_device
from gradir.runtime.cuda.foreign import ON_HOST, element_named
from gradir.runtime.cuda.pool import Pool
from gradir.runtime.cuda.spec import DeviceSpec
from gradir.runtime.cuda.staging import Staging
from gradir.runtime.cuda.tensor_maps import encode

BLOCKING_VARIABLE = "GRADIR_CUDA_BLOCKING"
"""Environment variable: 1 waits after each launch, so that a failure names it."""
TO_DEVICE, TO_HOST, WITHIN = 1, 2, 3
"""cudaMemcpyKind."""
STAGED = 64 << 20
"""Copies of more bytes than this go straight from and to the caller's memory."""
MAX_DYNAMIC_SHARED = 8
"""CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES."""
CUDA_MEMORY = 2
"""DLPack's number for memory of a GPU."""

_LAUNCH = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, *[ctypes.c_uint] * 7, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


def load_cupy() -> Any:
    """cupy, with a GPU behind it. GradirError RT070 without."""
    try:
        cupy: Any = import_module("cupy")
    except ImportError as error:
        raise no_device(f"cupy cannot be imported: {error}", "pip install cupy-cuda13x (or gradir[cuda])") from error
    if not cupy.is_available():
        raise no_device("cupy sees no GPU", 'target="cuda:emulated" runs the same code without one')
    return cupy


def load_libcuda() -> Any:
    """The driver's library."""
    try:
        return ctypes.CDLL("libcuda.so.1" if os.name == "posix" else "nvcuda.dll")
    except OSError as error:
        raise no_device(f"the driver's library cannot be loaded: {error}", "install the NVIDIA driver") from error


class CupyEvent(Event):
    """An event of cupy's on its device."""

    def __init__(self, device: CupyDevice, event: Any) -> None:
        self.device, self.event = device, event

    def done(self) -> bool:
        return bool(self.event.done)

    def synchronize(self) -> None:
        self.device.synchronisations += 1
        self.event.synchronize()

    def milliseconds_since(self, earlier: Event) -> float:
        assert isinstance(earlier, CupyEvent)
        return float(self.device.cupy.cuda.get_elapsed_time(earlier.event, self.event))


class CupyStream(Stream):
    """A stream of cupy's."""

    def __init__(self, device: CupyDevice, stream: Any) -> None:
        super().__init__(device)
        self.stream = stream
        self.handle = int(stream.ptr)

    def synchronize(self) -> None:
        device = self.device
        assert isinstance(device, CupyDevice)
        device.synchronisations += 1
        recent, self.recent = self.recent, []
        with device.explained(recent):
            self.stream.synchronize()

    def record(self) -> CupyEvent:
        device = self.device
        assert isinstance(device, CupyDevice)
        event = device.cupy.cuda.Event()
        event.record(self.stream)
        return CupyEvent(device, event)

    def wait(self, event: Event) -> None:
        assert isinstance(event, CupyEvent)
        self.stream.wait_event(event.event)


class CupyGraph(Graph):
    """A graph of CUDA that a stream was captured into."""

    def __init__(self, graph: Any) -> None:
        self.graph = graph

    def launch(self, stream: Stream) -> None:
        assert isinstance(stream, CupyStream)
        stream.device.graph_launches += 1
        self.graph.launch(stream.stream)


class CupyDevice(Device):
    """GPU number `number`."""

    def __init__(self, number: int, cupy: Any = None, libcuda: Any = None) -> None:
        """GradirError RT070 when there is no such GPU. `cupy` and `libcuda`: stand-ins of a test."""
        super().__init__()
        self.cupy = cupy if cupy is not None else load_cupy()
        count = int(self.cupy.cuda.runtime.getDeviceCount())
        if number >= count:
            raise no_device(f"{count} GPU{'s' * (count != 1)}: cuda:0" + (f" to cuda:{count - 1}" if count > 1 else ""), "name one of them")
        self.libcuda = libcuda if libcuda is not None else load_libcuda()
        self.number, self.name = number, f"cuda:{number}"
        found = self.cupy.cuda.runtime.getDeviceProperties(number)
        major, minor = int(found["major"]), int(found["minor"])
        name = found["name"]
        self.limits = Limits(
            name.decode() if isinstance(name, bytes) else str(name),
            f"sm_{major}{minor}" + ("a" if major >= 9 else ""),
            int(found["multiProcessorCount"]),
            int(found["totalGlobalMem"]),
            int(found["sharedMemPerBlockOptin"]),
        )
        self.pool = Pool(self)
        self.dlpack_device = (CUDA_MEMORY, number)
        self._streams: dict[int, CupyStream] = {}
        self._side: CupyStream | None = None
        self._staging = Staging(self.cupy.cuda.alloc_pinned_memory)
        self._held: deque[tuple[Event, Any]] = deque()
        self._maps: dict[tuple[int, ...], bytes] = {}
        launch = self.libcuda.cuLaunchKernel
        self.graphs = os.environ.get(BLOCKING_VARIABLE, "") in ("", "0")
        self._launch = launch if self.graphs else _LAUNCH(self._launch_and_wait)
        self.driver = Driver(_address(self._launch), _address(self.libcuda.cuMemcpyDtoDAsync_v2))
        with self.activate():
            self.cupy.cuda.runtime.free(0)  # makes the driver's context, if nobody did

    def activate(self) -> Any:
        return self.cupy.cuda.Device(self.number)

    @contextmanager
    def explained(self, recent: Sequence[Any] = ()) -> Generator[None]:
        """What cupy raises inside becomes a GradirError that names the last launches."""
        try:
            yield
        except self.cupy.cuda.runtime.CUDARuntimeError as error:
            raise late_failure(self.name, str(error), recent) from error

    # Streams

    def current_stream(self) -> Stream:
        return self._stream_of(self.cupy.cuda.get_current_stream(self.number))

    def _stream_of(self, stream: Any) -> CupyStream:
        found = self._streams.get(int(stream.ptr))
        if found is None:
            found = self._streams[int(stream.ptr)] = CupyStream(self, stream)
        return found

    def new_stream(self) -> CupyStream:
        with self.activate():
            return self._stream_of(self.cupy.cuda.Stream(non_blocking=True))

    def use_stream(self, stream: Stream) -> Any:
        assert isinstance(stream, CupyStream)
        return stream.stream

    def capture(self, stream: Stream, queue: Callable[[Stream], object]) -> Graph:
        if self._side is None:  # the default stream cannot be captured
            self._side = self.new_stream()
        side = self._side.stream
        side.begin_capture()
        try:
            queue(self._side)
        except BaseException:
            with suppress(RuntimeError):  # what was captured so far is of no use
                side.end_capture()
            raise
        return CupyGraph(side.end_capture())

    def synchronize_all(self) -> None:
        self.synchronisations += 1
        recent = [launched for stream in self._streams.values() for launched in stream.recent]
        with self.activate(), self.explained(recent):
            self.cupy.cuda.runtime.deviceSynchronize()

    # Memory

    def raw_memory(self, size: int, stream: Stream) -> Memory:
        assert isinstance(stream, CupyStream)
        with self.activate(), stream.stream:
            found = self.cupy.get_default_memory_pool().malloc(size)  # its OutOfMemoryError is a MemoryError
        return Memory(int(found.ptr), size, found)

    def forget(self, address: int, size: int, stream: Stream) -> None:
        pass

    def copy_in(self, address: int, source: Array, stream: Stream) -> None:
        self.copies_in += 1
        size = source.nbytes
        if not size:
            return
        if size > STAGED:  # the driver has read pageable memory when the call returns
            self._copy(address, source.ctypes.data, size, TO_DEVICE, stream)
            return
        place = self._staging.take(size)
        ctypes.memmove(place.address, source.ctypes.data, size)
        self._copy(address, place.address, size, TO_DEVICE, stream)
        self._staging.give_back(place, stream.record())

    def copy_out(self, target: Array, address: int, stream: Stream) -> None:
        self.copies_out += 1
        size = target.nbytes
        if not size or size > STAGED:
            if size:
                self._copy(target.ctypes.data, address, size, TO_HOST, stream)
            stream.synchronize()
            return
        place = self._staging.take(size)
        self._copy(place.address, address, size, TO_HOST, stream)
        stream.synchronize()
        ctypes.memmove(target.ctypes.data, place.address, size)
        self._staging.give_back(place, None)

    def copy_within(self, to: int, source: int, size: int, stream: Stream) -> None:
        if size:
            self._copy(to, source, size, WITHIN, stream)

    def _copy(self, to: int, source: int, size: int, kind: int, stream: Stream) -> None:
        with self.explained(stream.recent):
            self.cupy.cuda.runtime.memcpyAsync(to, source, size, kind, stream.handle)

    # Programs

    def load_functions(self, spec: DeviceSpec, objects: Sequence[bytes]) -> tuple[list[int], Any]:
        if not spec.kernels:
            return [], None
        module = self.cupy.cuda.function.Module()
        try:
            module.load(objects[spec.cubin if spec.cubin >= 0 else spec.ptx])
        except self.cupy.cuda.driver.CUDADriverError as error:
            raise launch_refused(self.name, f"code for {spec.arch}", str(error)) from error
        handles: list[int] = []
        for kernel in spec.kernels:
            handle = int(module.get_function(kernel.name).ptr)
            if kernel.dynamic_shared:
                self._checked(
                    self.libcuda.cuFuncSetAttribute(ctypes.c_void_p(handle), MAX_DYNAMIC_SHARED, kernel.dynamic_shared),
                    f"{kernel.dynamic_shared} bytes of dynamic shared memory for @{kernel.name}",
                )
            handles.append(handle)
        return handles, module

    def _launch_and_wait(self, *arguments: Any) -> int:
        status = self.libcuda.cuLaunchKernel(
            *[ctypes.c_void_p(a) if k in (0, 8, 9, 10) else ctypes.c_uint(a) for k, a in enumerate(arguments)]
        )
        return int(status or self.libcuda.cuStreamSynchronize(ctypes.c_void_p(arguments[8])))

    def tensor_map(self, base: int, words: Sequence[int]) -> bytes:
        key = (base, *words)
        found = self._maps.get(key)
        if found is None:
            status, found = encode(self.libcuda, base, words)
            self._checked(status, "a tensor map")
            if len(self._maps) >= 4096:
                self._maps.clear()
            self._maps[key] = found
        return found

    def _checked(self, status: int, what: str) -> None:
        if status:
            raise launch_refused(self.name, what, self.describe_status(status))

    def describe_status(self, status: int) -> str:
        text = ctypes.c_char_p()
        known = self.libcuda.cuGetErrorString(ctypes.c_int(status), ctypes.byref(text)) == 0 and text.value
        return f"{status}: {text.value.decode()}" if known and text.value is not None else str(status)

    # Arrays of other libraries

    def foreign(self, value: Any, stream: Stream) -> tuple[int, tuple[int, ...], str, Any] | None:
        if not hasattr(value, "__cuda_array_interface__") and not _on_gpu(value):
            return None
        assert isinstance(stream, CupyStream)
        with self.activate(), stream.stream:  # whoever made it is waited for by this stream
            array = self.cupy.from_dlpack(value) if _on_gpu(value) else self.cupy.asarray(value)
            if int(array.device.id) != self.number:
                array = self.cupy.array(array)
            array = self.cupy.ascontiguousarray(array) if array.ndim else array
        name = element_named(str(array.dtype))
        if name is None:
            raise GradirError(
                "an array of an element type that no program has",
                part="runtime",
                code="RT003",
                expected="f64, f32, f16, bf16, complex, bool or an integer",
                found=str(array.dtype),
                hint="convert it",
            )
        return int(array.data.ptr), tuple(array.shape), name, array

    def hold(self, owners: Sequence[Any], stream: Stream) -> None:
        while self._held and self._held[0][0].done():
            self._held.popleft()
        if owners:
            self._held.append((stream.record(), tuple(owners)))

    def as_cupy(self, array: DeviceArray) -> Any:
        """The array as one of cupy's, in the same memory."""
        cuda = self.cupy.cuda
        memory = cuda.UnownedMemory(array.address, max(1, array.nbytes), array, self.number)
        return self.cupy.ndarray(array.shape, dtype=array.dtype, memptr=cuda.MemoryPointer(memory, 0))

    def array_interface(self, array: DeviceArray) -> dict[str, Any]:
        """`__cuda_array_interface__`, version 3: the consumer waits for the stream."""
        if array.dtype.kind == "V":
            raise AttributeError(f"the protocol has no element type {array.element}")
        handle = array.stream.handle or 1  # 1 is the legacy default stream, 0 is not allowed
        pointer = (array.address if array.size else 0, False)
        return {"shape": array.shape, "typestr": array.dtype.str, "data": pointer, "version": 3, "strides": None, "stream": handle}

    def dlpack(self, array: DeviceArray, **options: Any) -> Any:
        """`__dlpack__`: cupy makes the consumer's stream wait for the array's."""
        stream = array.stream
        assert isinstance(stream, CupyStream)
        with self.activate(), stream.stream:
            return self.as_cupy(array).__dlpack__(**options)


def _on_gpu(value: Any) -> bool:
    if isinstance(value, np.ndarray | np.generic) or not hasattr(value, "__dlpack_device__"):
        return False
    return value.__dlpack_device__()[0] != ON_HOST


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0
