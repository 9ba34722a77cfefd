"""`plan-memory`: the buffers of an entry share one arena (level 3 to level 3).

A buffer exists where its `memref.alloc` stands: one inside a loop body is a new one in each iteration and is live only between its
accesses there, one outside is live through every loop that touches it. Offsets come from a sweep over the program that takes the
tightest gap; when that needs more than the greatest number of bytes that are live at once, placing the largest buffers first is tried
too. Relies on structured control flow and on memrefs being passed on only by views, loops and branches.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar, cast

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DictionaryAttr,
    FixedBitwidthType,
    FunctionType,
    IndexType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    i8,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from gradir.dialects.target import CpuTargetAttr, target_of
from gradir.dialects.upstream import arith, func, memref, scf
from gradir.ir.passes import Pass, PassContext
from gradir.lowering.bufferize.timeline import Timeline
from gradir.lowering.workspace import ALIGNMENT, plan_workspace, replace_alloc

ARENA = "gradir.arena"
RESULTS = "gradir.results"
MAX_BY_SIZE = 512
"""Buffers up to which the second, quadratic placement is tried."""

_VIEWS = (memref.SubviewOp, memref.CastOp, memref.CollapseShapeOp, memref.ExpandShapeOp, memref.ViewOp, memref.ReinterpretCastOp)
_INDEX = IndexType()


@dataclass(frozen=True, eq=False, slots=True)
class Interval:
    """A buffer and the part of the timeline (both ends included) where its bytes matter."""

    alloc: memref.AllocOp
    start: int
    end: int
    bytes: int


@dataclass(frozen=True)
class PlanMemory(Pass):
    """Before: an entry with `memref.alloc` and `memref.dealloc`. After: views of its last argument `%arena`.

    Buffers whose sizes follow from dimensions of arguments become views of one allocation at the entry's beginning, `%workspace`, with
    slots for as many buffers of equal bytes as are live at once. Its bytes are a text of sizes, as
    `gradir.workspace = "64*floordiv(x_0+15,16)"` for dimension 0 of `%x`. Buffers of sizes that only the run knows stay.

    ```mlir
    %h = memref.alloc() : memref<128x512xf32>
    // becomes, with gradir.arena = 262144 : i64 on the function
    %o = arith.constant 0 : index
    %h = memref.view %arena[%o][] : memref<262144xi8> to memref<128x512xf32>
    ```

    `facts["plan-memory"]` maps entries to the bytes of the arena, the greatest number of live bytes (`peak`) and the sum without sharing
    (`unshared`), the number of planned buffers, of those in the workspace, and of those left to the run.
    """

    NAME: ClassVar[str] = "plan-memory"

    def apply(self, op: Operation, context: PassContext) -> None:
        reports: dict[str, dict[str, int]] = {}
        for function in cast("ModuleOp", op).body.block.ops:
            if isinstance(function, func.FuncOp) and RESULTS in function.attributes and ARENA not in function.attributes:
                reports[function.sym_name.data] = plan_function(function)
        context.facts[self.NAME] = reports


def plan_function(function: func.FuncOp) -> dict[str, int]:
    """Put the static buffers of one entry into an arena, and those whose sizes its arguments tell into a workspace."""
    intervals, dynamic = lifetimes(function)
    planned = plan_workspace(function, _run_time_lifetimes(function), _slots) if dynamic and _is_for_cpu(function) else 0
    offsets, total = place(intervals)
    function.attributes[ARENA] = IntegerAttr(total, i64)
    if total:  # otherwise there are at most empty buffers, which keep their alloc
        _rewrite(function, intervals, offsets, total)
    return {
        "arena": total,
        "peak": peak(intervals),
        "unshared": sum(i.bytes for i in intervals),
        "buffers": len(intervals),
        "workspace": planned,
        "run_time": dynamic - planned,
    }


def _is_for_cpu(function: func.FuncOp) -> bool:
    return isinstance(target_of(function), CpuTargetAttr)


def _run_time_lifetimes(function: func.FuncOp) -> list[Interval]:
    """The lifetimes of the buffers of run-time size, in program order; their bytes count as 1."""
    time = Timeline(function.body.block)
    edges = _edges(time)
    allocs = [op for op in time.start if isinstance(op, memref.AllocOp) and _is_run_time(op)]
    touched = [(op, _touched(op, edges, time)) for op in allocs]
    return [Interval(op, moments[0], moments[1], 1) for op, moments in touched if moments is not None]


def _is_run_time(op: memref.AllocOp) -> bool:
    return DYNAMIC_INDEX in cast("MemRefType[Any]", op.memref.type).get_shape()


def _slots(buffers: Sequence[Any]) -> tuple[list[int], int]:
    """Slots of buffers of equal size at which no two that are live together meet, and how many slots that takes."""
    offsets, total = place(buffers)
    return [offsets[buffer] for buffer in buffers], total


def lifetimes(function: func.FuncOp) -> tuple[list[Interval], int]:
    """The lifetimes of the static buffers, in program order; how many buffers have a size that only the run knows."""
    time = Timeline(function.body.block)
    edges = _edges(time)
    found: list[Interval] = []
    dynamic = 0
    for op in time.start:
        if not isinstance(op, memref.AllocOp):
            continue
        if _is_run_time(op):
            dynamic += 1
            continue
        touched = _touched(op, edges, time)
        if touched:
            found.append(Interval(op, touched[0], touched[1], _padded_bytes(cast("MemRefType[Any]", op.memref.type))))
    return found, dynamic


def _edges(time: Timeline) -> dict[SSAValue, list[SSAValue]]:
    """From each memref to the values that may be the same memory in another guise."""
    edges: dict[SSAValue, list[SSAValue]] = {}

    def link(sources: Sequence[SSAValue], targets: Sequence[SSAValue]) -> None:
        for source, target in zip(sources, targets):
            if isinstance(source.type, MemRefType):
                edges.setdefault(source, []).append(target)

    for op in time.start:
        if isinstance(op, _VIEWS):
            link(op.operands[:1], op.results)
        elif isinstance(op, arith.SelectOp):
            link(op.operands[1:2], op.results)
            link(op.operands[2:3], op.results)
        elif isinstance(op, scf.ForOp):
            arguments, last = op.body.block.args[1:], cast("Operation", op.body.block.last_op)
            for sources in (op.iter_args, last.operands):
                link(sources, arguments)
                link(sources, op.results)
        elif isinstance(op, scf.WhileOp):
            condition = cast("scf.ConditionOp", op.before_region.block.last_op)
            link(op.arguments, op.before_region.block.args)
            link(condition.args, op.after_region.block.args)
            link(condition.args, op.results)
            link(cast("Operation", op.after_region.block.last_op).operands, op.before_region.block.args)
        elif isinstance(op, scf.IfOp | scf.IndexSwitchOp):
            for region in op.regions:
                if region.first_block is not None:
                    link(cast("Operation", region.block.last_op).operands, op.results)
    return edges


def _touched(alloc: memref.AllocOp, edges: dict[SSAValue, list[SSAValue]], time: Timeline) -> tuple[int, int] | None:
    """First and last moment at which the buffer is accessed, in terms of the block of its alloc."""
    block: Block | None = alloc.parent
    seen: set[SSAValue] = {alloc.memref}
    stack: list[SSAValue] = [alloc.memref]
    ops: list[Operation] = []
    while stack:
        value = stack.pop()
        for target in edges.get(value, ()):
            if target not in seen:
                seen.add(target)
                stack.append(target)
        ops += [time.anchor(use.operation) for use in value.uses if not isinstance(use.operation, (*_VIEWS, memref.DeallocOp))]
    if not ops:
        return None
    while not all(time.lift(op, cast("Block", block)) for op in ops):  # passed out of its block: it lives in the enclosing one
        parent = cast("Block", block).parent_op()
        assert parent is not None
        block = parent.parent
    lifted = [cast("Operation", time.lift(op, cast("Block", block))) for op in ops]
    return min(time.start[op] for op in lifted), max(time.end[op] for op in lifted)


def _padded_bytes(type_: MemRefType[Any]) -> int:
    element = type_.element_type
    width = element.bitwidth if isinstance(element, FixedBitwidthType) else 64
    size = prod(type_.get_shape()) * max(1, width // 8)
    return -(-size // ALIGNMENT) * ALIGNMENT


def peak(intervals: Sequence[Interval]) -> int:
    """The greatest number of bytes that are live at one moment: no arena can be smaller."""
    changes: dict[int, int] = {}
    for i in intervals:
        changes[i.start] = changes.get(i.start, 0) + i.bytes
        changes[i.end + 1] = changes.get(i.end + 1, 0) - i.bytes
    most = live = 0
    for position in sorted(changes):
        live += changes[position]
        most = max(most, live)
    return most


def place(intervals: Sequence[Interval]) -> tuple[dict[Interval, int], int]:
    """Offsets at which no two buffers that are live together overlap, and the bytes needed."""
    best, total = _by_time(intervals)
    if total > peak(intervals) and len(intervals) <= MAX_BY_SIZE:
        for key in (_large_first, _long_first):
            other, bytes_ = _one_by_one(sorted(intervals, key=key))
            if bytes_ < total:
                best, total = other, bytes_
    return best, total


def _large_first(i: Interval) -> tuple[int, int]:
    return (-i.bytes, i.start)


def _long_first(i: Interval) -> tuple[int, int]:
    return (i.start - i.end, -i.bytes)


def _by_time(intervals: Sequence[Interval]) -> tuple[dict[Interval, int], int]:
    """Best fit in the order in which buffers come to life; gaps are kept sorted by offset."""
    offsets: dict[Interval, int] = {}
    gaps: list[tuple[int, int]] = []  # (offset, end) of free bytes below `total`
    live: list[tuple[int, int, int]] = []  # (end of life, offset, bytes)
    total = 0
    for i in sorted(intervals, key=lambda i: (i.start, i.start - i.end, -i.bytes)):
        while live and live[0][0] < i.start:
            _, offset, size = live.pop(0)
            _release(gaps, offset, offset + size)
        fitting = [(end - offset, offset) for offset, end in gaps if end - offset >= i.bytes]
        if fitting:
            size, offset = min(fitting)
            k = bisect_left(gaps, (offset, offset + size))
            gaps[k : k + 1] = [(offset + i.bytes, offset + size)] if size > i.bytes else []
        else:
            offset = total
            if gaps and gaps[-1][1] == total:  # grow the last gap
                offset = gaps.pop()[0]
            total = offset + i.bytes
        offsets[i] = offset
        if i.bytes:
            insort(live, (i.end, offset, i.bytes))
    return offsets, total


def _release(gaps: list[tuple[int, int]], start: int, end: int) -> None:
    """Add a gap, joined with its neighbours."""
    k = bisect_left(gaps, (start, end))
    if k < len(gaps) and gaps[k][0] == end:
        end = gaps.pop(k)[1]
    if k > 0 and gaps[k - 1][1] == start:
        k -= 1
        start = gaps.pop(k)[0]
    gaps.insert(k, (start, end))


def _one_by_one(intervals: Sequence[Interval]) -> tuple[dict[Interval, int], int]:
    """Each buffer at the lowest offset that is free for its whole life, in the given order."""
    offsets: dict[Interval, int] = {}
    total = 0
    for i in intervals:
        taken = sorted((offset, offset + j.bytes) for j, offset in offsets.items() if j.start <= i.end and i.start <= j.end)
        offset = 0
        for start, end in taken:
            if start - offset >= i.bytes:
                break
            offset = max(offset, end)
        offsets[i] = offset
        total = max(total, offset + i.bytes)
    return offsets, total


def _rewrite(function: func.FuncOp, intervals: Sequence[Interval], offsets: dict[Interval, int], total: int) -> None:
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


__all__ = ["ALIGNMENT", "ARENA", "Interval", "PlanMemory", "lifetimes", "peak", "place", "plan_function"]
