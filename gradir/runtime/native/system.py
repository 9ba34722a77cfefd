"""LLVM IR of what the thread pool asks of an operating system: sleep on a word, wake the sleepers, start a thread, yield, keep apart.

Chosen by the target triple. Linux has futexes; macOS `__ulock_wait` and `__ulock_wake`, which its own C++ library waits with (a public
name, `os_sync_wait_on_address`, came only with macOS 14.4); Windows `WaitOnAddress`. Where there is none of them a sleeper polls.
All are internal functions, `@sys.wait(word, seen)`, `@sys.wake(word)`, `@sys.spawn(function, argument)`, `@sys.yield()`: a wait may end
early, so whoever sleeps looks at the word again. `@sys.processor()` is where the caller runs (-1: nobody knows), `@sys.self()` a number of
the thread, `@sys.keep_off(threads, count, processor, least)` lets the threads of a table run wherever the caller may but on that processor,
if the caller may run on `least` processors. Linux only; elsewhere the scheduler decides alone.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class System:
    """The functions in IR, and the names of what they call: symbol -> library that has it ("" for the process itself)."""

    ir: str
    imports: dict[str, str]


FUTEX_CALL = {"x86_64": 202, "aarch64": 98, "arm64": 98, "riscv64": 98}
"""Number of the futex system call on Linux, by architecture."""

GETTID_CALL = {"x86_64": 186, "aarch64": 178, "arm64": 178, "riscv64": 178}
"""Number of the system call that gives a thread's number on Linux."""

_PTHREADS = """
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(ptr)
declare i32 @sched_yield()

define internal i1 @sys.spawn(ptr %function, ptr %argument) {
entry:
  %handle = alloca ptr
  %status = call i32 @pthread_create(ptr %handle, ptr null, ptr %function, ptr %argument)
  %failed = icmp ne i32 %status, 0
  br i1 %failed, label %no, label %yes
yes:
  %thread = load ptr, ptr %handle
  %x0 = call i32 @pthread_detach(ptr %thread)
  ret i1 true
no:
  ret i1 false
}

define internal void @sys.yield() {
  %x0 = call i32 @sched_yield()
  ret void
}
"""

_FUTEX = """
declare i64 @syscall(i64, ...)

; FUTEX_WAIT_PRIVATE and FUTEX_WAKE_PRIVATE
define internal void @sys.wait(ptr %word, i32 %seen) {
  %x0 = call i64 (i64, ...) @syscall(i64 FUTEX, ptr %word, i32 128, i32 %seen, ptr null, ptr null, i32 0)
  ret void
}

define internal void @sys.wake(ptr %word) {
  %x0 = call i64 (i64, ...) @syscall(i64 FUTEX, ptr %word, i32 129, i32 1073741823, ptr null, ptr null, i32 0)
  ret void
}
"""

_ULOCK = """
declare i32 @__ulock_wait(i32, ptr, i64, i32)
declare i32 @__ulock_wake(i32, ptr, i64)

; UL_COMPARE_AND_WAIT | ULF_NO_ERRNO without a timeout; the same with ULF_WAKE_ALL
define internal void @sys.wait(ptr %word, i32 %seen) {
  %value = zext i32 %seen to i64
  %x0 = call i32 @__ulock_wait(i32 16777217, ptr %word, i64 %value, i32 0)
  ret void
}

define internal void @sys.wake(ptr %word) {
  %x0 = call i32 @__ulock_wake(i32 16777473, ptr %word, i64 0)
  ret void
}
"""

_POLL = """
declare i32 @usleep(i32)

define internal void @sys.wait(ptr %word, i32 %seen) {
  %x0 = call i32 @usleep(i32 100)
  ret void
}

define internal void @sys.wake(ptr %word) {
  ret void
}
"""

_WINDOWS = """
declare i32 @WaitOnAddress(ptr, ptr, i64, i32)
declare void @WakeByAddressAll(ptr)
declare ptr @CreateThread(ptr, i64, ptr, ptr, i32, ptr)
declare i32 @CloseHandle(ptr)
declare i32 @SwitchToThread()

define internal void @sys.wait(ptr %word, i32 %seen) {
  %compare = alloca i32
  store i32 %seen, ptr %compare
  %x0 = call i32 @WaitOnAddress(ptr %word, ptr %compare, i64 4, i32 -1)
  ret void
}

define internal void @sys.wake(ptr %word) {
  call void @WakeByAddressAll(ptr %word)
  ret void
}

define internal i1 @sys.spawn(ptr %function, ptr %argument) {
entry:
  %thread = call ptr @CreateThread(ptr null, i64 0, ptr %function, ptr %argument, i32 0, ptr null)
  %failed = icmp eq ptr %thread, null
  br i1 %failed, label %no, label %yes
yes:
  %x0 = call i32 @CloseHandle(ptr %thread)
  ret i1 true
no:
  ret i1 false
}

define internal void @sys.yield() {
  %x0 = call i32 @SwitchToThread()
  ret void
}
"""

_KEEP_OFF = """
declare i32 @sched_getcpu()
declare i32 @sched_getaffinity(i32, i64, ptr)
declare i32 @sched_setaffinity(i32, i64, ptr)
declare i64 @llvm.ctpop.i64(i64)

define internal i32 @sys.processor() {
  %here = call i32 @sched_getcpu()
  ret i32 %here
}

define internal i32 @sys.self() {
  %long = call i64 (i64, ...) @syscall(i64 GETTID)
  %short = trunc i64 %long to i32
  ret i32 %short
}

define internal void @sys.keep_off(ptr %threads, i64 %count, i32 %processor, i64 %least) {
entry:
  %mask = alloca [16 x i64], align 16
  call void @llvm.memset.p0.i64(ptr %mask, i8 0, i64 128, i1 false)
  %status = call i32 @sched_getaffinity(i32 0, i64 128, ptr %mask)
  %failed = icmp slt i32 %status, 0
  %here = zext i32 %processor to i64
  %beyond = icmp uge i64 %here, 1024
  %unknown = or i1 %failed, %beyond
  br i1 %unknown, label %done, label %sum
sum:
  %w = phi i64 [0, %entry], [%w.next, %sum]
  %so.far = phi i64 [0, %entry], [%total, %sum]
  %word.at = getelementptr i64, ptr %mask, i64 %w
  %word = load i64, ptr %word.at
  %bits = call i64 @llvm.ctpop.i64(i64 %word)
  %total = add i64 %so.far, %bits
  %w.next = add i64 %w, 1
  %more = icmp ult i64 %w.next, 16
  br i1 %more, label %sum, label %decide
decide:
  %few = icmp ult i64 %total, %least
  %only = icmp ult i64 %total, 2
  %leave = or i1 %few, %only
  br i1 %leave, label %done, label %clear
clear:
  %which = lshr i64 %here, 6
  %place = and i64 %here, 63
  %bit = shl i64 1, %place
  %others = xor i64 %bit, -1
  %own.at = getelementptr i64, ptr %mask, i64 %which
  %own = load i64, ptr %own.at
  %without = and i64 %own, %others
  store i64 %without, ptr %own.at
  br label %each
each:
  %k = phi i64 [0, %clear], [%k.next, %next]
  %left = icmp ult i64 %k, %count
  br i1 %left, label %one, label %done
one:
  %thread.at = getelementptr i32, ptr %threads, i64 %k
  %thread = load atomic i32, ptr %thread.at acquire, align 4
  %started = icmp ne i32 %thread, 0
  br i1 %started, label %set, label %next
set:
  %x0 = call i32 @sched_setaffinity(i32 %thread, i64 128, ptr %mask)
  br label %next
next:
  %k.next = add i64 %k, 1
  br label %each
done:
  ret void
}
"""

_ANYWHERE = """
define internal i32 @sys.processor() {
  ret i32 -1
}

define internal i32 @sys.self() {
  ret i32 0
}

define internal void @sys.keep_off(ptr %threads, i64 %count, i32 %processor, i64 %least) {
  ret void
}
"""

_POSIX = {"pthread_create": "", "pthread_detach": "", "sched_yield": ""}
_SYNCH = "api-ms-win-core-synch-l1-2-0"


def system_of(triple: str) -> System:
    """The primitives of the system that an LLVM triple names."""
    machine, _, rest = triple.partition("-")
    if "windows" in rest:
        names = dict.fromkeys(("CreateThread", "CloseHandle", "SwitchToThread"), "kernel32")
        return System(_WINDOWS + _ANYWHERE, names | {"WaitOnAddress": _SYNCH, "WakeByAddressAll": _SYNCH})
    if "apple" in rest:
        return System(_PTHREADS + _ULOCK + _ANYWHERE, _POSIX | {"__ulock_wait": "", "__ulock_wake": ""})
    if "linux" in rest and machine in FUTEX_CALL:
        calls = _FUTEX.replace("FUTEX,", f"{FUTEX_CALL[machine]},") + _KEEP_OFF.replace("GETTID", str(GETTID_CALL[machine]))
        names = dict.fromkeys(("syscall", "sched_getcpu", "sched_getaffinity", "sched_setaffinity"), "")
        return System(_PTHREADS + calls, _POSIX | names)
    return System(_PTHREADS + _POLL + _ANYWHERE, _POSIX | {"usleep": ""})


def pause_ir(triple: str) -> str:
    """The instruction of a spin loop."""
    machine = triple.partition("-")[0]
    if machine in ("x86_64", "amd64"):
        return "call void @llvm.x86.sse2.pause()"
    return "call void @llvm.aarch64.hint(i32 1)" if machine in ("aarch64", "arm64") else 'fence syncscope("singlethread") seq_cst'
