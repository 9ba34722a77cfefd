"""LLVM IR of the call from Python into compiled code: one native function that reads plans, no code per signature.

`@gradir.call(self, args, nargs, kwnames)` is a METH_FASTCALL | METH_KEYWORDS function whose `self` is a tuple of a capsule over a
`Dispatch` and of whatever keeps that, the plans and the code behind them alive (see `gradir.runtime.dispatch`). A dispatch lists
entries, the newest first: a tree of nodes for the arguments, one for the result, and the plan of a compiled function. The first entry
whose nodes match (`arguments`) is called: arena from the pool, outputs from the pool, from donated inputs (writable, apart from all
others) or those of the keyword `out` (`results`), the GIL released unless the plan says that the code takes less time than that, the
result packed. Anything else goes, with the same arguments, to the dispatch's Python callable `slow`, which converts, compiles or explains.

The context, the slots and all tables of a call live on the caller's stack, so calls in flight share nothing.
"""

from __future__ import annotations

from gradir.runtime.native import arguments, results

PYTHON_SYMBOLS = (
    *arguments.PYTHON_SYMBOLS,
    *results.PYTHON_SYMBOLS,
    "PyCapsule_GetPointer",
    "PyEval_RestoreThread",
    "PyEval_SaveThread",
    "PyObject_CallFunction",
    "PyObject_Vectorcall",
)
"""What the wrapper calls in the interpreter; their addresses are given at link time, so this code never goes to disk."""

TYPES_IR = """
; entry, failed, inputs, outputs, arena bytes, slots, threads, symbols, specs, ndarray, new array, memory handler, callback, user, limits,
; whether it is brief, the input whose memory each output takes (below zero: none; null: none does)
%Plan = type { ptr, ptr, i64, i64, i64, i64, i64, i64, ptr, ptr, ptr, ptr, ptr, ptr, ptr, i64, ptr }
; plan, positional arguments, keywords, their names, argument of each node, nodes, node of the result, objects held at most
%Entry = type { ptr, i64, i64, ptr, ptr, ptr, ptr, i64 }
; word that is not 0 while a thread traces, entries, pointers to them, slow, the keyword of given outputs (or null)
%Dispatch = type { ptr, i64, ptr, ptr, ptr }
"""

_CALL_IR = """
declare ptr @PyCapsule_GetPointer(ptr, ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare ptr @PyObject_CallFunction(ptr, ptr, ...)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)

@failure.format = internal constant [8 x i8] c"iLLLLLL\\00"
@mismatch = internal constant i64 0

; Let the plan's `failed` raise: null, with the exception set.
define internal ptr @raise(ptr %failed, i32 %status, ptr %error) {
  %code = load i64, ptr %error
  %op.at = getelementptr i64, ptr %error, i64 1
  %op = load i64, ptr %op.at
  %a.at = getelementptr i64, ptr %error, i64 2
  %a = load i64, ptr %a.at
  %b.at = getelementptr i64, ptr %error, i64 3
  %b = load i64, ptr %b.at
  %c.at = getelementptr i64, ptr %error, i64 4
  %c = load i64, ptr %c.at
  %d.at = getelementptr i64, ptr %error, i64 5
  %d = load i64, ptr %d.at
  %nothing = call ptr (ptr, ptr, ...) @PyObject_CallFunction(ptr %failed, ptr @failure.format,
    i32 %status, i64 %code, i64 %op, i64 %a, i64 %b, i64 %c, i64 %d)
  ret ptr %nothing
}

; Whether every bound size keeps its limits: rows of min, max, multiple.
define internal i1 @within_limits(ptr %limits, ptr %symbols, i64 %count) {
entry:
  %unlimited = icmp eq ptr %limits, null
  br i1 %unlimited, label %yes, label %test
test:
  %s = phi i64 [0, %entry], [%s.next, %one]
  %within = phi i1 [true, %entry], [%still, %one]
  %left = icmp ult i64 %s, %count
  %go.on = and i1 %left, %within
  br i1 %go.on, label %one, label %done
one:
  %size.at = getelementptr i64, ptr %symbols, i64 %s
  %size = load i64, ptr %size.at
  %row = getelementptr [3 x i64], ptr %limits, i64 %s
  %least = load i64, ptr %row
  %most.at = getelementptr i64, ptr %row, i64 1
  %most = load i64, ptr %most.at
  %multiple.at = getelementptr i64, ptr %row, i64 2
  %multiple = load i64, ptr %multiple.at
  %enough = icmp sge i64 %size, %least
  %few = icmp sle i64 %size, %most
  %rest = urem i64 %size, %multiple
  %even = icmp eq i64 %rest, 0
  %between = and i1 %enough, %few
  %still = and i1 %between, %even
  %s.next = add i64 %s, 1
  br label %test
done:
  ret i1 %within
yes:
  ret i1 true
}

; Arena, context, GIL: the status of the run. 2 when there is no memory.
define internal i32 @run(ptr %plan, ptr %slots, ptr %slot.end, ptr %error) {
entry:
  %context = alloca [72 x i8], align 16
  %arena.bytes.at = getelementptr %Plan, ptr %plan, i64 0, i32 4
  %arena.bytes = load i64, ptr %arena.bytes.at
  %wants.arena = icmp sgt i64 %arena.bytes, 0
  br i1 %wants.arena, label %take, label %prepare
take:
  %arena.new = call ptr @gradir.allocate(ptr null, i64 %arena.bytes, i64 64)
  %no.arena = icmp eq ptr %arena.new, null
  store ptr %arena.new, ptr %slot.end
  br i1 %no.arena, label %short, label %prepare
prepare:
  %arena = phi ptr [null, %entry], [%arena.new, %take]
  %function = load ptr, ptr %plan
  store i64 2, ptr %context
  %parallel.at = getelementptr i8, ptr %context, i64 8
  store ptr @gradir.parallel_for, ptr %parallel.at
  %allocate.at = getelementptr i8, ptr %context, i64 16
  store ptr @gradir.allocate, ptr %allocate.at
  %free.at = getelementptr i8, ptr %context, i64 24
  store ptr @gradir.release, ptr %free.at
  %error.at = getelementptr i8, ptr %context, i64 32
  store ptr %error, ptr %error.at
  %threads.from = getelementptr %Plan, ptr %plan, i64 0, i32 6
  %threads = load i64, ptr %threads.from
  %threads.at = getelementptr i8, ptr %context, i64 40
  store i64 %threads, ptr %threads.at
  %callback.from = getelementptr %Plan, ptr %plan, i64 0, i32 12
  %callback = load ptr, ptr %callback.from
  %callback.at = getelementptr i8, ptr %context, i64 48
  store ptr %callback, ptr %callback.at
  %user.at = getelementptr i8, ptr %context, i64 56
  %user.from = getelementptr %Plan, ptr %plan, i64 0, i32 13
  %user = load ptr, ptr %user.from
  store ptr %user, ptr %user.at
  %device.at = getelementptr i8, ptr %context, i64 64
  store ptr null, ptr %device.at
  %brief.at = getelementptr %Plan, ptr %plan, i64 0, i32 15
  %brief = load i64, ptr %brief.at
  %keep = icmp ne i64 %brief, 0
  br i1 %keep, label %at.once, label %without
at.once:
  %status.brief = call i32 %function(ptr %context, ptr %slots)
  br label %ran
without:
  %thread.state = call ptr @PyEval_SaveThread()
  %status.long = call i32 %function(ptr %context, ptr %slots)
  call void @PyEval_RestoreThread(ptr %thread.state)
  br label %ran
ran:
  %status = phi i32 [%status.brief, %at.once], [%status.long, %without]
  %no.block = icmp eq ptr %arena, null
  br i1 %no.block, label %done, label %give.back
give.back:
  call void @gradir.release(ptr null, ptr %arena)
  br label %done
done:
  ret i32 %status
short:
  ret i32 2
}

; Call one entry: its result, null with an exception, or @mismatch when these are not arguments that it takes as they are.
define internal ptr @attempt(ptr %entry, ptr %args, i64 %nargs, ptr %kwnames, i64 %keywords, ptr %out) {
start:
  %positions.at = getelementptr %Entry, ptr %entry, i64 0, i32 1
  %positions = load i64, ptr %positions.at
  %wanted.at = getelementptr %Entry, ptr %entry, i64 0, i32 2
  %wanted = load i64, ptr %wanted.at
  %right.positions = icmp eq i64 %positions, %nargs
  %right.keywords = icmp eq i64 %wanted, %keywords
  %right = and i1 %right.positions, %right.keywords
  br i1 %right, label %names, label %other
names:
  %names.at = getelementptr %Entry, ptr %entry, i64 0, i32 3
  %names.table = load ptr, ptr %names.at
  br label %name
name:
  %n = phi i64 [0, %names], [%n.next, %name.one]
  %more.names = icmp ult i64 %n, %wanted
  br i1 %more.names, label %name.one, label %prepare
name.one:
  %name.have = call ptr @PyTuple_GetItem(ptr %kwnames, i64 %n)
  %name.at = getelementptr ptr, ptr %names.table, i64 %n
  %name.want = load ptr, ptr %name.at
  %same.name = icmp eq ptr %name.have, %name.want
  %n.next = add i64 %n, 1
  br i1 %same.name, label %name, label %other
prepare:
  %plan = load ptr, ptr %entry
  %inputs.at = getelementptr %Plan, ptr %plan, i64 0, i32 2
  %inputs = load i64, ptr %inputs.at
  %outputs.at = getelementptr %Plan, ptr %plan, i64 0, i32 3
  %outputs = load i64, ptr %outputs.at
  %slot.count.at = getelementptr %Plan, ptr %plan, i64 0, i32 5
  %slot.count = load i64, ptr %slot.count.at
  %symbol.count.at = getelementptr %Plan, ptr %plan, i64 0, i32 7
  %symbol.count = load i64, ptr %symbol.count.at
  %specs.at = getelementptr %Plan, ptr %plan, i64 0, i32 8
  %specs = load ptr, ptr %specs.at
  %ndarray.at = getelementptr %Plan, ptr %plan, i64 0, i32 9
  %ndarray = load ptr, ptr %ndarray.at
  %held.count.at = getelementptr %Entry, ptr %entry, i64 0, i32 7
  %held.count = load i64, ptr %held.count.at
  %tensors = add i64 %inputs, %outputs
  %error = alloca [48 x i8], align 16
  %state = alloca %State, align 16
  %cursor = alloca ptr
  %slots = alloca i64, i64 %slot.count, align 16
  %symbols = alloca i64, i64 %symbol.count, align 16
  %ranges = alloca [2 x ptr], i64 %tensors, align 16
  %numbers = alloca i64, i64 %inputs, align 16
  %held = alloca ptr, i64 %held.count, align 16
  %arrays = alloca ptr, i64 %outputs, align 16
  %leaves = alloca ptr, i64 %tensors, align 16
  call void @llvm.memset.p0.i64(ptr %error, i8 0, i64 48, i1 false)
  %symbol.bytes = shl i64 %symbol.count, 3
  call void @llvm.memset.p0.i64(ptr %symbols, i8 -1, i64 %symbol.bytes, i1 false)
  store ptr %slots, ptr %state
  %state.spec = getelementptr %State, ptr %state, i64 0, i32 1
  store ptr %specs, ptr %state.spec
  %state.range = getelementptr %State, ptr %state, i64 0, i32 2
  store ptr %ranges, ptr %state.range
  %state.number = getelementptr %State, ptr %state, i64 0, i32 3
  store ptr %numbers, ptr %state.number
  %state.held = getelementptr %State, ptr %state, i64 0, i32 4
  store ptr %held, ptr %state.held
  %state.ndarray = getelementptr %State, ptr %state, i64 0, i32 5
  store ptr %ndarray, ptr %state.ndarray
  %state.symbols = getelementptr %State, ptr %state, i64 0, i32 6
  store ptr %symbols, ptr %state.symbols
  %state.record = getelementptr %State, ptr %state, i64 0, i32 7
  store ptr null, ptr %state.record
  %state.leaf = getelementptr %State, ptr %state, i64 0, i32 8
  store ptr %leaves, ptr %state.leaf
  %places.at = getelementptr %Entry, ptr %entry, i64 0, i32 4
  %places = load ptr, ptr %places.at
  %nodes.at = getelementptr %Entry, ptr %entry, i64 0, i32 5
  %nodes = load ptr, ptr %nodes.at
  %all = add i64 %nargs, %keywords
  br label %argument
argument:
  %i = phi i64 [0, %prepare], [%i.next, %argument.one]
  %more.arguments = icmp ult i64 %i, %all
  br i1 %more.arguments, label %argument.one, label %taken
argument.one:
  %place.at = getelementptr i64, ptr %places, i64 %i
  %place = load i64, ptr %place.at
  %object.at = getelementptr ptr, ptr %args, i64 %place
  %object = load ptr, ptr %object.at
  %node = getelementptr %Node, ptr %nodes, i64 %i
  %matches = call i1 @match(ptr %object, ptr %node, ptr %state)
  %i.next = add i64 %i, 1
  br i1 %matches, label %argument, label %unlike
taken:
  %limits.at = getelementptr %Plan, ptr %plan, i64 0, i32 14
  %limits = load ptr, ptr %limits.at
  %allowed = call i1 @within_limits(ptr %limits, ptr %symbols, i64 %symbol.count)
  br i1 %allowed, label %results, label %unlike
unlike:
  %unlike.end = load ptr, ptr %state.held
  call void @drop_all(ptr %held, ptr %unlike.end)
  br label %other
other:
  ret ptr @mismatch
results:
  %result.at = getelementptr %Entry, ptr %entry, i64 0, i32 6
  %result.node = load ptr, ptr %result.at
  %no.out = icmp eq ptr %out, null
  %taken.at = getelementptr %Plan, ptr %plan, i64 0, i32 16
  %takes = load ptr, ptr %taken.at
  %takes.none = icmp eq ptr %takes, null
  br i1 %no.out, label %new, label %unless.taken
unless.taken:
  br i1 %takes.none, label %given, label %unlike
given:
  store ptr %arrays, ptr %state.record
  %outs.match = call i1 @match(ptr %out, ptr %result.node, ptr %state)
  %ranges.first = getelementptr [2 x ptr], ptr %ranges, i64 %inputs
  %ranges.end = load ptr, ptr %state.range
  %overlap = call i1 @ranges_overlap(ptr %ranges, ptr %ranges.first, ptr %ranges.end)
  %apart = xor i1 %overlap, true
  %usable = and i1 %outs.match, %apart
  br i1 %usable, label %go, label %unusable
unusable:
  %unusable.end = load ptr, ptr %state.record
  call void @drop_all(ptr %arrays, ptr %unusable.end)
  br label %unlike
new:
  %o = phi i64 [0, %results], [%o.next, %new.stored]
  %more.outputs = icmp ult i64 %o, %outputs
  br i1 %more.outputs, label %new.one, label %go
new.one:
  br i1 %takes.none, label %new.fresh, label %new.source
new.source:
  %source.at = getelementptr i64, ptr %takes, i64 %o
  %source = load i64, ptr %source.at
  %source.none = icmp slt i64 %source, 0
  br i1 %source.none, label %new.fresh, label %new.donated
new.donated:
  %donated.at = getelementptr ptr, ptr %leaves, i64 %source
  %donated = load ptr, ptr %donated.at
  %donated.exists = icmp ne ptr %donated, null
  %donated.apart = call i1 @lies_apart(ptr %ranges, i64 %source, i64 %inputs)
  %donated.usable = and i1 %donated.exists, %donated.apart
  br i1 %donated.usable, label %new.claimed, label %new.refused
new.claimed:
  %claimed = call i1 @take_array(ptr %donated, ptr %state, i32 1281)
  br i1 %claimed, label %new.taken, label %new.refused
new.taken:
  call void @Py_IncRef(ptr %donated)
  br label %new.stored
new.refused:
  %refused.end = getelementptr ptr, ptr %arrays, i64 %o
  call void @drop_all(ptr %arrays, ptr %refused.end)
  br label %unlike
new.fresh:
  %array = call ptr @make_output(ptr %plan, ptr %state)
  %no.array = icmp eq ptr %array, null
  br i1 %no.array, label %short, label %new.stored
new.stored:
  %result = phi ptr [%donated, %new.taken], [%array, %new.fresh]
  %array.at = getelementptr ptr, ptr %arrays, i64 %o
  store ptr %result, ptr %array.at
  %o.next = add i64 %o, 1
  br label %new
short:
  call void @PyErr_Clear()
  br label %fail
go:
  %slot.end = load ptr, ptr %state
  %status = call i32 @run(ptr %plan, ptr %slots, ptr %slot.end, ptr %error)
  %good = icmp eq i32 %status, 0
  br i1 %good, label %pack, label %fail
pack:
  store ptr %arrays, ptr %cursor
  %packed = call ptr @build(ptr %result.node, ptr %cursor)
  br label %finish
fail:
  %made = phi i64 [%o, %short], [%outputs, %go]
  %reason = phi i32 [2, %short], [%status, %go]
  %failed.at = getelementptr %Plan, ptr %plan, i64 0, i32 1
  %failed = load ptr, ptr %failed.at
  %raised = call ptr @raise(ptr %failed, i32 %reason, ptr %error)
  br label %finish
finish:
  %answer = phi ptr [%packed, %pack], [%raised, %fail]
  %count = phi i64 [%outputs, %pack], [%made, %fail]
  %arrays.end = getelementptr ptr, ptr %arrays, i64 %count
  call void @drop_all(ptr %arrays, ptr %arrays.end)
  %held.end = load ptr, ptr %state.held
  call void @drop_all(ptr %held, ptr %held.end)
  ret ptr %answer
}

define ptr @gradir.call(ptr %self, ptr %args, i64 %nargs, ptr %kwnames) {
entry:
  %capsule = call ptr @PyTuple_GetItem(ptr %self, i64 0)
  %dispatch = call ptr @PyCapsule_GetPointer(ptr %capsule, ptr null)
  %modes = load ptr, ptr %dispatch
  %mode = load i64, ptr %modes
  %plain = icmp eq i64 %mode, 0
  br i1 %plain, label %keywords, label %slow
keywords:
  %named = icmp ne ptr %kwnames, null
  br i1 %named, label %look, label %search
look:
  %count = call i64 @PyTuple_Size(ptr %kwnames)
  %some = icmp ugt i64 %count, 0
  br i1 %some, label %last, label %search
last:
  %before = sub i64 %count, 1
  %name = call ptr @PyTuple_GetItem(ptr %kwnames, i64 %before)
  %out.name.at = getelementptr %Dispatch, ptr %dispatch, i64 0, i32 4
  %out.name = load ptr, ptr %out.name.at
  %is.out = icmp eq ptr %name, %out.name
  %out.place = add i64 %nargs, %before
  %out.at = getelementptr ptr, ptr %args, i64 %out.place
  %out.object = load ptr, ptr %out.at
  %out.given = select i1 %is.out, ptr %out.object, ptr null
  %is.none = icmp eq ptr %out.given, @_Py_NoneStruct
  %out.found = select i1 %is.none, ptr null, ptr %out.given
  %others = select i1 %is.out, i64 %before, i64 %count
  br label %search
search:
  %names = phi i64 [0, %keywords], [0, %look], [%others, %last]
  %out = phi ptr [null, %keywords], [null, %look], [%out.found, %last]
  %entries.at = getelementptr %Dispatch, ptr %dispatch, i64 0, i32 1
  %entries = load i64, ptr %entries.at
  %table.at = getelementptr %Dispatch, ptr %dispatch, i64 0, i32 2
  %table = load ptr, ptr %table.at
  br label %try
try:
  %e = phi i64 [0, %search], [%e.next, %unlike]
  %more = icmp ult i64 %e, %entries
  br i1 %more, label %one, label %slow
one:
  %entry.at = getelementptr ptr, ptr %table, i64 %e
  %entry.found = load ptr, ptr %entry.at
  %answer = call ptr @attempt(ptr %entry.found, ptr %args, i64 %nargs, ptr %kwnames, i64 %names, ptr %out)
  %mismatch = icmp eq ptr %answer, @mismatch
  br i1 %mismatch, label %unlike, label %done
unlike:
  %e.next = add i64 %e, 1
  br label %try
done:
  ret ptr %answer
slow:
  %slow.at = getelementptr %Dispatch, ptr %dispatch, i64 0, i32 3
  %slow.callable = load ptr, ptr %slow.at
  %slow.answer = call ptr @PyObject_Vectorcall(ptr %slow.callable, ptr %args, i64 %nargs, ptr %kwnames)
  ret ptr %slow.answer
}

declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
"""

WRAPPER_IR = TYPES_IR + arguments.ARGUMENTS_IR + results.RESULTS_IR + _CALL_IR
