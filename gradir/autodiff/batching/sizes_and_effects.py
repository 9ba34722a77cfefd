"""Ops on many lanes that have no lanes of their own: sizes, assertions, barriers and prints."""

from __future__ import annotations

from xdsl.dialects.builtin import i64

from gradir.autodiff.batching.lanes import next_dim
from gradir.autodiff.batching.sweep import BatchSweep, structured
from gradir.autodiff.reverse.indices import Indices
from gradir.autodiff.reverse.sweep import clone
from gradir.autodiff.tensors import INDEX
from gradir.dialects import nd
from gradir.dialects.types import shape_of
from gradir.dialects.upstream import arith, tensor as upstream_tensor
from gradir.ir.builder import Builder


@structured(nd.EmptyOp)
def batch_empty(sweep: BatchSweep, op: nd.EmptyOp, builder: Builder) -> None:
    """What is written before it is read in one lane may be written at other places in another: zeros."""
    sweep.bind(op.results, [sweep.lanes(builder).t.zeros(op.result.type)], [False])


@structured(nd.BindOp)
def batch_bind(sweep: BatchSweep, op: nd.BindOp, builder: Builder) -> None:
    """A size that differs from lane to lane is the largest of them: what is that long in one lane is long enough in the others."""
    value = sweep.value(op.value)
    if sweep.has(op.value):
        lanes = sweep.lanes(builder)
        largest = builder(upstream_tensor.ExtractOp, [lanes.t.reduce(nd.ReduceMaxOp, value, (0,))], [i64])
        value = builder(arith.IndexCastOp, [largest], [INDEX])
        value = builder(arith.MaxSIOp, [value, Indices(builder).constant(0)], [INDEX])
    builder.op(nd.BindOp, [value], [], op.properties)


@structured(nd.DimOp)
def batch_dim(sweep: BatchSweep, op: nd.DimOp, builder: Builder) -> None:
    """Sizes are those of one lane."""
    copy = clone(op, sweep.values)
    if sweep.has(op.operand):
        copy.properties["dim"] = next_dim(op.number("dim"))
    builder.block.add_op(copy)


@structured(nd.AssertOp)
def batch_assert(sweep: BatchSweep, op: nd.AssertOp, builder: Builder) -> None:
    """In every lane that comes here."""
    lanes = sweep.lanes(builder)
    if not sweep.has(op.operands[0]) and sweep.mask is None:
        builder.block.add_op(clone(op, sweep.values))
        return
    holds = sweep.with_lanes(builder, op.operands[0])
    flat = holds if len(shape_of(holds)) == 1 else lanes.t.reduce(nd.ReduceAllOp, holds, range(1, len(shape_of(holds))))
    if sweep.mask is not None:
        flat = lanes.t.logical_or(flat, lanes.t.logical_not(sweep.mask))
    builder.op(nd.AssertOp, [lanes.t.reduce(nd.ReduceAllOp, flat, (0,))], (), op.properties, attributes=op.attributes)


@structured(nd.OptimizationBarrierOp)
def batch_barrier(sweep: BatchSweep, op: nd.OptimizationBarrierOp, builder: Builder) -> None:
    """Each value as it comes: what is the same for all lanes stays so, and so does what is computed from it."""
    operands = [sweep.value(v) for v in op.operands]
    new = builder.op(nd.OptimizationBarrierOp, operands, [v.type for v in operands], attributes=op.attributes)
    sweep.bind(op.results, new.results, [sweep.has(v) for v in op.operands])


@structured(nd.PrintOp)
def batch_print(sweep: BatchSweep, op: nd.PrintOp, builder: Builder) -> None:
    """All lanes at once."""
    builder.op(nd.PrintOp, [sweep.value(v) for v in op.operands], (), op.properties, attributes=op.attributes)
