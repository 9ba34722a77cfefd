"""Memory of a device for arenas, results and whatever host code allocates: kept for the next call, counted, limited.

A block that is dropped while its work is still queued may be taken again on the same stream at once: what comes later in a stream runs
later. Another stream gets it only after everything was waited for, when memory is short.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gradir.errors import GradirError

if TYPE_CHECKING:
    from gradir.runtime.cuda.device import Device, Memory, Stream

GRANULE = 512
SMALL = 1 << 20


def rounded(size: int) -> int:
    """The bytes of the block that holds `size`: multiples of 512 up to 1 MB, then one of eight sizes for each power of two."""
    if size <= SMALL:
        return max(1, -(-size // GRANULE)) * GRANULE
    step = 1 << ((size - 1).bit_length() - 4)
    return -(-size // step) * step


@dataclass(frozen=True)
class DevicePoolStatistics:
    """Bytes of rounded blocks: `live` in use, `peak` the most so far, `cached` kept for later; how often memory was `taken`, how often
    that was a kept block (`reused`)."""

    live_bytes: int
    peak_bytes: int
    cached_bytes: int
    taken: int
    reused: int
    limit: int | None


class Block:
    """Memory that is in use. `label` says for what, and by which source line; it returns when nobody refers to it any more."""

    __slots__ = ("__weakref__", "_memory", "_pool", "_stream", "address", "bytes", "label")

    def __init__(self, pool: Pool, memory: Memory, size: int, stream: Stream, label: str) -> None:
        self._pool, self._memory, self._stream = pool, memory, stream
        self.address, self.bytes, self.label = memory.address, size, label

    def used_on(self, stream: Stream) -> None:
        """Work that reads or writes it was queued on `stream`: it returns to that stream's blocks, after what the first one still does."""
        if stream is not self._stream:
            stream.wait(self._stream.record())
            self._stream = stream

    def __del__(self) -> None:
        pool: Pool | None = getattr(self, "_pool", None)
        if pool is not None:
            pool._give_back(self._memory, self._stream, self.label)


class Pool:
    """The memory of one device."""

    def __init__(self, device: Device, limit: int | None = None) -> None:
        self._device = device
        self._limit = limit
        self._free: dict[tuple[int, int], list[Memory]] = {}
        self._taken_from: dict[int, Memory] = {}
        """Memory in use: the collector must not take it for garbage together with a block, which gives it back."""
        self._live: Counter[str] = Counter()
        self._lock = threading.RLock()  # a block may be dropped by the collector in the middle of `take`
        self._live_bytes = self._peak = self._cached = self._taken = self._reused = 0

    def take(self, size: int, stream: Stream, label: Callable[[], str] | str) -> Block:
        """At least `size` bytes, aligned to 256. GradirError RT071 when there are none, or more than the limit would be in use."""
        size = rounded(size)
        text = label if isinstance(label, str) else label()
        with self._lock:
            if self._limit is not None and self._live_bytes + size > self._limit:
                raise self._short(size, text, f"a limit of {self._limit} bytes")
            memory = self._kept(size, stream)
            if memory is None:
                memory = self._fresh(size, stream, text)
            self._taken += 1
            self._live_bytes += size
            self._peak = max(self._peak, self._live_bytes)
            self._live[text] += size
            self._taken_from[memory.address] = memory
        self._device.forget(memory.address, size, stream)
        return Block(self, memory, size, stream, text)

    def _kept(self, size: int, stream: Stream) -> Memory | None:
        rows = self._free.get((stream.handle, size))
        if not rows:
            return None
        self._cached -= size
        self._reused += 1
        return rows.pop()

    def _fresh(self, size: int, stream: Stream, label: str) -> Memory:
        total = self._live_bytes + self._cached + size
        if self._limit is not None and self._cached and total > self._limit:
            self.trim()
        try:
            return self._device.raw_memory(size, stream)
        except MemoryError:
            self.trim()
        try:
            return self._device.raw_memory(size, stream)
        except MemoryError:
            raise self._short(size, label, f"{self._device.limits.memory} bytes on {self._device.name}") from None

    def _give_back(self, memory: Memory, stream: Stream, label: str) -> None:
        with self._lock:
            self._live_bytes -= memory.bytes
            del self._taken_from[memory.address]
            self._live[label] -= memory.bytes
            if self._live[label] <= 0:
                del self._live[label]
            self._cached += memory.bytes
            self._free.setdefault((stream.handle, memory.bytes), []).append(memory)

    def trim(self) -> None:
        """Give kept blocks back to the device; waits for the streams that they belong to."""
        with self._lock:
            kept, self._free, self._cached = self._free, {}, 0
        if kept:
            self._device.synchronize_all()
        kept.clear()

    def set_limit(self, limit: int | None) -> None:
        """So many bytes may be in use at once; None: all that the device has. GradirError RT017 for what is no number of bytes."""
        if limit is not None and (type(limit) is not int or limit < 0):
            raise GradirError(
                "no such limit of the pool",
                part="runtime",
                code="RT017",
                expected="a whole number of bytes, at least 0, or None",
                found=repr(limit),
                hint="None takes all that the device has",
            )
        with self._lock:
            self._limit = limit

    def statistics(self) -> DevicePoolStatistics:
        """Figures so far."""
        with self._lock:
            return DevicePoolStatistics(self._live_bytes, self._peak, self._cached, self._taken, self._reused, self._limit)

    def live(self) -> list[tuple[str, int]]:
        """What is in use: (what for, bytes), the most first."""
        with self._lock:
            return sorted(self._live.items(), key=lambda row: (-row[1], row[0]))

    def _short(self, size: int, label: str, limit: str) -> GradirError:
        rows = [f"{size_of(count)}  {what}" for what, count in self.live()[:8]]
        more = len(self._live) - len(rows)
        listed = "\n".join([*rows, *([f"and {more} more"] if more > 0 else [])])
        return GradirError(
            f"out of memory on {self._device.name}",
            part="runtime",
            code="RT071",
            expected=f"{size_of(size)} for {label}; {limit}",
            found=f"{size_of(self._live_bytes)} in use:\n{listed}" if rows else "nothing in use",
            hint="drop results that are no longer needed, donate arguments (`donate=`), or raise the pool's limit",
        )


def size_of(count: int) -> str:
    """`1.5 MB`."""
    for unit, scale in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if count >= scale:
            return f"{count / scale:.1f} {unit}"
    return f"{count} B"


__all__ = ["Block", "DevicePoolStatistics", "Pool", "rounded", "size_of"]
