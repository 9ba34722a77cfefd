"""The batching sweep: copies a function so that values that differ from lane to lane have the lanes in front, and no others.

A branch on a value that differs computes both sides and selects; a loop whose end differs runs until the last lane is done, and lanes
that are done keep their values. Assertions hold for the lanes that take the way they stand on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects.builtin import SymbolRefAttr, TensorType, i1, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from gradir.autodiff.activity import TERMINATORS, free_values
from gradir.autodiff.batching import indexing
from gradir.autodiff.batching.lanes import Lanes, Size, next_dim
from gradir.autodiff.batching.rules import BATCH, spread
from gradir.autodiff.batching.scalars import is_scalar_op, scalar_op
from gradir.autodiff.reverse.functions import Program
from gradir.autodiff.reverse.indices import Indices
from gradir.autodiff.reverse.sweep import clone
from gradir.autodiff.tensors import INDEX
from gradir.dialects import ad, nd
from gradir.dialects.types import shape_of, tensor
from gradir.dialects.upstream import arith, func, scf, tensor as upstream_tensor
from gradir.ir.builder import Builder, new_function
from gradir.ir.passes import error_at

REGISTERED = (indexing,)
"""Importing these registers their rules."""


class BatchSweep:
    """`values` maps old values to new ones; those in `on` have lanes. `mask`: which lanes are on the way that is being copied."""

    def __init__(self, program: Program, n: Size) -> None:
        self.program, self.n = program, n
        self.values: dict[SSAValue, SSAValue] = {}
        self.on: set[SSAValue] = set()
        self.mask: SSAValue | None = None

    def value(self, old: SSAValue) -> SSAValue:
        return self.values.get(old, old)

    def has(self, old: SSAValue) -> bool:
        """Whether the old value differs from lane to lane."""
        return self.value(old) in self.on

    def bind(self, old: Sequence[SSAValue], new: Sequence[SSAValue], flags: Sequence[bool]) -> None:
        for a, b, flag in zip(old, new, flags, strict=True):
            self.values[a] = b
            if b.name_hint is None:
                b.name_hint = a.name_hint
            if flag:
                self.on.add(b)

    def lanes(self, builder: Builder) -> Lanes:
        return Lanes(builder, self.n)

    def with_lanes(self, builder: Builder, old: SSAValue) -> SSAValue:
        """The value with lanes."""
        new = self.value(old)
        return new if new in self.on else self.lanes(builder).spread(new)

    def handed_on(self, builder: Builder, olds: Sequence[SSAValue], flags: Sequence[bool]) -> list[SSAValue]:
        """Values with lanes where the flags say so."""
        return [self.with_lanes(builder, v) if flag else self.value(v) for v, flag in zip(olds, flags, strict=True)]

    def block(self, source: Block, into: Block) -> Operation:
        """Copy every op of `source` but its terminator, which is returned."""
        builder = Builder(into)
        for op in source.ops:
            builder.loc = op.location
            if isinstance(op, TERMINATORS):
                return op
            self.op(op, builder)
        raise AssertionError("a block without a terminator passed the verifier")

    def op(self, op: Operation, builder: Builder) -> None:
        """Copy one op, for all lanes if it reads anything that differs."""
        structured = _STRUCTURED.get(type(op))
        differs = any(self.has(v) for v in op.operands) or (bool(op.regions) and any(self.has(v) for v in free_values(op)))
        if structured is not None and (differs or self.mask is not None or isinstance(op, nd.EmptyOp)):
            structured(self, op, builder)
            return
        if not differs:
            new = clone(op, self.values)
            builder.block.add_op(new)
            return
        on = [self.has(v) for v in op.operands]
        operands = [self.value(v) for v in op.operands]
        lanes = self.lanes(builder)
        if is_scalar_op(op):
            self.bind(op.results, [scalar_op(lanes, op, spread(lanes, operands, on))], [True])
            return
        rule = BATCH.get(type(op))
        found = None if rule is None else rule(lanes, op, operands, on)
        if found is not None:
            self.bind(op.results, found, [True] * len(found))
        elif hasattr(op, "decompose"):
            self._composite(op, builder)
        else:
            self._lane_by_lane(op, builder)

    def _composite(self, op: Any, builder: Builder) -> None:
        """Expand, then batch what it is made of."""
        primal = Block(arg_types=[v.type for v in op.operands])
        results = op.decompose(Builder(primal, op.location), list(primal.args))
        self.bind(primal.args, [self.value(v) for v in op.operands], [self.has(v) for v in op.operands])
        for inner in primal.ops:
            builder.loc = op.location
            self.op(inner, builder)
        self.bind(op.results, [self.value(v) for v in results], [self.has(v) for v in results])
        primal.drop_all_references()

    def _lane_by_lane(self, op: Operation, builder: Builder) -> None:
        """A loop over the lanes: for an op that has no way to do all at once."""
        lanes, at = self.lanes(builder), Indices(builder)
        if not all(isinstance(r.type, TensorType) for r in op.results):
            raise error_at(
                op,
                "this op has no meaning for many lanes",
                part="autodiff",
                code="AD013",
                expected="a batching rule (gradir.autodiff.batching.rules.batches), or results that are tensors",
                found=", ".join(str(r.type) for r in op.results) or "no results",
            )
        kinds = [lanes.lanes(r.type) for r in op.results]
        starts = [builder(nd.EmptyOp, lanes.t.sizes(shape_of(kind)), [kind]) for kind in kinds]
        body = Block(arg_types=[INDEX, *kinds])
        inner = Lanes(Builder(body, op.location), self.n)
        values = dict(self.values)
        for old in (*op.operands, *free_values(op)):
            if self.has(old):
                values[old] = self._one_lane(inner, old, body.args[0])
        copy = clone(op, values)
        body.add_op(copy)
        updated = [inner.t.update_at(r, whole, body.args[0]) for r, whole in zip(copy.results, body.args[1:])]
        inner.builder.op(scf.YieldOp, updated)
        loop = builder.op(scf.ForOp, [at.constant(0), self.count(builder), at.constant(1), *starts], kinds, regions=[Region(body)])
        self.bind(op.results, loop.results, [True] * len(loop.results))

    def _one_lane(self, lanes: Lanes, old: SSAValue, at: SSAValue) -> SSAValue:
        found = lanes.t.index_at(self.value(old), at)
        if isinstance(old.type, TensorType):
            return found
        scalar = lanes.builder(upstream_tensor.ExtractOp, [found], [found.type.element_type])  # pyright: ignore[reportAttributeAccessIssue]
        return lanes.builder(arith.IndexCastOp, [scalar], [INDEX]) if old.type == INDEX else scalar

    def count(self, builder: Builder) -> SSAValue:
        """The number of lanes."""
        if isinstance(self.n, int):
            return Indices(builder).constant(self.n)
        return self.lanes(builder).t.sizes((self.n,))[0]


Structured = Callable[[BatchSweep, Any, Builder], None]


def _tensor_of_scalar(sweep: BatchSweep, op: Operation, builder: Builder) -> None:
    """Rank-0 tensors with lanes and scalars with lanes are the same."""
    if sweep.has(op.operands[0]):
        sweep.bind(op.results, [sweep.value(op.operands[0])], [True])
    else:
        builder.block.add_op(clone(op, sweep.values))


def _empty(sweep: BatchSweep, op: nd.EmptyOp, builder: Builder) -> None:
    """What is written before it is read in one lane may be written at other places in another: zeros."""
    sweep.bind(op.results, [sweep.lanes(builder).t.zeros(op.result.type)], [False])


def _bind(sweep: BatchSweep, op: nd.BindOp, builder: Builder) -> None:
    """A size that differs from lane to lane is the largest of them: what is that long in one lane is long enough in the others."""
    value = sweep.value(op.value)
    if sweep.has(op.value):
        lanes = sweep.lanes(builder)
        largest = builder(upstream_tensor.ExtractOp, [lanes.t.reduce(nd.ReduceMaxOp, value, (0,))], [i64])
        value = builder(arith.IndexCastOp, [largest], [INDEX])
        value = builder(arith.MaxSIOp, [value, Indices(builder).constant(0)], [INDEX])
    builder.op(nd.BindOp, [value], [], op.properties)


def _dim(sweep: BatchSweep, op: nd.DimOp, builder: Builder) -> None:
    """Sizes are those of one lane."""
    copy = clone(op, sweep.values)
    if sweep.has(op.operand):
        copy.properties["dim"] = next_dim(op.number("dim"))
    builder.block.add_op(copy)


def _assert(sweep: BatchSweep, op: nd.AssertOp, builder: Builder) -> None:
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


def _print(sweep: BatchSweep, op: nd.PrintOp, builder: Builder) -> None:
    """All lanes at once."""
    builder.op(nd.PrintOp, [sweep.value(v) for v in op.operands], (), op.properties, attributes=op.attributes)


def _for(sweep: BatchSweep, op: scf.ForOp, builder: Builder) -> None:
    if any(sweep.has(v) for v in op.operands[:3]):
        _for_of_lanes(sweep, op, builder)
        return
    source = op.body.block
    flags = [sweep.has(v) for v in op.iter_args]
    while True:
        body = Block(arg_types=[INDEX, *_kinds(sweep, builder, source.args[1:], flags)])
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
    new = builder.op(scf.ForOp, [*bounds, *starts], [v.type for v in starts], regions=[Region(body)])
    sweep.bind(op.results, new.results, flags)


def _kinds(sweep: BatchSweep, builder: Builder, olds: Sequence[SSAValue], flags: Sequence[bool]) -> list[Attribute]:
    lanes = sweep.lanes(builder)
    return [lanes.lanes(v.type) if flag else v.type for v, flag in zip(olds, flags)]


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
    last = _under(sweep, going, inner.builder, lambda: sweep.block(source, body))
    new = [sweep.with_lanes(inner.builder, v) for v in last.operands]
    inner.builder.op(scf.YieldOp, [inner.lane_select(going, a, b) for a, b in zip(new, body.args[1:])])
    loop = builder.op(scf.ForOp, [at.constant(0), longest, at.constant(1), *starts], [v.type for v in starts], regions=[Region(body)])
    sweep.bind(op.results, loop.results, [True] * len(starts))


def _under(sweep: BatchSweep, pred: SSAValue, builder: Builder, run: Callable[[], Any]) -> Any:
    """`run`, for the lanes where `pred` holds."""
    outer = sweep.mask
    sweep.mask = pred if outer is None else sweep.lanes(builder).t.logical_and(outer, pred)
    try:
        return run()
    finally:
        sweep.mask = outer


def _while(sweep: BatchSweep, op: scf.WhileOp, builder: Builder) -> None:
    before, after = op.before_region.block, op.after_region.block
    condition = before.last_op
    assert condition is not None
    entering = [sweep.has(v) for v in op.operands]
    leaving = [False] * len(after.args)
    while True:
        trial = Block(arg_types=_kinds(sweep, builder, before.args, entering))
        sweep.bind(before.args, trial.args, entering)
        sweep.block(before, trial)
        differs = sweep.has(condition.operands[0])
        out = [differs or flag or sweep.has(v) for flag, v in zip(leaving, condition.operands[1:])]
        second = Block(arg_types=_kinds(sweep, builder, after.args, out))
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
    kinds = _kinds(sweep, builder, op.results, leaving)
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
    last = _under(sweep, pred, inner.builder, lambda: sweep.block(after, second))
    new = [sweep.with_lanes(inner.builder, v) for v in last.operands]
    inner.builder.op(scf.YieldOp, [inner.lane_select(pred, a, b) for a, b in zip(new, second.args[count + 1 :])])
    loop = builder.op(scf.WhileOp, starts, kinds, op.properties, [Region(first), Region(second)], op.attributes)
    sweep.bind(op.results, loop.results[:count], [True] * count)


def _if(sweep: BatchSweep, op: scf.IfOp, builder: Builder) -> None:
    if not sweep.has(op.cond):
        _one_branch(sweep, op, builder)
        return
    lanes = sweep.lanes(builder)
    pred = sweep.value(op.cond)
    otherwise = lanes.t.logical_not(pred)
    found: list[list[SSAValue]] = []
    for region, way in zip(op.regions, (pred, otherwise)):
        if region.blocks:
            last = _under(sweep, way, builder, lambda region=region: sweep.block(region.block, builder.block))
            found.append([sweep.with_lanes(builder, v) for v in last.operands])
    builder.loc = op.location
    if op.results:
        sweep.bind(op.results, [lanes.lane_select(pred, a, b) for a, b in zip(*found)], [True] * len(op.results))


def _switch(sweep: BatchSweep, op: scf.IndexSwitchOp, builder: Builder) -> None:
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
        last = _under(sweep, way, builder, lambda region=region: sweep.block(region.block, builder.block))
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
    kinds = _kinds(sweep, builder, op.results, flags)
    new = builder.op(type(op), [sweep.value(op.operands[0])], kinds, op.properties, regions, op.attributes)
    sweep.bind(op.results, new.results, flags)


def _call(sweep: BatchSweep, op: func.CallOp, builder: Builder) -> None:
    flags = tuple(sweep.has(v) for v in op.operands)
    if not any(flags):
        builder.block.add_op(clone(op, sweep.values))
        return
    callee = sweep.program.function(op.callee.string_value(), op)
    name = batched_function(sweep.program, callee, flags, sweep.n)
    kinds = [sweep.lanes(builder).lanes(r.type) for r in op.results]
    new = builder.op(func.CallOp, [sweep.value(v) for v in op.operands], kinds, {"callee": SymbolRefAttr(name)})
    sweep.bind(op.results, new.results, [True] * len(kinds))


def _ruled(sweep: BatchSweep, op: ad.RuledCall, builder: Builder) -> None:
    """The rules are batched as the callee is; every argument has lanes, so that every cotangent has."""
    functions = [sweep.program.function(name, op) for name in op.functions()]
    names = [batched_function(sweep.program, f, (True,) * len(f.body.block.args), sweep.n, ruled=True) for f in functions]
    operands = [sweep.with_lanes(builder, v) for v in op.operands]
    lanes = sweep.lanes(builder)
    new = type(op).make(names, operands, [lanes.lanes(r.type) for r in op.results])
    new.location = op.location
    builder.block.add_op(new)
    sweep.bind(op.results, new.results, [True] * len(op.results))


_STRUCTURED: dict[type[Operation], Structured] = {
    upstream_tensor.ExtractOp: _tensor_of_scalar,
    upstream_tensor.FromElementsOp: _tensor_of_scalar,
    nd.BindOp: _bind,
    nd.DimOp: _dim,
    nd.EmptyOp: _empty,
    nd.AssertOp: _assert,
    nd.PrintOp: _print,
    scf.ForOp: _for,
    scf.WhileOp: _while,
    scf.IfOp: _if,
    scf.IndexSwitchOp: _switch,
    func.CallOp: _call,
    ad.CheckpointOp: _ruled,
    ad.CustomJvpOp: _ruled,
    ad.CustomVjpOp: _ruled,
}


def batched_function(program: Program, primal: func.FuncOp, flags: tuple[bool, ...], n: Size, *, ruled: bool = False) -> str:
    """`@f.batch`: the arguments in `flags` and all results have lanes; equal ones are made once.

    Error AD006 for a function that calls itself, unless it is a rule that names itself (`ruled`).
    """
    stem = primal.sym_name.data
    key = (stem, flags, n)
    if key in program.batches:
        return program.batches[key]
    if ruled and key in program.batching:
        return program.batching[key]
    making = (stem, "batch", flags, n)
    if making in program.pending:
        raise error_at(
            primal,
            f"@{stem} calls itself: recursion has no batches here",
            part="autodiff",
            code="AD006",
            expected="a call graph without cycles",
            found=program.path(stem),
            hint="write the recursion as a loop",
        )
    program.pending.append(making)
    name = program.batching[key] = program.fresh_name(f"{stem}.batch")
    source = primal.body.block
    sweep = BatchSweep(program, n)
    block = Block(arg_types=_kinds(sweep, Builder(Block()), source.args, flags))
    for old, new in zip(source.args, block.args):
        new.location = old.location
    sweep.bind(source.args, block.args, flags)
    last = sweep.block(source, block)
    builder = Builder(block, last.location)
    builder.op(func.ReturnOp, [sweep.with_lanes(builder, v) for v in last.operands])
    returned = block.last_op
    assert returned is not None
    kinds = [v.type for v in returned.operands]
    function = new_function(name, block, kinds, private=True, loc=primal.location)
    program.pending.pop()
    del program.batching[key]
    program.batches[key] = program.insert(function, primal)
    return program.batches[key]
