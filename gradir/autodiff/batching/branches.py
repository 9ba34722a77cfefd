"""Branches on many lanes. One on a value that differs computes all sides and selects; assertions hold for the lanes that come there."""

from __future__ import annotations

from xdsl.dialects.builtin import i1
from xdsl.ir import Block, Operation, Region, SSAValue

from gradir.autodiff.batching.sweep import BatchSweep, lane_kinds, structured, under
from gradir.dialects.types import tensor
from gradir.dialects.upstream import scf
from gradir.ir.builder import Builder


@structured(scf.IfOp)
def batch_if(sweep: BatchSweep, op: scf.IfOp, builder: Builder) -> None:
    """One branch where the condition is the same for all lanes, else both, and per lane one of their results."""
    if not sweep.has(op.cond):
        _one_branch(sweep, op, builder)
        return
    lanes = sweep.lanes(builder)
    pred = sweep.value(op.cond)
    otherwise = lanes.t.logical_not(pred)
    found: list[list[SSAValue]] = []
    for region, way in zip(op.regions, (pred, otherwise)):
        if region.blocks:
            last = under(sweep, way, builder, lambda region=region: sweep.block(region.block, builder.block))
            found.append([sweep.with_lanes(builder, v) for v in last.operands])
    builder.loc = op.location
    if op.results:
        sweep.bind(op.results, [lanes.lane_select(pred, a, b) for a, b in zip(*found)], [True] * len(op.results))


@structured(scf.IndexSwitchOp)
def batch_switch(sweep: BatchSweep, op: scf.IndexSwitchOp, builder: Builder) -> None:
    """As `batch_if`."""
    if not sweep.has(op.operands[0]):
        _one_branch(sweep, op, builder)
        return
    lanes = sweep.lanes(builder)
    at = sweep.value(op.operands[0])
    default, *cases = op.regions
    numbers = [int(k) for k in op.cases.get_values()]
    ways = [lanes.t.compare("eq", at, lanes.t.full(number, at.type)) for number in numbers]
    none = lanes.t.full(1, tensor(i1, (sweep.n,)))
    for way in ways:
        none = lanes.t.logical_and(none, lanes.t.logical_not(way))
    results: list[SSAValue] = []
    for region, way in zip((default, *cases), (none, *ways)):
        last = under(sweep, way, builder, lambda region=region: sweep.block(region.block, builder.block))
        values = [sweep.with_lanes(builder, v) for v in last.operands]
        results = [lanes.lane_select(way, a, b) for a, b in zip(values, results)] if results else values
    builder.loc = op.location
    sweep.bind(op.results, results, [True] * len(results))


def _one_branch(sweep: BatchSweep, op: scf.IfOp | scf.IndexSwitchOp, builder: Builder) -> None:
    """The same branch for all lanes."""
    blocks: list[Block] = []
    lasts: list[Operation] = []
    flags = [False] * len(op.results)
    for region in op.regions:
        block = Block()
        if region.blocks:
            lasts.append(sweep.block(region.block, block))
            flags = [flag or sweep.has(v) for flag, v in zip(flags, lasts[-1].operands)]
        blocks.append(block)
    regions: list[Region] = []
    rest = iter(lasts)
    for region, block in zip(op.regions, blocks):
        if not region.blocks:
            regions.append(Region())
            continue
        last = next(rest)
        inner = Builder(block, last.location)
        inner.op(scf.YieldOp, sweep.handed_on(inner, last.operands, flags))
        regions.append(Region(block))
    kinds = lane_kinds(sweep, builder, op.results, flags)
    new = builder.op(type(op), [sweep.value(op.operands[0])], kinds, op.properties, regions, op.attributes)
    sweep.bind(op.results, new.results, flags)
