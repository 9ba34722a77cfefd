"""`nvgpu` as intrinsics of NVPTX: `ldmatrix`, `mma.sync`, `cp.async` and its groups.

A fragment is a list of rows of 32 bits (`<2 x i16>`, `<4 x i8>`, `<1 x float>`); the intrinsics take them as `i32`, those of f16 as halves.
All but copies are done by a whole warp, so none of them is written twice nor moved.
"""

from __future__ import annotations

from typing import Any

from gradir.targets.llvm.emitter import FunctionEmitter, Handler

_PRODUCTS: dict[tuple[str, int], str] = {
    ("half", 16): "llvm.nvvm.mma.m16n8k16.row.col.f32.f32",
    ("bfloat", 16): "llvm.nvvm.mma.m16n8k16.row.col.bf16",
    ("float", 8): "llvm.nvvm.mma.m16n8k8.row.col.tf32",
    ("i8", 32): "llvm.nvvm.mma.m16n8k32.row.col.s8",
}
"""Element of the factors and depth of a product -> its intrinsic."""


def _ldmatrix(e: FunctionEmitter, op: Any) -> None:
    count = op.numTiles.value.data
    t = e.type_of(op.results[0])
    buffer = e.buffer(op.operands[0])
    dynamic, constant = e.offset([e.index(i) for i in op.operands[1:]], buffer.strides)
    pointer = e.element_pointer(buffer.pointer, buffer.type, dynamic, constant)
    turned = ".trans" if bool(op.transpose) else ""
    returned = "i32" if count == 1 else "{" + ", ".join(["i32"] * count) + "}"
    loaded = e.define(f"call {returned} @llvm.nvvm.ldmatrix.sync.aligned.m8n8.x{count}{turned}.b16.p3({buffer.type.pointer} {pointer})")
    words = [loaded] if count == 1 else [e.pure(f"extractvalue {returned} {loaded}, {k}") for k in range(count)]
    e.set_rows(op.results[0], [e.pure(f"bitcast i32 {word} to {t.text}") for word in words])


def _mma(e: FunctionEmitter, op: Any) -> None:
    a, b, c = op.operands
    t = e.type_of(a)
    kind = t.half or t.element
    name = _PRODUCTS[kind, op.shape[2]]
    word = "<2 x half>" if kind == "half" else "i32"
    factors = [f"{word} {e.pure(f'bitcast {t.text} {row} to {word}')}" for row in (*e.rows(a), *e.rows(b))]
    s = e.type_of(c)
    sums = [f"{s.element} {e.lane(row, s, k)}" for row in e.rows(c) for k in range(2)]
    returned = "{" + ", ".join([s.element] * 4) + "}"
    found = e.define(f"call {returned} @{name}({', '.join([*factors, *sums])})")
    scalars = [e.pure(f"extractvalue {returned} {found}, {k}") for k in range(4)]
    e.set_rows(op.results[0], [e.pack(scalars[:2], s), e.pack(scalars[2:], s)])


def _copy(e: FunctionEmitter, op: Any) -> None:
    pointers: list[str] = []
    for memory, indices in ((op.dst, op.dstIndices), (op.src, op.srcIndices)):
        buffer = e.buffer(memory)
        dynamic, constant = e.offset([e.index(i) for i in indices], buffer.strides)
        pointers.append(f"{buffer.type.pointer} {e.element_pointer(buffer.pointer, buffer.type, dynamic, constant)}")
    cache = "cg" if op.bypassL1 is not None else "ca"
    partial, size = "", ""
    if op.srcElements is not None:
        bytes_ = e.mul(e.index(op.srcElements), op.bytes // op.dstElements.value.data)
        partial = ".s"
        size = f", i32 {bytes_}" if isinstance(bytes_, int) else f", i32 {e.pure(f'trunc i64 {bytes_} to i32')}"
    e.line(f"call void @llvm.nvvm.cp.async.{cache}.shared.global.{op.bytes}{partial}({', '.join(pointers)}{size})")
    e.values[op.results[0]] = "0"


def _group(e: FunctionEmitter, op: Any) -> None:
    e.line("call void @llvm.nvvm.cp.async.commit.group()")
    e.values[op.results[0]] = "0"


def _wait(e: FunctionEmitter, op: Any) -> None:
    e.line(f"call void @llvm.nvvm.cp.async.wait.group(i32 {op.groups})")


HANDLERS: dict[str, Handler] = {
    "nvgpu.ldmatrix": _ldmatrix,
    "nvgpu.mma.sync": _mma,
    "nvgpu.device_async_copy": _copy,
    "nvgpu.device_async_create_group": _group,
    "nvgpu.device_async_wait": _wait,
}
