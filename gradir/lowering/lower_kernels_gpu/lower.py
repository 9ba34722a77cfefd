"""Which launches a level-3 kernel becomes, and the host function that makes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    IndexType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
    UnrankedMemRefType,
    i32,
)
from xdsl.ir import Block, Operation, Region, SSAValue

from gradir.dialects.kernel import KERNEL_ATTRIBUTE, Schedule
from gradir.dialects.target import TARGET_ATTRIBUTE, CudaTargetAttr
from gradir.dialects.upstream import arith, func, gpu, linalg, memref, nvgpu_hopper
from gradir.dialects.upstream.nvgpu_types import TensorMapType
from gradir.ir.builder import Builder, new_function
from gradir.lowering.groups import Group, group_of_kernel
from gradir.lowering.lower_kernels.binding import starts_a_reduction
from gradir.lowering.lower_kernels.builder import i32_array
from gradir.lowering.lower_kernels.tiles import NotCovered
from gradir.lowering.lower_kernels_gpu import hopper
from gradir.lowering.lower_kernels_gpu.attention import lower_attention
from gradir.lowering.lower_kernels_gpu.columns import plan_reduction, reduce_in_launches
from gradir.lowering.lower_kernels_gpu.contraction import Tiles, gpu_schedule, lower_product, workspace_type
from gradir.lowering.lower_kernels_gpu.copies import outline_copies
from gradir.lowering.lower_kernels_gpu.epilogue import add_parts
from gradir.lowering.lower_kernels_gpu.launch import Launch
from gradir.lowering.lower_kernels_gpu.maps import THREADS, lower_elementwise, map_op, map_points
from gradir.lowering.lower_kernels_gpu.product import product_of
from gradir.lowering.lower_kernels_gpu.row_plan import plan_rows
from gradir.lowering.lower_kernels_gpu.rows import sweep_rows
from gradir.lowering.lower_kernels_gpu.templates import Sequential

DEVICE_MODULE = "kernels"
_INDEX = IndexType()


@dataclass
class _Plan:
    """The launches of one kernel, in order, and the temporaries that are in device memory between them."""

    source: func.FuncOp
    kept: list[SSAValue] = field(default_factory=list[SSAValue])
    launches: list[Launch | Sequential] = field(default_factory=list["Launch | Sequential"])


def lower_module(module: ModuleOp) -> None:
    """Kernels become host functions that launch functions of `gpu.module @kernels`; of entries, copies with gaps become kernels too."""
    block = module.body.block
    target = module.attributes.get(TARGET_ATTRIBUTE)
    assert isinstance(target, CudaTargetAttr)
    device = Block()
    outline_copies(module)
    for function in list(block.ops):
        if not isinstance(function, func.FuncOp) or function.is_declaration or KERNEL_ATTRIBUTE not in function.attributes:
            continue
        host, kernels = lower_kernel(function, target)
        device.add_ops(kernels)
        block.insert_op_before(host, function)
        function.detach()
        function.drop_all_references()
    if device.first_op is None:
        return
    module.attributes["gpu.container_module"] = UnitAttr()
    first = block.first_op
    holder = gpu.ModuleOp.create(properties={"sym_name": StringAttr(DEVICE_MODULE)}, regions=[Region(device)])
    if first is not None:
        block.insert_op_before(holder, first)
    else:
        block.add_op(holder)


def lower_kernel(source: func.FuncOp, target: CudaTargetAttr) -> tuple[func.FuncOp, list[gpu.FuncOp]]:
    """The host function of a kernel and its device functions, for a GPU like `target`."""
    schedule = source.attributes[KERNEL_ATTRIBUTE]
    group = group_of_kernel(source)
    plan: _Plan | None = None
    if group is not None and isinstance(schedule, Schedule):
        generator = _GENERATORS.get(group.kind)
        try:
            plan = generator(source, group, target) if generator is not None else None
        except NotCovered:
            plan = None
    if plan is None:
        plan = _template(source) if _is_template(source) else _op_by_op(source)
    plan.launches = [launch for launch in plan.launches if launch.blocks]  # nothing is launched over an empty space
    name = source.sym_name.data
    names = [name if len(plan.launches) == 1 else f"{name}_{k}" for k in range(len(plan.launches))]
    kernels = [launch.finish(n) for launch, n in zip(plan.launches, names)]
    return _host(plan, names), kernels


def _is_template(source: func.FuncOp) -> bool:
    return any(op.regions and not isinstance(op, linalg.GenericOp | linalg.FillOp) for op in source.body.block.ops)


def _temporaries(source: func.FuncOp) -> frozenset[SSAValue]:
    return frozenset(op.memref for op in source.body.block.ops if isinstance(op, memref.AllocOp))


def _in_place(launch: Launch) -> bool:
    return any(op.in_place for op in launch.space.ops)


def _elementwise(source: func.FuncOp, group: Group, target: CudaTargetAttr) -> _Plan:
    launch = Launch.of_group(source, group, [], (THREADS, 1))
    lower_elementwise(launch, group, target)
    return _Plan(source, [], [launch])


def _contraction(source: func.FuncOp, group: Group, target: CudaTargetAttr) -> _Plan:
    schedule = source.attributes[KERNEL_ATTRIBUTE]
    assert isinstance(schedule, Schedule)
    tiles = Tiles.of(gpu_schedule(schedule, group, target))
    launch = Launch.of_group(source, group, [], (THREADS, 1))
    if tiles.warpgroups:
        hopper.lower_warpgroups(launch, product_of(launch, group), target)
        return _Plan(source, [], [launch])
    if tiles.parts == 1:
        lower_product(launch, group, tiles, target, None)
        return _Plan(source, [], [launch])
    workspace = memref.AllocOp.create(
        result_types=[workspace_type(product_of(launch, group), tiles)], properties={"operandSegmentSizes": i32_array(0, 0)}
    ).results[0]
    launches = [Launch.of_group(source, group, [workspace], (THREADS, 1)) for _ in range(2)]
    lower_product(launches[0], group, tiles, target, workspace)
    last = product_of(launches[1], group)
    add_parts(last, launches[1].kernel.value(workspace), tiles.parts)
    return _Plan(source, [workspace], [*launches])


def _chain(source: func.FuncOp, group: Group, target: CudaTargetAttr) -> _Plan:
    launch = Launch.of_group(source, group, [], (THREADS, 1))
    lower_attention(launch, group, target)
    return _Plan(source, [], [launch])


def _rows(source: func.FuncOp, group: Group, target: CudaTargetAttr) -> _Plan:
    roles = group.rows
    assert roles is not None
    temporaries = _temporaries(source)
    rows = plan_rows(group, temporaries, _in_place(Launch.of_group(source, group, [], (THREADS, 1))))
    space = Launch.of_group(source, group, [], (THREADS, 1)).space
    reductions = [plan_reduction(space, key, target) for key in rows.columns]
    kept = [*rows.kept, *(r.workspace for r in reductions if r.workspace is not None)]
    plan = _Plan(source, kept)
    memory = frozenset([*rows.kept, *rows.columns])

    def launch() -> Launch:
        return Launch.of_group(source, group, kept, (THREADS, 1))

    if rows.rows:
        sweeping = launch()
        sweep_rows(sweeping, group, rows)
        plan.launches.append(sweeping)
        memory |= frozenset(k for k in rows.rows if rows.sections[k].form != "full")
    for reduction in reductions:
        plan.launches += reduce_in_launches(launch, reduction, memory - {reduction.key})
    for form in ("inner", "scalar"):
        keys = [k for k in rows.late if rows.sections[k].form == form and k not in temporaries]
        if keys:
            last = launch()
            dims = [last.space.place[d] for d in roles.inner] if form == "inner" else []
            map_points(last, dims, [last.space.produced[k] for k in keys], memory)
            plan.launches.append(last)
    return plan


_GENERATORS: dict[str, Callable[[func.FuncOp, Group, CudaTargetAttr], _Plan]] = {
    "elementwise": _elementwise,
    "contraction": _contraction,
    "chain": _chain,
    "rows": _rows,
}


def _op_by_op(source: func.FuncOp) -> _Plan:
    """Every op its own launch, temporaries in device memory: takes every kernel."""
    temporaries = _temporaries(source)
    ops = [op for op in source.body.block.ops if isinstance(op, linalg.GenericOp | linalg.FillOp)]
    written = {op.operands[-1] for op in ops}
    kept = [t for t in temporaries if t in written]
    plan = _Plan(source, kept)
    inits: dict[SSAValue, SSAValue] = {}
    for position, op in enumerate(ops):
        target = op.operands[-1]
        if isinstance(op, linalg.FillOp) and starts_a_reduction(ops[position + 1 :], target):
            inits[target] = op.operands[0]
            continue
        launch = Launch.of_op(source, op, inits.pop(target, None), kept, (THREADS, 1))
        map_op(launch)
        plan.launches.append(launch)
    return plan


def _template(source: func.FuncOp) -> _Plan:
    """A kernel that is loops already: a launch for each loop whose trips write apart."""
    kept, launches = Sequential.launches_of(source)
    return _Plan(source, kept, [*launches])


def _host(plan: _Plan, names: Sequence[str]) -> func.FuncOp:
    """The function that the entry calls: device memory for temporaries, then the launches."""
    source = plan.source
    old = source.body.block
    block = Block(arg_types=[a.type for a in old.args])
    for before, after in zip(old.args, block.args):
        after.name_hint, after.location = before.name_hint, before.location
    b = Builder(block, source.location)
    constants: dict[int, SSAValue] = {}
    values: dict[SSAValue, SSAValue] = dict(zip(old.args, block.args))

    def number(n: int) -> SSAValue:
        if n not in constants:
            constants[n] = b(arith.ConstantOp, [], [_INDEX], {"value": IntegerAttr(n, _INDEX)})
        return constants[n]

    extra: list[SSAValue] = []
    for temporary in plan.kept:
        t = cast("MemRefType[Any]", temporary.type)
        dynamic = [_size(b, cast("memref.AllocOp", temporary.owner), k, values) for k in range(list(t.get_shape()).count(DYNAMIC_INDEX))]
        new = gpu.AllocOp.make(t, dynamic)
        block.add_op(new)
        extra.append(new.memref)
    for launch, name in zip(plan.launches, names):
        grid = [number(n) for n in (launch.blocks, 1, 1)]
        threads = [number(n) for n in (*launch.threads, 1)]
        symbol = SymbolRefAttr(DEVICE_MODULE, [name])
        shared = b(arith.ConstantOp, [], [i32], {"value": IntegerAttr(launch.dynamic_bytes, i32)}) if launch.dynamic_bytes else None
        maps = [_tensor_map(b, block.args[position], t, number) for position, t in getattr(launch, "maps", ())]
        op = gpu.LaunchFuncOp.make(symbol, grid, threads, [*block.args, *extra, *maps], shared)
        op.location = source.location
        block.add_op(op)
    for memory in extra:
        b(gpu.DeallocOp, [memory])
    b.op(func.ReturnOp)
    attributes = {k: v for k, v in source.attributes.items() if k != KERNEL_ATTRIBUTE}
    new_host = new_function(source.sym_name.data, block, [], private=True, attributes=attributes, loc=source.location)
    for key, value in source.properties.items():
        new_host.properties.setdefault(key, value)
    return new_host


def _tensor_map(b: Builder, memory: SSAValue, t: TensorMapType, number: Callable[[int], SSAValue]) -> SSAValue:
    """The tensor map of a whole buffer."""
    whole = b(memref.CastOp, [memory], [UnrankedMemRefType.from_type(t.tensor.element_type)])
    return b(nvgpu_hopper.TmaCreateDescriptorOp, [whole, *(number(n) for n in t.tensor.get_shape())], [t])


def _size(b: Builder, alloc: memref.AllocOp, position: int, values: dict[SSAValue, SSAValue]) -> SSAValue:
    """A dynamic size of a temporary, computed again on the host."""
    return _recomputed(b, alloc.dynamic_sizes[position], values)


def _recomputed(b: Builder, value: SSAValue, values: dict[SSAValue, SSAValue]) -> SSAValue:
    if value not in values:
        owner = value.owner
        assert isinstance(owner, Operation)
        for operand in owner.operands:
            _recomputed(b, operand, values)
        new = owner.clone(values)
        b.block.add_op(new)
        values.update(zip(owner.results, new.results))
    return values[value]
