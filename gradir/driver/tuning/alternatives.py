"""One kernel as a program of its own, in each of the forms that may be faster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, cast

from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp, TensorType
from xdsl.ir import Block, Region, SSAValue

from gradir.dialects.kernel import KERNEL_ATTRIBUTE
from gradir.dialects.target import TARGET_ATTRIBUTE, CpuTargetAttr
from gradir.dialects.types import shape_of
from gradir.dialects.upstream import arith, func, tensor
from gradir.driver.compile import compile_watched
from gradir.driver.explain.sample_inputs import sample_inputs
from gradir.driver.options import Hooks
from gradir.driver.tuning.apply import put, tuning_key
from gradir.driver.tuning.records import LIBRARY, Choice, Record
from gradir.ir.builder import Builder, new_function
from gradir.lowering.groups import GroupOp, group_of_kernel
from gradir.lowering.library_contraction import NAME as BLAS, library_form
from gradir.lowering.schedules import HEURISTICS
from gradir.lowering.schedules.candidates import candidates
from gradir.lowering.schedules.machine import machine_of
from gradir.runtime.library.blas import set_threads, split
from gradir.runtime.module import Module

ENTRY = "alone"


@dataclass(frozen=True)
class Subject:
    """A kernel to be tuned: its key, the program that calls it alone, what the heuristic chose, what else there is, arguments."""

    key: str
    name: str
    program: ModuleOp
    target: CpuTargetAttr
    default: Choice
    others: tuple[Choice, ...]
    inputs: tuple[Any, ...]
    points: int = 0
    """Of all loop nests together; 0: nobody knows."""

    def compiled(self, choice: Choice) -> Module:
        """The program with that choice. Raises `GradirError` where the choice cannot be compiled."""

        def outlined(module: ModuleOp) -> None:
            if choice == self.default:
                return
            kernel = next(op for op in module.body.block.ops if isinstance(op, func.FuncOp) and KERNEL_ATTRIBUTE in op.attributes)
            record = Record(self.key, self.name, "", self.default, choice, 1.0, 1.0, 1)
            put(module, kernel, record, self.target.threads)

        return compile_watched(self.program, Hooks(outlined=outlined), cache=False)


def subject_of(module: ModuleOp, kernel: func.FuncOp, sizes: dict[str, int]) -> Subject | str:
    """The kernel of a level-2 module as a subject, or why it cannot be one. `sizes` are the named sizes of the run."""
    target = module.attributes.get(TARGET_ATTRIBUTE)
    schedule = cast("Any", kernel.attributes[KERNEL_ATTRIBUTE])
    group = group_of_kernel(kernel)
    if not isinstance(target, CpuTargetAttr) or group is None or group.kind != schedule.kind or schedule.kind not in HEURISTICS:
        return "no heuristic schedules it"
    machine = machine_of(module)
    chosen = HEURISTICS[schedule.kind](group, machine)
    default, *others = map(Choice.of, candidates(group, machine, chosen))
    spec = library_form(kernel)
    parts = split(spec) if spec is not None else None
    if parts is not None and set_threads() is not None:
        others.insert(0, Choice(LIBRARY, {}, BLAS))
    program = _alone(module, kernel)
    if isinstance(program, str):
        return program
    found = Subject(tuning_key(kernel), kernel.sym_name.data, program, target, default, tuple(others), ())
    (function,) = found.compiled(default)
    if any(isinstance(dim, str) and dim not in sizes for t in function.spec.inputs for dim in t.shape) and not sizes:
        return "it has sizes that only a call knows, and the program was given no arguments"
    known = [prod(extents_of_run(op, sizes)) for op in group.ops]
    return replace(found, inputs=tuple(sample_inputs(function.spec, sizes)), points=sum(known) if all(known) else 0)


def extents_of_run(op: GroupOp, sizes: dict[str, int]) -> list[int]:
    """The trips of a nest's loops in a run with these sizes; 0 where nobody knows."""
    return [n if isinstance(n, int) else sizes.get(n or "", 0) for n in op.loops.extents]


def _alone(module: ModuleOp, kernel: func.FuncOp) -> ModuleOp | str:
    """`func @alone(inputs) -> results` that calls the kernel once; numbers that the kernel takes are those of its first call."""
    call = next((op for op in module.walk() if isinstance(op, func.CallOp) and op.callee.string_value() == kernel.sym_name.data), None)
    if call is None:
        return "nobody calls it"
    kinds = list(kernel.function_type.inputs.data)
    results = list(kernel.function_type.outputs.data)
    first = len(kinds) - len(results)
    tensors = [k for k in range(first) if isinstance(kinds[k], TensorType)]
    block = Block(arg_types=[kinds[k] for k in tensors])
    builder = Builder(block, kernel.location)
    values: dict[int, SSAValue] = dict(zip(tensors, block.args))
    for k in range(first):
        if k in values:
            continue
        owner = call.operands[k].owner
        if not isinstance(owner, arith.ConstantOp):
            return "it takes a number that only a run knows"
        values[k] = builder(arith.ConstantOp, (), (kinds[k],), {"value": owner.value})
    arguments = [values[k] for k in range(first)]
    for kind in results:
        sizes = [_size(builder, block.args, name) for name in shape_of(cast("TensorType[Any]", kind)) if not isinstance(name, int)]
        if None in sizes:
            return "it makes a size that none of its operands has"
        arguments.append(builder(tensor.EmptyOp, cast("list[SSAValue]", sizes), (kind,)))
    called = func.CallOp(kernel.sym_name.data, arguments, results)
    called.location = kernel.location
    block.add_op(called)
    builder(func.ReturnOp, called.results)
    program = ModuleOp(Region(Block()), attributes={TARGET_ATTRIBUTE: module.attributes[TARGET_ATTRIBUTE]})
    copy = kernel.clone()
    copy.attributes[KERNEL_ATTRIBUTE] = cast("Any", type(kernel.attributes[KERNEL_ATTRIBUTE])).of()
    program.body.block.add_op(copy)
    program.body.block.add_op(new_function(ENTRY, block, results, loc=kernel.location))
    return program


def _size(builder: Builder, arguments: Sequence[SSAValue], name: str | None) -> SSAValue | None:
    """The run-time size called `name`, from an argument that has it."""
    index = IndexType()
    for argument in arguments:
        names = shape_of(cast("Any", argument))
        if name is not None and name in names:
            at = builder(arith.ConstantOp, (), (index,), {"value": IntegerAttr(names.index(name), index)})
            return builder(tensor.DimOp, (argument, at), (index,))
    return None


__all__ = ["ENTRY", "Subject", "subject_of"]
