"""Buffers that lie in the memory of results (part of `plan-memory`).

The caller's arrays for the results hold nothing until they are written, often late: a training step writes its new parameters when the
backward pass has come to them. A buffer that is dead by then lies there instead of in the arena, at the beginning of the array, so that
no type changes. Large buffers that are live when most bytes are go first; where none of these finds room, the peak cannot fall, and the
search ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase, MemRefType, NoneAttr, i32, i64
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from gradir.dialects.types import i64_array, reassociation
from gradir.dialects.upstream import memref
from gradir.lowering.bufferize.layouts import collapsed_type, expanded_type, subview_type
from gradir.lowering.plan_memory.lifetimes import Interval, Lifetimes, element_count
from gradir.lowering.plan_memory.placement import peak_moment


@dataclass(frozen=True, eq=False, slots=True)
class Output:
    """Memory of a result: free until `first`, with room for `capacity` elements."""

    argument: BlockArgument
    first: int
    capacity: int
    element: Attribute


def free_outputs(lifetimes: Lifetimes, arguments: Sequence[BlockArgument]) -> list[Output]:
    """The results' memory that can hold buffers, smallest first; `arguments` are the destinations of an entry."""
    found: list[Output] = []
    for argument in arguments:
        type_ = cast("MemRefType[Any]", argument.type)
        if not isinstance(argument.type, MemRefType) or not isinstance(type_.layout, NoneAttr):
            continue
        if DYNAMIC_INDEX in type_.get_shape() or not type_.get_shape():
            continue
        moments = lifetimes.of_argument(argument)
        if moments is not None:
            found.append(Output(argument, moments[0], element_count(type_), type_.element_type))
    return sorted(found, key=lambda output: (output.capacity, output.argument.index))


def host(intervals: Sequence[Interval], outputs: Sequence[Output]) -> dict[Interval, Output]:
    """Which buffers lie in which result's memory: as many as lower the greatest number of live bytes of the others."""
    hosted: dict[Interval, Output] = {}
    guests: dict[Output, list[Interval]] = {output: [] for output in outputs}
    left = list(intervals)
    useful, least = 0, peak_moment(left)[0]

    def move(i: Interval) -> bool:
        type_ = cast("MemRefType[Any]", i.alloc.memref.type)
        count = element_count(type_)
        for output in outputs:
            fits = output.element == type_.element_type and count <= output.capacity and i.end < output.first
            if fits and all(j.end < i.start or i.end < j.start for j in guests[output]):
                hosted[i] = output
                guests[output].append(i)
                left.remove(i)
                return True
        return False

    while outputs and left:
        bytes_, moment = peak_moment(left)
        if bytes_ < least:
            useful, least = len(hosted), bytes_
        live = sorted((i for i in left if i.start <= moment <= i.end), key=lambda i: -i.bytes)
        if not any(map(move, live)):
            break
    else:
        useful = len(hosted)
    return dict(list(hosted.items())[:useful])


def view_into(output: Output, alloc: memref.AllocOp) -> list[Operation]:
    """Ops that show the beginning of a result's memory in the type of `alloc`; the last one's result is that."""
    type_ = cast("MemRefType[Any]", alloc.memref.type)
    ops: list[Operation] = []

    def add(kind: type[Operation], memory: SSAValue, new: Attribute, properties: dict[str, Attribute]) -> SSAValue:
        ops.append(kind.create(operands=[memory], result_types=[new], properties=properties, location=alloc.location))
        return ops[-1].results[0]

    memory: SSAValue = output.argument
    old = cast("MemRefType[Any]", memory.type)
    shape, wanted, count = old.get_shape(), type_.get_shape(), element_count(type_)
    if shape == wanted:
        return []
    if len(shape) > 1:
        groups = [tuple(range(len(shape)))]
        flat = collapsed_type(old, groups)
        assert flat is not None
        memory = add(memref.CollapseShapeOp, memory, flat, {"reassociation": reassociation(groups)})
    if count != output.capacity:
        flat = cast("MemRefType[Any]", memory.type)
        static = {"static_offsets": [0], "static_sizes": [count], "static_strides": [1]}
        properties: dict[str, Attribute] = {name: DenseArrayBase.from_list(i64, values) for name, values in static.items()}
        properties["operandSegmentSizes"] = DenseArrayBase.from_list(i32, [1, 0, 0, 0])
        memory = add(memref.SubviewOp, memory, subview_type(flat, [0], [count], [1], [count]), properties)
    if len(wanted) != 1:
        groups = [tuple(range(len(wanted)))] if wanted else []
        if wanted:
            properties = {"reassociation": reassociation(groups), "static_output_shape": i64_array(wanted)}
            memory = add(memref.ExpandShapeOp, memory, expanded_type(cast("MemRefType[Any]", memory.type), groups, wanted), properties)
        else:
            flat = collapsed_type(cast("MemRefType[Any]", memory.type), groups)
            assert flat is not None
            memory = add(memref.CollapseShapeOp, memory, flat, {"reassociation": reassociation(groups)})
    assert memory.type == type_, f"{memory.type} instead of {type_}"
    return ops


__all__ = ["Output", "free_outputs", "host", "view_into"]
