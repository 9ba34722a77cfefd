"""The pass `lower-kernels`: picks the generator of each kernel's kind and falls back to plain loops."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import ClassVar

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation

from gradir.dialects.kernel import KERNEL_ATTRIBUTE, PARALLEL, Schedule
from gradir.dialects.target import TARGET_ATTRIBUTE, CudaTargetAttr
from gradir.dialects.upstream import func, linalg, scf
from gradir.ir.passes import Pass, PassContext
from gradir.lowering.groups import Group, group_of_kernel
from gradir.lowering.lower_kernels.binding import Kernel, bind_op
from gradir.lowering.lower_kernels.builder import i32_array
from gradir.lowering.lower_kernels.chain import lower_chain
from gradir.lowering.lower_kernels.contraction import lower_contraction
from gradir.lowering.lower_kernels.elementwise import lower_elementwise
from gradir.lowering.lower_kernels.loops import lower_loops, lower_nest
from gradir.lowering.lower_kernels.rows import lower_rows
from gradir.lowering.lower_kernels.tiles import NotCovered
from gradir.lowering.schedules.machine import Machine, machine_of

Generator = Callable[[Kernel, Group, Machine], None]

GENERATORS: Mapping[str, Generator] = {
    "contraction": lower_contraction,
    "elementwise": lower_elementwise,
    "rows": lower_rows,
    "chain": lambda kernel, group, machine: lower_chain(kernel, group, machine, lower_kernel),
}
"""Specialised generators by kind of kernel; they raise `NotCovered` before or while building, and the loops generator starts afresh."""


_GPU_GENERATORS = "gradir.lowering.lower_kernels_gpu"
"""Loaded when a module's target is CUDA; it builds on this package."""


@dataclass(frozen=True)
class LowerKernels(Pass):
    """Before: private functions with `gradir.kernel` hold `linalg` ops on memrefs. After: they hold `scf`, `vector`, `memref`, `arith` and
    `math` only, under the same name and signature. A linalg op outside of kernels (in a template, in an entry) becomes plain loops.

    ```mlir
    linalg.generic {...} ins(%x : memref<64xf32>) outs(%y : memref<64xf32>) {...}
    // becomes
    scf.for %i = %c0 to %c64 step %c8 { %v = vector.load %x[%i] ... vector.store %w, %y[%i] ... }
    ```
    """

    NAME: ClassVar[str] = "lower-kernels"

    strict: bool = False
    """Raise `NotCovered` where a kernel's own generator does not take it, instead of falling back to plain loops (for tests)."""

    def apply(self, op: Operation, context: PassContext) -> None:
        assert isinstance(op, ModuleOp)
        if isinstance(op.attributes.get(TARGET_ATTRIBUTE), CudaTargetAttr):
            import_module(_GPU_GENERATORS).lower_module(op)
            return
        machine = machine_of(op)
        block = op.body.block
        for function in list(block.ops):
            if isinstance(function, func.FuncOp) and is_kernel(function):
                block.insert_op_before(lower_kernel(function, machine, strict=self.strict), function)
                function.detach()
                function.drop_all_references()
            elif isinstance(function, func.FuncOp) and not function.is_declaration:
                lower_in_place(function, machine)
                spread_loops(function)


def is_kernel(function: func.FuncOp) -> bool:
    """Has it a schedule, and linalg ops still to be lowered at its top level?"""
    schedule = function.attributes.get(KERNEL_ATTRIBUTE)
    if not isinstance(schedule, Schedule) or schedule.kind == "template" or function.is_declaration:
        return False
    return any(isinstance(op, linalg.GenericOp | linalg.FillOp) for op in function.body.block.ops)


def lower_kernel(function: func.FuncOp, machine: Machine, *, strict: bool = False) -> func.FuncOp:
    """The level-4 form of one level-3 kernel (see `is_kernel`)."""
    schedule = function.attributes[KERNEL_ATTRIBUTE]
    generator = GENERATORS.get(schedule.kind) if isinstance(schedule, Schedule) else None
    if generator is not None:
        try:
            kernel = Kernel(function)
            generator(kernel, _group(function), machine)
            return kernel.finish()
        except NotCovered:
            if strict:
                raise
    kernel = Kernel(function)
    tile = kernel.schedule.field("tile") if kernel.schedule.kind == "loops" else ()
    lower_loops(kernel, tile[-1] if tile else machine.lanes)
    return kernel.finish()


def _group(function: func.FuncOp) -> Group:
    """The group of all linalg ops of the kernel."""
    group = group_of_kernel(function)
    if group is None:
        raise NotCovered("ops that are no group")
    inits = {o.op.outputs[0] for o in group.ops if o.init is not None}
    ops = [op for op in function.body.block.ops if isinstance(op, linalg.GenericOp | linalg.FillOp)]
    if any(isinstance(op, linalg.FillOp) and op.outputs[0] not in inits for op in ops):
        raise NotCovered("a fill that initialises nothing")
    return group


def spread_loops(function: func.FuncOp) -> None:
    """The loops of a template that say so (`gradir.parallel`, how many trips are worth a thread) become `scf.parallel`."""
    for loop in [op for op in function.walk() if isinstance(op, scf.ForOp) and PARALLEL in op.attributes]:
        grain, parent = loop.attributes.pop(PARALLEL), loop.parent
        if loop.iter_args or parent is None:  # it carries a value: its trips depend on each other
            continue
        body = loop.detach_region(0)
        last = body.block.last_op
        assert last is not None
        body.block.insert_op_before(scf.ReduceOp.create(regions=(), location=last.location), last)
        last.detach()
        last.erase()
        made = scf.ParallelOp.create(
            operands=[loop.lb, loop.ub, loop.step],
            properties={"operandSegmentSizes": i32_array(1, 1, 1, 0)},
            attributes={"gradir.grain": grain},
            regions=[body],
            location=loop.location,
        )
        parent.insert_op_before(made, loop)
        loop.detach()
        loop.erase()


def lower_in_place(function: func.FuncOp, machine: Machine) -> None:
    """Every linalg op left in a template or an entry, in whatever region, becomes plain loops where it stands."""
    ops = [op for op in function.walk() if isinstance(op, linalg.GenericOp | linalg.FillOp)]
    for op in ops:
        parent = op.parent
        assert parent is not None
        site = Block()
        kernel = Kernel(function, site)
        kernel.b.loc = op.location
        lower_nest(kernel, bind_op(kernel, op, None), machine.lanes)
        for new in list(site.ops):
            new.detach()
            parent.insert_op_before(new, op)
        op.detach()
        op.erase()
