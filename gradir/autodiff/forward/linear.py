"""Forward rules of ops that are linear in their only operand that counts: the op itself, applied to the tangent.

The transposed reverse rule says the same in more ops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import Operation, SSAValue

from gradir.autodiff.registry import jvp
from gradir.autodiff.tensors import TensorBuilder
from gradir.dialects import nd


@jvp(nd.NegOp)
@jvp(nd.BroadcastOp)
@jvp(nd.ReshapeOp)
@jvp(nd.TransposeOp)
@jvp(nd.ReverseOp)
@jvp(nd.SliceOp)
@jvp(nd.ReduceSumOp)
@jvp(nd.IndexAtOp)
@jvp(nd.DynamicSliceOp)
@jvp(nd.GatherOp)
def linear(t: TensorBuilder, op: Operation, tangents: Mapping[int, SSAValue]) -> Sequence[SSAValue | None]:
    """`y = L x`: `dy = L dx`."""
    operands = [tangents[0], *op.operands[1:]]
    new = type(op).create(
        operands=operands,
        result_types=[op.results[0].type],
        properties=dict(op.properties),
        attributes=dict(op.attributes),
        location=op.location,
    )
    t.builder.block.add_op(new)
    return [new.results[0]]
