"""`nvgpu` and `nvvm` of sm_90a as intrinsics of NVPTX: mbarriers, tensor copies (TMA), products of warpgroups, fences.

A tensor map is a kernel parameter of 128 bytes that the launch passes by value. An accumulator is the f32 values of one thread: for each
64 rows, n / 2 of them in the order of PTX ("Register fragments for wgmma"). `wgmma.mma_async` has no intrinsic: it is inline assembly whose
results are tied to its accumulators, which must stay in their registers while a product is under way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from xdsl.dialects.builtin import BFloat16Type, i64
from xdsl.ir import Attribute, Operation, SSAValue

from gradir.dialects.upstream.nvgpu_types import MbarrierTokenType, TensorMapType, WarpgroupAccumulatorType, WarpgroupDescriptorType
from gradir.dialects.upstream.nvgpu_warpgroup import SWIZZLE, WARPGROUP
from gradir.ir.passes import error_at
from gradir.targets.llvm import types
from gradir.targets.llvm.emitter import Buffer, FunctionEmitter, Handler
from gradir.targets.llvm.memory import address
from gradir.targets.llvm.types import BufferType, ValueType

MAP_ATTRIBUTES = 'byval([128 x i8]) align 64 "nvvm.grid_constant" '
"""Of a kernel parameter that is a tensor map."""
MEMORY_ALIGNMENT = 1024
"""Of dynamic workgroup memory: after so many bytes the pattern of a swizzle of 128 bytes begins again."""
_SHARED = "ptr addrspace(3)"
_CLUSTER = "ptr addrspace(7)"
_STEP = 16
"""Depth of one `wgmma` of 2-byte elements."""
_DESCRIPTOR = 1 << 62 | (8 * SWIZZLE >> 4) << 32
"""Swizzle of 128 bytes, 1024 bytes between groups of 8 rows."""


def value_type(t: Attribute) -> ValueType | None:
    """The spelling of the types that only sm_90a has; None for all others."""
    if isinstance(t, TensorMapType):
        return replace(types.value_type(i64), text="ptr", element="ptr", memory="ptr", memory_element="ptr")
    if isinstance(t, WarpgroupDescriptorType | MbarrierTokenType):
        return types.value_type(i64)
    if isinstance(t, WarpgroupAccumulatorType):
        m, n = t.shape
        return ValueType("float", "float", "float", "float", 0, (m * n // WARPGROUP, 1), "f32", "", 4)
    return None


def _narrow(e: FunctionEmitter, value: SSAValue) -> str:
    """An index as an i32."""
    index = e.index(value)
    return str(index) if isinstance(index, int) else e.pure(f"trunc i64 {index} to i32")


def _guarded(e: FunctionEmitter, predicate: SSAValue | None, write: Callable[[], None]) -> None:
    """`write`, where the predicate holds or there is none."""
    if predicate is None:
        write()
        return
    k = e.fresh()
    e.line(f"br i1 {e.text(predicate)}, label %chosen{k}, label %passed{k}")
    mark = e.enter()
    e.start(f"chosen{k}")
    write()
    e.line(f"br label %passed{k}")
    e.leave(mark)
    e.start(f"passed{k}")


# mbarriers


def create(e: FunctionEmitter, op: Any, name: str, add: Callable[[str], None]) -> None:
    """An array of the block's memory, called `name`; `add` takes its declaration."""
    count = op.barriers.type.num_barriers.data
    add(f"{name} = internal addrspace(3) global [{count} x i64] poison, align 8")
    b = BufferType(types.value_type(i64), (count,), None, _SHARED)
    e.values[op.results[0]] = Buffer(name, (count,), (1,), b, name)


def _barrier_pointer(e: FunctionEmitter, op: Any) -> str:
    return f"{_SHARED} {address(e, e.buffer(op.barriers), [op.mbarId])}"


def _init(e: FunctionEmitter, op: Any) -> None:
    at, count = _barrier_pointer(e, op), _narrow(e, op.count)
    _guarded(e, op.predicate, lambda: e.line(f"call void @llvm.nvvm.mbarrier.init.shared({at}, i32 {count})"))


def _arrive(e: FunctionEmitter, op: Any) -> None:
    at = _barrier_pointer(e, op)
    e.values[op.results[0]] = e.define(f"call i64 @llvm.nvvm.mbarrier.arrive.scope.cta.space.cta({at}, i32 1)")


def _expect(e: FunctionEmitter, op: Any) -> None:
    at, size = _barrier_pointer(e, op), _narrow(e, op.txcount)
    call = f"call i64 @llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta({at}, i32 {size})"
    _guarded(e, op.predicate, lambda: e.line(call))


def _wait(e: FunctionEmitter, op: Any) -> None:
    """Try again until the phase is over; the hint is left to the hardware."""
    at = _barrier_pointer(e, op)
    parity = e.pure(f"zext i1 {e.text(op.phaseParity)} to i32")
    k = e.fresh()
    e.line(f"br label %try{k}")
    e.start(f"try{k}")
    over = e.define(f"call i1 @llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta({at}, i32 {parity})")
    e.line(f"br i1 {over}, label %over{k}, label %try{k}")
    e.start(f"over{k}")


# Tensor copies


def _prefetch(e: FunctionEmitter, op: Any) -> None:
    call = f"call void @llvm.nvvm.prefetch.tensormap.p0(ptr {e.text(op.tensorMapDescriptor)})"
    _guarded(e, op.predicate, lambda: e.line(call))


def _load(e: FunctionEmitter, op: Any) -> None:
    if op.multicastMask is not None:
        raise _unknown(op, "copies to one block", "a multicast mask")
    buffer = e.buffer(op.dst)
    target = e.pure(f"addrspacecast {buffer.type.pointer} {buffer.pointer} to {_CLUSTER}")
    at = _barrier_pointer(e, op)
    _tensor_copy(e, op, "g2s", f"{_CLUSTER} {target}, {at}", "i16 0, i64 0, i1 0, i1 0, i32 0")


def _store(e: FunctionEmitter, op: Any) -> None:
    buffer = e.buffer(op.src)
    _tensor_copy(e, op, "s2g", f"{buffer.type.pointer} {buffer.pointer}", "i64 0, i1 0")


def _tensor_copy(e: FunctionEmitter, op: Any, direction: str, memory: str, options: str) -> None:
    """One box between workgroup memory (`memory`: its arguments) and the tensor of the op's map."""
    places = ", ".join(f"i32 {_narrow(e, c)}" for c in op.coordinates)
    name = f"llvm.nvvm.cp.async.bulk.tensor.{direction}.tile.{len(op.coordinates)}d"
    call = f"call void @{name}({memory}, ptr {e.text(op.tensorMapDescriptor)}, {places}, {options})"
    _guarded(e, op.predicate, lambda: e.line(call))


# Products of warpgroups


def _descriptor(e: FunctionEmitter, op: Any) -> None:
    """The address in units of 16 bytes, and how rows lie: boxes side by side are as far apart as one has bytes."""
    buffer = e.buffer(op.tensor)
    at = e.pure(f"ptrtoint {buffer.type.pointer} {buffer.pointer} to i32")
    unit = e.pure(f"and i32 {e.pure(f'lshr i32 {at}, 4')}, 16383")
    box = op.tensorMap.type.tensor.get_shape()[0] * SWIZZLE
    e.values[op.results[0]] = e.pure(f"or i64 {e.pure(f'zext i32 {unit} to i64')}, {_DESCRIPTOR | (box >> 4) << 16}")


def _zeros(e: FunctionEmitter, op: Any) -> None:
    e.values[op.results[0]] = ["0.0"] * e.type_of(op.results[0]).rows


def _assembly(e: FunctionEmitter, text: str, sums: list[str], *descriptors: str) -> list[str]:
    """Assembly that takes these sums and leaves them in the same registers: nothing that writes them comes between two of these."""
    count = len(sums)
    returned = "{" + ", ".join(["float"] * count) + "}"
    constraints = ",".join([*["=f"] * count, *map(str, range(count)), *["l"] * len(descriptors)])
    arguments = ", ".join([*(f"float {s}" for s in sums), *(f"i64 {d}" for d in descriptors)])
    found = e.define(f'call {returned} asm sideeffect "{text}", "{constraints}"({arguments}) convergent')
    return [e.define(f"extractvalue {returned} {found}, {r}") for r in range(count)]


def _mma(e: FunctionEmitter, op: Any) -> None:
    """One `wgmma` for each 64 rows and 16 columns of A, as one group."""
    if op.groups:
        raise _unknown(op, "waitGroup = 0", f"waitGroup = {op.groups}")
    m, n, k = op.shape
    turned = tuple(int(word is not None) for word in (op.transposeA, op.transposeB))
    if not all(turned) and k * 2 != SWIZZLE:
        raise _unknown(op, f"a depth of {SWIZZLE // 2}, one box, where a factor lies along it", f"a depth of {k}")
    kind = "bf16" if isinstance(op.descriptorA.type.tensor.element_type, BFloat16Type) else "f16"
    count = n // 2
    sums = _assembly(e, "wgmma.fence.sync.aligned;", e.rows(op.matrixC))
    a, b = e.text(op.descriptorA), e.text(op.descriptorB)
    registers = ", ".join(f"${r}" for r in range(count))
    name = f"wgmma.mma_async.sync.aligned.m64n{n}k{_STEP}.f32.{kind}.{kind}"
    text = f"{name} {{{registers}}}, ${2 * count}, ${2 * count + 1}, 1, 1, 1, {turned[0]}, {turned[1]};"
    box = (k if turned[0] else 64) * SWIZZLE  # of 64 rows of A
    for block in range(m // 64):
        mine = sums[block * count : (block + 1) * count]
        for step in range(k // _STEP):
            deep = [step * _STEP * (SWIZZLE if t else 2) for t in turned]
            left = e.pure(f"add i64 {a}, {(block * box + deep[0]) >> 4}")
            right = e.pure(f"add i64 {b}, {deep[1] >> 4}")
            mine = _assembly(e, text, mine, left, right)
        sums[block * count : (block + 1) * count] = mine
    e.line("call void @llvm.nvvm.wgmma.commit_group.sync.aligned()")
    e.line("call void @llvm.nvvm.wgmma.wait_group.sync.aligned(i64 0)")
    e.values[op.results[0]] = sums


def _store_matrix(e: FunctionEmitter, op: Any) -> None:
    """Thread t has, of each 64 rows, rows t / 32 * 16 + t % 32 / 4 and 8 further, of each 8 columns 2 from t % 4 * 2 on."""
    buffer = e.buffer(op.dstMemref)
    t = buffer.type.element
    _, n = op.matrixD.type.shape
    thread = e.pure("call i32 @llvm.nvvm.read.ptx.sreg.tid.x()")
    warp = e.pure(f"and i32 {e.pure(f'lshr i32 {thread}, 5')}, 3")
    lane = e.pure(f"and i32 {thread}, 31")
    row = e.pure(f"add i32 {e.pure(f'shl i32 {warp}, 4')}, {e.pure(f'lshr i32 {lane}, 2')}")
    column = e.pure(f"shl i32 {e.pure(f'and i32 {lane}, 3')}, 1")
    origin = e.add(
        e.mul(e.pure(f"zext i32 {row} to i64"), buffer.strides[0]), e.mul(e.pure(f"zext i32 {column} to i64"), buffer.strides[1])
    )
    base = e.element_pointer(buffer.pointer, buffer.type, origin)
    for register, value in enumerate(e.rows(op.matrixD)):
        block, rest = divmod(register, n // 2)
        group, inside = divmod(rest, 4)
        offset = e.add(e.mul(64 * block + 8 * (inside // 2), buffer.strides[0]), e.mul(8 * group + inside % 2, buffer.strides[1]))
        constant = isinstance(offset, int)
        pointer = e.element_pointer(base, buffer.type, 0 if constant else offset, offset if isinstance(offset, int) else 0)
        e.line(f"store {t.memory} {value}, {buffer.type.pointer} {pointer}, align {t.bytes}")


def _unknown(op: Operation, expected: str, found: str) -> Exception:
    return error_at(op, "no code for this form of the op", part="operator", code="OP040", expected=expected, found=found)


# Fences, barriers, registers


def _call(text: str) -> Handler:
    return lambda e, _op: e.line(f"call void @llvm.nvvm.{text}")


def _fence(e: FunctionEmitter, op: Any) -> None:
    e.line(f"call void @llvm.nvvm.fence.proxy.async.shared_{op.space.data}()")


def _barrier(e: FunctionEmitter, op: Any) -> None:
    number, count = (e.text(v) for v in (op.barrierId, op.numberOfThreads))
    e.line(f"call void @llvm.nvvm.barrier.cta.sync.aligned.count(i32 {number}, i32 {count})")


def _wait_bulk(e: FunctionEmitter, op: Any) -> None:
    read = ".read" if op.read is not None else ""
    e.line(f"call void @llvm.nvvm.cp.async.bulk.wait.group{read}(i32 {op.group.value.data})")


def _registers(e: FunctionEmitter, op: Any) -> None:
    word = "inc" if op.action.data == "increase" else "dec"
    e.line(f"call void @llvm.nvvm.setmaxnreg.{word}.sync.aligned.u32(i32 {op.regCount.value.data})")


HANDLERS: dict[str, Handler] = {
    "nvgpu.mbarrier.init": _init,
    "nvgpu.mbarrier.arrive": _arrive,
    "nvgpu.mbarrier.arrive.expect_tx": _expect,
    "nvgpu.mbarrier.try_wait.parity": _wait,
    "nvgpu.tma.prefetch.descriptor": _prefetch,
    "nvgpu.tma.async.load": _load,
    "nvgpu.tma.async.store": _store,
    "nvgpu.warpgroup.generate.descriptor": _descriptor,
    "nvgpu.warpgroup.mma.init.accumulator": _zeros,
    "nvgpu.warpgroup.mma": _mma,
    "nvgpu.warpgroup.mma.store": _store_matrix,
    "nvvm.barrier": _barrier,
    "nvvm.cp.async.bulk.commit.group": _call("cp.async.bulk.commit.group()"),
    "nvvm.cp.async.bulk.wait_group": _wait_bulk,
    "nvvm.fence.mbarrier.init": _call("fence.mbarrier_init.release.cluster()"),
    "nvvm.fence.proxy": _fence,
    "nvvm.setmaxregister": _registers,
}
