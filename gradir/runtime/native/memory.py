"""LLVM IR of the memory pool: one free list per block size behind one spin lock.

Eight sizes per power of two: `list = 8 * floor(log2(bytes - 1)) + next three bits`, so a block wastes at most an eighth.
`gradir.runtime.memory` is the Python side.
"""

from __future__ import annotations

from gradir.runtime.native.system import pause_ir

HUGE_PAGE = 2 << 20
"""Bytes of a huge page, to which large blocks are aligned; the part of a block that fills such pages is advised to be made of them."""

HUGE_FROM = 4 << 20
"""Blocks from this size on are large: page faults and TLB misses of small pages cost a first pass over 64 MB ten times its copy."""

DEFAULT_CACHE_LIMIT = 1 << 30
"""Bytes of free blocks that are kept for reuse; what goes beyond is returned to the system at once."""


def memory_ir(triple: str) -> str:
    """`@gradir.allocate` and `@gradir.release` of the context, `@gradir.trim`, `@gradir.pool_unlock`, the figures `@gradir.pool`."""
    values = {"PAUSE": pause_ir(triple), "CACHE_LIMIT": DEFAULT_CACHE_LIMIT, "HUGE_FROM": HUGE_FROM, "HUGE_PAGE": HUGE_PAGE}
    text = _MEMORY_IR + (_ADVISE if has_huge_pages(triple) else _NO_ADVICE)
    for name, value in values.items():
        text = text.replace(name, str(value))
    return text


def memory_symbols(triple: str) -> tuple[str, ...]:
    """What the pool calls in the C library."""
    return ("free", "posix_memalign", *(["madvise"] if has_huge_pages(triple) else []))


def has_huge_pages(triple: str) -> bool:
    """Whether the system takes the advice to use huge pages for a stretch of memory."""
    return "linux" in triple


_ADVISE = """
declare i32 @madvise(ptr, i64, i32)

; 14 is MADV_HUGEPAGE; a kernel without huge pages refuses, which changes nothing
define internal void @advise_huge(ptr %base, i64 %bytes) {
  %whole = and i64 %bytes, -HUGE_PAGE
  %x0 = call i32 @madvise(ptr %base, i64 %whole, i32 14)
  ret void
}
"""

_NO_ADVICE = """
define internal void @advise_huge(ptr %base, i64 %bytes) {
  ret void
}
"""


_MEMORY_IR = """
declare i32 @posix_memalign(ptr, i64, i64)
declare void @free(ptr)
declare i64 @llvm.ctlz.i64(i64, i1)

; live, peak, cached, limit, allocations, reused
@gradir.pool = global [6 x i64] [i64 0, i64 0, i64 0, i64 CACHE_LIMIT, i64 0, i64 0], align 64
@pool.lock = internal global i32 0, align 64
@pool.free = internal global [512 x ptr] zeroinitializer, align 64

define internal void @pool_lock() {
entry:
  br label %try
try:
  %spun = phi i64 [0, %entry], [%spun.next, %pause], [0, %yield]
  %old = cmpxchg ptr @pool.lock, i32 0, i32 1 acquire monotonic
  %mine = extractvalue {i32, i1} %old, 1
  br i1 %mine, label %done, label %hold
hold:
  %spun.next = add i64 %spun, 1
  %patient = icmp ult i64 %spun.next, 200
  br i1 %patient, label %pause, label %yield
pause:
  PAUSE
  br label %try
yield:
  call void @sys.yield()
  br label %try
done:
  ret void
}

define void @gradir.pool_unlock() {
  store atomic i32 0, ptr @pool.lock release, align 4
  ret void
}

; A block is a 64-byte header {i64 list, i64 bytes, ptr next} and the bytes behind it.
define ptr @gradir.allocate(ptr %context, i64 %asked, i64 %align) {
entry:
  %base.at = alloca ptr
  %aligned = icmp ule i64 %align, 64
  %positive = icmp sge i64 %asked, 0
  %sane = icmp ult i64 %asked, 1152921504606846976
  %ok0 = and i1 %aligned, %positive
  %ok = and i1 %ok0, %sane
  br i1 %ok, label %round, label %refuse
round:
  %some = call i64 @llvm.umax.i64(i64 %asked, i64 64)
  %below = sub i64 %some, 1
  %zeros = call i64 @llvm.ctlz.i64(i64 %below, i1 false)
  %octave = sub i64 63, %zeros
  %shift = sub i64 %octave, 3
  %eighths = lshr i64 %below, %shift
  %eighths.up = add i64 %eighths, 1
  %bytes = shl i64 %eighths.up, %shift
  %row = shl i64 %octave, 3
  %column = and i64 %eighths, 7
  %list = or i64 %row, %column
  %head.at = getelementptr ptr, ptr @pool.free, i64 %list
  call void @pool_lock()
  %count.at = getelementptr i64, ptr @gradir.pool, i64 4
  %count = load i64, ptr %count.at
  %count.next = add i64 %count, 1
  store i64 %count.next, ptr %count.at
  %head = load ptr, ptr %head.at
  %none = icmp eq ptr %head, null
  br i1 %none, label %fresh, label %reuse
reuse:
  %next.at = getelementptr i8, ptr %head, i64 16
  %next = load ptr, ptr %next.at
  store ptr %next, ptr %head.at
  %cached.at = getelementptr i64, ptr @gradir.pool, i64 2
  %cached = load i64, ptr %cached.at
  %cached.less = sub i64 %cached, %bytes
  store i64 %cached.less, ptr %cached.at
  %reused.at = getelementptr i64, ptr @gradir.pool, i64 5
  %reused = load i64, ptr %reused.at
  %reused.next = add i64 %reused, 1
  store i64 %reused.next, ptr %reused.at
  call void @pool_count_live(i64 %bytes)
  call void @gradir.pool_unlock()
  br label %give
fresh:
  call void @gradir.pool_unlock()
  %total = add i64 %bytes, 64
  %large = icmp uge i64 %total, HUGE_FROM
  %boundary = select i1 %large, i64 HUGE_PAGE, i64 64
  br label %ask
ask:
  %again = phi i1 [false, %fresh], [true, %pressed]
  %status = call i32 @posix_memalign(ptr %base.at, i64 %boundary, i64 %total)
  %failed = icmp ne i32 %status, 0
  br i1 %failed, label %short, label %got
short:
  br i1 %again, label %refuse, label %pressed
pressed:
  call void @gradir.trim()
  br label %ask
got:
  %base = load ptr, ptr %base.at
  br i1 %large, label %advise, label %mark
advise:
  call void @advise_huge(ptr %base, i64 %total)
  br label %mark
mark:
  store i64 %list, ptr %base
  %bytes.at = getelementptr i8, ptr %base, i64 8
  store i64 %bytes, ptr %bytes.at
  call void @pool_lock()
  call void @pool_count_live(i64 %bytes)
  call void @gradir.pool_unlock()
  br label %give
give:
  %block = phi ptr [%head, %reuse], [%base, %mark]
  %user = getelementptr i8, ptr %block, i64 64
  ret ptr %user
refuse:
  ret ptr null
}

define internal void @pool_count_live(i64 %bytes) {
  %live = load i64, ptr @gradir.pool
  %live.more = add i64 %live, %bytes
  store i64 %live.more, ptr @gradir.pool
  %peak.at = getelementptr i64, ptr @gradir.pool, i64 1
  %peak = load i64, ptr %peak.at
  %peak.new = call i64 @llvm.umax.i64(i64 %peak, i64 %live.more)
  store i64 %peak.new, ptr %peak.at
  ret void
}

define void @gradir.release(ptr %context, ptr %user) {
entry:
  %nothing = icmp eq ptr %user, null
  br i1 %nothing, label %done, label %some
some:
  %block = getelementptr i8, ptr %user, i64 -64
  %list = load i64, ptr %block
  %bytes.at = getelementptr i8, ptr %block, i64 8
  %bytes = load i64, ptr %bytes.at
  %head.at = getelementptr ptr, ptr @pool.free, i64 %list
  call void @pool_lock()
  %live = load i64, ptr @gradir.pool
  %live.less = sub i64 %live, %bytes
  store i64 %live.less, ptr @gradir.pool
  %cached.at = getelementptr i64, ptr @gradir.pool, i64 2
  %cached = load i64, ptr %cached.at
  %cached.more = add i64 %cached, %bytes
  %limit.at = getelementptr i64, ptr @gradir.pool, i64 3
  %limit = load i64, ptr %limit.at
  %keep = icmp ule i64 %cached.more, %limit
  br i1 %keep, label %push, label %drop
push:
  store i64 %cached.more, ptr %cached.at
  %head = load ptr, ptr %head.at
  %next.at = getelementptr i8, ptr %block, i64 16
  store ptr %head, ptr %next.at
  store ptr %block, ptr %head.at
  call void @gradir.pool_unlock()
  br label %done
drop:
  call void @gradir.pool_unlock()
  call void @free(ptr %block)
  br label %done
done:
  ret void
}

define void @gradir.trim() {
entry:
  call void @pool_lock()
  br label %list
list:
  %index = phi i64 [0, %entry], [%index.next, %advance]
  %head.at = getelementptr ptr, ptr @pool.free, i64 %index
  br label %block
block:
  %head = load ptr, ptr %head.at
  %none = icmp eq ptr %head, null
  br i1 %none, label %advance, label %drop
drop:
  %next.at = getelementptr i8, ptr %head, i64 16
  %next = load ptr, ptr %next.at
  store ptr %next, ptr %head.at
  call void @free(ptr %head)
  br label %block
advance:
  %index.next = add i64 %index, 1
  %more = icmp ult i64 %index.next, 512
  br i1 %more, label %list, label %done
done:
  %cached.at = getelementptr i64, ptr @gradir.pool, i64 2
  store i64 0, ptr %cached.at
  call void @gradir.pool_unlock()
  ret void
}

declare i64 @llvm.umax.i64(i64, i64)
"""
