"""Times of single launches by events of the device: for explanations; events cost more than small kernels take."""

from __future__ import annotations

import ctypes
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from gradir.runtime.cuda.calls import current_call
from gradir.runtime.cuda.device import Device, Driver, Event

_LAUNCH = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, *[ctypes.c_uint] * 7, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


@dataclass(frozen=True)
class Timed:
    """One launch: the kernel, its grid and block, bytes of dynamic shared memory, events before and after."""

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    before: Event
    after: Event

    @property
    def seconds(self) -> float:
        """Of the device, once all work was waited for."""
        return self.after.milliseconds_since(self.before) * 1e-3


@dataclass
class Recording:
    """The launches of the calls inside of `recorded`, in order."""

    launches: list[Timed] = field(default_factory=list[Timed])


@contextmanager
def recorded(device: Device) -> Generator[Recording]:
    """Record every launch of programs on the device; calls are not captured meanwhile."""
    found = Recording()
    plain = device.driver
    original = _LAUNCH(plain.launch)

    def launch(*arguments: Any) -> int:
        call = current_call()
        before = call.stream.record()
        status = original(*arguments)
        sizes = [int(n) for n in arguments[1:8]]
        grid, block = (sizes[0], sizes[1], sizes[2]), (sizes[3], sizes[4], sizes[5])
        found.launches.append(Timed(call.place()[0], grid, block, sizes[6], before, call.stream.record()))
        return int(status)

    wrapped = _LAUNCH(launch)
    graphs, device.graphs = device.graphs, False
    device.driver = Driver(ctypes.cast(wrapped, ctypes.c_void_p).value or 0, plain.copy)
    try:
        yield found
        device.synchronize_all()
    finally:
        device.driver, device.graphs = plain, graphs
