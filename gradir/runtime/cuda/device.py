"""`Device`, `Stream`, `Event`, `Graph`, `Memory`: what programs for CUDA need of a GPU. `device_named` finds the one of a target.

Work is queued on streams and runs in their order; nothing here waits but `Stream.synchronize`, `Event.synchronize` and `Device.copy_out`,
and each of them counts in `Device.synchronisations`.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from gradir.errors import GradirError

if TYPE_CHECKING:
    from gradir.runtime.cuda.pool import Pool
    from gradir.runtime.cuda.spec import DeviceSpec

Array = np.ndarray[Any, np.dtype[Any]]

EMULATED = "emulated"


@dataclass(frozen=True)
class Limits:
    """What a device has of everything."""

    name: str
    arch: str
    sms: int
    memory: int
    shared_per_block: int


class Event(ABC):
    """A point in the work of a stream."""

    @abstractmethod
    def done(self) -> bool:
        """Whether the work before it is over; does not wait."""

    @abstractmethod
    def synchronize(self) -> None:
        """Wait for it."""

    @abstractmethod
    def milliseconds_since(self, earlier: Event) -> float:
        """The device's time between two events of one device, both over."""


class Stream(ABC):
    """Work in order. `handle` is the driver's; `recent` names what was queued since the last wait, for errors that come late."""

    handle: int

    def __init__(self, device: Device) -> None:
        self.device = device
        self.recent: list[Launched] = []

    def note(self, launched: Launched) -> None:
        """Remember what was queued last."""
        if launched.kernels:
            self.recent = [*self.recent[-15:], launched]

    @abstractmethod
    def synchronize(self) -> None:
        """Wait until all its work is over. Raises the `GradirError` of work that failed."""

    @abstractmethod
    def record(self) -> Event:
        """An event after all that was queued so far."""

    @abstractmethod
    def wait(self, event: Event) -> None:
        """Let later work of this stream start after an event of any stream; the host does not wait."""


@dataclass(frozen=True)
class Launched:
    """Launches of one call, for messages: the function and (kernel, source line) of the last of them."""

    function: str
    kernels: tuple[tuple[str, str], ...]


class Graph(ABC):
    """Launches and copies that were captured, to be queued again at once."""

    @abstractmethod
    def launch(self, stream: Stream) -> None:
        """Queue them."""


@dataclass(frozen=True)
class Driver:
    """Addresses of the functions that host code calls: `cuLaunchKernel` and `cuMemcpyDtoDAsync`, or what stands for them."""

    launch: int
    copy: int


class Memory:
    """Bytes of a device as its allocator gave them. `owner` keeps them; dropping it gives them back."""

    __slots__ = ("address", "bytes", "owner")

    def __init__(self, address: int, size: int, owner: Any) -> None:
        self.address, self.bytes, self.owner = address, size, owner


class Device(ABC):
    """One GPU. `synchronisations` counts the waits of the host, `copies_in` and `copies_out` transfers, `launches` kernels."""

    name: str
    limits: Limits
    driver: Driver
    pool: Pool
    graphs = True
    """Whether calls may be captured."""

    def __init__(self) -> None:
        self.synchronisations = 0
        self.copies_in = 0
        self.copies_out = 0
        self.launches = 0
        self.graph_launches = 0

    def __repr__(self) -> str:
        return f"<gradir device {self.name}: {self.limits.name}, {self.limits.arch}>"

    # Streams

    @abstractmethod
    def current_stream(self) -> Stream:
        """The stream that calls of this thread queue their work on."""

    @abstractmethod
    def new_stream(self) -> Stream:
        """Another stream."""

    @abstractmethod
    def use_stream(self, stream: Stream) -> Any:
        """A context manager: `stream` is this thread's current one inside."""

    @abstractmethod
    def capture(self, stream: Stream, queue: Callable[[Stream], object]) -> Graph:
        """What `queue(s)` queues on the stream `s` that it gets, as a graph; nothing of it runs. `stream` is the one it would run on."""

    @abstractmethod
    def synchronize_all(self) -> None:
        """Wait until all work of all streams is over."""

    # Memory

    @abstractmethod
    def raw_memory(self, size: int, stream: Stream) -> Memory:
        """Memory of the device; `MemoryError` when there is none."""

    @abstractmethod
    def forget(self, address: int, size: int, stream: Stream) -> None:
        """The contents of this memory are nobody's from here on in the stream's order (the emulator reports reads of it)."""

    @abstractmethod
    def copy_in(self, address: int, source: Array, stream: Stream) -> None:
        """Queue a copy of a contiguous array of the host, which may change as soon as this returns."""

    @abstractmethod
    def copy_out(self, target: Array, address: int, stream: Stream) -> None:
        """Copy to a contiguous array of the host, and wait for it."""

    @abstractmethod
    def copy_within(self, to: int, source: int, size: int, stream: Stream) -> None:
        """Queue a copy in the device's memory."""

    # Programs

    @abstractmethod
    def load_functions(self, spec: DeviceSpec, objects: Sequence[bytes]) -> tuple[list[int], Any]:
        """Handles of the kernels of a module, in the order of `spec.kernels`, and what keeps them loaded."""

    @abstractmethod
    def activate(self) -> Any:
        """A context manager: the driver's calls of this thread go to this device inside."""

    @abstractmethod
    def tensor_map(self, base: int, words: Sequence[int]) -> bytes:
        """The 128 bytes of a tensor map: see `gradir.runtime.cuda.tensor_maps`."""

    @abstractmethod
    def foreign(self, value: Any, stream: Stream) -> tuple[int, tuple[int, ...], str, Any] | None:
        """(address, shape, element type, owner) of an array of another library in this device's memory, contiguous, ready for `stream`;
        None when it is none."""

    @abstractmethod
    def hold(self, owners: Sequence[Any], stream: Stream) -> None:
        """Keep memory of other libraries until the work that `stream` has now is over."""

    @abstractmethod
    def describe_status(self, status: int) -> str:
        """What the driver means by a number that it returned."""


_devices: dict[str, Device] = {}
_lock = threading.Lock()


def device_named(name: str = "cuda") -> Device:
    """The device of `cuda`, `cuda:N` or `cuda:emulated`, one object for each. GradirError RT070 where there is none."""
    key = {"cuda": "cuda:0"}.get(name, name)
    with _lock:
        found = _devices.get(key)
        if found is None:
            kind, _, which = key.partition(":")
            if kind != "cuda" or (which != EMULATED and not which.isdecimal()):
                raise GradirError(
                    f"no device is called '{name}'",
                    part="runtime",
                    code="RT070",
                    expected="cuda, cuda:N or cuda:emulated",
                    found=name,
                    hint="name one of them",
                )
            made: Device
            if which == EMULATED:
                made = import_module("gradir.runtime.cuda.emulated").EmulatedDevice()
            else:  # cupy: half a second, and only where it is used
                made = import_module("gradir.runtime.cuda.cupy_device").CupyDevice(int(which))
            found = _devices[key] = made
        return found
