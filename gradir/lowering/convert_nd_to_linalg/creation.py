"""Constants, counters, empty tensors, and the names of run-time sizes. None of the first two reaches memory unless it must."""

from __future__ import annotations

from math import prod
from typing import Any, cast

from xdsl.dialects.builtin import BytesAttr, DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr, i1, i8
from xdsl.ir import SSAValue

from gradir.dialects import nd
from gradir.dialects.nd.complex import ComplexAttr
from gradir.dialects.types import element_of, shape_of, tensor
from gradir.dialects.upstream import tensor as tensors
from gradir.lowering.convert_nd_to_linalg.elements import lowered
from gradir.lowering.convert_nd_to_linalg.function import Lowering
from gradir.lowering.convert_nd_to_linalg.rules import lowers
from gradir.lowering.convert_nd_to_linalg.views import IOTA, View, dim

PRINTED_AS_LIST = 100
"""Elements up to which a dense constant is text; longer ones are bytes in hex, which upstream packs into bits for i1."""


@lowers(nd.ConstantOp)
def lower_constant(lowering: Lowering, op: nd.ConstantOp) -> View:
    """A splat is a scalar; a list or a resource one `arith.constant dense` at the function's entry."""
    value, element = op.value, element_of(op.result)
    if isinstance(value, FloatAttr | IntegerAttr):
        return View(value, (), element)
    assert not isinstance(value, ComplexAttr), "split-complex leaves none"
    shape = shape_of(op.result)
    if 0 in shape:
        return lowering.whole(lowering.nests.empty(element, shape), element)
    data = cast("Any", value).data if isinstance(value, DenseIntOrFPElementsAttr) else BytesAttr(value.array.tobytes())
    stored = i8 if element == i1 and prod(cast("tuple[int, ...]", shape)) > PRINTED_AS_LIST else element
    type_: Any = tensor(lowered(stored), shape)
    dense = lowering.constant(DenseIntOrFPElementsAttr(type_, data))
    return lowering.whole(lowering.nests.cast(dense, stored, element), element)


@lowers(nd.IotaOp)
def lower_iota(lowering: Lowering, op: nd.IotaOp) -> View:
    """`result[i] = i[dim]`"""
    lowering.learn_sizes(shape_of(op.result), op.sizes)
    return View(IOTA, (dim(op.number("dim")),), element_of(op.result))


@lowers(nd.EmptyOp)
def lower_empty(lowering: Lowering, op: nd.EmptyOp) -> View:
    """The run-time sizes are operands, so that a size without a name is fine."""
    lowering.learn_sizes(shape_of(op.result), op.sizes)
    sizes = [lowering.scalar(size) for size in op.sizes]
    return lowering.whole(lowering.builder(tensors.EmptyOp, sizes, (lowered(op.result.type),)), element_of(op.result))


@lowers(nd.SymbolOp)
def lower_symbol(lowering: Lowering, op: nd.SymbolOp) -> SSAValue:
    return lowering.size_of(op.sym.data)


@lowers(nd.BindOp)
def lower_bind(lowering: Lowering, op: nd.BindOp) -> None:
    """From here on, and in the regions that follow, the name has this value."""
    lowering.sizes[op.sym.data] = lowering.scalar(op.value)
