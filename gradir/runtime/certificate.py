"""The memory that a call really takes: it runs in an arena that is poisoned and guarded, with an allocator that counts.

The plan of a program's memory claims that a call touches `arena_bytes` of its arena and allocates so many bytes beside it. `measure` runs
the call twice, over two patterns of poison. A byte that differs from the pattern afterwards was written; the highest one is the measured
arena. A result that depends on the pattern was made from bytes that nobody had written.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradir.runtime.call import Lent
from gradir.runtime.donation import take_over
from gradir.runtime.memory import allocate, release
from gradir.runtime.module import Function
from gradir.runtime.signature import check_inputs, make_outputs

GUARD = 4096
"""Bytes before and behind the arena that nobody may write."""

PATTERNS = (0xA5, 0x5A)


@dataclass(frozen=True)
class Measured:
    """What one call took. `arena`: bytes from its beginning to the highest one written; `allocated`: the most bytes that compiled code held
    at once from the context's allocator; `leaked` what it did not give back; `intact`: nothing was written in front of the arena or behind;
    `clean`: no result depends on what the arena held before."""

    arena: int
    allocated: int
    leaked: int
    intact: bool
    clean: bool
    results: tuple[np.ndarray[Any, np.dtype[Any]], ...]

    @property
    def peak(self) -> int:
        """Bytes beside arguments and results."""
        return self.arena + self.allocated


class _Counting:
    """The context's allocator, counting the bytes that are asked for."""

    def __init__(self) -> None:
        self.live = self.peak = 0
        self._sizes: dict[int, int] = {}
        self._lock = threading.Lock()
        self.allocate = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(self._allocate)
        self.free = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(self._free)

    def _allocate(self, _context: int, size: int, _align: int) -> int:
        try:
            address = allocate(size)
        except MemoryError:
            return 0
        with self._lock:
            self._sizes[address] = size
            self.live += size
            self.peak = max(self.peak, self.live)
        return address

    def _free(self, _context: int, address: int | None) -> None:
        if address:
            with self._lock:
                self.live -= self._sizes.pop(address)
            release(address)


def measure(function: Function, *inputs: Any, threads: int = 1) -> Measured:
    """Call `function` with arrays that it takes, twice, and say what memory that took; raises what the call raises."""
    arrays, sizes = check_inputs(function.spec, inputs)
    runs = [_run(function, arrays, make_outputs(function.spec, sizes), threads, pattern) for pattern in PATTERNS]
    first, second = runs
    return Measured(
        max(run.arena for run in runs),
        max(run.allocated for run in runs),
        max(run.leaked for run in runs),
        all(run.intact for run in runs),
        all(a.tobytes() == b.tobytes() for a, b in zip(first.results, second.results, strict=True)),
        first.results,
    )


def _run(function: Function, given: Sequence[Any], made: Sequence[Any], threads: int, pattern: int) -> Measured:
    copies = [np.array(array) for array in given] if function.spec.aliases else given  # donated arguments are needed twice
    for array in made:
        if array is not None:
            array.reshape(-1).view(np.uint8)[...] = pattern
    inputs, outputs = take_over(function.spec, copies, copies, made)
    size = function.spec.arena_bytes
    block = np.full(size + 2 * GUARD + 64, pattern, np.uint8)
    begin = -block.ctypes.data % 64 + GUARD
    counting = _Counting()
    allocate_at, free_at = (ctypes.cast(f, ctypes.c_void_p).value or 0 for f in (counting.allocate, counting.free))
    function.run_in(Lent(block.ctypes.data + begin, allocate_at, free_at), inputs, outputs, threads)
    touched = np.flatnonzero(block != pattern) - begin
    inside = touched[(touched >= 0) & (touched < size)]
    arena = int(inside[-1]) + 1 if inside.size else 0
    return Measured(arena, counting.peak, counting.live, inside.size == touched.size, True, tuple(outputs))


__all__ = ["Measured", "measure"]
