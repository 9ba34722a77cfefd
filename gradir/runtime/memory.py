"""The process's memory pool: arenas, outputs and what compiled code allocates come from here and return here.

Blocks are 64-byte aligned, rounded up to one of eight sizes per power of two (12.5 % waste at most) and kept in one free list per
size, because a fresh 64 MB block costs 40 ms in page faults and a reused one 4. The pool is native code behind one spin lock, so that
compiled code reaches it without the GIL; this module is its Python side.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

from gradir.errors import GradirError
from gradir.runtime.native.library import native


@dataclass(frozen=True)
class PoolStatistics:
    """Bytes are of rounded blocks: `live` handed out now, `peak` the most so far, `cached` free and kept; counts are since the start."""

    live_bytes: int
    peak_bytes: int
    cached_bytes: int
    cache_limit: int
    allocations: int
    reused: int


def statistics() -> PoolStatistics:
    """The pool's figures at this moment."""
    words = (ctypes.c_int64 * 6).from_address(native().address("gradir.pool"))
    return PoolStatistics(*words)


def reset_peak() -> None:
    """Start a new measurement of `peak_bytes` from the bytes that are live now."""
    words = (ctypes.c_int64 * 6).from_address(native().address("gradir.pool"))
    words[1] = words[0]


def set_cache_limit(nbytes: int) -> None:
    """Keep at most `nbytes` of free blocks; takes effect when blocks are released (see `trim`)."""
    if type(nbytes) is not int or nbytes < 0:
        raise GradirError(
            "no such limit of the cache",
            part="runtime",
            code="RT017",
            expected="a whole number of bytes, at least 0",
            found=repr(nbytes),
            hint="0 keeps no free blocks",
        )
    words = (ctypes.c_int64 * 6).from_address(native().address("gradir.pool"))
    words[3] = nbytes


def trim() -> None:
    """Return every cached block to the system."""
    native().trim()


def allocate(nbytes: int) -> int:
    """Address of a block of at least `nbytes`, 64-byte aligned, not cleared; `MemoryError` when the system has none."""
    address = native().allocate(nbytes)
    if not address:
        raise MemoryError(f"no block of {nbytes} bytes (live {statistics().live_bytes} bytes)")
    return address


def release(address: int) -> None:
    """Give a block of `allocate` back to the pool."""
    native().release(address)


class Block:
    """Owns one block of the pool; the array interface lets numpy view it and keeps it alive."""

    __slots__ = ("__array_interface__", "address", "nbytes")

    def __init__(self, nbytes: int) -> None:
        self.address = 0
        self.address = allocate(nbytes)
        self.nbytes = nbytes
        self.__array_interface__ = {"version": 3, "shape": (nbytes,), "typestr": "|u1", "data": (self.address, False)}

    def __del__(self) -> None:
        if self.address and release is not None:  # None while the interpreter goes down
            release(self.address)
