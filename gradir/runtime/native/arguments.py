"""LLVM IR that recognises the arguments of a call: `@match` compares one Python object with one node of a plan.

A node says what a place of the arguments holds: an array, a Python number, a numpy scalar, a container with nodes of its own, a value that
selects the program. Leaves come in the order of the specs. Nothing is converted but exact Python numbers; what is not plainly right
is no match, and Python code looks at it again. The struct offsets are those of CPython 3.11+ (with the GIL) and numpy 1.26+.

What lies inside lists, dicts and attributes is held by a reference for the call: without the GIL another thread may replace it.
"""

from __future__ import annotations

PYTHON_SYMBOLS = (
    "PyDict_GetItemWithError",
    "PyDict_Size",
    "PyErr_Clear",
    "PyFloat_AsDouble",
    "PyList_GetItem",
    "PyList_Size",
    "PyLong_AsLongLong",
    "PyErr_Occurred",
    "PyObject_GetAttr",
    "PyObject_RichCompareBool",
    "PyTuple_GetItem",
    "PyTuple_Size",
    "Py_DecRef",
    "Py_IncRef",
)
"""What this code calls in the interpreter."""

KINDS = ("array", "number", "scalar", "none", "tuple", "list", "dict", "attributes", "value", "same")
"""Kinds of nodes, by number. `number`: exactly float, int or bool; `scalar`: a numpy scalar; `value`: equal to an example of the same type;
`same`: the very object; `attributes`: fields of a dataclass; `tuple`: also a named one."""

ARGUMENTS_IR = """
declare ptr @PyDict_GetItemWithError(ptr, ptr)
declare i64 @PyDict_Size(ptr)
declare void @PyErr_Clear()
declare ptr @PyErr_Occurred()
declare double @PyFloat_AsDouble(ptr)
declare ptr @PyList_GetItem(ptr, i64)
declare i64 @PyList_Size(ptr)
declare i64 @PyLong_AsLongLong(ptr)
declare ptr @PyObject_GetAttr(ptr, ptr)
declare i32 @PyObject_RichCompareBool(ptr, ptr, i32)
declare ptr @PyTuple_GetItem(ptr, i64)
declare i64 @PyTuple_Size(ptr)
declare void @Py_DecRef(ptr)
declare void @Py_IncRef(ptr)

; One leaf: dtype object, rank, dims (below zero: ~number of a symbol), bytes of an element.
%Spec = type { ptr, i64, ptr, i64 }
; Kind, number of children, type (or example), children, their keys, whether to hold what is found, what makes a result of the parts.
%Node = type { i64, i64, ptr, ptr, ptr, i64, ptr }
; Cursors of one call: next slot, spec, range, number and held object; ndarray, symbols; next output to record (or null);
; where the next leaf's object goes.
%State = type { ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr }

; Check one array, store its pointer, dynamic sizes and range of bytes. `required`: flags that it must have.
define internal i1 @take_array(ptr %array, ptr %state, i32 %required) {
entry:
  %type.at = getelementptr i8, ptr %array, i64 8
  %type = load ptr, ptr %type.at
  %ndarray.at = getelementptr %State, ptr %state, i64 0, i32 5
  %ndarray = load ptr, ptr %ndarray.at
  %is.array = icmp eq ptr %type, %ndarray
  br i1 %is.array, label %look, label %no
look:
  %spec.at = getelementptr %State, ptr %state, i64 0, i32 1
  %spec = load ptr, ptr %spec.at
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
  %both = and i32 %flags, %required
  %flags.ok = icmp eq i32 %both, %required
  %ok0 = and i1 %descr.ok, %rank.ok
  %ok = and i1 %ok0, %flags.ok
  br i1 %ok, label %pointer, label %no
pointer:
  %data.at = getelementptr i8, ptr %array, i64 16
  %data = load ptr, ptr %data.at
  %slot = load ptr, ptr %state
  store ptr %data, ptr %slot
  %slot.first = getelementptr i64, ptr %slot, i64 1
  %dims.at = getelementptr i8, ptr %array, i64 32
  %dims = load ptr, ptr %dims.at
  %wants.at = getelementptr %Spec, ptr %spec, i64 0, i32 2
  %wants = load ptr, ptr %wants.at
  %size.at = getelementptr %Spec, ptr %spec, i64 0, i32 3
  %size = load i64, ptr %size.at
  %symbols.at = getelementptr %State, ptr %state, i64 0, i32 6
  %symbols = load ptr, ptr %symbols.at
  br label %dim
dim:
  %k = phi i64 [0, %pointer], [%k.next, %dim.good]
  %free = phi ptr [%slot.first, %pointer], [%free.next, %dim.good]
  %bytes = phi i64 [%size, %pointer], [%bytes.next, %dim.good]
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
  %bytes.next = mul i64 %bytes, %have
  %k.next = add i64 %k, 1
  br label %dim
yes:
  call void @advance(ptr %state, ptr %free, ptr %data, i64 %bytes, ptr %array)
  ret i1 true
no:
  ret i1 false
}

; One leaf is done: its range of bytes, its object (null for a number), the next slot and spec.
define internal void @advance(ptr %state, ptr %slot, ptr %data, i64 %bytes, ptr %object) {
  store ptr %slot, ptr %state
  %spec.at = getelementptr %State, ptr %state, i64 0, i32 1
  %spec = load ptr, ptr %spec.at
  %spec.next = getelementptr %Spec, ptr %spec, i64 1
  store ptr %spec.next, ptr %spec.at
  %range.at = getelementptr %State, ptr %state, i64 0, i32 2
  %range = load ptr, ptr %range.at
  store ptr %data, ptr %range
  %end.at = getelementptr ptr, ptr %range, i64 1
  %end = getelementptr i8, ptr %data, i64 %bytes
  store ptr %end, ptr %end.at
  %range.next = getelementptr ptr, ptr %range, i64 2
  store ptr %range.next, ptr %range.at
  %leaf.at = getelementptr %State, ptr %state, i64 0, i32 8
  %leaf = load ptr, ptr %leaf.at
  store ptr %object, ptr %leaf
  %leaf.next = getelementptr ptr, ptr %leaf, i64 1
  store ptr %leaf.next, ptr %leaf.at
  ret void
}

; A Python number becomes an element of a rank-0 array: float f32, int i32, bool i1. No match when it does not fit.
define internal i1 @take_number(ptr %object, i64 %code, ptr %state) {
entry:
  %place.at = getelementptr %State, ptr %state, i64 0, i32 3
  %place = load ptr, ptr %place.at
  %place.next = getelementptr i64, ptr %place, i64 1
  store ptr %place.next, ptr %place.at
  %is.float = icmp eq i64 %code, 0
  br i1 %is.float, label %float, label %whole
float:
  %double = call double @PyFloat_AsDouble(ptr %object)
  %single = fptrunc double %double to float
  store float %single, ptr %place
  br label %yes
whole:
  %word = call i64 @PyLong_AsLongLong(ptr %object)
  %short = trunc i64 %word to i32
  %back = sext i32 %short to i64
  %fits = icmp eq i64 %word, %back
  store i64 %word, ptr %place
  %minus.one = icmp eq i64 %word, -1
  br i1 %minus.one, label %error, label %ranged
error:
  %occurred = call ptr @PyErr_Occurred()
  %fine = icmp eq ptr %occurred, null
  br i1 %fine, label %ranged, label %overflow
overflow:
  call void @PyErr_Clear()
  br label %no
ranged:
  br i1 %fits, label %yes, label %no
yes:
  %slot = load ptr, ptr %state
  store ptr %place, ptr %slot
  %slot.next = getelementptr i64, ptr %slot, i64 1
  call void @advance(ptr %state, ptr %slot.next, ptr %place, i64 0, ptr null)
  ret i1 true
no:
  ret i1 false
}

define internal void @hold(ptr %object, ptr %state) {
  call void @Py_IncRef(ptr %object)
  %held.at = getelementptr %State, ptr %state, i64 0, i32 4
  %held = load ptr, ptr %held.at
  store ptr %object, ptr %held
  %held.next = getelementptr ptr, ptr %held, i64 1
  store ptr %held.next, ptr %held.at
  ret void
}

define internal void @drop_all(ptr %from, ptr %to) {
entry:
  br label %test
test:
  %at = phi ptr [%from, %entry], [%next, %one]
  %more = icmp ult ptr %at, %to
  br i1 %more, label %one, label %done
one:
  %object = load ptr, ptr %at
  call void @Py_DecRef(ptr %object)
  %next = getelementptr ptr, ptr %at, i64 1
  br label %test
done:
  ret void
}

define internal i1 @match(ptr %object, ptr %node, ptr %state) {
entry:
  %kind = load i64, ptr %node
  %type.at = getelementptr i8, ptr %object, i64 8
  %type = load ptr, ptr %type.at
  %wanted.at = getelementptr %Node, ptr %node, i64 0, i32 2
  %wanted = load ptr, ptr %wanted.at
  %same.type = icmp eq ptr %type, %wanted
  %is.array = icmp eq i64 %kind, 0
  br i1 %is.array, label %array, label %other
array:
  %record.at = getelementptr %State, ptr %state, i64 0, i32 7
  %record = load ptr, ptr %record.at
  %is.input = icmp eq ptr %record, null
  br i1 %is.input, label %input, label %output
input:
  %input.ok = call i1 @take_array(ptr %object, ptr %state, i32 257)
  br i1 %input.ok, label %keep, label %no
keep:
  %hold.at = getelementptr %Node, ptr %node, i64 0, i32 5
  %hold = load i64, ptr %hold.at
  %to.hold = icmp ne i64 %hold, 0
  br i1 %to.hold, label %held, label %yes
held:
  call void @hold(ptr %object, ptr %state)
  br label %yes
output:
  %output.ok = call i1 @take_array(ptr %object, ptr %state, i32 1281)
  br i1 %output.ok, label %write, label %no
write:
  call void @Py_IncRef(ptr %object)
  store ptr %object, ptr %record
  %record.next = getelementptr ptr, ptr %record, i64 1
  store ptr %record.next, ptr %record.at
  br label %yes
other:
  switch i64 %kind, label %container [
    i64 1, label %number
    i64 2, label %scalar
    i64 3, label %identity
    i64 8, label %value
    i64 9, label %identity ]
number:
  %code.at = getelementptr %Node, ptr %node, i64 0, i32 1
  %code = load i64, ptr %code.at
  br i1 %same.type, label %number.take, label %no
number.take:
  %number.ok = call i1 @take_number(ptr %object, i64 %code, ptr %state)
  ret i1 %number.ok
scalar:
  br i1 %same.type, label %scalar.take, label %no
scalar.take:
  %value.at = getelementptr i8, ptr %object, i64 16
  %slot = load ptr, ptr %state
  store ptr %value.at, ptr %slot
  %slot.next = getelementptr i64, ptr %slot, i64 1
  call void @advance(ptr %state, ptr %slot.next, ptr %value.at, i64 0, ptr null)
  br label %keep
identity:
  %identical = icmp eq ptr %object, %wanted
  ret i1 %identical
value:
  %example.type.at = getelementptr i8, ptr %wanted, i64 8
  %example.type = load ptr, ptr %example.type.at
  %alike = icmp eq ptr %type, %example.type
  br i1 %alike, label %value.compare, label %no
value.compare:
  %order = call i32 @PyObject_RichCompareBool(ptr %object, ptr %wanted, i32 2)
  %equal = icmp eq i32 %order, 1
  ret i1 %equal
container:
  br i1 %same.type, label %look, label %no
look:
  %container.hold.at = getelementptr %Node, ptr %node, i64 0, i32 5
  %container.hold = load i64, ptr %container.hold.at
  %container.keep = icmp ne i64 %container.hold, 0
  br i1 %container.keep, label %container.held, label %sized
container.held:
  call void @hold(ptr %object, ptr %state)
  br label %sized
sized:
  %count.at = getelementptr %Node, ptr %node, i64 0, i32 1
  %count = load i64, ptr %count.at
  switch i64 %kind, label %each [i64 4, label %tuple.size i64 5, label %list.size i64 6, label %dict.size]
tuple.size:
  %tuple.count = call i64 @PyTuple_Size(ptr %object)
  %tuple.ok = icmp eq i64 %tuple.count, %count
  br i1 %tuple.ok, label %each, label %no
list.size:
  %list.count = call i64 @PyList_Size(ptr %object)
  %list.ok = icmp eq i64 %list.count, %count
  br i1 %list.ok, label %each, label %no
dict.size:
  %dict.count = call i64 @PyDict_Size(ptr %object)
  %dict.ok = icmp eq i64 %dict.count, %count
  br i1 %dict.ok, label %each, label %no
each:
  %children.at = getelementptr %Node, ptr %node, i64 0, i32 3
  %children = load ptr, ptr %children.at
  %keys.at = getelementptr %Node, ptr %node, i64 0, i32 4
  %keys = load ptr, ptr %keys.at
  br label %child
child:
  %i = phi i64 [0, %each], [%i.next, %matched]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %get, label %yes
get:
  %key.at = getelementptr ptr, ptr %keys, i64 %i
  switch i64 %kind, label %attribute [i64 4, label %tuple.get i64 5, label %list.get i64 6, label %dict.get]
tuple.get:
  %from.tuple = call ptr @PyTuple_GetItem(ptr %object, i64 %i)
  br label %got
list.get:
  %from.list = call ptr @PyList_GetItem(ptr %object, i64 %i)
  br label %got
dict.get:
  %key = load ptr, ptr %key.at
  %from.dict = call ptr @PyDict_GetItemWithError(ptr %object, ptr %key)
  br label %got
attribute:
  %name = load ptr, ptr %key.at
  %from.attribute = call ptr @PyObject_GetAttr(ptr %object, ptr %name)
  %no.attribute = icmp eq ptr %from.attribute, null
  br i1 %no.attribute, label %missing, label %attribute.held
attribute.held:
  call void @hold(ptr %from.attribute, ptr %state)
  call void @Py_DecRef(ptr %from.attribute)
  br label %got
got:
  %found = phi ptr [%from.tuple, %tuple.get], [%from.list, %list.get], [%from.dict, %dict.get], [%from.attribute, %attribute.held]
  %nothing = icmp eq ptr %found, null
  br i1 %nothing, label %missing, label %descend
descend:
  %child.node = getelementptr %Node, ptr %children, i64 %i
  %child.ok = call i1 @match(ptr %found, ptr %child.node, ptr %state)
  br i1 %child.ok, label %matched, label %no
matched:
  %i.next = add i64 %i, 1
  br label %child
missing:
  call void @PyErr_Clear()
  br label %no
yes:
  ret i1 true
no:
  ret i1 false
}
"""
