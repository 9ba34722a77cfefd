"""`plan-memory`: the buffers of an entry share one arena and the memory of its results (level 3 to level 3).

A buffer exists where its `memref.alloc` stands: one inside a loop body is a new one in each iteration and is live only between its
accesses there, one outside is live through every loop that touches it (`lifetimes`). What is dead before a result is written for the
first time may lie in that result's memory (`outputs`), the others get offsets in the arena (`placement`). Relies on structured control
flow and on memrefs being passed on only by views, loops and branches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    IndexType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    i8,
    i64,
)
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from gradir.dialects.donation import aliases_of
from gradir.dialects.target import CpuTargetAttr, target_of
from gradir.dialects.upstream import arith, func, memref
from gradir.ir.passes import Pass, PassContext
from gradir.lowering.plan_memory.lifetimes import Interval, Lifetimes, bytes_of
from gradir.lowering.plan_memory.outputs import Output, free_outputs, host, view_into
from gradir.lowering.plan_memory.placement import peak, place
from gradir.lowering.workspace import ALIGNMENT, plan_workspace, replace_alloc

ARENA = "gradir.arena"
RESULTS = "gradir.results"
INPUTS = "gradir.inputs"

_INDEX = IndexType()


@dataclass(frozen=True)
class PlanMemory(Pass):
    """Before: an entry with `memref.alloc` and `memref.dealloc`. After: views of its last argument `%arena`.

    A buffer that is dead before a result is written lies at the beginning of that result's memory. Buffers whose sizes follow from
    dimensions of arguments become views of one allocation at the entry's beginning, `%workspace`, with slots for as many buffers of equal
    bytes as are live at once. Its bytes are a text of sizes, as `gradir.workspace = "64*floordiv(x_0+15,16)"` for dimension 0 of `%x`.
    Buffers of sizes that only the run knows stay.

    ```mlir
    %h = memref.alloc() : memref<128x512xf32>
    // becomes, with gradir.arena = 262144 : i64 on the function
    %o = arith.constant 0 : index
    %h = memref.view %arena[%o][] : memref<262144xi8> to memref<128x512xf32>
    ```

    `facts["plan-memory"]` maps entries to the bytes of the arena, the greatest number of live bytes (`peak`) and the sum without sharing
    (`unshared`), the number of planned buffers, of those in results, of those in the workspace, and of those left to the run.
    """

    NAME: ClassVar[str] = "plan-memory"

    def apply(self, op: Operation, context: PassContext) -> None:
        reports: dict[str, dict[str, int]] = {}
        for function in cast("ModuleOp", op).body.block.ops:
            if isinstance(function, func.FuncOp) and RESULTS in function.attributes and ARENA not in function.attributes:
                reports[function.sym_name.data] = plan_function(function)
        context.facts[self.NAME] = reports


@dataclass(frozen=True)
class FunctionPlan:
    """Where the static buffers of an entry lie: `hosted` in the memory of results, `offsets` in an arena of `total` bytes."""

    lifetimes: Lifetimes
    destinations: Sequence[BlockArgument]
    hosted: dict[Interval, Output]
    offsets: dict[Interval, int]
    total: int

    @property
    def in_arena(self) -> list[Interval]:
        """The buffers of the arena, in program order."""
        return [i for i in self.lifetimes.static if i not in self.hosted]

    @property
    def result_bytes(self) -> int:
        """Bytes of the results whose sizes are known."""
        types = [cast("MemRefType[Any]", a.type) for a in self.destinations]
        return sum(bytes_of(t) for t in types if DYNAMIC_INDEX not in t.get_shape())


def plan_of(function: func.FuncOp) -> FunctionPlan:
    """The plan for an entry at level 3 whose buffers are allocations."""
    lifetimes = Lifetimes(function)
    destinations = _destinations(function)
    taken = aliases_of(function)  # what holds an argument from the beginning
    hosted = host(lifetimes.static, free_outputs(lifetimes, [a for k, a in enumerate(destinations) if k not in taken]))
    offsets, total = place([i for i in lifetimes.static if i not in hosted])
    return FunctionPlan(lifetimes, destinations, hosted, offsets, total)


def plan_function(function: func.FuncOp) -> dict[str, int]:
    """Put the static buffers of one entry into an arena, and those whose sizes its arguments tell into a workspace."""
    plan = plan_of(function)
    run_time = plan.lifetimes.run_time
    planned = plan_workspace(function, run_time, _slots) if run_time and _is_for_cpu(function) else 0
    function.attributes[ARENA] = IntegerAttr(plan.total, i64)
    _move_into_results(function, plan.hosted)
    if plan.total:  # otherwise there are at most empty buffers, which keep their alloc
        _move_into_arena(function, plan.in_arena, plan.offsets, plan.total)
    return {
        "arena": plan.total,
        "peak": peak(plan.in_arena),
        "unshared": sum(i.bytes for i in plan.lifetimes.static),
        "buffers": len(plan.lifetimes.static),
        "in_results": len(plan.hosted),
        "workspace": planned,
        "run_time": plan.lifetimes.run_time_count - planned,
    }


def _destinations(function: func.FuncOp) -> Sequence[BlockArgument]:
    """The arguments of an entry that are the memory of its results."""
    inputs = function.attributes.get(INPUTS)
    if not isinstance(inputs, IntegerAttr):
        return ()
    return function.body.block.args[inputs.value.data :]


def _is_for_cpu(function: func.FuncOp) -> bool:
    return isinstance(target_of(function), CpuTargetAttr)


def _slots(buffers: Sequence[Any]) -> tuple[list[int], int]:
    """Slots of buffers of equal size at which no two that are live together meet, and how many slots that takes."""
    offsets, total = place(buffers)
    return [offsets[buffer] for buffer in buffers], total


def _move_into_results(function: func.FuncOp, hosted: dict[Interval, Output]) -> None:
    block = function.body.block
    for interval, output in hosted.items():
        name, first = output.argument.name_hint, cast("Operation", block.first_op)
        ops = view_into(output, interval.alloc)
        for op in ops:
            block.insert_op_before(op, first)
        replace_alloc(interval.alloc, ops[-1].results[0] if ops else output.argument)
        output.argument.name_hint = name


def _move_into_arena(function: func.FuncOp, intervals: Sequence[Interval], offsets: dict[Interval, int], total: int) -> None:
    block = function.body.block
    type_ = MemRefType(i8, [total])
    arena = block.insert_arg(type_, len(block.args))
    arena.name_hint = "arena"
    function.properties["function_type"] = FunctionType.from_lists([*function.function_type.inputs.data, type_], [])
    if function.arg_attrs is not None:
        function.properties["arg_attrs"] = ArrayAttr([*function.arg_attrs.data, DictionaryAttr({})])
    first = cast("Operation", block.first_op)
    constants: dict[int, SSAValue] = {}
    for interval in intervals:
        alloc, offset = interval.alloc, offsets[interval]
        if offset not in constants:
            constants[offset] = _before(first, arith.ConstantOp, [], _INDEX, {"value": IntegerAttr(offset, _INDEX)}, alloc)
        view = _before(first, memref.ViewOp, [arena, constants[offset]], alloc.memref.type, {}, alloc)
        if alloc is first:
            first = cast("Operation", alloc.next_op)
        replace_alloc(alloc, view)


def _before(
    first: Operation, kind: type[Operation], operands: Sequence[SSAValue], type_: Attribute, properties: dict[str, Attribute], of: Operation
) -> SSAValue:
    new = kind.create(operands=operands, result_types=[type_], properties=properties, location=of.location)
    block = first.parent
    assert block is not None
    block.insert_op_before(new, first)
    return new.results[0]


__all__ = ["ALIGNMENT", "ARENA", "FunctionPlan", "Interval", "PlanMemory", "peak", "place", "plan_function", "plan_of"]
