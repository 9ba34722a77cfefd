"""Regions that reverse mode runs twice: what they save has a size that is known only inside an enclosing region.

Nothing outside of that region could hold such a residual. The forward part therefore runs the region as it is; the backward part runs it
again, right where the cotangents are needed, and then backwards. Nothing of a changing size crosses a region, loops may be nested in
any way, and the price is one more run per level.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Block, Operation, Region, SSAValue

from gradir.autodiff.activity import free_values
from gradir.autodiff.names import name_copies, name_stack
from gradir.autodiff.reverse.cotangents import Cotangents, accumulator_type
from gradir.autodiff.reverse.indices import Indices, Trips
from gradir.autodiff.reverse.report import place
from gradir.autodiff.reverse.stacks import Stack, empty_stack, from_stackable, note_stack, stackable, to_stackable
from gradir.autodiff.reverse.sweep import Sweep, Unit, clone
from gradir.autodiff.tensors import INDEX, TensorBuilder
from gradir.dialects.upstream import scf
from gradir.ir.builder import Builder


def values_given(sweep: Sweep, op: Operation) -> dict[SSAValue, SSAValue]:
    """What `op` and its regions read, as it is known now: the map of values goes on changing."""
    return {v: sweep.value(v) for v in (*op.operands, *free_values(op))}


def drop(block: Block) -> None:
    """Forget ops that are in no function: they must not count as users of what they read."""
    Region(block).drop_all_references()


def run_again_in_reverse(sweep: Sweep, op: Operation, results: Sequence[SSAValue], primal: Callable[[Sweep], Block]) -> None:
    """Record that `op`, in place with `results`, is run again beside its cotangents as the ops of `primal`, and then backwards."""
    unit, given = sweep.unit, values_given(sweep, op)

    def reverse(outer: Cotangents) -> None:
        found = [outer.get(r) for r in results]
        if all(ct is None for ct in found):
            return
        outer.builder.loc = op.location
        unit.values.update(given)
        again = Sweep(unit, outer.builder.block, again=True)
        again.builder.loc = op.location
        block = primal(again)
        for value, ct in zip(again.forward(block), found, strict=True):
            if ct is not None:
                outer.add(value, ct)
        outer.run(again.tape)
        drop(block)

    sweep.tape.append(reverse)


def run_body_again_in_reverse(sweep: Sweep, op: scf.ForOp, trips: Trips) -> None:
    """Copy a counted loop with stacks of its carried values alone; each backward iteration runs its body again first."""
    unit, body = sweep.unit, op.body.block
    given = values_given(sweep, op)
    lower, upper, step, *inits = (sweep.value(v) for v in op.operands)
    forward = Block(arg_types=[a.type for a in body.args])
    unit.bind(body.args, forward.args)
    *ops, last = body.ops
    for inner in ops:
        forward.add_op(clone(inner, unit.values))
    yields = [sweep.value(v) for v in last.operands]
    read = [sweep.value(v) for v in free_values(op)]
    captured = list(dict.fromkeys(v for v in read if v in unit.active))
    on = [k for k, (a, r) in enumerate(zip(body.args[1:], op.results)) if a in unit.activity or r in unit.activity]
    kept = [k for k, a in enumerate(body.args[1:]) if a.uses]

    inner = Builder(forward, op.location)
    position = trips.position(Indices(inner), forward.args[0])
    stacks: list[Stack] = []
    starts: list[SSAValue] = []
    pushed: list[SSAValue] = []
    for k in kept:
        stack = Stack(stackable(inits[k].type), trips.size, trips.value, keeps=forward.args[1 + k])
        start = empty_stack(sweep.builder, stack)
        argument = forward.insert_arg(start.type, len(forward.args))
        name_stack(argument, forward.args[1 + k])
        pushed.append(TensorBuilder(inner).update_at(to_stackable(inner, forward.args[1 + k]), argument, position))
        stacks.append(stack)
        starts.append(start)
    inner.op(scf.YieldOp, [*yields, *pushed])
    operands = [lower, upper, step, *inits, *starts]
    loop = sweep.builder.op(scf.ForOp, operands, [a.type for a in forward.args[1:]], regions=[Region(forward)])
    results, saved = loop.results[: len(inits)], loop.results[len(inits) :]
    name_copies(dict(zip(forward.args[1 + len(inits) :], saved)))
    unit.bind(op.results, results)
    for k in on:
        unit.active.add(results[k])
    for stack, result in zip(stacks, saved):
        stack.value = result
        note_stack(unit.program.ledger, stack, forward, place("loop run again", op, trips.size), again=sweep.again)

    def reverse(outer: Cotangents) -> None:
        if all(outer.get(results[k]) is None for k in on) and not captured:
            return
        outer.builder.loc = op.location
        unit.values.update(given)
        backward = Block(arg_types=[INDEX, *(inits[k].type for k in on), *(accumulator_type(v.type) for v in captured)])
        builder = Builder(backward, op.location)
        at, t = Indices(builder), TensorBuilder(builder)
        backward.args[0].name_hint = "k"
        position = at.sub(at.sub(trips.value, at.constant(1)), backward.args[0])
        unit.bind(body.args[:1], [trips.induction(at, position)])
        for k, stack in zip(kept, saved):
            unit.bind([body.args[1 + k]], [from_stackable(builder, t.index_at(stack, position), inits[k].type)])
        again = Sweep(unit, backward, again=True)
        new_yields = again.forward(body)
        cts = Cotangents(builder, unit.active)
        for v, arg in zip(captured, backward.args[1 + len(on) :]):
            cts.set(v, arg)
        for k, arg in zip(on, backward.args[1:]):
            cts.add(new_yields[k], arg)
        cts.run(again.tape)
        carried = [_cotangent(cts, unit, body.args[1 + k]) for k in on]
        builder.loc = op.location
        builder.op(scf.YieldOp, [*carried, *(cts.accumulator(v) for v in captured)])

        run_backward_loop(outer, backward, trips, [(results[k], inits[k]) for k in on], captured)

    sweep.tape.append(reverse)


def run_backward_loop(
    outer: Cotangents, backward: Block, trips: Trips, carried: Sequence[tuple[SSAValue, SSAValue]], captured: Sequence[SSAValue]
) -> None:
    """`backward` once per trip: from the cotangents of the results in `carried` (result, initial value) to those of the initial values.

    The cotangents of `captured` values are summed up on the way.
    """
    at = Indices(outer.builder)
    starts = [*(outer.get_or_zeros(result) for result, _ in carried), *(outer.accumulator(v) for v in captured)]
    bounds = [at.constant(0), trips.value, at.constant(1)]
    loop = outer.builder.op(scf.ForOp, [*bounds, *starts], [v.type for v in starts], regions=[Region(backward)])
    for v, ct in zip(captured, loop.results[len(carried) :]):
        outer.set(v, ct)
    for (_, init), ct in zip(carried, loop.results):
        outer.add(init, ct)


def _cotangent(cts: Cotangents, unit: Unit, argument: SSAValue) -> SSAValue:
    """The cotangent of a carried value in its backward iteration; zeros for one that the body never reads."""
    if not argument.uses:
        return cts.t.zeros(argument.type)
    return cts.get_or_zeros(unit.values[argument])


def run_branches_again_in_reverse(sweep: Sweep, op: scf.IfOp | scf.IndexSwitchOp) -> None:
    """Copy the branches as they are; in reverse the branch taken is run again, and then backwards."""
    unit, given = sweep.unit, values_given(sweep, op)
    new = sweep.copy(op)
    condition, outputs = new.operands[0], list(new.results)
    on = [k for k, r in enumerate(op.results) if r in unit.activity]
    captured = list(dict.fromkeys(v for v in given.values() if v in unit.active))

    def reverse(outer: Cotangents) -> None:
        if all(outer.get(outputs[k]) is None for k in on):
            return
        outer.builder.loc = op.location
        seeds = [outer.get_or_zeros(outputs[k]) for k in on]
        fresh = {v for v in captured if not outer.has(v)}
        totals = [outer.accumulator(v) for v in captured]
        regions: list[Region] = []
        for region in op.regions:
            unit.values.update(given)
            block = Block()
            again = Sweep(unit, block, again=True)
            yields = again.forward(region.block)
            cts = Cotangents(again.builder, unit.active)
            for v, total in zip(captured, totals):
                if v not in fresh:
                    cts.set(v, total)
            for k, seed in zip(on, seeds):
                cts.add(yields[k], seed)
            cts.run(again.tape)
            cts.builder.loc = op.location
            cts.builder.op(scf.YieldOp, [cts.accumulator(v) for v in captured])
            regions.append(Region(block))
        backward = outer.builder.op(type(op), [condition], [v.type for v in totals], op.properties, regions)
        for v, ct in zip(captured, backward.results):
            outer.set(v, ct)

    sweep.tape.append(reverse)
