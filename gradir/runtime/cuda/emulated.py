"""The device `cuda:emulated`: streams are queues that run when somebody waits, memory is numpy arrays, kernels are PTX in the emulator.

What a real device would do behind the host's back happens here at the next wait and not before, so a value that is read too early, host
memory that is copied too late and a wait that nobody asked for all show. Addresses are not those of this process: host code that follows
one ends with a segmentation fault, as it should.
"""

from __future__ import annotations

import bisect
import ctypes
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np

from gradir.errors import GradirError
from gradir.runtime import abi
from gradir.runtime.cuda.calls import current_call
from gradir.runtime.cuda.device import Array, Device, Driver, Event, Graph, Limits, Memory, Stream
from gradir.runtime.cuda.errors import kernel_failed
from gradir.runtime.cuda.pool import Pool
from gradir.runtime.cuda.spec import DeviceSpec, KernelSpec, ParameterSpec
from gradir.runtime.cuda.tensor_maps import TensorMap, read_words
from gradir.runtime.dtypes import numpy_dtype

BASE = 1 << 60
"""Of all addresses: nothing of this process lies there."""
GAP = 1 << 20
POISON = 0xCD
QUEUE = 4096
"""So much work waits at most; then the oldest runs, as on a real device."""
INVALID_VALUE, ILLEGAL_ADDRESS = 1, 700
MAP_MARK = b"map of a tensor "
ELEMENT_NAMES = {code: name for name, code in abi.ELEMENT_CODES.items()}
SEED_VARIABLE = "GRADIR_EMULATOR_SEED"
"""Environment variable: the seed of the order in which warps run; unset: in order."""

_LAUNCH = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, *[ctypes.c_uint] * 7, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
_COPY = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)


class EmulatedEvent(Event):
    """A place in a stream's queue: the number of pieces of work that are queued up to it."""

    def __init__(self, stream: EmulatedStream, number: int) -> None:
        self.stream, self.number = stream, number
        self.seconds = 0.0

    def done(self) -> bool:
        self.stream.run_to(self.number)  # the device works while the host asks
        return True

    def synchronize(self) -> None:
        self.stream.device.synchronisations += 1
        self.stream.run_to(self.number)

    def milliseconds_since(self, earlier: Event) -> float:
        assert isinstance(earlier, EmulatedEvent)
        return (self.seconds - earlier.seconds) * 1e3


class EmulatedStream(Stream):
    """A queue. `number` is how much was ever queued, `finished` how much of that ran."""

    def __init__(self, device: EmulatedDevice, handle: int) -> None:
        super().__init__(device)
        self.handle = handle
        self.number = self.finished = 0
        self.captured: list[Callable[[], None]] | None = None
        self._queue: deque[Callable[[], None]] = deque()
        self._lock = threading.RLock()

    def add(self, work: Callable[[], None]) -> None:
        """Queue work."""
        if self.captured is not None:
            self.captured.append(work)
            return
        with self._lock:
            self._queue.append(work)
            self.number += 1
        if len(self._queue) > QUEUE:
            self.run_to(self.finished + QUEUE // 2)

    def run_to(self, number: int) -> None:
        """Run work until `number` pieces of all that was ever queued are over. A failure drops what follows it, and is raised here."""
        with self._lock:
            while self.finished < number and self._queue:
                work = self._queue.popleft()
                self.finished += 1
                try:
                    work()
                except BaseException:
                    self.finished += len(self._queue)
                    self._queue.clear()
                    raise

    def synchronize(self) -> None:
        self.device.synchronisations += 1
        self.recent.clear()
        self.run_to(self.number)

    def record(self) -> EmulatedEvent:
        event = EmulatedEvent(self, self.number + 1)

        def reached() -> None:
            event.seconds = time.perf_counter()

        self.add(reached)
        return event

    def wait(self, event: Event) -> None:
        assert isinstance(event, EmulatedEvent)
        if event.stream is not self:
            self.add(lambda: event.stream.run_to(event.number))


class EmulatedGraph(Graph):
    """The pieces of work that a stream was given while it was captured, queued again by each launch."""

    def __init__(self, work: Sequence[Callable[[], None]]) -> None:
        self.work = tuple(work)

    def launch(self, stream: Stream) -> None:
        assert isinstance(stream, EmulatedStream)
        stream.device.graph_launches += 1
        for piece in self.work:
            stream.add(piece)


@dataclass
class _Region:
    """An allocation: its bytes, and which of them were written."""

    data: Array
    written: Array


class _Owner:
    """Takes the region out of the map when the memory is given back."""

    def __init__(self, regions: _Regions, address: int) -> None:
        self.regions, self.address = regions, address

    def __del__(self) -> None:
        self.regions.drop(self.address)


class _Regions:
    """All allocations by address."""

    def __init__(self) -> None:
        self._by_address: dict[int, _Region] = {}
        self._addresses: list[int] = []
        self._next = BASE
        self.bytes = 0
        self._lock = threading.Lock()

    def add(self, size: int) -> int:
        with self._lock:
            address = self._next
            self._next += -(-size // GAP) * GAP + GAP
            self._by_address[address] = _Region(np.full(size, POISON, np.uint8), np.zeros(size, np.bool_))
            self._addresses.append(address)
            self.bytes += size
            return address

    def drop(self, address: int) -> None:
        with self._lock:
            self.bytes -= self._by_address.pop(address).data.size
            self._addresses.remove(address)

    def find(self, address: int, size: int) -> tuple[Array, Array]:
        """Views of the bytes and flags of `size` bytes; GradirError RT072 where they are not all of one allocation."""
        if size <= 0:
            return np.zeros(0, np.uint8), np.zeros(0, np.bool_)
        at = bisect.bisect_right(self._addresses, address) - 1
        start = self._addresses[at] if at >= 0 else 0
        region = self._by_address.get(start)
        if region is None or address + size > start + region.data.size:
            raise GradirError(
                "an address that belongs to no memory of the device",
                part="runtime",
                code="RT072",
                expected=f"{size} bytes of one allocation",
                found=f"{address:#x}",
                hint="memory that was given back is gone; views must lie inside their buffer",
            )
        low = address - start
        return region.data[low : low + size], region.written[low : low + size]


class EmulatedDevice(Device):
    """A device made of numpy. `memory`: bytes that it has."""

    def __init__(self, name: str = "cuda:emulated", memory: int = 4 << 30, arch: str = "sm_80") -> None:
        super().__init__()
        self.name = name
        self.limits = Limits("PTX emulator", arch, 4, memory, 232448)
        self.pool = Pool(self)
        self.seed: int | None = int(os.environ[SEED_VARIABLE]) if os.environ.get(SEED_VARIABLE) else None
        self._regions = _Regions()
        self._maps: dict[tuple[int, TensorMap], int] = {}
        self._functions: dict[int, tuple[str, KernelSpec]] = {}
        self._streams: weakref.WeakValueDictionary[int, EmulatedStream] = weakref.WeakValueDictionary()
        self._next = 1
        self._default = self.new_stream()
        self._current = threading.local()
        self._callbacks = (_LAUNCH(self._launch), _COPY(self._copy))
        launch, copy = (ctypes.cast(callback, ctypes.c_void_p).value or 0 for callback in self._callbacks)
        self.driver = Driver(launch, copy)

    # Streams

    def current_stream(self) -> Stream:
        return getattr(self._current, "stream", self._default)

    def new_stream(self) -> EmulatedStream:
        handle, self._next = self._next, self._next + 1
        stream = self._streams[handle] = EmulatedStream(self, handle)
        return stream

    @contextmanager
    def use_stream(self, stream: Stream) -> Generator[None]:
        before = self.current_stream()
        self._current.stream = stream
        try:
            yield
        finally:
            self._current.stream = before

    def capture(self, stream: Stream, queue: Callable[[Stream], object]) -> Graph:
        recorder = self.new_stream()
        recorder.captured = []
        queue(recorder)
        return EmulatedGraph(recorder.captured)

    def synchronize_all(self) -> None:
        self.synchronisations += 1
        for stream in list(self._streams.values()):
            stream.run_to(stream.number)

    # Memory

    def raw_memory(self, size: int, stream: Stream) -> Memory:
        if self._regions.bytes + size > self.limits.memory:
            raise MemoryError
        address = self._regions.add(size)
        return Memory(address, size, _Owner(self._regions, address))

    def forget(self, address: int, size: int, stream: Stream) -> None:
        def run() -> None:
            data, written = self._regions.find(address, size)
            data[...] = POISON
            written[...] = False

        _queue(stream, run)

    def copy_in(self, address: int, source: Array, stream: Stream) -> None:
        staged = np.frombuffer(source.tobytes(), np.uint8)
        self.copies_in += 1

        def run() -> None:
            data, written = self._regions.find(address, staged.size)
            data[...] = staged
            written[...] = True

        _queue(stream, run)

    def copy_out(self, target: Array, address: int, stream: Stream) -> None:
        self.copies_out += 1
        stream.synchronize()
        data, _ = self._regions.find(address, target.nbytes)
        if target.nbytes:
            target.reshape(-1).view(np.uint8)[...] = data

    def copy_within(self, to: int, source: int, size: int, stream: Stream) -> None:
        def run() -> None:
            (data, written), (from_data, from_written) = self._regions.find(to, size), self._regions.find(source, size)
            data[...] = from_data.copy()
            written[...] = from_written.copy()

        _queue(stream, run)

    def _copy(self, to: int | None, source: int | None, size: int, handle: int | None) -> int:
        stream = self._streams.get(handle or 0)
        if stream is None:
            return INVALID_VALUE
        self.copy_within(to or 0, source or 0, size, stream)
        return 0

    # Programs

    def load_functions(self, spec: DeviceSpec, objects: Sequence[bytes]) -> tuple[list[int], Any]:
        text = objects[spec.ptx].decode()
        handles: list[int] = []
        for kernel in spec.kernels:
            handle, self._next = self._next, self._next + 1
            self._functions[handle] = (text, kernel)
            handles.append(handle)
        loaded = _Loaded(self._functions, handles)
        return handles, loaded

    def activate(self) -> Any:
        return nullcontext()

    def _launch(self, function: int | None, *rest: Any) -> int:
        """`cuLaunchKernel`: parameters are read now, the kernel runs later."""
        *sizes, shared, handle, parameters, _ = rest
        found, stream = self._functions.get(function or 0), self._streams.get(handle or 0)
        threads = sizes[3] * sizes[4] * sizes[5]
        if found is None or stream is None or not 0 < threads <= 1024 or shared > self.limits.shared_per_block:
            return INVALID_VALUE
        text, kernel = found
        self.launches += 1
        places = (ctypes.c_void_p * len(kernel.parameters)).from_address(parameters) if kernel.parameters else ()
        words = [ctypes.string_at(place or 0, p.bytes) for place, p in zip(places, kernel.parameters, strict=True)]
        name, location = current_call().function, current_call().place()[1]
        grid, block = tuple(sizes[:3]), tuple(sizes[3:6])

        def run() -> None:
            launch = import_module("gradir.ptx.launch")  # the emulator: only where something runs in it
            try:
                arguments = self._arguments(kernel, words, launch.DeviceBuffer)
                launch.launch(text, kernel.name, grid=grid, block=block, args=arguments, shared=shared, seed=self.seed)
            except GradirError as error:
                raise kernel_failed(self.name, kernel.name, location, name, grid, block, str(error)) from error

        stream.add(run)
        return 0

    def _arguments(self, kernel: KernelSpec, words: Sequence[bytes], buffer: Any) -> list[Any]:
        arguments: list[Any] = []
        for position, (parameter, word) in enumerate(zip(kernel.parameters, words, strict=True)):
            if not parameter.element:
                arguments.append(self._map(word, buffer) if word.startswith(MAP_MARK) else word)
                continue
            described = [int.from_bytes(w, "little", signed=True) for w in words[position + 1 : position + 1 + parameter.dynamic]]
            address = int.from_bytes(word, "little")
            low, high = extent(parameter, described)
            arguments.append(buffer(*self._regions.find(address + low, high - low)))
        return arguments

    def tensor_map(self, base: int, words: Sequence[int]) -> bytes:
        number = self._maps.setdefault((base, read_words(words)), len(self._maps))
        return (MAP_MARK + number.to_bytes(8, "little")).ljust(abi.TENSOR_MAP_BYTES, b"\0")

    def _map(self, word: bytes, buffer: Any) -> Any:
        """The emulator's form of a tensor map that `tensor_map` made."""
        number = int.from_bytes(word[len(MAP_MARK) : len(MAP_MARK) + 8], "little")
        base, found = next(made for made, known in self._maps.items() if known == number)
        kind = import_module("gradir.ptx.tensor_maps").TensorMap
        dtype = numpy_dtype(ELEMENT_NAMES[found.element])
        plain = kind(None, dtype, found.sizes, found.strides, found.box, found.swizzle)
        return replace(plain, base=buffer(*self._regions.find(base, plain.extent)))

    def foreign(self, value: Any, stream: Stream) -> tuple[int, tuple[int, ...], str, Any] | None:
        return None

    def hold(self, owners: Sequence[Any], stream: Stream) -> None:
        pass

    def describe_status(self, status: int) -> str:
        return {INVALID_VALUE: "invalid value: blocks of 1 to 1024 threads, shared memory within the device's limit"}.get(
            status, str(status)
        )


class _Loaded:
    """Kernels of a module; they are gone with it."""

    def __init__(self, functions: dict[int, Any], handles: Sequence[int]) -> None:
        self.functions, self.handles = functions, tuple(handles)

    def __del__(self) -> None:
        for handle in self.handles:
            self.functions.pop(handle, None)


def _queue(stream: Stream, work: Callable[[], None]) -> None:
    assert isinstance(stream, EmulatedStream)
    stream.add(work)


def extent(parameter: ParameterSpec, described: Sequence[int]) -> tuple[int, int]:
    """The bytes, from the pointer on, that lie between the first and the last element of a parameter; `described` are the sizes and
    strides that its type leaves open."""
    rest = iter(described)
    sizes = [next(rest) if n is None else n for n in parameter.sizes]
    if 0 in sizes:
        return 0, 0
    if parameter.strides is None:
        strides, step = list[int](), 1
        for size in reversed(sizes):
            strides.insert(0, step)
            step *= size
    else:
        strides = [next(rest) if n is None else n for n in parameter.strides]
    reach = [(size - 1) * stride for size, stride in zip(sizes, strides, strict=True)]
    low, high = sum(min(0, r) for r in reach), sum(max(0, r) for r in reach)
    return low * parameter.element, (high + 1) * parameter.element
