"""`gpu` kernels as LLVM IR for NVPTX: the CPU's emitter with other pointers, ids, barriers, shuffles and function headers.

Operands live in address space 1, workgroup buffers are internal globals of address space 3. Every function is a `ptx_kernel` with its block
size required; no context, no status.
"""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Operation

from gradir.dialects.target import CudaTargetAttr
from gradir.dialects.target.cuda_facts import architecture
from gradir.dialects.upstream import gpu
from gradir.dialects.upstream.nvgpu_types import TensorMapType
from gradir.targets.llvm import hopper, tensor_cores
from gradir.targets.llvm.emitter import Buffer, FunctionEmitter, Handler
from gradir.targets.llvm.module import HANDLERS, ModuleEmitter, operand_attributes
from gradir.targets.llvm.types import ValueType, symbol

_REGISTERS = "llvm.nvvm.read.ptx.sreg."
_DYNAMIC = "@dynamic_shared"
_BARRIER = "call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)"


def _id(register: str) -> Handler:
    def handler(e: FunctionEmitter, op: Any) -> None:
        e.values[op.results[0]] = e.pure(f"zext i32 {e.pure(f'call i32 @{_REGISTERS}{register}.{op.dimension.data.value}()')} to i64")

    return handler


def _barrier(e: FunctionEmitter, op: Operation) -> None:
    e.line(_BARRIER)


def _shuffle(e: FunctionEmitter, op: Any) -> None:
    """A butterfly; 64-bit values travel as two halves."""
    t = e.type_of(op.operands[0])
    value, offset = e.text(op.operands[0]), e.text(op.operands[1])
    if t.element in ("float", "i32"):
        moved = _exchange(e, value, offset, t.element)
    else:
        bits = value if t.element == "i64" else e.define(f"bitcast {t.element} {value} to i64")
        halves = e.define(f"bitcast i64 {bits} to <2 x i32>")
        low, high = (_exchange(e, e.define(f"extractelement <2 x i32> {halves}, i32 {k}"), offset, "i32") for k in (0, 1))
        pair = e.define(f"insertelement <2 x i32> poison, i32 {low}, i32 0")
        pair = e.define(f"insertelement <2 x i32> {pair}, i32 {high}, i32 1")
        moved = e.define(f"bitcast <2 x i32> {pair} to {t.element}")
    e.values[op.results[0]] = moved
    e.values[op.results[1]] = "true"


def _exchange(e: FunctionEmitter, value: str, offset: str, element: str) -> str:
    short = "f32" if element == "float" else "i32"
    return e.define(f"call {element} @llvm.nvvm.shfl.sync.bfly.{short}(i32 -1, {element} {value}, i32 {offset}, i32 31)")


def _trap(e: FunctionEmitter, op: Operation) -> None:
    """`cf.assert` on the device stops the kernel."""
    k = e.fresh()
    e.line(f"br i1 {e.text(op.operands[0])}, label %ok{k}, label %bad{k}")
    e.start(f"bad{k}")
    e.line("call void @llvm.trap()")
    e.line("unreachable")
    e.start(f"ok{k}")


def _dynamic(e: FunctionEmitter, op: Any) -> None:
    """One array without a size that all kernels of a module name; the launch says how much of it there is."""
    b = e.module.buffer_type(op.results[0].type)
    module = e.module
    assert isinstance(module, DeviceEmitter) and isinstance(module.target, CudaTargetAttr)
    alignment = hopper.MEMORY_ALIGNMENT if architecture(module.target.arch).wgmma else 128
    text = f"{_DYNAMIC} = external addrspace(3) global [0 x i8], align {alignment}"
    if text not in module.globals:
        module.globals.append(text)
    e.values[op.results[0]] = Buffer(_DYNAMIC, (0,), (1,), b, _DYNAMIC)


def _create_mbarriers(e: FunctionEmitter, op: Operation) -> None:
    module = e.module
    assert isinstance(module, DeviceEmitter)
    hopper.create(e, op, symbol(module.fresh_name(f"{module.function}.mbarriers")), module.globals.append)


_DEVICE: dict[str, Handler] = {
    **{name: handler for name, handler in HANDLERS.items() if name not in ("scf.parallel", "memref.alloc", "memref.dealloc", "func.call")},
    "gpu.thread_id": _id("tid"),
    "gpu.block_id": _id("ctaid"),
    "gpu.block_dim": _id("ntid"),
    "gpu.grid_dim": _id("nctaid"),
    "gpu.barrier": _barrier,
    "gpu.shuffle": _shuffle,
    "gpu.dynamic_shared_memory": _dynamic,
    "cf.assert": _trap,
    "nvgpu.mbarrier.create": _create_mbarriers,
    **tensor_cores.HANDLERS,
    **hopper.HANDLERS,
}


class DeviceEmitter(ModuleEmitter):
    """What the kernels of one `gpu.module` share."""

    handlers = _DEVICE
    default_pointer = "ptr addrspace(1)"

    def __init__(self, module: Operation, target: CudaTargetAttr) -> None:
        super().__init__(module, target, (), (), 0)
        self.globals: list[str] = []

    def value_type(self, t: Attribute) -> ValueType:
        if id(t) not in self._types and (own := hopper.value_type(t)) is not None:
            self._types[id(t)] = (t, own)
        return super().value_type(t)

    def emit_kernel(self, f: gpu.FuncOp) -> None:
        self.function = name = f.sym_name.data
        e = FunctionEmitter(self)
        block, count = f.body.block, f.operand_count
        arguments: list[str] = []
        for position, argument in enumerate(block.args[:count]):
            parts = e.part_types(argument.type)
            names = [f"%a{position}"] + [f"%a{position}.{k}" for k in range(1, len(parts))]
            own = f.arg_attrs.data[position].data if f.arg_attrs is not None else {}
            attributes = operand_attributes(own) if isinstance(argument.type, MemRefType) else ""
            attributes = hopper.MAP_ATTRIBUTES if isinstance(argument.type, TensorMapType) else attributes
            arguments += [f"{t} {attributes if k == 0 else ''}{n}" for k, (t, n) in enumerate(zip(parts, names))]
            e.values[argument] = e.assemble(argument.type, names)
        for position, argument in enumerate(block.args[count:]):
            e.values[argument] = self._workgroup(f"{name}.shared{position}", argument.type, e)
        e.block(block)
        e.line("ret void")
        size = ",".join(str(n) for n in f.known_block_size.get_values()) if f.known_block_size is not None else ""
        required = f' "nvvm.reqntid"="{size}" "nvvm.minctasm"="1"' if size else ""
        self.add_function(f"define ptx_kernel void {symbol(name)}({', '.join(arguments)}) nounwind{required}", e)

    def _workgroup(self, name: str, t: Attribute, e: FunctionEmitter) -> Buffer:
        b = self.buffer_type(t)
        sizes = tuple(n for n in b.sizes if n is not None)
        count = e.product(sizes)
        self.globals.append(f"{symbol(name)} = internal addrspace(3) global [{count} x {b.element.memory_element}] poison, align 16")
        return Buffer(symbol(name), sizes, e.contiguous(sizes), b, name)


def emit_device_module(module: gpu.ModuleOp, target: CudaTargetAttr) -> str:
    """LLVM IR text of all kernels of a `gpu.module`."""
    e = DeviceEmitter(module, target)
    for op in module.bodyRegion.block.ops:
        if isinstance(op, gpu.FuncOp):
            e.emit_kernel(op)
    return "\n".join(['target triple = "nvptx64-nvidia-cuda"', *e.globals, *e.functions, ""])
