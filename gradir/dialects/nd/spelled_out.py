"""Ops with regions as loops over whole tensors: for what knows loops and elementwise ops but not the op, such as `differentiate`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import Block, Region, SSAValue

from gradir.dialects.nd.base import emit
from gradir.dialects.nd.creation import ConstantOp, SymbolOp
from gradir.dialects.nd.regions import YieldOp
from gradir.dialects.nd.shape import BroadcastOp
from gradir.dialects.types import Shape, element_of, shape_of, tensor
from gradir.dialects.upstream import arith, scf

if TYPE_CHECKING:
    from gradir.ir.builder import Builder

INDEX = IndexType()


def spread(builder: Builder, value: SSAValue, shape: Shape) -> SSAValue:
    """A rank-0 value at every position of `shape`."""
    if shape_of(value) == tuple(shape):
        return value
    sizes = [emit(builder, SymbolOp.make(n)) for n in shape if isinstance(n, str)]
    return emit(builder, BroadcastOp.make(value, (), shape, sizes))


def lifted(builder: Builder, block: Block, arguments: Sequence[SSAValue], shape: Shape) -> list[SSAValue]:
    """What a region on elements yields for every element of tensors of that shape: its ops on whole tensors."""
    values: dict[SSAValue, SSAValue] = dict(zip(block.args, arguments, strict=True))
    for op in block.ops:
        if isinstance(op, YieldOp):
            return [values[value] for value in op.values]
        if isinstance(op, ConstantOp):
            values[op.result] = spread(builder, builder(ConstantOp, (), (op.result.type,), op.properties), shape)
            continue
        types = [tensor(element_of(result), shape) for result in op.results]
        made = builder.op(type(op), [values[value] for value in op.operands], types, op.properties, attributes=op.attributes)
        values.update(zip(op.results, made.results))
    raise AssertionError("a region without nd.yield passed the verifier")


Step = Callable[["Builder", SSAValue, list[SSAValue]], Sequence[SSAValue]]
"""`step(builder, index, state)` -> the next state."""


def counted(builder: Builder, trips: int, start: Sequence[SSAValue], step: Step) -> list[SSAValue]:
    """The state after `trips` steps, as an `scf.for`."""
    zero, end, one = (builder(arith.ConstantOp, (), (INDEX,), {"value": IntegerAttr(n, INDEX)}) for n in (0, trips, 1))
    types = [value.type for value in start]
    block = Block(arg_types=[INDEX, *types])
    inner = builder.nested(block)
    inner.op(scf.YieldOp, step(inner, block.args[0], list(block.args[1:])))
    return list(builder.op(scf.ForOp, [zero, end, one, *start], types, regions=[Region(block)]).results)
