"""When which part of a compiled program ran, on which thread: what `explain` measures with.

An instrumented program calls `profile.enter` before and `profile.leave` after each of its sites, by the road of library functions. Both
are native code that writes one row (site, thread, nanoseconds) into a buffer, some 50 ns a call, without Python. `enter` also puts a
parallel loop of our own into the context of the call, which hands the work on and notes each chunk; and it copies the sizes that its
operands have at the first visit. One recording at a time; rows beyond the buffer are counted and dropped.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from gradir.runtime import abi
from gradir.runtime.library import Row, register
from gradir.runtime.loader import Library, compile_text, load_object
from gradir.runtime.manifest import LibrarySpec

Array = np.ndarray[Any, np.dtype[Any]]

ENTER, LEAVE = "profile.enter", "profile.leave"
"""The functions that an instrumented program calls; configuration `{profile, site}`."""

CAPACITY = 1 << 18
"""Rows of a recording."""

WORDS = 4
"""Of a row: code, thread, begin, end. Code 2 s: site s begins; 2 s + 1: it ends; -1 - s: a chunk of its parallel loop."""

CLOCK = 6 if sys.platform == "darwin" else 1
"""CLOCK_MONOTONIC, the clock of `time.perf_counter_ns`."""

_IR = f"""
declare i32 @clock_gettime(i32, ptr)
declare i64 @pthread_self()

@profile.rows = global ptr null
@profile.capacity = global i64 0
@profile.count = global i64 0, align 128
@original = internal global ptr null, align 128
@site = internal global i64 0

define internal i64 @now() {{
  %spec = alloca [2 x i64], align 16
  %status = call i32 @clock_gettime(i32 {CLOCK}, ptr %spec)
  %seconds = load i64, ptr %spec
  %rest.at = getelementptr i8, ptr %spec, i64 8
  %rest = load i64, ptr %rest.at
  %whole = mul i64 %seconds, 1000000000
  %time = add i64 %whole, %rest
  ret i64 %time
}}

define internal void @note(i64 %code, i64 %begin, i64 %end) {{
  %at = atomicrmw add ptr @profile.count, i64 1 monotonic
  %capacity = load i64, ptr @profile.capacity
  %fits = icmp ult i64 %at, %capacity
  br i1 %fits, label %keep, label %done
keep:
  %rows = load ptr, ptr @profile.rows
  %row = getelementptr [{WORDS} x i64], ptr %rows, i64 %at
  store i64 %code, ptr %row
  %thread = call i64 @pthread_self()
  %thread.at = getelementptr i64, ptr %row, i64 1
  store i64 %thread, ptr %thread.at
  %begin.at = getelementptr i64, ptr %row, i64 2
  store i64 %begin, ptr %begin.at
  %end.at = getelementptr i64, ptr %row, i64 3
  store i64 %end, ptr %end.at
  br label %done
done:
  ret void
}}

define internal void @body(ptr %context, ptr %closure, i64 %lo, i64 %hi) {{
  %begin = call i64 @now()
  %function = load ptr, ptr %closure
  %inner.at = getelementptr i8, ptr %closure, i64 8
  %inner = load ptr, ptr %inner.at
  %code.at = getelementptr i8, ptr %closure, i64 16
  %code = load i64, ptr %code.at
  call void %function(ptr %context, ptr %inner, i64 %lo, i64 %hi)
  %end = call i64 @now()
  call void @note(i64 %code, i64 %begin, i64 %end)
  ret void
}}

define internal void @parallel_for(ptr %context, ptr %function, ptr %closure, i64 %n, i64 %grain) {{
  %wrapped = alloca [3 x i64], align 16
  store ptr %function, ptr %wrapped
  %inner.at = getelementptr i8, ptr %wrapped, i64 8
  store ptr %closure, ptr %inner.at
  %site = load i64, ptr @site
  %code = sub i64 -1, %site
  %code.at = getelementptr i8, ptr %wrapped, i64 16
  store i64 %code, ptr %code.at
  %original = load ptr, ptr @original
  call void %original(ptr %context, ptr @body, ptr %wrapped, i64 %n, i64 %grain)
  ret void
}}

define i32 @profile.enter(ptr %context, ptr %data, ptr %buffers) {{
entry:
  %loop.at = getelementptr i8, ptr %context, i64 {abi.OFFSET_PARALLEL_FOR}
  %loop = load ptr, ptr %loop.at
  %ours = icmp eq ptr %loop, @parallel_for
  br i1 %ours, label %known, label %swap
swap:
  store ptr %loop, ptr @original
  store ptr @parallel_for, ptr %loop.at
  br label %known
known:
  %site = load i64, ptr %data
  store i64 %site, ptr @site
  %seen.at = getelementptr i64, ptr %data, i64 1
  %seen = load i64, ptr %seen.at
  %seen.next = add i64 %seen, 1
  store i64 %seen.next, ptr %seen.at
  %first = icmp eq i64 %seen, 0
  br i1 %first, label %look, label %go
look:
  %count.at = getelementptr i64, ptr %data, i64 2
  %count = load i64, ptr %count.at
  %sizes.at = getelementptr i64, ptr %data, i64 3
  br label %buffer
buffer:
  %k = phi i64 [0, %look], [%k.next, %copied]
  %free = phi ptr [%sizes.at, %look], [%free.next, %copied]
  %more = icmp ult i64 %k, %count
  br i1 %more, label %one, label %go
one:
  %at = mul i64 %k, {8 * abi.BUFFER_WORDS}
  %buffer.at = getelementptr i8, ptr %buffers, i64 %at
  %rank.at = getelementptr i8, ptr %buffer.at, i64 16
  %rank = load i64, ptr %rank.at
  %from.at = getelementptr i8, ptr %buffer.at, i64 24
  %from = load ptr, ptr %from.at
  br label %dim
dim:
  %d = phi i64 [0, %one], [%d.next, %copy]
  %inside = icmp ult i64 %d, %rank
  br i1 %inside, label %copy, label %copied
copy:
  %size.at = getelementptr i64, ptr %from, i64 %d
  %size = load i64, ptr %size.at
  %to = getelementptr i64, ptr %free, i64 %d
  store i64 %size, ptr %to
  %d.next = add i64 %d, 1
  br label %dim
copied:
  %free.next = getelementptr i64, ptr %free, i64 %rank
  %k.next = add i64 %k, 1
  br label %buffer
go:
  %code = shl i64 %site, 1
  %time = call i64 @now()
  call void @note(i64 %code, i64 %time, i64 %time)
  ret i32 0
}}

define i32 @profile.leave(ptr %context, ptr %data, ptr %buffers) {{
  %time = call i64 @now()
  %site = load i64, ptr %data
  %twice = shl i64 %site, 1
  %code = add i64 %twice, 1
  call void @note(i64 %code, i64 %time, i64 %time)
  ret i32 0
}}
"""

_EXPORTS = (ENTER, LEAVE, "profile.rows", "profile.capacity", "profile.count")


@cache
def _library() -> Library:
    names = ("clock_gettime", "pthread_self")
    imports = {name: ctypes.cast(getattr(ctypes.CDLL(None), name), ctypes.c_void_p).value or 0 for name in names}
    return load_object(compile_text(_IR), _EXPORTS, imports=imports)


@dataclass
class Site:
    """What `enter` reads and writes of one site: number, visits, how many operands it looks at, then their sizes at the first visit."""

    words: Any
    ranks: tuple[int, ...]

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The operands' sizes at the first visit; zeros if there was none."""
        found: list[tuple[int, ...]] = []
        at = 3
        for rank in self.ranks:
            found.append(tuple(self.words[at : at + rank]))
            at += rank
        return tuple(found)


SITES: dict[tuple[int, int], Site] = {}
"""(program, site) -> its words, for the programs that are loaded."""


def _row(spec: LibrarySpec) -> tuple[int, int, object]:
    """Address of the native function and of the words of its site, and what keeps these alive."""
    program, number = int(spec.config["profile"]), int(spec.config["site"])
    ranks = tuple(len(tensor.shape) for tensor in spec.inputs)
    words = (ctypes.c_int64 * (3 + sum(ranks)))(number, 0, len(ranks))
    site = Site(words, ranks)
    if spec.name == ENTER:
        SITES[program, number] = site
    return _library().address(spec.name), ctypes.addressof(words), site


for _name in (ENTER, LEAVE):
    register(_name, Row(_name, native=_row))


@dataclass
class Recording:
    """Rows of `WORDS` integers, in the order in which they were written; `dropped` did not fit."""

    rows: Array = field(default_factory=lambda: np.zeros((0, WORDS), np.int64))
    dropped: int = 0


_lock = threading.Lock()


@contextmanager
def record(capacity: int = CAPACITY) -> Generator[Recording]:
    """Record what instrumented programs do inside of the block; the recording is filled when the block ends."""
    found = Recording()
    with _lock:
        library = _library()
        rows = np.zeros((capacity, WORDS), np.int64)
        count = ctypes.c_int64.from_address(library.address("profile.count"))
        limit = ctypes.c_int64.from_address(library.address("profile.capacity"))
        place = ctypes.c_void_p.from_address(library.address("profile.rows"))
        place.value, count.value, limit.value = rows.ctypes.data, 0, capacity
        try:
            yield found
        finally:
            limit.value = 0
            written = count.value
            place.value = None
            found.rows, found.dropped = rows[: min(written, capacity)].copy(), max(0, written - capacity)
