"""Vectors from and to memory: transfer_read/write with permutation maps and edges, load/store, masked and indexed accesses.

A dimension that may leave the buffer (`in_bounds = false`) is guarded: by a lane mask in the innermost dimension, by a predicate for a
whole row in the others; both fold to constants where index and size are constants.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr

from gradir.ir.passes import error_at
from gradir.targets.llvm.emitter import Buffer, Column, FunctionEmitter, Handler, Index
from gradir.targets.llvm.memory import in_memory, load_row, store_row
from gradir.targets.llvm.types import BufferType, ValueType, vector_of
from gradir.targets.llvm.vectors import lane_mask, only_left_of_outer_products


@dataclass(slots=True)
class Access:
    """Where the elements of a transfer lie: element (k_0, ..., k_n) at base + sum(k_d * stride_d)."""

    buffer: Buffer
    t: ValueType
    base: str
    strides: list[Index]
    """Per vector dimension; 0 for a broadcast one."""
    room: list[Index | None]
    """Elements left in the buffer per vector dimension; None where all are known to be inside."""
    mask: list[str] | None

    @property
    def buffer_type(self) -> BufferType:
        return self.buffer.type


def _access(e: FunctionEmitter, op: Any, buffer: Buffer, indices: Sequence[SSAValue], t: ValueType, mask: SSAValue | None) -> Access:
    positions = [e.index(i) for i in indices]
    dynamic, constant = e.offset(positions, buffer.strides)
    base = e.element_pointer(buffer.pointer, buffer.type, dynamic, constant)
    strides: list[Index] = []
    room: list[Index | None] = []
    flags = op.properties.get("in_bounds")
    inside = [bool(b.value.data) for b in flags.data] if flags is not None else [False] * t.rank
    for d, expression in enumerate(op.properties["permutation_map"].data.results):
        if isinstance(expression, AffineConstantExpr):
            strides.append(0)
            room.append(None)
            continue
        if not isinstance(expression, AffineDimExpr):
            raise error_at(op, "the permutation map is not a projected permutation", part="operator", code="OP040", found=str(expression))
        p = expression.position
        strides.append(buffer.strides[p])
        left = None if inside[d] else e.sub(buffer.sizes[p], positions[p])
        room.append(None if isinstance(left, int) and left >= t.shape[d] else left)
    return Access(buffer, t, base, strides, room, e.rows(mask) if mask is not None else None)


def _row_predicate(e: FunctionEmitter, a: Access, index: Sequence[int]) -> str:
    """Is the row of these outer indices inside? `true`, `false` or an i1."""
    found = "true"
    for k, left in zip(index, a.room):
        if left is None:
            continue
        if isinstance(left, int):
            if k >= left:
                return "false"
            continue
        inside = e.pure(f"icmp sgt i64 {left}, {k}")
        found = inside if found == "true" else e.pure(f"and i1 {found}, {inside}")
    return found


def _row_mask(e: FunctionEmitter, a: Access, predicate: str, lanes: str | None, row: int) -> str | None:
    """The lane mask of a row, None when nothing is masked."""
    if lanes is None and a.mask is None and predicate == "true":
        return None
    mask_type = vector_of("i1", a.t.lanes)
    masks = [m for m in (lanes, a.mask[row] if a.mask is not None else None) if m is not None]
    if predicate != "true":
        masks.append(e.splat(predicate, mask_type))
    found = masks[0]
    for other in masks[1:]:
        found = e.pure(f"and {mask_type.text} {found}, {other}")
    return found


def _pointers(e: FunctionEmitter, a: Access, pointer: str, stride: Index) -> str:
    """A vector of the lanes' addresses, `stride` elements apart."""
    index_type = vector_of("i64", a.t.lanes)
    if isinstance(stride, int):
        offsets = "<" + ", ".join(f"i64 {k * stride}" for k in range(a.t.lanes)) + ">"
    else:
        steps = "<" + ", ".join(f"i64 {k}" for k in range(a.t.lanes)) + ">"
        offsets = e.pure(f"mul {index_type.text} {steps}, {e.splat(stride, index_type)}")
    return e.pure(f"getelementptr inbounds {a.t.memory_element}, {a.buffer_type.pointer} {pointer}, {index_type.text} {offsets}")


def _rows(e: FunctionEmitter, a: Access, visit: Callable[[int, str, str, str | None], None]) -> None:
    """Call `visit(row, pointer, predicate, mask)` for every row; `predicate` excludes lane masks."""
    outer = a.t.shape[:-1]
    last = a.room[-1]
    lanes = lane_mask(e, last, a.t.lanes) if last is not None else None
    for row, index in enumerate(product(*map(range, outer))):
        predicate = _row_predicate(e, a, index)
        dynamic, constant = e.offset(list(index), a.strides[:-1])
        pointer = e.element_pointer(a.base, a.buffer_type, dynamic, constant)
        visit(row, pointer, predicate, _row_mask(e, a, predicate, lanes, row))


def transfer_read(e: FunctionEmitter, op: Any) -> None:
    t = e.type_of(op.results[0])
    buffer = e.buffer(op.operands[0])
    rank = len(buffer.sizes)
    mask = op.operands[2 + rank] if len(op.operands) > 2 + rank else None
    a = _access(e, op, buffer, op.operands[1 : 1 + rank], t, mask)
    padding = e.text(op.operands[1 + rank])
    if t.rank == 1 and a.room[0] is None and mask is None and only_left_of_outer_products(op):
        e.values[op.results[0]] = _column(e, a)
        return
    out: list[str] = []

    def visit(row: int, pointer: str, predicate: str, lanes: str | None) -> None:
        out.append(_read_row(e, a, pointer, predicate, lanes, padding))

    _rows(e, a, visit)
    e.set_rows(op.results[0], out)


def _scalar_type(t: ValueType) -> ValueType:
    return ValueType(t.element, t.element, t.memory_element, t.memory_element, 0, (), t.suffix.lstrip("v0123456789"), t.half, t.bytes)


def _column(e: FunctionEmitter, a: Access) -> Column:
    """One scalar load a lane: what broadcasts into an outer product best."""
    scalar = _scalar_type(a.t)
    loads: dict[Index, str] = {}
    names: list[str] = []
    for k in range(a.t.lanes):
        offset = e.mul(a.strides[0], k)
        if offset not in loads:
            constant = offset if isinstance(offset, int) else 0
            pointer = e.element_pointer(a.base, a.buffer_type, 0 if isinstance(offset, int) else offset, constant)
            loads[offset] = load_row(e, pointer, a.buffer_type.pointer, scalar)
        names.append(loads[offset])
    return Column(names)


def _read_row(e: FunctionEmitter, a: Access, pointer: str, predicate: str, mask: str | None, padding: str) -> str:
    t, stride, space = a.t, a.strides[-1], a.buffer_type.pointer
    if predicate == "false":
        return e.splat(padding, t)
    if stride == 1 and mask is None:
        return load_row(e, pointer, space, t)
    if stride == 1 or (mask is not None and stride != 0):
        return _masked_read(e, a, pointer, stride, mask, e.splat(padding, t))
    scalar = _scalar_type(t)
    if stride == 0:
        value = e.splat(_guarded_load(e, pointer, space, scalar, predicate, padding), t)
        if mask is None or a.mask is None:  # the innermost dimension is a broadcast: only a mask operand reaches its lanes
            return value
        return e.pure(f"select {vector_of('i1', t.lanes).text} {mask}, {t.text} {value}, {t.text} {e.splat(padding, t)}")
    names: list[str] = []
    for k in range(t.lanes):
        offset = e.mul(stride, k)
        at = e.element_pointer(pointer, a.buffer_type, 0 if isinstance(offset, int) else offset, offset if isinstance(offset, int) else 0)
        names.append(load_row(e, at, space, scalar))
    return e.pack(names, t)


def _guarded_load(e: FunctionEmitter, pointer: str, space: str, t: ValueType, predicate: str, padding: str) -> str:
    """A scalar load that happens only where `predicate` holds."""
    if predicate == "true":
        return load_row(e, pointer, space, t)
    k = e.fresh()
    before = e.label
    e.line(f"br i1 {predicate}, label %load{k}, label %loaded{k}")
    mark = e.enter()
    e.start(f"load{k}")
    value = load_row(e, pointer, space, t)
    e.line(f"br label %loaded{k}")
    e.leave(mark)
    e.start(f"loaded{k}")
    return e.define(f"phi {t.text} [{value}, %load{k}], [{padding}, %{before}]")


def _masked_read(e: FunctionEmitter, a: Access, pointer: str, stride: Index, mask: str | None, passthru: str) -> str:
    t, space = a.t, a.buffer_type.pointer
    suffix = f"v{t.lanes}{_short(t.memory_element)}"
    kept = in_memory(e, passthru, t)
    mask_type = vector_of("i1", t.lanes).text
    mask = mask or e.splat("true", vector_of("i1", t.lanes))
    if stride == 1:
        operands = f"{space} align {t.bytes} {pointer}, {mask_type} {mask}, {t.memory} {kept}"
        loaded = e.define(f"call {t.memory} @llvm.masked.load.{suffix}.{_space(space)}({operands})")
    else:
        vector = f"<{t.lanes} x {space}>"
        addresses = _pointers(e, a, pointer, stride)
        operands = f"{vector} align {t.bytes} {addresses}, {mask_type} {mask}, {t.memory} {kept}"
        loaded = e.define(f"call {t.memory} @llvm.masked.gather.{suffix}.v{t.lanes}{_space(space)}({operands})")
    return loaded if t.element != "i1" else e.pure(f"icmp ne {t.memory} {loaded}, zeroinitializer")


def _space(pointer: str) -> str:
    """How an intrinsic's name spells a pointer type."""
    return "p" + (pointer[15:-1] if "addrspace" in pointer else "0")


def _short(element: str) -> str:
    return {"float": "f32", "double": "f64"}.get(element, element)


def transfer_write(e: FunctionEmitter, op: Any) -> None:
    t = e.type_of(op.operands[0])
    buffer = e.buffer(op.operands[1])
    rank = len(buffer.sizes)
    mask = op.operands[2 + rank] if len(op.operands) > 2 + rank else None
    a = _access(e, op, buffer, op.operands[2 : 2 + rank], t, mask)
    rows = e.rows(op.operands[0])
    _rows(e, a, lambda row, pointer, predicate, lanes: _write_row(e, a, rows[row], pointer, predicate, lanes))


def _write_row(e: FunctionEmitter, a: Access, row: str, pointer: str, predicate: str, mask: str | None) -> None:
    t, stride, space = a.t, a.strides[-1], a.buffer_type.pointer
    if predicate == "false":
        return
    if stride == 1 and mask is None:
        store_row(e, row, pointer, space, t)
        return
    mask_type = vector_of("i1", t.lanes).text
    suffix = f"v{t.lanes}{_short(t.memory_element)}"
    if stride == 1:
        operands = f"{t.memory} {in_memory(e, row, t)}, {space} align {t.bytes} {pointer}, {mask_type} {mask}"
        e.line(f"call void @llvm.masked.store.{suffix}.{_space(space)}({operands})")
    elif mask is not None:
        addresses = _pointers(e, a, pointer, stride)
        vector = f"<{t.lanes} x {space}>"
        operands = f"{t.memory} {in_memory(e, row, t)}, {vector} align {t.bytes} {addresses}, {mask_type} {mask}"
        e.line(f"call void @llvm.masked.scatter.{suffix}.v{t.lanes}{_space(space)}({operands})")
    else:
        scalar = _scalar_type(t)
        for k in range(t.lanes):
            offset = e.mul(stride, k)
            at = e.element_pointer(
                pointer, a.buffer_type, 0 if isinstance(offset, int) else offset, offset if isinstance(offset, int) else 0
            )
            store_row(e, e.lane(row, t, k), at, space, scalar)


def _whole(e: FunctionEmitter, buffer: Buffer, indices: Sequence[SSAValue], t: ValueType, mask: SSAValue | None = None) -> Access:
    """The access of a plain load or store: the vector's dimensions are the buffer's innermost ones, all inside."""
    dynamic, constant = e.offset([e.index(i) for i in indices], buffer.strides)
    base = e.element_pointer(buffer.pointer, buffer.type, dynamic, constant)
    strides = list(buffer.strides[-t.rank :]) or [1]
    return Access(buffer, t, base, strides, [None] * t.rank, e.rows(mask) if mask is not None else None)


def _promised_alignment(op: Operation, a: Access) -> int:
    """Bytes that the op's `alignment` promises for a contiguous row; 0 when it promises nothing."""
    promised: Any = op.attributes.get("alignment") or op.properties.get("alignment")
    if promised is None or a.t.rank != 1 or a.strides[-1] != 1 or a.t.element == "i1":
        return 0
    return int(promised.value.data)


def load(e: FunctionEmitter, op: Operation) -> None:
    buffer = e.buffer(op.operands[0])
    t = e.type_of(op.results[0])
    a = _whole(e, buffer, op.operands[1:], t)
    promised = _promised_alignment(op, a)
    if promised:
        e.values[op.results[0]] = e.define(f"load {t.memory}, {buffer.type.pointer} {a.base}, align {promised}")
        return
    if t.rank == 1 and only_left_of_outer_products(op):
        e.values[op.results[0]] = _column(e, a)
        return
    out: list[str] = []
    _rows(e, a, lambda row, pointer, predicate, lanes: out.append(_read_row(e, a, pointer, predicate, lanes, "poison")))
    e.set_rows(op.results[0], out)


def _goes_past_caches(e: FunctionEmitter, op: Operation, promised: int) -> str:
    """LLVM's word for a non-temporal store; the function must then end with a fence."""
    wanted: Any = op.properties.get("nontemporal")
    if wanted is None or not wanted.value.data or promised < 16:
        return ""
    e.streams = True
    return ", !nontemporal !2"


def store(e: FunctionEmitter, op: Operation) -> None:
    buffer = e.buffer(op.operands[1])
    t = e.type_of(op.operands[0])
    rows = e.rows(op.operands[0])
    a = _whole(e, buffer, op.operands[2:], t)
    promised = _promised_alignment(op, a)
    if promised:
        past = _goes_past_caches(e, op, promised)
        e.line(f"store {t.memory} {rows[0]}, {buffer.type.pointer} {a.base}, align {promised}{past}")
        return
    _rows(e, a, lambda row, pointer, predicate, lanes: _write_row(e, a, rows[row], pointer, predicate, lanes))


def masked_load(e: FunctionEmitter, op: Operation) -> None:
    buffer = e.buffer(op.operands[0])
    rank = len(buffer.sizes)
    a = _whole(e, buffer, op.operands[1 : 1 + rank], e.type_of(op.results[0]), op.operands[1 + rank])
    keep = e.text(op.operands[2 + rank])
    e.values[op.results[0]] = _masked_read(e, a, a.base, a.strides[-1], e.text(op.operands[1 + rank]), keep)


def masked_store(e: FunctionEmitter, op: Operation) -> None:
    buffer = e.buffer(op.operands[0])
    rank = len(buffer.sizes)
    value, mask = op.operands[2 + rank], op.operands[1 + rank]
    a = _whole(e, buffer, op.operands[1 : 1 + rank], e.type_of(value), mask)
    _write_row(e, a, e.text(value), a.base, "true", e.text(mask))


def _indexed(e: FunctionEmitter, op: Operation, t: ValueType) -> tuple[str, str]:
    """Addresses base[offsets] + indices in the innermost dimension, and their LLVM type."""
    buffer = e.buffer(op.operands[0])
    rank = len(buffer.sizes)
    a = _whole(e, buffer, op.operands[1 : 1 + rank], t)
    indices = op.operands[1 + rank]
    i = e.type_of(indices)
    name = e.text(indices)
    wide = vector_of("i64", i.lanes)
    if i.element != "i64":
        name = e.pure(f"sext {i.text} {name} to {wide.text}")
    stride = a.strides[-1]
    if stride != 1:
        name = e.pure(f"mul {wide.text} {name}, {e.splat(str(stride), wide)}")
    address = e.pure(f"getelementptr inbounds {t.memory_element}, {buffer.type.pointer} {a.base}, {wide.text} {name}")
    return address, f"<{t.lanes} x {buffer.type.pointer}>"


def gather(e: FunctionEmitter, op: Operation) -> None:
    t = e.type_of(op.results[0])
    rank = len(e.buffer(op.operands[0]).sizes)
    mask, keep = e.text(op.operands[2 + rank]), in_memory(e, e.text(op.operands[3 + rank]), t)
    addresses, vector = _indexed(e, op, t)
    suffix = f"v{t.lanes}{_short(t.memory_element)}.v{t.lanes}{_space(e.buffer(op.operands[0]).type.pointer)}"
    loaded = e.define(
        f"call {t.memory} @llvm.masked.gather.{suffix}({vector} align {t.bytes} {addresses}, <{t.lanes} x i1> {mask}, {t.memory} {keep})"
    )
    e.values[op.results[0]] = loaded if t.element != "i1" else e.pure(f"icmp ne {t.memory} {loaded}, zeroinitializer")


def scatter(e: FunctionEmitter, op: Operation) -> None:
    rank = len(e.buffer(op.operands[0]).sizes)
    value = op.operands[3 + rank]
    t = e.type_of(value)
    addresses, vector = _indexed(e, op, t)
    suffix = f"v{t.lanes}{_short(t.memory_element)}.v{t.lanes}{_space(e.buffer(op.operands[0]).type.pointer)}"
    row, mask = in_memory(e, e.text(value), t), e.text(op.operands[2 + rank])
    e.line(f"call void @llvm.masked.scatter.{suffix}({t.memory} {row}, {vector} align {t.bytes} {addresses}, <{t.lanes} x i1> {mask})")


HANDLERS: dict[str, Handler] = {
    "vector.transfer_read": transfer_read,
    "vector.transfer_write": transfer_write,
    "vector.load": load,
    "vector.store": store,
    "vector.maskedload": masked_load,
    "vector.maskedstore": masked_store,
    "vector.gather": gather,
    "vector.scatter": scatter,
}
