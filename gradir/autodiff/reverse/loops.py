"""`scf.for` in reverse: residuals go into stacks indexed by the iteration, the backward loop runs them from the end.

    %hT, %S = scf.for %i ... iter_args(%h = %h0, %s = %empty) { ...; %s2 = nd.update_at %h into %s[%t] }
    %dh, %dW = scf.for %k = 0 to T iter_args(%c = %dhT, %dw = %zero) { %h = nd.index_at %S[T-1-k]; ... }

A carried value and its successor that are both read share one stack of T+1 entries.
"""

from __future__ import annotations

from xdsl.ir import Block, Operation, Region, SSAValue

from gradir.autodiff.activity import free_in_block
from gradir.autodiff.names import name_copies, name_stack
from gradir.autodiff.reverse.cotangents import Cotangents, accumulator_type
from gradir.autodiff.reverse.indices import Indices, Trips, count_trips
from gradir.autodiff.reverse.recomputation import drop, run_backward_loop, run_body_again_in_reverse
from gradir.autodiff.reverse.report import place
from gradir.autodiff.reverse.residuals import plan, redo, substitute
from gradir.autodiff.reverse.stacks import (
    Stack,
    changes_size,
    empty_stack,
    from_stackable,
    note_stack,
    shared_stack,
    stackable,
    to_stackable,
)
from gradir.autodiff.reverse.sweep import Sweep, structured
from gradir.autodiff.tensors import INDEX, TensorBuilder
from gradir.dialects.upstream import scf
from gradir.ir.builder import Builder
from gradir.ir.structure import block_of, move_to_start


@structured(scf.ForOp)
def forward_for(sweep: Sweep, op: scf.ForOp) -> None:
    """Copy the loop with its stacks; record the loop that runs backwards."""
    unit = sweep.unit
    lower, upper, step, *inits = (sweep.value(v) for v in op.operands)
    trips = count_trips(sweep, lower, upper, step)
    body = op.body.block
    forward = Block(arg_types=[a.type for a in body.args])
    unit.bind(body.args, forward.args)
    inner = sweep.child(forward)
    yields = inner.forward(body)
    on = [k for k, (a, r) in enumerate(zip(body.args[1:], op.results)) if a in unit.activity or r in unit.activity]
    read = [*free_in_block(forward), *(y for y in yields if block_of(y) is not forward)]
    captured = list(dict.fromkeys(v for v in read if v in unit.active))

    backward = Block(arg_types=[INDEX, *(body.args[1 + k].type for k in on), *(accumulator_type(v.type) for v in captured)])
    cts = Cotangents(Builder(backward, op.location), unit.active)
    for v, arg in zip(captured, backward.args[1 + len(on) :]):
        cts.set(v, arg)
    for k, arg in zip(on, backward.args[1:]):
        cts.add(yields[k], arg)
    cts.run(inner.tape)
    carried = [cts.get_or_zeros(forward.args[1 + k]) for k in on]
    cts.builder.op(scf.YieldOp, [*carried, *(cts.accumulator(v) for v in captured)])

    residuals = plan(forward, backward, lambda v: v is forward.args[0])
    if any(changes_size(unit, v, forward) for v in residuals.saved):
        drop(forward)
        drop(backward)
        run_body_again_in_reverse(sweep, op, trips)
        return
    stacks = _push(sweep, op, forward, inner, yields, inits, residuals.saved, trips)
    loop = sweep.builder.op(
        scf.ForOp,
        [lower, upper, step, *inits, *(s.value for s in stacks if s.value is not None)],
        [a.type for a in forward.args[1:]],
        regions=[Region(forward)],
    )
    unit.bind(op.results, loop.results)
    results = loop.results[: len(inits)]
    for k in on:
        unit.active.add(results[k])
    for stack, result in zip(stacks, loop.results[len(inits) :]):
        stack.value = result
        note_stack(unit.program.ledger, stack, backward, place("loop", op, trips.size), again=sweep.again)
        name_copies({stack.arg: result} if stack.arg is not None else {})

    def reverse(outer: Cotangents) -> None:
        if all(outer.get(results[k]) is None for k in on) and not captured:
            return
        outer.builder.loc = op.location
        _pop(backward, forward, yields, stacks, residuals.saved, residuals.redo, trips, op)
        run_backward_loop(outer, backward, trips, [(results[k], inits[k]) for k in on], captured)

    sweep.tape.append(reverse)


def _push(
    sweep: Sweep,
    op: scf.ForOp,
    forward: Block,
    inner: Sweep,
    yields: list[SSAValue],
    inits: list[SSAValue],
    saved: list[SSAValue],
    trips: Trips,
) -> list[Stack]:
    """Add one stack per residual (one per carried value and its successor) and terminate the forward body."""
    at = Indices(inner.builder)
    inner.builder.loc = op.location
    stacks: list[Stack] = []
    position = trips.position(at, forward.args[0]) if saved else None
    after = None
    pushed: list[SSAValue] = []
    carried_args = list(forward.args[1:])
    covered: set[SSAValue] = set()
    for value in saved:
        if value in covered:
            continue
        kind = stackable(value.type)
        k = next((k for k, a in enumerate(carried_args) if value in (a, yields[k]) and a in saved and yields[k] in saved), None)
        if k is not None:
            stack = shared_stack(sweep, kind, trips, inits[k], k)
            covered.update((carried_args[k], yields[k]))
        else:
            stack = Stack(kind, trips.size, trips.value)
            stack.value = empty_stack(sweep.builder, stack)
            covered.add(value)
        assert stack.value is not None
        stack.arg = forward.insert_arg(stack.value.type, len(forward.args))
        name_stack(stack.arg, carried_args[k] if k is not None else value)
        t = TensorBuilder(inner.builder)
        assert position is not None
        if stack.carried is not None:
            after = after if after is not None else at.add(position, at.constant(1))
            pushed.append(t.update_at(to_stackable(inner.builder, yields[stack.carried]), stack.arg, after))
        else:
            pushed.append(t.update_at(to_stackable(inner.builder, value), stack.arg, position))
        stack.keeps = carried_args[k] if k is not None else value
        stacks.append(stack)
    inner.builder.op(scf.YieldOp, [*yields, *pushed])
    return stacks


def _pop(
    backward: Block,
    forward: Block,
    yields: list[SSAValue],
    stacks: list[Stack],
    saved: list[SSAValue],
    redone: list[Operation],
    trips: Trips,
    op: scf.ForOp,
) -> None:
    """Prefix the backward body with the residuals of iteration T-1-k and let it read them."""
    prefix = Block()
    builder = Builder(prefix, op.location)
    at, t = Indices(builder), TensorBuilder(builder)
    position = at.sub(at.sub(trips.value, at.constant(1)), backward.args[0])
    values: dict[SSAValue, SSAValue] = {forward.args[0]: trips.induction(at, position)}
    backward.args[0].name_hint = "k"
    plain = iter(
        v for v in saved if not any(s.carried is not None and v in (forward.args[1 + s.carried], yields[s.carried]) for s in stacks)
    )
    for stack in stacks:
        assert stack.value is not None
        if stack.carried is None:
            value = next(plain)
            values[value] = from_stackable(builder, t.index_at(stack.value, position), value.type)
            continue
        arg, successor = forward.args[1 + stack.carried], yields[stack.carried]
        values[successor] = from_stackable(builder, t.index_at(stack.value, at.add(position, at.constant(1))), successor.type)
        values[arg] = from_stackable(builder, t.index_at(stack.value, position), arg.type)
    redo(builder, redone, values)
    name_copies(values)
    substitute(backward, values)
    move_to_start(prefix, backward)
