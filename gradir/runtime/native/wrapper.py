"""LLVM IR of the call from Python into compiled code: one native function that reads a plan, no code per signature.

`@gradir.call(self, args, nargs)` is a METH_FASTCALL function whose `self` is a tuple of a capsule over a `Plan` and of whatever
keeps that plan and the code behind it alive (see `gradir.runtime.call`).
It checks every argument by looking into the ndarray struct (exact type, identical dtype object, rank, dims, C-contiguous and aligned),
takes arena and outputs from the pool, releases the GIL around the entry and returns a tuple of new arrays that own their blocks.
Anything it does not recognise goes, with the same arguments, to the plan's Python callable `slow`, which converts or explains.

The struct offsets are those of CPython 3.11+ (with the GIL) and numpy 1.26+; `gradir.runtime.call` probes them before it uses this
function. The context and the slots of a call live on the caller's stack, so calls in flight share nothing.
"""

from __future__ import annotations

PYTHON_SYMBOLS = (
    "PyCapsule_GetPointer",
    "PyCapsule_New",
    "PyErr_Clear",
    "PyEval_RestoreThread",
    "PyEval_SaveThread",
    "PyObject_CallFunction",
    "PyObject_Vectorcall",
    "PyTuple_GetItem",
    "PyTuple_New",
    "PyTuple_SetItem",
    "Py_DecRef",
    "Py_IncRef",
)
"""What the wrapper calls in the interpreter; their addresses are given at link time, so this code never goes to disk."""

WRAPPER_IR = """
declare ptr @PyCapsule_GetPointer(ptr, ptr)
declare ptr @PyCapsule_New(ptr, ptr, ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare ptr @PyObject_CallFunction(ptr, ptr, ...)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare void @PyErr_Clear()
declare ptr @PyTuple_GetItem(ptr, i64)
declare ptr @PyTuple_New(i64)
declare i32 @PyTuple_SetItem(ptr, i64, ptr)
declare void @Py_DecRef(ptr)
declare void @Py_IncRef(ptr)

@failure.format = internal constant [8 x i8] c"iLLLLLL\\00"

%Plan = type { ptr, ptr, ptr, i64, i64, i64, i64, i64, i64, ptr, ptr, ptr, ptr, ptr, ptr, ptr }
%Spec = type { ptr, i64, ptr, i64 }

; Check one argument, store its pointer and dynamic sizes; the next free slot, or null when the array is not plainly right.
define internal ptr @take_argument(ptr %array, ptr %spec, ptr %ndarray, ptr %symbols, ptr %slot) {
entry:
  %type.at = getelementptr i8, ptr %array, i64 8
  %type = load ptr, ptr %type.at
  %is.array = icmp eq ptr %type, %ndarray
  br i1 %is.array, label %look, label %no
look:
  %descr.at = getelementptr i8, ptr %array, i64 56
  %descr = load ptr, ptr %descr.at
  %descr.want = load ptr, ptr %spec
  %descr.ok = icmp eq ptr %descr, %descr.want
  %rank.at = getelementptr i8, ptr %array, i64 24
  %rank32 = load i32, ptr %rank.at
  %rank = zext i32 %rank32 to i64
  %rank.want.at = getelementptr %Spec, ptr %spec, i64 0, i32 1
  %rank.want = load i64, ptr %rank.want.at
  %rank.ok = icmp eq i64 %rank, %rank.want
  %flags.at = getelementptr i8, ptr %array, i64 64
  %flags = load i32, ptr %flags.at
  %both = and i32 %flags, 257
  %flags.ok = icmp eq i32 %both, 257
  %ok0 = and i1 %descr.ok, %rank.ok
  %ok = and i1 %ok0, %flags.ok
  br i1 %ok, label %pointer, label %no
pointer:
  %data.at = getelementptr i8, ptr %array, i64 16
  %data = load ptr, ptr %data.at
  store ptr %data, ptr %slot
  %slot.first = getelementptr i64, ptr %slot, i64 1
  %dims.at = getelementptr i8, ptr %array, i64 32
  %dims = load ptr, ptr %dims.at
  %wants.at = getelementptr %Spec, ptr %spec, i64 0, i32 2
  %wants = load ptr, ptr %wants.at
  br label %dim
dim:
  %k = phi i64 [0, %pointer], [%k.next, %dim.good]
  %free = phi ptr [%slot.first, %pointer], [%free.next, %dim.good]
  %more = icmp ult i64 %k, %rank
  br i1 %more, label %compare, label %yes
compare:
  %have.at = getelementptr i64, ptr %dims, i64 %k
  %have = load i64, ptr %have.at
  %want.at = getelementptr i64, ptr %wants, i64 %k
  %want = load i64, ptr %want.at
  %static = icmp sge i64 %want, 0
  br i1 %static, label %fixed, label %named
fixed:
  %equal = icmp eq i64 %have, %want
  br i1 %equal, label %dim.good, label %no
named:
  store i64 %have, ptr %free
  %free.more = getelementptr i64, ptr %free, i64 1
  %symbol = xor i64 %want, -1
  %bound.at = getelementptr i64, ptr %symbols, i64 %symbol
  %bound = load i64, ptr %bound.at
  %unbound = icmp eq i64 %bound, -1
  %agrees = icmp eq i64 %bound, %have
  %fine = or i1 %unbound, %agrees
  store i64 %have, ptr %bound.at
  br i1 %fine, label %dim.good, label %no
dim.good:
  %free.next = phi ptr [%free, %fixed], [%free.more, %named]
  %k.next = add i64 %k, 1
  br label %dim
yes:
  ret ptr %free
no:
  ret ptr null
}

define internal void @drop_block(ptr %capsule) {
  %block = call ptr @PyCapsule_GetPointer(ptr %capsule, ptr null)
  call void @gradir.release(ptr null, ptr %block)
  ret void
}

; A new output array over a block of the pool; stores its pointer and dynamic sizes, advances *%slot.at. Null: no memory.
define internal ptr @make_output(ptr %plan, ptr %spec, ptr %symbols, ptr %slot.at) {
entry:
  %shape = alloca [64 x i64]
  %rank.at = getelementptr %Spec, ptr %spec, i64 0, i32 1
  %rank = load i64, ptr %rank.at
  %wants.at = getelementptr %Spec, ptr %spec, i64 0, i32 2
  %wants = load ptr, ptr %wants.at
  %size.at = getelementptr %Spec, ptr %spec, i64 0, i32 3
  %size = load i64, ptr %size.at
  %slot = load ptr, ptr %slot.at
  %slot.first = getelementptr i64, ptr %slot, i64 1
  br label %dim
dim:
  %k = phi i64 [0, %entry], [%k.next, %dim.done]
  %bytes = phi i64 [%size, %entry], [%bytes.next, %dim.done]
  %free = phi ptr [%slot.first, %entry], [%free.next, %dim.done]
  %more = icmp ult i64 %k, %rank
  br i1 %more, label %one, label %block
one:
  %want.at = getelementptr i64, ptr %wants, i64 %k
  %want = load i64, ptr %want.at
  %static = icmp sge i64 %want, 0
  br i1 %static, label %dim.done, label %named
named:
  %symbol = xor i64 %want, -1
  %bound.at = getelementptr i64, ptr %symbols, i64 %symbol
  %bound = load i64, ptr %bound.at
  store i64 %bound, ptr %free
  %free.more = getelementptr i64, ptr %free, i64 1
  br label %dim.done
dim.done:
  %extent = phi i64 [%want, %one], [%bound, %named]
  %free.next = phi ptr [%free, %one], [%free.more, %named]
  %shape.at = getelementptr i64, ptr %shape, i64 %k
  store i64 %extent, ptr %shape.at
  %bytes.next = mul i64 %bytes, %extent
  %k.next = add i64 %k, 1
  br label %dim
block:
  store ptr %free, ptr %slot.at
  %data = call ptr @gradir.allocate(ptr null, i64 %bytes, i64 64)
  %none = icmp eq ptr %data, null
  br i1 %none, label %fail, label %wrap
wrap:
  store ptr %data, ptr %slot
  %descr = load ptr, ptr %spec
  call void @Py_IncRef(ptr %descr)
  %ndarray.at = getelementptr %Plan, ptr %plan, i64 0, i32 10
  %ndarray = load ptr, ptr %ndarray.at
  %create.at = getelementptr %Plan, ptr %plan, i64 0, i32 11
  %create = load ptr, ptr %create.at
  %rank32 = trunc i64 %rank to i32
  %array = call ptr %create(ptr %ndarray, ptr %descr, i32 %rank32, ptr %shape, ptr null, ptr %data, i32 1281, ptr null)
  %no.array = icmp eq ptr %array, null
  br i1 %no.array, label %unblock, label %own
own:
  %owner = call ptr @PyCapsule_New(ptr %data, ptr null, ptr @drop_block)
  %no.owner = icmp eq ptr %owner, null
  br i1 %no.owner, label %unarray, label %attach
attach:
  %attach.at = getelementptr %Plan, ptr %plan, i64 0, i32 12
  %set.base = load ptr, ptr %attach.at
  %x0 = call i32 %set.base(ptr %array, ptr %owner)
  ret ptr %array
unarray:
  call void @Py_DecRef(ptr %array)
  br label %unblock
unblock:
  call void @gradir.release(ptr null, ptr %data)
  br label %fail
fail:
  ret ptr null
}

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
  %raised = call ptr (ptr, ptr, ...) @PyObject_CallFunction(
      ptr %failed, ptr @failure.format, i32 %status, i64 %code, i64 %op, i64 %a, i64 %b, i64 %c, i64 %d)
  ret ptr %raised
}

define ptr @gradir.call(ptr %self, ptr %args, i64 %nargs) {
entry:
  %capsule = call ptr @PyTuple_GetItem(ptr %self, i64 0)
  %plan = call ptr @PyCapsule_GetPointer(ptr %capsule, ptr null)
  %inputs.at = getelementptr %Plan, ptr %plan, i64 0, i32 3
  %inputs = load i64, ptr %inputs.at
  %right = icmp eq i64 %inputs, %nargs
  br i1 %right, label %prepare, label %slow
prepare:
  %context = alloca [64 x i8], align 16
  %error = alloca [48 x i8], align 16
  %slot.at = alloca ptr
  %slot.count.at = getelementptr %Plan, ptr %plan, i64 0, i32 6
  %slot.count = load i64, ptr %slot.count.at
  %slots = alloca i64, i64 %slot.count, align 16
  %symbol.count.at = getelementptr %Plan, ptr %plan, i64 0, i32 8
  %symbol.count = load i64, ptr %symbol.count.at
  %symbols = alloca i64, i64 %symbol.count, align 16
  call void @llvm.memset.p0.i64(ptr %error, i8 0, i64 48, i1 false)
  %symbol.bytes = shl i64 %symbol.count, 3
  call void @llvm.memset.p0.i64(ptr %symbols, i8 -1, i64 %symbol.bytes, i1 false)
  %specs.at = getelementptr %Plan, ptr %plan, i64 0, i32 9
  %specs = load ptr, ptr %specs.at
  %ndarray.at = getelementptr %Plan, ptr %plan, i64 0, i32 10
  %ndarray = load ptr, ptr %ndarray.at
  br label %input
input:
  %i = phi i64 [0, %prepare], [%i.next, %input.good]
  %slot = phi ptr [%slots, %prepare], [%slot.next, %input.good]
  %more.inputs = icmp ult i64 %i, %inputs
  br i1 %more.inputs, label %input.one, label %inputs.done
input.one:
  %argument.at = getelementptr ptr, ptr %args, i64 %i
  %argument = load ptr, ptr %argument.at
  %spec = getelementptr %Spec, ptr %specs, i64 %i
  %slot.next = call ptr @take_argument(ptr %argument, ptr %spec, ptr %ndarray, ptr %symbols, ptr %slot)
  %strange = icmp eq ptr %slot.next, null
  br i1 %strange, label %slow, label %input.good
input.good:
  %i.next = add i64 %i, 1
  br label %input
inputs.done:
  store ptr %slot, ptr %slot.at
  %limits.at = getelementptr %Plan, ptr %plan, i64 0, i32 15
  %limits = load ptr, ptr %limits.at
  %unlimited = icmp eq ptr %limits, null
  br i1 %unlimited, label %allowed, label %limit
limit:
  %s = phi i64 [0, %inputs.done], [%s.next, %limit.one]
  %within = phi i1 [true, %inputs.done], [%still, %limit.one]
  %s.left = icmp ult i64 %s, %symbol.count
  %go.on = and i1 %s.left, %within
  br i1 %go.on, label %limit.one, label %limits.done
limit.one:
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
  br label %limit
limits.done:
  br i1 %within, label %allowed, label %slow
allowed:
  %outputs.at = getelementptr %Plan, ptr %plan, i64 0, i32 4
  %outputs = load i64, ptr %outputs.at
  %tuple = call ptr @PyTuple_New(i64 %outputs)
  %no.tuple = icmp eq ptr %tuple, null
  br i1 %no.tuple, label %nothing, label %output
output:
  %o = phi i64 [0, %allowed], [%o.next, %output.good]
  %more.outputs = icmp ult i64 %o, %outputs
  br i1 %more.outputs, label %output.one, label %outputs.done
output.one:
  %o.index = add i64 %inputs, %o
  %o.spec = getelementptr %Spec, ptr %specs, i64 %o.index
  %array = call ptr @make_output(ptr %plan, ptr %o.spec, ptr %symbols, ptr %slot.at)
  %no.array = icmp eq ptr %array, null
  br i1 %no.array, label %short, label %output.good
output.good:
  %x0 = call i32 @PyTuple_SetItem(ptr %tuple, i64 %o, ptr %array)
  %o.next = add i64 %o, 1
  br label %output
outputs.done:
  %arena.bytes.at = getelementptr %Plan, ptr %plan, i64 0, i32 5
  %arena.bytes = load i64, ptr %arena.bytes.at
  %wants.arena = icmp sgt i64 %arena.bytes, 0
  br i1 %wants.arena, label %arena.take, label %run
arena.take:
  %arena.new = call ptr @gradir.allocate(ptr null, i64 %arena.bytes, i64 64)
  %no.arena = icmp eq ptr %arena.new, null
  br i1 %no.arena, label %short, label %arena.store
arena.store:
  %arena.slot = load ptr, ptr %slot.at
  store ptr %arena.new, ptr %arena.slot
  br label %run
run:
  %arena = phi ptr [null, %outputs.done], [%arena.new, %arena.store]
  %entry.function = load ptr, ptr %plan
  store i64 1, ptr %context
  %parallel.at = getelementptr i8, ptr %context, i64 8
  store ptr @gradir.parallel_for, ptr %parallel.at
  %allocate.at = getelementptr i8, ptr %context, i64 16
  store ptr @gradir.allocate, ptr %allocate.at
  %free.at = getelementptr i8, ptr %context, i64 24
  store ptr @gradir.release, ptr %free.at
  %error.at = getelementptr i8, ptr %context, i64 32
  store ptr %error, ptr %error.at
  %threads.from = getelementptr %Plan, ptr %plan, i64 0, i32 7
  %threads = load i64, ptr %threads.from
  %threads.at = getelementptr i8, ptr %context, i64 40
  store i64 %threads, ptr %threads.at
  %callback.from = getelementptr %Plan, ptr %plan, i64 0, i32 13
  %callback = load ptr, ptr %callback.from
  %callback.at = getelementptr i8, ptr %context, i64 48
  store ptr %callback, ptr %callback.at
  %user.at = getelementptr i8, ptr %context, i64 56
  %user.from = getelementptr %Plan, ptr %plan, i64 0, i32 14
  %user = load ptr, ptr %user.from
  store ptr %user, ptr %user.at
  %thread.state = call ptr @PyEval_SaveThread()
  %status = call i32 %entry.function(ptr %context, ptr %slots)
  call void @PyEval_RestoreThread(ptr %thread.state)
  call void @gradir.release(ptr null, ptr %arena)
  %good = icmp eq i32 %status, 0
  br i1 %good, label %return, label %fail
return:
  ret ptr %tuple
fail:
  call void @Py_DecRef(ptr %tuple)
  %failed.at = getelementptr %Plan, ptr %plan, i64 0, i32 2
  %failed = load ptr, ptr %failed.at
  %raised = call ptr @raise(ptr %failed, i32 %status, ptr %error)
  ret ptr %raised
short:
  call void @Py_DecRef(ptr %tuple)
  call void @PyErr_Clear()
  %short.at = getelementptr %Plan, ptr %plan, i64 0, i32 2
  %short.failed = load ptr, ptr %short.at
  %short.raised = call ptr @raise(ptr %short.failed, i32 2, ptr %error)
  ret ptr %short.raised
nothing:
  ret ptr null
slow:
  %slow.at = getelementptr %Plan, ptr %plan, i64 0, i32 1
  %slow.callable = load ptr, ptr %slow.at
  %answer = call ptr @PyObject_Vectorcall(ptr %slow.callable, ptr %args, i64 %nargs, ptr null)
  ret ptr %answer
}

declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
"""
