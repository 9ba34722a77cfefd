"""`memref`: scalar accesses, views (they only move pointers, sizes and strides), allocation through the context, copies, globals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import Operation, SSAValue

from gradir.dialects.target import abi
from gradir.ir.passes import error_at
from gradir.targets.llvm.emitter import Buffer, FunctionEmitter, Handler, Index
from gradir.targets.llvm.types import ValueType, symbol


def address(e: FunctionEmitter, buffer: Buffer, indices: Sequence[SSAValue]) -> str:
    """Pointer to one element."""
    dynamic, constant = e.offset([e.index(i) for i in indices], buffer.strides)
    return e.element_pointer(buffer.pointer, buffer.type, dynamic, constant)


def load_row(e: FunctionEmitter, pointer: str, space: str, t: ValueType) -> str:
    """Load one row (or scalar) with element alignment; i1 comes as a byte."""
    loaded = e.define(f"load {t.memory}, {space} {pointer}, align {t.bytes}")
    if t.element != "i1":
        return loaded
    return e.pure(f"icmp ne {t.memory} {loaded}, {'zeroinitializer' if t.lanes else '0'}")


def store_row(e: FunctionEmitter, row: str, pointer: str, space: str, t: ValueType) -> None:
    """Store one row (or scalar) with element alignment; i1 as a byte."""
    e.line(f"store {t.memory} {in_memory(e, row, t)}, {space} {pointer}, align {t.bytes}")


def in_memory(e: FunctionEmitter, row: str, t: ValueType) -> str:
    """The row as it lies in memory."""
    return row if t.element != "i1" else e.pure(f"zext {t.text} {row} to {t.memory}")


def load(e: FunctionEmitter, op: Operation) -> None:
    buffer = e.buffer(op.operands[0])
    e.values[op.results[0]] = load_row(e, address(e, buffer, op.operands[1:]), buffer.type.pointer, e.type_of(op.results[0]))


def store(e: FunctionEmitter, op: Operation) -> None:
    buffer = e.buffer(op.operands[1])
    store_row(e, e.text(op.operands[0]), address(e, buffer, op.operands[2:]), buffer.type.pointer, e.type_of(op.operands[0]))


def _mixed(e: FunctionEmitter, static: Any, dynamic: Sequence[SSAValue]) -> list[Index]:
    """Static values of a dense array with the dynamic ones filled in."""
    rest = iter(dynamic)
    return [e.index(next(rest)) if n == DYNAMIC_INDEX else int(n) for n in static.get_values()]


def subview(e: FunctionEmitter, op: Any) -> None:
    """offset' = offset + sum(o_i * stride_i), stride'_i = s_i * stride_i; dimensions of size 1 may go."""
    source = e.buffer(op.source)
    offsets = _mixed(e, op.static_offsets, op.offsets)
    sizes = _mixed(e, op.static_sizes, op.sizes)
    strides = [e.mul(a, b) for a, b in zip(_mixed(e, op.static_strides, op.strides), source.strides)]
    dynamic, constant = e.offset(offsets, source.strides)
    result = e.module.buffer_type(op.results[0].type)
    kept = _kept(sizes, result.sizes)
    pointer = e.element_pointer(source.pointer, source.type, dynamic, constant)
    final = tuple(strides[k] for k in kept)
    e.values[op.results[0]] = Buffer(
        pointer, tuple(sizes[k] for k in kept), final, replace(result, pointer=source.type.pointer), source.root
    )


def _kept(sizes: Sequence[Index], result: Sequence[int | None]) -> list[int]:
    """Dimensions of a subview that its result type keeps: the others have size 1."""
    kept: list[int] = []
    for position, size in enumerate(sizes):
        wanted = result[len(kept)] if len(kept) < len(result) else -1
        if (wanted is None and not isinstance(size, int)) or (wanted is not None and wanted == size):
            kept.append(position)
    return kept if len(kept) == len(result) else list(range(len(sizes)))[len(sizes) - len(result) :]


def view(e: FunctionEmitter, op: Any) -> None:
    """A typed buffer inside a buffer of bytes."""
    source = e.buffer(op.operands[0])
    shift = e.index(op.operands[1])
    t = replace(e.module.buffer_type(op.results[0].type), pointer=source.type.pointer)
    rest = iter(op.operands[2:])
    sizes = tuple(e.index(next(rest)) if n is None else n for n in t.sizes)
    pointer = source.pointer if shift == 0 else e.pure(f"getelementptr inbounds i8, {t.pointer} {source.pointer}, i64 {shift}")
    e.values[op.results[0]] = Buffer(pointer, sizes, e.contiguous(sizes), t, source.root)


def cast(e: FunctionEmitter, op: Operation) -> None:
    """Same buffer; what the result type knows statically, it knows."""
    source = e.buffer(op.operands[0])
    t = replace(e.module.buffer_type(op.results[0].type), pointer=source.type.pointer)
    sizes = tuple(a if b is None else b for a, b in zip(source.sizes, t.sizes))
    e.values[op.results[0]] = Buffer(source.pointer, sizes, source.strides, t, source.root)


def reinterpret_cast(e: FunctionEmitter, op: Any) -> None:
    source = e.buffer(op.operands[0])
    t = replace(e.module.buffer_type(op.results[0].type), pointer=source.type.pointer)
    (offset,) = _mixed(e, op.static_offsets, op.offsets)
    sizes = tuple(_mixed(e, op.static_sizes, op.sizes))
    strides = tuple(_mixed(e, op.static_strides, op.strides))
    constant = isinstance(offset, int)
    pointer = e.element_pointer(source.pointer, t, 0 if constant else offset, offset if isinstance(offset, int) else 0)
    e.values[op.results[0]] = Buffer(pointer, sizes, strides, t, source.root)


def collapse_shape(e: FunctionEmitter, op: Any) -> None:
    """Each group of dimensions becomes one: the product of the sizes, the innermost stride."""
    source = e.buffer(op.operands[0])
    t = replace(e.module.buffer_type(op.results[0].type), pointer=source.type.pointer)
    sizes: list[Index] = []
    strides: list[Index] = []
    for group in op.reassociation.data:
        dims = [d.value.data for d in group.data]
        sizes.append(e.product([source.sizes[d] for d in dims]))
        inner = next((d for d in reversed(dims) if source.sizes[d] != 1), dims[-1])
        strides.append(source.strides[inner])
    e.values[op.results[0]] = Buffer(source.pointer, tuple(sizes), tuple(strides), t, source.root)


def expand_shape(e: FunctionEmitter, op: Any) -> None:
    """Each dimension becomes a group; strides inside a group are contiguous in steps of the dimension's stride."""
    source = e.buffer(op.operands[0])
    t = replace(e.module.buffer_type(op.results[0].type), pointer=source.type.pointer)
    sizes = _mixed(e, op.static_output_shape, op.output_shape)
    strides: list[Index] = [0] * len(sizes)
    for position, group in enumerate(op.reassociation.data):
        step = source.strides[position]
        for dim in reversed([d.value.data for d in group.data]):
            strides[dim] = step
            step = e.mul(step, sizes[dim])
    e.values[op.results[0]] = Buffer(source.pointer, tuple(sizes), tuple(strides), t, source.root)


def dim(e: FunctionEmitter, op: Operation) -> None:
    buffer, position = e.buffer(op.operands[0]), e.index(op.operands[1])
    if isinstance(position, int):
        e.values[op.results[0]] = str(buffer.sizes[position])
        return
    found = str(buffer.sizes[-1])
    for k, size in enumerate(buffer.sizes[:-1]):
        is_k = e.pure(f"icmp eq i64 {position}, {k}")
        found = e.pure(f"select i1 {is_k}, i64 {size}, i64 {found}")
    e.values[op.results[0]] = found


def prefetch(e: FunctionEmitter, op: Any) -> None:
    """A hint; the address may lie outside of the buffer, so nothing is promised about it."""
    buffer = e.buffer(op.memref)
    dynamic, constant = e.offset([e.index(i) for i in op.indices], buffer.strides)
    offset = e.add(dynamic, constant)
    at = e.pure(f"getelementptr {buffer.type.element.memory_element}, {buffer.type.pointer} {buffer.pointer}, i64 {offset}")
    write, locality, data = (abs(int(p.value.data)) for p in (op.isWrite, op.localityHint, op.isDataCache))
    e.line(f"call void @llvm.prefetch.p0({buffer.type.pointer} {at}, i32 {write}, i32 {locality}, i32 {data})")


def address_as_index(e: FunctionEmitter, op: Operation) -> None:
    """The address of the first element."""
    buffer = e.buffer(op.operands[0])
    e.values[op.results[0]] = e.pure(f"ptrtoint {buffer.type.pointer} {buffer.pointer} to i64")


def alloca(e: FunctionEmitter, op: Any) -> None:
    """A small static buffer on the stack, made once in the entry block."""
    t = e.module.buffer_type(op.results[0].type)
    if None in t.sizes:
        raise error_at(
            op, "the size is not static", part="operator", code="OP040", expected="a static shape", found=str(op.results[0].type)
        )
    sizes = tuple(n for n in t.sizes if n is not None)
    count = e.product(sizes)
    alignment = op.properties.get("alignment")
    align = (
        alignment.value.data
        if alignment is not None
        else max(t.element.bytes, 64 if int(count) * t.element.bytes >= 64 else t.element.bytes)
    )
    name = e.stack_slot(f"[{count} x {t.element.memory_element}], align {align}")
    e.values[op.results[0]] = Buffer(name, sizes, e.contiguous(sizes), replace(t, pointer="ptr"), name)


def alloc(e: FunctionEmitter, op: Any) -> None:
    """Memory from the context; null ends the function with the status out-of-memory."""
    t = e.module.buffer_type(op.results[0].type)
    rest = iter(op.operands)
    sizes = tuple(e.index(next(rest)) if n is None else n for n in t.sizes)
    size = e.mul(e.product(sizes), t.element.bytes)
    allocate = context_field(e, abi.OFFSET_ALLOCATE)
    pointer = e.define(f"call ptr {allocate}(ptr %ctx, i64 {size}, i64 {abi.ARENA_ALIGNMENT})")
    k = e.fresh()
    missing = e.define(f"icmp eq ptr {pointer}, null")
    e.line(f"br i1 {missing}, label %oom{k}, label %got{k}, !prof !0")
    e.start(f"oom{k}")
    e.module.failures += 1
    e.fail(str(abi.STATUS_OUT_OF_MEMORY))
    e.start(f"got{k}")
    e.values[op.results[0]] = Buffer(pointer, sizes, e.contiguous(sizes), t, pointer)


def dealloc(e: FunctionEmitter, op: Operation) -> None:
    release = context_field(e, abi.OFFSET_FREE)
    e.line(f"call void {release}(ptr %ctx, ptr {e.buffer(op.operands[0]).pointer})")


def context_field(e: FunctionEmitter, offset: int) -> str:
    """A pointer out of the context table."""
    at = e.pure(f"getelementptr inbounds i8, ptr %ctx, i64 {offset}")
    return e.pure(f"load ptr, ptr {at}, align 8")


def copy(e: FunctionEmitter, op: Operation) -> None:
    """One memmove of the contiguous inner dimensions, inside loops over the others."""
    source, target = e.buffer(op.operands[0]), e.buffer(op.operands[1])
    rank = len(source.sizes)
    inner, run = rank, 1
    while inner and source.strides[inner - 1] == target.strides[inner - 1] == run:
        inner -= 1
        run = e.mul(run, source.sizes[inner])
    if 0 in source.sizes:
        return
    element = source.type.element
    loops: list[Loop] = []
    p, q = source.pointer, target.pointer
    mark = e.enter()
    for d in range(inner):
        i = begin_loop(e, source.sizes[d])
        loops.append(i)
        p = e.element_pointer(p, source.type, e.mul(i.index, source.strides[d]))
        q = e.element_pointer(q, target.type, e.mul(i.index, target.strides[d]))
    if inner == rank and rank:
        value = e.define(f"load {element.memory}, {source.type.pointer} {p}, align {element.bytes}")
        e.line(f"store {element.memory} {value}, {target.type.pointer} {q}, align {element.bytes}")
    else:
        size = e.mul(run, element.bytes)
        e.line(f"call void @llvm.memmove.p0.p0.i64(ptr align {element.bytes} {q}, ptr align {element.bytes} {p}, i64 {size}, i1 false)")
    for i in reversed(loops):
        end_loop(e, i)
    e.leave(mark)


class Loop:
    """A counted loop from 0 that the emitter itself writes."""

    def __init__(self, number: int, index: str, size: Index) -> None:
        self.number, self.index, self.size = number, index, size


def begin_loop(e: FunctionEmitter, size: Index) -> Loop:
    k = e.fresh()
    before = e.label
    if isinstance(size, int):
        e.line(f"br label %copy{k}")
    else:
        e.line(f"br i1 {e.define(f'icmp sgt i64 {size}, 0')}, label %copy{k}, label %copied{k}")
    e.start(f"copy{k}")
    e.line(f"%c{k} = phi i64 [0, %{before}], [%c{k}n, %step{k}]")
    return Loop(k, f"%c{k}", size)


def end_loop(e: FunctionEmitter, loop: Loop) -> None:
    k = loop.number
    e.line(f"br label %step{k}")
    e.start(f"step{k}")
    e.line(f"%c{k}n = add nuw nsw i64 %c{k}, 1")
    e.line(f"br i1 {e.define(f'icmp slt i64 %c{k}n, {loop.size}')}, label %copy{k}, label %copied{k}")
    e.start(f"copied{k}")


def get_global(e: FunctionEmitter, op: Any) -> None:
    t = e.module.buffer_type(op.results[0].type)
    sizes = tuple(n for n in t.sizes if n is not None)
    name = symbol(op.properties["name"].root_reference.data)
    e.values[op.results[0]] = Buffer(name, sizes, e.contiguous(sizes), t, name)


def assume_alignment(e: FunctionEmitter, op: Operation) -> None:
    if op.results:
        e.values[op.results[0]] = e.values[op.operands[0]]


HANDLERS: dict[str, Handler] = {
    "memref.load": load,
    "memref.store": store,
    "memref.subview": subview,
    "memref.view": view,
    "memref.cast": cast,
    "memref.memory_space_cast": cast,
    "memref.reinterpret_cast": reinterpret_cast,
    "memref.collapse_shape": collapse_shape,
    "memref.expand_shape": expand_shape,
    "memref.dim": dim,
    "memref.alloca": alloca,
    "memref.alloc": alloc,
    "memref.dealloc": dealloc,
    "memref.copy": copy,
    "memref.get_global": get_global,
    "memref.assume_alignment": assume_alignment,
    "memref.prefetch": prefetch,
    "memref.extract_aligned_pointer_as_index": address_as_index,
}
