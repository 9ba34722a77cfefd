"""Host code of a program for CUDA: functions whose memrefs lie in the device's memory, which they reach through the context.

The CPU's emitter for everything that computes on numbers (loops, branches, indices, views only move pointers); launches, copies, reads and
temporaries go through the device's table (`gradir.dialects.target.abi`). Temporaries of static size are places in the program's scratch
memory: kernels of one stream run one after the other, so each may have it all.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from xdsl.dialects.builtin import MemRefType, ModuleOp, UnrankedMemRefType
from xdsl.ir import Attribute, Operation

from gradir.dialects.target import CpuTargetAttr, abi
from gradir.dialects.upstream import gpu
from gradir.dialects.upstream.func import FuncOp
from gradir.dialects.upstream.nvgpu_types import TensorMapType
from gradir.ir.checks import CHECK
from gradir.ir.passes import error_at
from gradir.ir.structure import is_public
from gradir.targets.llvm import hopper, memory, tensor_maps
from gradir.targets.llvm.constants import constant_bytes
from gradir.targets.llvm.control import check_status
from gradir.targets.llvm.emitter import Buffer, FunctionEmitter, Handler
from gradir.targets.llvm.memory import address, begin_loop, context_field, end_loop
from gradir.targets.llvm.module import HANDLERS, PROFILES, ModuleEmitter, Translation
from gradir.targets.llvm.types import ValueType, buffer_type, value_type

SCRATCH_ALIGNMENT = 256
"""Of temporaries: what the device's own allocator gives."""


@dataclass(frozen=True)
class Parameter:
    """An operand of a kernel: a number of `bytes` bytes, or memory (`element` bytes an element) with None for what the launch tells."""

    bytes: int
    element: int = 0
    sizes: tuple[int | None, ...] = ()
    strides: tuple[int | None, ...] | None = None
    access: str = ""


@dataclass(frozen=True)
class Kernel:
    """A function of the device."""

    name: str
    parameters: tuple[Parameter, ...]


@dataclass(frozen=True)
class Launch:
    """A place in the host code that runs a kernel; `op_id` is its number in the source map."""

    kernel: str
    op_id: int


@dataclass
class HostTranslation(Translation):
    """Also what the device's table has to hold: launches and constants by number, bytes of scratch memory."""

    launches: list[Launch] = field(default_factory=list[Launch])
    constants: list[bytes] = field(default_factory=list[bytes])
    scratch: int = 0
    kernels: list[Kernel] = field(default_factory=list[Kernel])
    shared: dict[str, int] = field(default_factory=dict[str, int])
    """The most dynamic shared memory of a block that a launch asks for, by kernel."""


class HostEmitter(ModuleEmitter):
    """What the host functions of one module share."""

    def __init__(self, module: ModuleOp, target: CpuTargetAttr, first_op_id: int) -> None:
        super().__init__(module, target, (), (), first_op_id)
        self.handlers = _HOST
        self.sequential = True
        self.launches: list[Launch] = []
        self.constants: dict[str, int] = {}
        self.data = {str(getattr(op.properties["sym_name"], "data", "")): op for op in module.body.block.ops if op.name == "memref.global"}
        self.device_functions = _device_functions(module)
        self.shared: dict[str, int] = {}
        self.scratch = 0
        self.used = 0  # by the function that is being written

    def value_type(self, t: Attribute) -> ValueType:
        return hopper.value_type(t) or super().value_type(t)

    def emit_function(self, f: FuncOp) -> None:
        self.used = 0
        super().emit_function(f)
        self.scratch = max(self.scratch, self.used)

    def temporary(self, size: int) -> int:
        """The offset of `size` bytes of scratch memory that no other temporary of the function has."""
        at = self.used
        self.used += -(-size // SCRATCH_ALIGNMENT) * SCRATCH_ALIGNMENT
        return at


def translate_host(module: ModuleOp, target: CpuTargetAttr, first_op_id: int = 0) -> HostTranslation:
    """LLVM IR text of the host functions of a level-4 module for CUDA, and what its launches are."""
    e = HostEmitter(module, target, first_op_id)
    entries: list[str] = []
    for f in module.body.block.ops:
        if isinstance(f, FuncOp) and f.body.blocks and CHECK not in f.attributes:
            e.emit_function(f)
            if is_public(f):
                entries.append(f.sym_name.data)
    constants = [constant_bytes(e.data[name]) for name in e.constants]
    text = "\n".join([*e.functions, _LAUNCH if e.launches else "", e.attributes(), PROFILES, ""])
    kernels = [Kernel(name, _parameters(function)) for name, function in e.device_functions.items()]
    return HostTranslation(text, entries, e.assertions, list(e.libraries), e.launches, constants, e.scratch, kernels, e.shared)


def _device_functions(module: ModuleOp) -> dict[str, gpu.FuncOp]:
    holders = [op for op in module.body.block.ops if isinstance(op, gpu.ModuleOp)]
    functions = [op for holder in holders for op in holder.bodyRegion.block.ops if isinstance(op, gpu.FuncOp)]
    return {function.sym_name.data: function for function in functions}


def _parameters(function: gpu.FuncOp) -> tuple[Parameter, ...]:
    found: list[Parameter] = []
    for position, argument in enumerate(function.body.block.args[: function.operand_count]):
        if isinstance(argument.type, TensorMapType):
            found.append(Parameter(abi.TENSOR_MAP_BYTES))
            continue
        if not isinstance(argument.type, MemRefType):
            found.append(Parameter(value_type(argument.type).bytes))
            continue
        t = buffer_type(argument.type, "ptr")
        own = function.arg_attrs.data[position].data if function.arg_attrs is not None else {}
        access = str(getattr(own.get("gradir.access"), "data", ""))
        found.append(Parameter(8, t.element.bytes, t.sizes, t.strides, access))
        dynamic = t.sizes.count(None) + (t.strides.count(None) if t.strides is not None else 0)
        found += [Parameter(8)] * dynamic
    return tuple(found)


# The device's table


def _device_field(e: FunctionEmitter, offset: int) -> str:
    device = context_field(e, abi.OFFSET_DEVICE)
    at = e.pure(f"getelementptr inbounds i8, ptr {device}, i64 {offset}")
    return e.pure(f"load ptr, ptr {at}, align 8")


def _driver(e: FunctionEmitter, op: Operation, status: str) -> None:
    """Leave the function with STATUS_DEVICE unless the driver returned 0."""
    number = e.module.op_id(op, "", op.name)
    k = e.fresh()
    e.line(f"br i1 {e.define(f'icmp eq i32 {status}, 0')}, label %ok{k}, label %bad{k}, !prof !1")
    mark = e.enter()
    e.start(f"bad{k}")
    slot = context_field(e, abi.OFFSET_ERROR)
    e.line(f"store i64 {abi.STATUS_DEVICE}, ptr {slot}, align 8")
    e.line(f"store i64 {number}, ptr {e.pure(f'getelementptr inbounds i8, ptr {slot}, i64 8')}, align 8")
    e.line(f"store i64 {e.define(f'sext i32 {status} to i64')}, ptr {e.pure(f'getelementptr inbounds i8, ptr {slot}, i64 16')}, align 8")
    e.fail(str(abi.STATUS_DEVICE))
    e.leave(mark)
    e.start(f"ok{k}")


# Launches

_SIZES = ", ".join(f"i64 %{name}" for name in ("gx", "gy", "gz", "bx", "by", "bz", "shared"))
_NARROW = "\n".join(f"  %{n}.32 = trunc i64 %{n} to i32" for n in ("gx", "gy", "gz", "bx", "by", "bz", "shared"))
_PASSED = ", ".join(f"i32 %{n}.32" for n in ("gx", "gy", "gz", "bx", "by", "bz", "shared"))

_LAUNCH = f"""\
define internal i32 @gradir.launch(ptr %ctx, i64 %number, i64 %op, {_SIZES}, ptr %parameters) #0 {{
entry:
  %grid.xy = mul i64 %gx, %gy
  %grid = mul i64 %grid.xy, %gz
  %empty = icmp eq i64 %grid, 0
  br i1 %empty, label %done, label %go
go:
  %device.at = getelementptr inbounds i8, ptr %ctx, i64 {abi.OFFSET_DEVICE}
  %device = load ptr, ptr %device.at, align 8
  %count.at = getelementptr inbounds i8, ptr %device, i64 {abi.DEVICE_LAUNCHES}
  %count = load i64, ptr %count.at, align 8
  %count.next = add i64 %count, 1
  store i64 %count.next, ptr %count.at, align 8
  %recent.at = getelementptr inbounds i8, ptr %device, i64 {abi.DEVICE_RECENT}
  %recent = load ptr, ptr %recent.at, align 8
  %place = urem i64 %count, {abi.RECENT_LAUNCHES}
  %place.at = getelementptr inbounds i32, ptr %recent, i64 %place
  %number.32 = trunc i64 %number to i32
  store i32 %number.32, ptr %place.at, align 4
  %functions.at = getelementptr inbounds i8, ptr %device, i64 {abi.DEVICE_FUNCTIONS}
  %functions = load ptr, ptr %functions.at, align 8
  %function.at = getelementptr inbounds ptr, ptr %functions, i64 %number
  %function = load ptr, ptr %function.at, align 8
  %stream.at = getelementptr inbounds i8, ptr %device, i64 {abi.DEVICE_STREAM}
  %stream = load ptr, ptr %stream.at, align 8
  %launch.at = getelementptr inbounds i8, ptr %device, i64 {abi.DEVICE_LAUNCH}
  %launch = load ptr, ptr %launch.at, align 8
{_NARROW}
  %status = call i32 %launch(ptr %function, {_PASSED}, ptr %stream, ptr %parameters, ptr null)
  %good = icmp eq i32 %status, 0
  br i1 %good, label %done, label %bad, !prof !1
bad:
  %slot.at = getelementptr inbounds i8, ptr %ctx, i64 {abi.OFFSET_ERROR}
  %slot = load ptr, ptr %slot.at, align 8
  store i64 {abi.STATUS_DEVICE}, ptr %slot, align 8
  %op.at = getelementptr inbounds i8, ptr %slot, i64 8
  store i64 %op, ptr %op.at, align 8
  %code = sext i32 %status to i64
  %code.at = getelementptr inbounds i8, ptr %slot, i64 16
  store i64 %code, ptr %code.at, align 8
  ret i32 {abi.STATUS_DEVICE}
done:
  ret i32 0
}}
"""


def _launch(e: FunctionEmitter, op: gpu.LaunchFuncOp) -> None:
    """Parameters on the stack, a table of where they lie, the call."""
    module = e.module
    assert isinstance(module, HostEmitter)
    name = op.kernel.nested_references.data[-1].data
    if name not in module.device_functions:
        raise error_at(op, f"no kernel @{name} in the module", part="operator", code="OP040", expected="a gpu.func", found=f"@{name}")
    parts = [(*part, isinstance(operand.type, TensorMapType)) for operand in op.kernelOperands for part in e.parts(operand)]
    table = e.stack_slot(f"[{max(1, len(parts))} x ptr], align 8")
    for position, (kind, value, in_memory) in enumerate(parts):
        place = value
        if not in_memory:
            place = e.stack_slot(f"{'i8' if kind == 'i1' else kind}, align 8")
            stored = f"i8 {e.pure(f'zext i1 {value} to i8')}" if kind == "i1" else f"{kind} {value}"
            e.line(f"store {stored}, ptr {place}, align 8")
        e.line(f"store ptr {place}, ptr {e.pure(f'getelementptr inbounds ptr, ptr {table}, i64 {position}')}, align 8")
    number, op_id = len(module.launches), module.op_id(op, f"@{name}", op.name)
    module.launches.append(Launch(name, op_id))
    sizes = [f"i64 {e.index(value)}" for value in (*op.gridSize, *op.blockSize)]
    size = 0 if op.dynamicSharedMemorySize is None else e.index(op.dynamicSharedMemorySize)
    if not isinstance(size, int):
        raise error_at(
            op, "dynamic shared memory of a size that is no constant", part="operator", code="OP040", expected="a constant", found=str(size)
        )
    module.shared[name] = max(size, module.shared.get(name, 0))
    sizes.append(f"i64 {size}")
    check_status(e, e.define(f"call i32 @gradir.launch(ptr %ctx, i64 {number}, i64 {op_id}, {', '.join(sizes)}, ptr {table})"))


# Memory


def _alloc(e: FunctionEmitter, op: gpu.AllocOp) -> None:
    """A temporary: a place in the scratch memory where its size is static, else memory from the context."""
    t = e.module.buffer_type(op.memref.type)
    if None in t.sizes:
        memory.alloc(e, op)
        return
    sizes = tuple(n for n in t.sizes if n is not None)
    total = e.mul(e.product(sizes), t.element.bytes)
    assert isinstance(total, int) and isinstance(e.module, HostEmitter)
    scratch = _device_field(e, abi.DEVICE_SCRATCH)
    pointer = e.define(f"getelementptr inbounds i8, ptr {scratch}, i64 {e.module.temporary(total)}")
    e.values[op.memref] = Buffer(pointer, sizes, e.contiguous(sizes), t, pointer)


def _dealloc(e: FunctionEmitter, op: gpu.DeallocOp) -> None:
    owner = op.memref.owner
    if not isinstance(owner, gpu.AllocOp) or None in e.module.buffer_type(owner.memref.type).sizes:
        memory.dealloc(e, op)


def _load(e: FunctionEmitter, op: Any) -> None:
    """One element comes to the host: the only thing that waits for the device."""
    buffer, t = e.buffer(op.operands[0]), e.type_of(op.results[0])
    slot = e.stack_slot(f"{t.memory}, align 8")
    read = _device_field(e, abi.DEVICE_READ)
    where = address(e, buffer, op.operands[1:])
    _driver(e, op, e.define(f"call i32 {read}(ptr %ctx, ptr {slot}, ptr {where}, i64 {t.bytes})"))
    e.values[op.results[0]] = memory.load_row(e, slot, "ptr", t)


def _store(e: FunctionEmitter, op: Any) -> None:
    buffer, t = e.buffer(op.operands[1]), e.type_of(op.operands[0])
    slot = e.stack_slot(f"{t.memory}, align 8")
    memory.store_row(e, e.text(op.operands[0]), slot, "ptr", t)
    write = _device_field(e, abi.DEVICE_WRITE)
    _driver(e, op, e.define(f"call i32 {write}(ptr %ctx, ptr {address(e, buffer, op.operands[2:])}, ptr {slot}, i64 {t.bytes})"))


def _copy(e: FunctionEmitter, op: Operation) -> None:
    """One copy of the contiguous inner dimensions, inside loops over the others."""
    source, target = e.buffer(op.operands[0]), e.buffer(op.operands[1])
    if 0 in source.sizes:
        return
    rank = len(source.sizes)
    inner, run = rank, 1
    while inner and (source.sizes[inner - 1] == 1 or source.strides[inner - 1] == target.strides[inner - 1] == run):
        inner -= 1
        run = e.mul(run, source.sizes[inner])
    p, q = source.pointer, target.pointer
    mark = e.enter()
    loops = [begin_loop(e, size) for size in source.sizes[:inner]]
    for d, loop in enumerate(loops):
        p = e.element_pointer(p, source.type, e.mul(loop.index, source.strides[d]))
        q = e.element_pointer(q, target.type, e.mul(loop.index, target.strides[d]))
    move, stream = _device_field(e, abi.DEVICE_COPY), _device_field(e, abi.DEVICE_STREAM)
    size = e.mul(run, source.type.element.bytes)
    _driver(e, op, e.define(f"call i32 {move}(ptr {q}, ptr {p}, i64 {size}, ptr {stream})"))
    for loop in reversed(loops):
        end_loop(e, loop)
    e.leave(mark)


def _constant(e: FunctionEmitter, op: Any) -> None:
    """The copy of a constant that the loader put into the device's memory."""
    module = e.module
    assert isinstance(module, HostEmitter)
    t = module.buffer_type(op.results[0].type)
    sizes = tuple(n for n in t.sizes if n is not None)
    number = module.constants.setdefault(op.properties["name"].root_reference.data, len(module.constants))
    at = e.pure(f"getelementptr inbounds ptr, ptr {_device_field(e, abi.DEVICE_CONSTANTS)}, i64 {number}")
    pointer = e.pure(f"load ptr, ptr {at}, align 8")
    e.values[op.results[0]] = Buffer(pointer, sizes, e.contiguous(sizes), t, pointer)


def _tensor_map(e: FunctionEmitter, op: Any) -> None:
    """The context fills 128 bytes on the stack, which launches read at once."""
    place, base, words = tensor_maps.described(e, op)
    make = _device_field(e, abi.DEVICE_TENSOR_MAP)
    _driver(e, op, e.define(f"call i32 {make}(ptr %ctx, ptr {place}, ptr {base}, ptr {words})"))
    e.values[op.results[0]] = place


def _cast(e: FunctionEmitter, op: Operation) -> None:
    """Without sizes in the type it is the same buffer, which still knows them."""
    if isinstance(op.results[0].type, UnrankedMemRefType):
        e.values[op.results[0]] = e.values[op.operands[0]]
    else:
        memory.cast(e, op)


def _not_on_host(e: FunctionEmitter, op: Operation) -> None:
    raise error_at(
        op,
        "host code of a program for CUDA cannot do this",
        part="operator",
        code="OP040",
        expected="kernels, copies, and code on numbers",
        found=op.name,
        hint="put it into a kernel: host code has no access to the device's memory",
    )


_OWN: dict[str, Handler] = {
    "gpu.launch_func": _launch,
    "gpu.alloc": _alloc,
    "gpu.dealloc": _dealloc,
    "memref.load": _load,
    "memref.store": _store,
    "memref.copy": _copy,
    "memref.get_global": _constant,
    "memref.cast": _cast,
    "nvgpu.tma.create.descriptor": _tensor_map,
    "memref.alloca": _not_on_host,
    "memref.prefetch": lambda _e, _op: None,
}
_HOST: dict[str, Handler] = {
    **{name: handler for name, handler in HANDLERS.items() if not name.startswith("vector.")},
    **_OWN,
}
