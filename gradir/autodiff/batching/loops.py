"""Loops on many lanes. A loop whose end differs runs until the last lane is done; lanes that are done keep their values."""

from __future__ import annotations

from xdsl.dialects.builtin import i1, i64
from xdsl.ir import Block, Region

from gradir.autodiff.batching.lanes import Lanes
from gradir.autodiff.batching.sweep import BatchSweep, lane_kinds, structured, under
from gradir.autodiff.reverse.indices import Indices
from gradir.autodiff.tensors import INDEX
from gradir.dialects import nd
from gradir.dialects.upstream import arith, scf, tensor as upstream_tensor
from gradir.ir.builder import Builder


@structured(scf.ForOp)
def batch_for(sweep: BatchSweep, op: scf.ForOp, builder: Builder) -> None:
    """A value that differs in some round has lanes in all: the body is copied until no more do."""
    if any(sweep.has(v) for v in op.operands[:3]):
        _for_of_lanes(sweep, op, builder)
        return
    source = op.body.block
    flags = [sweep.has(v) for v in op.iter_args]
    while True:
        body = Block(arg_types=[INDEX, *lane_kinds(sweep, builder, source.args[1:], flags)])
        sweep.bind(source.args, body.args, [False, *flags])
        last = sweep.block(source, body)
        found = [flag or sweep.has(v) for flag, v in zip(flags, last.operands)]
        if found == flags:
            break
        body.drop_all_references()
        flags = found
    inner = Builder(body, last.location)
    inner.op(scf.YieldOp, sweep.handed_on(inner, last.operands, flags))
    starts = sweep.handed_on(builder, op.iter_args, flags)
    bounds = [sweep.value(v) for v in op.operands[:3]]
    new = builder.op(scf.ForOp, [*bounds, *starts], [v.type for v in starts], regions=[Region(body)], attributes=op.attributes)
    sweep.bind(op.results, new.results, flags)


def _for_of_lanes(sweep: BatchSweep, op: scf.ForOp, builder: Builder) -> None:
    """Each lane has its own bounds: as many trips as the longest needs, `lower + k * step` in each."""
    lanes, at = sweep.lanes(builder), Indices(builder)
    lower, upper, step = (sweep.with_lanes(builder, v) for v in op.operands[:3])
    span = lanes.t.binary(nd.MaxOp, lanes.t.sub(upper, lower), lanes.t.full(0, lower.type))
    trips = lanes.t.div(lanes.t.sub(lanes.t.add(span, step), lanes.t.full(1, step.type)), step)
    longest = builder(upstream_tensor.ExtractOp, [lanes.t.reduce(nd.ReduceMaxOp, trips, (0,))], [i64])
    longest = builder(arith.IndexCastOp, [longest], [INDEX])
    longest = builder(arith.MaxSIOp, [longest, at.constant(0)], [INDEX])
    source = op.body.block
    starts = [sweep.with_lanes(builder, v) for v in op.iter_args]
    body = Block(arg_types=[INDEX, *(v.type for v in starts)])
    inner = Lanes(Builder(body, op.location), sweep.n)
    k = inner.spread(body.args[0])
    going = inner.t.compare("lt", k, trips)
    sweep.bind(source.args, [inner.t.add(lower, inner.t.mul(k, step)), *body.args[1:]], [True] * len(source.args))
    last = under(sweep, going, inner.builder, lambda: sweep.block(source, body))
    new = [sweep.with_lanes(inner.builder, v) for v in last.operands]
    inner.builder.op(scf.YieldOp, [inner.lane_select(going, a, b) for a, b in zip(new, body.args[1:])])
    bounds, kinds = [at.constant(0), longest, at.constant(1)], [v.type for v in starts]
    loop = builder.op(scf.ForOp, [*bounds, *starts], kinds, regions=[Region(body)], attributes=op.attributes)
    sweep.bind(op.results, loop.results, [True] * len(starts))


@structured(scf.WhileOp)
def batch_while(sweep: BatchSweep, op: scf.WhileOp, builder: Builder) -> None:
    """As `batch_for`; a condition that differs makes the loop one of lanes."""
    before, after = op.before_region.block, op.after_region.block
    condition = before.last_op
    assert condition is not None
    entering = [sweep.has(v) for v in op.operands]
    leaving = [False] * len(after.args)
    while True:
        trial = Block(arg_types=lane_kinds(sweep, builder, before.args, entering))
        sweep.bind(before.args, trial.args, entering)
        sweep.block(before, trial)
        differs = sweep.has(condition.operands[0])
        out = [differs or flag or sweep.has(v) for flag, v in zip(leaving, condition.operands[1:])]
        second = Block(arg_types=lane_kinds(sweep, builder, after.args, out))
        sweep.bind(after.args, second.args, out)
        last = sweep.block(after, second)
        back = [differs or flag or sweep.has(v) for flag, v in zip(entering, last.operands)]
        if (back, out) == (entering, leaving):
            break
        trial.drop_all_references()
        second.drop_all_references()
        entering, leaving = back, out
    if differs:
        trial.drop_all_references()
        second.drop_all_references()
        _while_of_lanes(sweep, op, builder)
        return
    inner = Builder(trial, condition.location)
    inner.op(scf.ConditionOp, [sweep.value(condition.operands[0]), *sweep.handed_on(inner, condition.operands[1:], leaving)])
    inner = Builder(second, last.location)
    inner.op(scf.YieldOp, sweep.handed_on(inner, last.operands, entering))
    starts = sweep.handed_on(builder, op.operands, entering)
    kinds = lane_kinds(sweep, builder, op.results, leaving)
    new = builder.op(scf.WhileOp, starts, kinds, op.properties, [Region(trial), Region(second)], op.attributes)
    sweep.bind(op.results, new.results, leaving)


def _while_of_lanes(sweep: BatchSweep, op: scf.WhileOp, builder: Builder) -> None:
    """Each lane has its own end: the loop runs while any lane goes on, and lanes that are done keep their state."""
    before, after = op.before_region.block, op.after_region.block
    starts = [sweep.with_lanes(builder, v) for v in op.operands]
    states = [v.type for v in starts]
    first = Block(arg_types=states)
    sweep.bind(before.args, first.args, [True] * len(states))
    condition = sweep.block(before, first)
    inner = Lanes(Builder(first, condition.location), sweep.n)
    going = sweep.with_lanes(inner.builder, condition.operands[0])
    forwarded = [sweep.with_lanes(inner.builder, v) for v in condition.operands[1:]]
    some = inner.builder(upstream_tensor.ExtractOp, [inner.t.reduce(nd.ReduceAnyOp, going, (0,))], [i1])
    inner.builder.op(scf.ConditionOp, [some, *forwarded, going, *first.args])

    kinds = [*(v.type for v in forwarded), going.type, *states]
    second = Block(arg_types=kinds)
    count = len(forwarded)
    sweep.bind(after.args, second.args[:count], [True] * count)
    inner = Lanes(Builder(second, op.location), sweep.n)
    pred = second.args[count]
    last = under(sweep, pred, inner.builder, lambda: sweep.block(after, second))
    new = [sweep.with_lanes(inner.builder, v) for v in last.operands]
    inner.builder.op(scf.YieldOp, [inner.lane_select(pred, a, b) for a, b in zip(new, second.args[count + 1 :])])
    loop = builder.op(scf.WhileOp, starts, kinds, op.properties, [Region(first), Region(second)], op.attributes)
    sweep.bind(op.results, loop.results[:count], [True] * count)
