"""Assertions become `cf.assert` of a scalar; a barrier becomes one cast per value, to its own type, that nothing folds or fuses across.

The casts of one barrier carry its number as `gradir.barrier`: `order-kernels` puts each behind what all of them read.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, TensorType, i1, i64

from gradir.dialects import nd
from gradir.dialects.types import element_of
from gradir.dialects.upstream import cf, tensor as tensors
from gradir.lowering.convert_nd_to_linalg.function import Lowering
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
    """Every operand in memory, then the casts."""
    values = [lowering.tensor(value) for value in op.operands]
    number = {BARRIER: IntegerAttr(lowering.templates.number(BARRIER), i64)}
    casts = [lowering.builder(tensors.CastOp, (value,), (value.type,), attributes=number) for value in values]
    return tuple(lowering.whole(cast, element_of(result)) for cast, result in zip(casts, op.results))
