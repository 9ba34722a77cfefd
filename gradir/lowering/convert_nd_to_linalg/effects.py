"""Assertions become `cf.assert` of a scalar; a barrier becomes one cast per value, to its own type, that nothing folds or fuses across.

The casts of one barrier carry its number as `gradir.barrier`: `order-kernels` puts each behind what all of them read.
"""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import IntegerAttr, TensorType, i1, i64
from xdsl.ir import SSAValue

from gradir.dialects import nd
from gradir.dialects.types import shape_of
from gradir.dialects.upstream import cf, tensor as tensors
from gradir.lowering.convert_nd_to_linalg.function import Lowering
from gradir.lowering.convert_nd_to_linalg.layouts import layout_in_memory
from gradir.lowering.convert_nd_to_linalg.rules import lowers
from gradir.lowering.convert_nd_to_linalg.views import View
from gradir.lowering.dependences import BARRIER


@lowers(nd.AssertOp)
def lower_assert(lowering: Lowering, op: nd.AssertOp) -> None:
    """`cf.assert` of the condition's one element."""
    condition = op.condition
    if isinstance(condition.type, TensorType):
        flag = lowering.builder(tensors.ExtractOp, (lowering.tensor(condition),), (i1,))
    else:
        flag = lowering.scalar(condition)
    lowering.builder(cf.AssertOp, (flag,), (), {"msg": op.message})


@lowers(nd.OptimizationBarrierOp)
def lower_barrier(lowering: Lowering, op: nd.OptimizationBarrierOp) -> tuple[View, ...]:
    """Every operand in memory, in the order in which it lies there, then the casts."""
    views = [_in_any_order(lowering, value) for value in op.operands]
    number = {BARRIER: IntegerAttr(lowering.templates.number(BARRIER), i64)}
    results: list[View] = []
    for view in views:
        base = cast("SSAValue", view.base)
        fenced = lowering.builder(tensors.CastOp, (base,), (base.type,), attributes=number)
        if base in lowering.laid_out:
            lowering.laid_out.add(fenced)
        results.append(View(fenced, view.index, view.element))
    return tuple(results)


def _in_any_order(lowering: Lowering, value: SSAValue) -> View:
    view = lowering.view(value)
    if layout_in_memory(view, shape_of(value)) is not None:
        return view
    return lowering.whole(lowering.tensor(value), view.element)
