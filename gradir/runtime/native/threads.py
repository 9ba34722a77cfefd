"""The process's one thread pool: work is claimed by atomic tickets, the caller works too.

One `parallel_for` runs at a time. A nested one, or one of a second caller, finds the pool taken and runs inline, so nothing
ever waits for the pool and nothing can deadlock. Workers are created by the first loop that wants them (also after a fork, which
leaves the child without any). After its last chunk a worker spins for some 15 us, then yields its processor to whoever wants it for some
150 us, then sleeps; so does a caller whose last chunks are still at work elsewhere: on a busy machine those may have lost their processor.

Workers run wherever the caller may, but not on the caller's processor: a scheduler that wakes them there, or that takes two threads which
yield to each other for one, has the caller do all the work while another processor idles. Where a caller has moved, so do they.

The ticket word is `generation:16 | chunks:24 | next:24`: one atomic add both claims a chunk and says of which job.
A claimed chunk keeps its job alive, because the caller leaves only when all chunks are complete; so `@job.*` are stable for whoever
holds a valid claim. How a range is cut depends on its length, grain and number of threads only, never on who works: into
chunks that differ by one at most, the longer ones first.
Measured 0.03 to 0.3 us to dispatch to spinning workers, 0.3 to yielding ones, 10 to sleeping ones, which begin 50 us later.
"""

from __future__ import annotations

from gradir.runtime.native.system import pause_ir, system_of

CHUNKS_PER_THREAD = 4
"""More chunks balance better on a busy machine, fewer keep neighbouring rows in one cache."""

SPINS = 1000
"""Pauses before a thread sleeps: some 15 us where a pause takes 40 cycles."""

YIELDS = 500
"""Then it lets others have the processor so many times before it sleeps: some 150 us where nobody wants it. Waking takes 50 us on a
virtual machine, because an idle processor is given back to the host, and 10 of them are the caller's."""


KEPT_OFF = 64
"""So many workers at most are kept off the caller's processor."""


def threads_ir(triple: str) -> str:
    """LLVM IR of the pool: `@gradir.parallel_for` of the context, `@gradir.threads_reset` for a forked child, `@gradir.workers`."""
    pause = pause_ir(triple)
    declaration = f"declare void @{pause.partition('@')[2].replace('i32 1', 'i32')}\n" if "@" in pause else ""
    text = system_of(triple).ir + _POOL_IR.replace("PAUSE_DECLARATION\n", declaration)
    marks = {"KEPT_OFF_BYTES": 4 * KEPT_OFF, "KEPT_OFF": KEPT_OFF, "PAUSE": pause, "SPINS_AND_YIELDS": SPINS + YIELDS, "SPINS": SPINS}
    for mark, code in (marks | {"CHUNKS_PER_THREAD": CHUNKS_PER_THREAD}).items():
        text = text.replace(mark, str(code))
    return text


_POOL_IR = """
PAUSE_DECLARATION
@ticket = internal global i64 0, align 128
@complete = internal global i32 0, align 128
@caller.sleeps = internal global i32 0, align 4
@taken = internal global i32 0, align 128
@sleepers = internal global i32 0, align 128
@sleep.word = internal global i32 0, align 4
@gradir.workers = global i64 0, align 128
@job.function = internal global ptr null
@job.context = internal global ptr null
@job.closure = internal global ptr null
@job.chunk = internal global i64 0
@job.longer = internal global i64 0
@job.threads = internal global i64 0
@worker.threads = internal global [KEPT_OFF x i32] zeroinitializer
@kept.off = internal global i32 -1, align 4

define internal i1 @open_for(i64 %me) {
  %word = load atomic i64, ptr @ticket seq_cst, align 8
  %next = and i64 %word, 16777215
  %above = lshr i64 %word, 24
  %chunks = and i64 %above, 16777215
  %left = icmp ult i64 %next, %chunks
  %threads = load i64, ptr @job.threads
  %invited = icmp ult i64 %me, %threads
  %yes = and i1 %left, %invited
  ret i1 %yes
}

define internal void @claim() noinline {
entry:
  br label %loop
loop:
  %word = atomicrmw add ptr @ticket, i64 1 seq_cst
  %next = and i64 %word, 16777215
  %above = lshr i64 %word, 24
  %chunks = and i64 %above, 16777215
  %left = icmp ult i64 %next, %chunks
  br i1 %left, label %run, label %done
run:
  %function = load ptr, ptr @job.function
  %context = load ptr, ptr @job.context
  %closure = load ptr, ptr @job.closure
  %chunk = load i64, ptr @job.chunk
  %longer = load i64, ptr @job.longer
  %short = mul i64 %next, %chunk
  %extra = call i64 @llvm.smin.i64(i64 %next, i64 %longer)
  %lo = add i64 %short, %extra
  %long = icmp slt i64 %next, %longer
  %one.more = zext i1 %long to i64
  %end = add i64 %lo, %chunk
  %hi = add i64 %end, %one.more
  call void %function(ptr %context, ptr %closure, i64 %lo, i64 %hi)
  %before = atomicrmw add ptr @complete, i32 1 seq_cst
  %now = add i32 %before, 1
  %all = trunc i64 %chunks to i32
  %last = icmp eq i32 %now, %all
  br i1 %last, label %finished, label %loop
finished:
  %asleep = load atomic i32, ptr @caller.sleeps seq_cst, align 4
  %to.wake = icmp ne i32 %asleep, 0
  br i1 %to.wake, label %wake, label %loop
wake:
  call void @sys.wake(ptr @complete)
  br label %loop
done:
  ret void
}

define internal ptr @worker(ptr %argument) {
entry:
  %me = ptrtoint ptr %argument to i64
  %number = sub i64 %me, 1
  %listed = icmp ult i64 %number, KEPT_OFF
  br i1 %listed, label %list, label %top
list:
  %self = call i32 @sys.self()
  %self.at = getelementptr i32, ptr @worker.threads, i64 %number
  store atomic i32 %self, ptr %self.at release, align 4
  store atomic i32 -1, ptr @kept.off release, align 4
  br label %top
top:
  br label %spin
spin:
  %count = phi i64 [0, %top], [%count.next, %again], [%count.next, %yield]
  %open = call i1 @open_for(i64 %me)
  br i1 %open, label %go, label %idle
idle:
  %count.next = add i64 %count, 1
  %eager = icmp ult i64 %count.next, SPINS
  br i1 %eager, label %again, label %politely
again:
  PAUSE
  br label %spin
politely:
  %patient = icmp ult i64 %count.next, SPINS_AND_YIELDS
  br i1 %patient, label %yield, label %tired
yield:
  call void @sys.yield()
  br label %spin
tired:
  %seen = load atomic i32, ptr @sleep.word seq_cst, align 4
  %x0 = atomicrmw add ptr @sleepers, i32 1 seq_cst
  %open.late = call i1 @open_for(i64 %me)
  br i1 %open.late, label %rise, label %sleep
sleep:
  call void @sys.wait(ptr @sleep.word, i32 %seen)
  br label %rise
rise:
  %x1 = atomicrmw sub ptr @sleepers, i32 1 seq_cst
  br label %top
go:
  call void @claim()
  br label %top
}

define internal void @keep_off(i64 %threads) {
entry:
  %here = call i32 @sys.processor()
  %before = load atomic i32, ptr @kept.off acquire, align 4
  %as.before = icmp eq i32 %here, %before
  br i1 %as.before, label %done, label %move
move:
  store atomic i32 %here, ptr @kept.off release, align 4
  %workers = load i64, ptr @gradir.workers
  %count = call i64 @llvm.smin.i64(i64 %workers, i64 KEPT_OFF)
  call void @sys.keep_off(ptr @worker.threads, i64 %count, i32 %here, i64 %threads)
  br label %done
done:
  ret void
}

define internal void @hire(i64 %wanted) {
entry:
  br label %loop
loop:
  %have = load i64, ptr @gradir.workers
  %enough = icmp sge i64 %have, %wanted
  br i1 %enough, label %done, label %create
create:
  %me = add i64 %have, 1
  %argument = inttoptr i64 %me to ptr
  %started = call i1 @sys.spawn(ptr @worker, ptr %argument)
  br i1 %started, label %created, label %done
created:
  store i64 %me, ptr @gradir.workers
  br label %loop
done:
  ret void
}

define void @gradir.parallel_for(ptr %context, ptr %function, ptr %closure, i64 %n, i64 %grain) {
entry:
  %empty = icmp sle i64 %n, 0
  br i1 %empty, label %done, label %some
some:
  %threads.at = getelementptr i8, ptr %context, i64 40
  %threads = load i64, ptr %threads.at
  %least = call i64 @llvm.smax.i64(i64 %grain, i64 1)
  %alone = icmp sle i64 %threads, 1
  %short = icmp sle i64 %n, %least
  %serial = or i1 %alone, %short
  br i1 %serial, label %inline, label %take
take:
  %old = cmpxchg ptr @taken, i32 0, i32 1 seq_cst seq_cst
  %mine = extractvalue {i32, i1} %old, 1
  br i1 %mine, label %split, label %inline
inline:
  call void %function(ptr %context, ptr %closure, i64 0, i64 %n)
  br label %done
split:
  %others = sub i64 %threads, 1
  call void @hire(i64 %others)
  call void @keep_off(i64 %threads)
  %n.up = add i64 %n, %least
  %n.up1 = sub i64 %n.up, 1
  %most = sdiv i64 %n.up1, %least
  %even = mul i64 %threads, CHUNKS_PER_THREAD
  %chunks = call i64 @llvm.smin.i64(i64 %most, i64 %even)
  %chunk = sdiv i64 %n, %chunks
  %longer = srem i64 %n, %chunks
  store ptr %function, ptr @job.function
  store ptr %context, ptr @job.context
  store ptr %closure, ptr @job.closure
  store i64 %chunk, ptr @job.chunk
  store i64 %longer, ptr @job.longer
  store i64 %threads, ptr @job.threads
  store atomic i32 0, ptr @complete release, align 4
  %word = load atomic i64, ptr @ticket monotonic, align 8
  %generation = lshr i64 %word, 48
  %generation.next = add i64 %generation, 1
  %top = shl i64 %generation.next, 48
  %middle = shl i64 %chunks, 24
  %fresh = or i64 %top, %middle
  %x0 = atomicrmw xchg ptr @ticket, i64 %fresh seq_cst
  %asleep = load atomic i32, ptr @sleepers seq_cst, align 4
  %any = icmp ne i32 %asleep, 0
  br i1 %any, label %wake, label %work
wake:
  %x1 = atomicrmw add ptr @sleep.word, i32 1 seq_cst
  call void @sys.wake(ptr @sleep.word)
  br label %work
work:
  call void @claim()
  br label %wait
wait:
  %spun = phi i64 [0, %work], [%spun.next, %pause], [%spun.next, %yield]
  %have = load atomic i32, ptr @complete acquire, align 4
  %wanted = trunc i64 %chunks to i32
  %all = icmp eq i32 %have, %wanted
  br i1 %all, label %leave, label %hold
hold:
  %spun.next = add i64 %spun, 1
  %eager = icmp ult i64 %spun.next, SPINS
  br i1 %eager, label %pause, label %politely
pause:
  PAUSE
  br label %wait
politely:
  %patient = icmp ult i64 %spun.next, SPINS_AND_YIELDS
  br i1 %patient, label %yield, label %rest
yield:
  call void @sys.yield()
  br label %wait
rest:
  store atomic i32 1, ptr @caller.sleeps seq_cst, align 4
  br label %doze
doze:
  %seen = load atomic i32, ptr @complete seq_cst, align 4
  %complete = icmp eq i32 %seen, %wanted
  br i1 %complete, label %rested, label %asleep.now
asleep.now:
  call void @sys.wait(ptr @complete, i32 %seen)
  br label %doze
rested:
  store atomic i32 0, ptr @caller.sleeps seq_cst, align 4
  br label %leave
leave:
  store atomic i32 0, ptr @taken seq_cst, align 4
  br label %done
done:
  ret void
}

define void @gradir.threads_reset() {
  store i64 0, ptr @gradir.workers
  store i32 -1, ptr @kept.off
  call void @llvm.memset.p0.i64(ptr @worker.threads, i8 0, i64 KEPT_OFF_BYTES, i1 false)
  store i64 0, ptr @ticket
  store i32 0, ptr @complete
  store i32 0, ptr @caller.sleeps
  store i32 0, ptr @sleepers
  store atomic i32 0, ptr @taken seq_cst, align 4
  ret void
}

declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)
"""
