"""`scf.while` in reverse: the forward part counts the trips, the backward part is a counted loop.

forward    %r, %n = scf.while (%s = %s0, %c = 0) { .. } do { ..; scf.yield %s2, %c + 1 }
backward   %sn, %S = scf.for %i = 0 to %n ..        the same trips, with a stack
           %ds = scf.for %k = 0 to %n ..            reading %S[n-1-k]
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, Operation, Region, SSAValue

from gradir.autodiff.names import name_copies
from gradir.autodiff.reverse.indices import Indices
from gradir.autodiff.reverse.recomputation import run_again_in_reverse
from gradir.autodiff.reverse.sweep import Sweep, Unit, clone, structured
from gradir.autodiff.tensors import INDEX
from gradir.dialects.upstream import scf
from gradir.ir.builder import Builder


@structured(scf.WhileOp)
def forward_while(sweep: Sweep, op: scf.WhileOp) -> None:
    """Copy the loop with a counter of its trips; record that it is run again as a counted loop, and backwards."""
    counted = _counted(sweep, op)
    *results, trips = counted.results
    trips.name_hint = "trips"
    sweep.unit.bind(op.results, results)

    run_again_in_reverse(sweep, op, results, lambda again: _as_counted_loop(again, op, trips))


def _counted(sweep: Sweep, op: scf.WhileOp) -> Operation:
    """A copy of the loop that carries the number of its trips as one more value."""
    values = sweep.unit.values
    before = _copied(op.before_region.block, values)
    after = _copied(op.after_region.block, values)
    condition, last = op.before_region.block.last_op, op.after_region.block.last_op
    assert condition is not None and last is not None
    Builder(before, condition.location).op(scf.ConditionOp, [*(values.get(v, v) for v in condition.operands), before.args[-1]])
    at = Indices(Builder(after, last.location))
    next_ = at.add(after.args[-1], at.constant(1))
    at.builder.op(scf.YieldOp, [*(values.get(v, v) for v in last.operands), next_])
    inits = [*(sweep.value(v) for v in op.operands), Indices(sweep.builder).constant(0)]
    kinds = [*(r.type for r in op.results), INDEX]
    return sweep.builder.op(scf.WhileOp, inits, kinds, op.properties, [Region(before), Region(after)], op.attributes)


def _copied(source: Block, values: dict[SSAValue, SSAValue]) -> Block:
    """The block without its terminator, with one more argument: the counter."""
    block = Block(arg_types=[*(a.type for a in source.args), INDEX])
    for old, new in zip(source.args, block.args):
        values[old], new.name_hint = new, old.name_hint
    block.args[-1].name_hint = "n"
    for op in list(source.ops)[:-1]:
        block.add_op(clone(op, values))
    return block


def _as_counted_loop(again: Sweep, op: scf.WhileOp, trips: SSAValue) -> Block:
    """Ops of the primal program that compute what `op` does in `trips` trips: `for: after(before(s))`, then `before` once more."""
    unit = again.unit
    before, after = op.before_region.block, op.after_region.block
    body = Block(arg_types=[INDEX, *(a.type for a in before.args)])
    body.args[0].name_hint = "t"
    name_copies(dict(zip(before.args, body.args[1:])))
    forwarded = _inlined(unit, before, body.args[1:], body)
    Builder(body, op.location).op(scf.YieldOp, _inlined(unit, after, forwarded, body))
    at = Indices(again.builder)
    primal = Block()
    bounds, kinds = [at.constant(0), trips, at.constant(1)], [a.type for a in before.args]
    results = Builder(primal, op.location).op(scf.ForOp, [*bounds, *op.operands], kinds, {}, [Region(body)], op.attributes).results
    unit.same_activity(zip(before.args, results))
    Builder(primal, op.location).op(scf.YieldOp, _inlined(unit, before, results, primal))
    return primal


def _inlined(unit: Unit, source: Block, arguments: Sequence[SSAValue], into: Block) -> list[SSAValue]:
    """Copy the ops of a region of the loop for these arguments; what the region hands on."""
    values: dict[SSAValue, SSAValue] = dict(zip(source.args, arguments))
    *ops, terminator = source.ops
    for op in ops:
        into.add_op(clone(op, values))
    unit.same_activity(values.items())
    handed_on = terminator.operands[1:] if isinstance(terminator, scf.ConditionOp) else terminator.operands
    return [values.get(v, v) for v in handed_on]
