"""LLVM IR of the results of a call: new arrays over blocks of the pool, containers around them, and whether given arrays overlap.

A new array owns its block as numpy's own arrays do: flag OWNDATA and a memory handler (numpy 1.22+), whose functions are the pool's.
"""

from __future__ import annotations

PYTHON_SYMBOLS = (
    "PyDict_New",
    "PyDict_SetItem",
    "PyList_New",
    "PyList_SetItem",
    "PyObject_Call",
    "PyTuple_New",
    "PyTuple_SetItem",
    "_Py_NoneStruct",
)
"""What this code needs of the interpreter."""

RESULTS_IR = """
declare ptr @PyDict_New()
declare i32 @PyDict_SetItem(ptr, ptr, ptr)
declare ptr @PyList_New(i64)
declare i32 @PyList_SetItem(ptr, i64, ptr)
declare ptr @PyObject_Call(ptr, ptr, ptr)
declare ptr @PyTuple_New(i64)
declare i32 @PyTuple_SetItem(ptr, i64, ptr)
@_Py_NoneStruct = external global i8

; numpy's PyDataMem_Handler: {char name[127]; uint8 version; context, malloc, calloc, realloc, free}.
@gradir.memory_handler = global { [127 x i8], i8, ptr, ptr, ptr, ptr, ptr } {
  [127 x i8] c"gradir.pool\\00HANDLER_PADDING", i8 1, ptr null,
  ptr @handler_malloc, ptr @handler_calloc, ptr @handler_realloc, ptr @handler_free }, align 16

define internal ptr @handler_malloc(ptr %context, i64 %bytes) {
  %block = call ptr @gradir.allocate(ptr null, i64 %bytes, i64 64)
  ret ptr %block
}

define internal ptr @handler_calloc(ptr %context, i64 %count, i64 %size) {
entry:
  %bytes = mul i64 %count, %size
  %block = call ptr @gradir.allocate(ptr null, i64 %bytes, i64 64)
  %none = icmp eq ptr %block, null
  br i1 %none, label %done, label %clear
clear:
  call void @llvm.memset.p0.i64(ptr %block, i8 0, i64 %bytes, i1 false)
  br label %done
done:
  ret ptr %block
}

define internal ptr @handler_realloc(ptr %context, ptr %old, i64 %bytes) {
entry:
  %block = call ptr @gradir.allocate(ptr null, i64 %bytes, i64 64)
  %none = icmp eq ptr %block, null
  %fresh = icmp eq ptr %old, null
  %skip = or i1 %none, %fresh
  br i1 %skip, label %done, label %copy
copy:
  %had.at = getelementptr i8, ptr %old, i64 -56
  %had = load i64, ptr %had.at
  %count = call i64 @llvm.umin.i64(i64 %had, i64 %bytes)
  call void @llvm.memcpy.p0.p0.i64(ptr %block, ptr %old, i64 %count, i1 false)
  call void @gradir.release(ptr null, ptr %old)
  br label %done
done:
  ret ptr %block
}

define internal void @handler_free(ptr %context, ptr %block, i64 %bytes) {
  call void @gradir.release(ptr null, ptr %block)
  ret void
}

; A new output array; its pointer and dynamic sizes go to the slots. Null: no memory.
define internal ptr @make_output(ptr %plan, ptr %state) {
entry:
  %shape = alloca [64 x i64]
  %spec.at = getelementptr %State, ptr %state, i64 0, i32 1
  %spec = load ptr, ptr %spec.at
  %rank.at = getelementptr %Spec, ptr %spec, i64 0, i32 1
  %rank = load i64, ptr %rank.at
  %wants.at = getelementptr %Spec, ptr %spec, i64 0, i32 2
  %wants = load ptr, ptr %wants.at
  %size.at = getelementptr %Spec, ptr %spec, i64 0, i32 3
  %size = load i64, ptr %size.at
  %symbols.at = getelementptr %State, ptr %state, i64 0, i32 6
  %symbols = load ptr, ptr %symbols.at
  %slot = load ptr, ptr %state
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
  %data = call ptr @gradir.allocate(ptr null, i64 %bytes, i64 64)
  %none = icmp eq ptr %data, null
  br i1 %none, label %fail, label %wrap
wrap:
  store ptr %data, ptr %slot
  call void @advance(ptr %state, ptr %free, ptr %data, i64 %bytes, ptr null)
  %descr = load ptr, ptr %spec
  call void @Py_IncRef(ptr %descr)
  %ndarray.at = getelementptr %State, ptr %state, i64 0, i32 5
  %ndarray = load ptr, ptr %ndarray.at
  %create.at = getelementptr %Plan, ptr %plan, i64 0, i32 10
  %create = load ptr, ptr %create.at
  %rank32 = trunc i64 %rank to i32
  %array = call ptr %create(ptr %ndarray, ptr %descr, i32 %rank32, ptr %shape, ptr null, ptr %data, i32 1281, ptr null)
  %no.array = icmp eq ptr %array, null
  br i1 %no.array, label %unblock, label %own
own:
  %handler.from = getelementptr %Plan, ptr %plan, i64 0, i32 11
  %handler = load ptr, ptr %handler.from
  call void @Py_IncRef(ptr %handler)
  %handler.at = getelementptr i8, ptr %array, i64 88
  store ptr %handler, ptr %handler.at
  %flags.at = getelementptr i8, ptr %array, i64 64
  %flags = load i32, ptr %flags.at
  %owning = or i32 %flags, 4
  store i32 %owning, ptr %flags.at
  ret ptr %array
unblock:
  call void @gradir.release(ptr null, ptr %data)
  br label %fail
fail:
  ret ptr null
}

; Whether one of the ranges from %first on shares bytes with an earlier one.
define internal i1 @ranges_overlap(ptr %ranges, ptr %first, ptr %end) {
entry:
  br label %outer
outer:
  %a = phi ptr [%first, %entry], [%a.next, %outer.next]
  %a.more = icmp ult ptr %a, %end
  br i1 %a.more, label %load, label %no
load:
  %a.from = load ptr, ptr %a
  %a.to.at = getelementptr ptr, ptr %a, i64 1
  %a.to = load ptr, ptr %a.to.at
  br label %inner
inner:
  %b = phi ptr [%ranges, %load], [%b.next, %inner.one]
  %b.more = icmp ult ptr %b, %a
  br i1 %b.more, label %inner.one, label %outer.next
inner.one:
  %b.from = load ptr, ptr %b
  %b.to.at = getelementptr ptr, ptr %b, i64 1
  %b.to = load ptr, ptr %b.to.at
  %starts = icmp ult ptr %a.from, %b.to
  %ends = icmp ult ptr %b.from, %a.to
  %overlap = and i1 %starts, %ends
  %b.next = getelementptr ptr, ptr %b, i64 2
  br i1 %overlap, label %yes, label %inner
outer.next:
  %a.next = getelementptr ptr, ptr %a, i64 2
  br label %outer
yes:
  ret i1 true
no:
  ret i1 false
}

; Whether the bytes of input number %which belong to no other input.
define internal i1 @lies_apart(ptr %ranges, i64 %which, i64 %inputs) {
entry:
  %a = getelementptr [2 x ptr], ptr %ranges, i64 %which
  %a.from = load ptr, ptr %a
  %a.to.at = getelementptr ptr, ptr %a, i64 1
  %a.to = load ptr, ptr %a.to.at
  br label %test
test:
  %k = phi i64 [0, %entry], [%k.next, %one]
  %clash = phi i1 [false, %entry], [%clash.now, %one]
  %left = icmp ult i64 %k, %inputs
  %fine = xor i1 %clash, true
  %go.on = and i1 %left, %fine
  br i1 %go.on, label %one, label %done
one:
  %b = getelementptr [2 x ptr], ptr %ranges, i64 %k
  %b.from = load ptr, ptr %b
  %b.to.at = getelementptr ptr, ptr %b, i64 1
  %b.to = load ptr, ptr %b.to.at
  %other = icmp ne i64 %k, %which
  %starts = icmp ult ptr %a.from, %b.to
  %ends = icmp ult ptr %b.from, %a.to
  %both = and i1 %starts, %ends
  %clash.now = and i1 %other, %both
  %k.next = add i64 %k, 1
  br label %test
done:
  ret i1 %fine
}

; What the node describes, around the next arrays of *%cursor: a new reference, or null with an exception.
define internal ptr @build(ptr %node, ptr %cursor) {
entry:
  %kind = load i64, ptr %node
  %count.at = getelementptr %Node, ptr %node, i64 0, i32 1
  %count = load i64, ptr %count.at
  %maker.at = getelementptr %Node, ptr %node, i64 0, i32 6
  %maker = load ptr, ptr %maker.at
  %children.at = getelementptr %Node, ptr %node, i64 0, i32 3
  %children = load ptr, ptr %children.at
  %keys.at = getelementptr %Node, ptr %node, i64 0, i32 4
  %keys = load ptr, ptr %keys.at
  switch i64 %kind, label %tuple [i64 0, label %array i64 3, label %none i64 5, label %list i64 6, label %dict i64 7, label %dict]
array:
  %at = load ptr, ptr %cursor
  %array.found = load ptr, ptr %at
  %at.next = getelementptr ptr, ptr %at, i64 1
  store ptr %at.next, ptr %cursor
  call void @Py_IncRef(ptr %array.found)
  ret ptr %array.found
none:
  call void @Py_IncRef(ptr @_Py_NoneStruct)
  ret ptr @_Py_NoneStruct
tuple:
  %new.tuple = call ptr @PyTuple_New(i64 %count)
  br label %made
list:
  %new.list = call ptr @PyList_New(i64 %count)
  br label %made
dict:
  %new.dict = call ptr @PyDict_New()
  br label %made
made:
  %made.object = phi ptr [%new.tuple, %tuple], [%new.list, %list], [%new.dict, %dict]
  %no.object = icmp eq ptr %made.object, null
  br i1 %no.object, label %nothing, label %child
child:
  %i = phi i64 [0, %made], [%i.next, %put]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %one, label %all
one:
  %child.node = getelementptr %Node, ptr %children, i64 %i
  %part = call ptr @build(ptr %child.node, ptr %cursor)
  %no.part = icmp eq ptr %part, null
  br i1 %no.part, label %broken, label %place
place:
  switch i64 %kind, label %tuple.put [i64 5, label %list.put i64 6, label %dict.put i64 7, label %dict.put]
tuple.put:
  %x0 = call i32 @PyTuple_SetItem(ptr %made.object, i64 %i, ptr %part)
  br label %put
list.put:
  %x1 = call i32 @PyList_SetItem(ptr %made.object, i64 %i, ptr %part)
  br label %put
dict.put:
  %key.at = getelementptr ptr, ptr %keys, i64 %i
  %key = load ptr, ptr %key.at
  %status = call i32 @PyDict_SetItem(ptr %made.object, ptr %key, ptr %part)
  call void @Py_DecRef(ptr %part)
  br label %put
put:
  %failed = phi i32 [0, %tuple.put], [0, %list.put], [%status, %dict.put]
  %i.next = add i64 %i, 1
  %bad = icmp ne i32 %failed, 0
  br i1 %bad, label %broken, label %child
all:
  %plain.kind = icmp eq ptr %maker, null
  br i1 %plain.kind, label %plain, label %construct
plain:
  ret ptr %made.object
construct:
  %by.name = icmp eq i64 %kind, 7
  br i1 %by.name, label %keywords, label %positions
positions:
  %from.positions = call ptr @PyObject_Call(ptr %maker, ptr %made.object, ptr null)
  call void @Py_DecRef(ptr %made.object)
  ret ptr %from.positions
keywords:
  %empty = call ptr @PyTuple_New(i64 0)
  %from.keywords = call ptr @PyObject_Call(ptr %maker, ptr %empty, ptr %made.object)
  call void @Py_DecRef(ptr %empty)
  call void @Py_DecRef(ptr %made.object)
  ret ptr %from.keywords
broken:
  call void @Py_DecRef(ptr %made.object)
  br label %nothing
nothing:
  ret ptr null
}

declare i64 @llvm.umin.i64(i64, i64)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
""".replace("HANDLER_PADDING", "\\00" * (127 - len("gradir.pool") - 1))
