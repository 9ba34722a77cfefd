"""`scf.for` in reverse: residuals go into stacks indexed by the iteration, the backward loop runs them from the end.

    %hT, %S = scf.for %i ... iter_args(%h = %h0, %s = %empty) { ...; %s2 = nd.update_at %h into %s[%t] }
    %dh, %dW = scf.for %k = 0 to T iter_args(%c = %dhT, %dw = %zero) { %h = nd.index_at %S[T-1-k]; ... }

A carried value and its successor that are both read share one stack of T+1 entries.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import Attribute, Block, Region, SSAValue

from gradir.autodiff.activity import free_in_block
from gradir.autodiff.names import name_copies, name_stack
from gradir.autodiff.reverse.cotangents import Cotangents, accumulator_type
from gradir.autodiff.reverse.indices import Indices, count_trips, most_trips
from gradir.autodiff.reverse.liveness import live_values
from gradir.autodiff.reverse.loop_bodies import Loop, run_body_again
from gradir.autodiff.reverse.recomputation import drop
from gradir.autodiff.reverse.report import bytes_of, place, sum_of
from gradir.autodiff.reverse.residuals import plan, redo, substitute
from gradir.autodiff.reverse.segments import run_in_segments
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
from gradir.dialects.residuals import SEGMENT, marked, policy_of
from gradir.dialects.upstream import scf
from gradir.ir.builder import Builder
from gradir.ir.structure import block_of, move_to_start
from gradir.size_algebra import Dim, minus, sign_of, times


@structured(scf.ForOp)
def forward_for(sweep: Sweep, op: scf.ForOp) -> None:
    """Copy the loop with what its policy keeps; record the loop that runs backwards."""
    policy = policy_of(op, sweep.unit.program.choice[0])
    if policy == "sqrt":
        run_in_segments(sweep, op)
        return
    loop = both_bodies(sweep, op)
    saved, measured = loop.residuals.saved, sweep.unit.program.measured
    if measured is not None:
        measured.add(op, most_trips(loop.trips, loop.bounds[1]), measured.own(_stacked(loop)), _state(loop))
    if policy == "none" or any(changes_size(sweep.unit, v, loop.forward) for v in saved) or (policy == SEGMENT and _is_large(loop)):
        run_body_again(sweep, loop, marked(op, policy))
    else:
        _save_residuals(sweep, loop, marked(op, policy))


def both_bodies(sweep: Sweep, op: scf.ForOp) -> Loop:
    """The body with all that its backward body may read, and that backward body."""
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
    backward.args[0].name_hint = "k"
    cts = Cotangents(Builder(backward, op.location), unit.active)
    for v, arg in zip(captured, backward.args[1 + len(on) :]):
        cts.set(v, arg)
    for k, arg in zip(on, backward.args[1:]):
        cts.add(yields[k], arg)
    cts.run(inner.tape)
    carried = [cts.get_or_zeros(forward.args[1 + k]) for k in on]
    cts.builder.op(scf.YieldOp, [*carried, *(cts.accumulator(v) for v in captured)])
    residuals = plan(forward, backward, lambda v: v is forward.args[0])
    return Loop(op, [lower, upper, step], inits, trips, forward, yields, backward, on, captured, residuals)


def _is_large(loop: Loop) -> bool:
    """Whether what an iteration saves takes more than twice the bytes of the carried values with which it could run again."""
    more = minus(sum_of(bytes_of(v.type) for v in _stacked(loop)), times(_state(loop), 2))
    return more is None or sign_of(more) not in (0, -1)


def _stacked(loop: Loop) -> list[SSAValue]:
    """What an iteration saves; a carried value and its successor share a stack."""
    saved = set(loop.residuals.saved)
    twice = {y for a, y in zip(loop.forward.args[1:], loop.yields) if a in saved and y in saved}
    return [v for v in loop.residuals.saved if v not in twice]


def _state(loop: Loop) -> Dim:
    """Bytes of the carried values with which an iteration could run again."""
    again = live_values(loop.forward, loop.residuals.saved)
    return sum_of(bytes_of(a.type) for a in loop.forward.args[1:] if a in again)


def _save_residuals(sweep: Sweep, loop: Loop, attributes: Mapping[str, Attribute]) -> None:
    """One stack per residual, written as the loop runs."""
    unit, op, trips = sweep.unit, loop.op, loop.trips
    count = len(loop.inits)
    stacks = _push(sweep, loop)
    starts = [*loop.inits, *(s.value for s in stacks if s.value is not None)]
    kinds = [v.type for v in starts]
    new = sweep.builder.op(scf.ForOp, [*loop.bounds, *starts], kinds, regions=[Region(loop.forward)], attributes=attributes)
    results = loop.bind(unit, new.results[:count])
    if unit.program.measured is not None:
        unit.program.measured.hold(op, new.results[count:])
    for stack, result in zip(stacks, new.results[count:]):
        stack.value = result
        note_stack(unit.program.ledger, stack, loop.backward, place("loop", op, trips.size), again=sweep.again)
        name_copies({stack.arg: result} if stack.arg is not None else {})

    def reverse(outer: Cotangents) -> None:
        if loop.is_idle(outer, results):
            drop(loop.backward)
            return
        outer.builder.loc = op.location
        _pop(loop, stacks)
        loop.run_backwards(outer, results, attributes)

    sweep.tape.append(reverse)


def _push(sweep: Sweep, loop: Loop) -> list[Stack]:
    """Add one stack per residual (one per carried value and its successor) and terminate the forward body."""
    forward, yields, inits, trips, saved = loop.forward, loop.yields, loop.inits, loop.trips, loop.residuals.saved
    builder = Builder(forward, loop.op.location)
    at, t = Indices(builder), TensorBuilder(builder)
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
            stack = Stack(kind, trips.size, trips.entries)
            stack.value = empty_stack(sweep.builder, stack)
            covered.add(value)
        assert stack.value is not None
        stack.arg = forward.insert_arg(stack.value.type, len(forward.args))
        name_stack(stack.arg, carried_args[k] if k is not None else value)
        assert position is not None
        if stack.carried is not None:
            after = after if after is not None else at.add(position, at.constant(1))
            pushed.append(t.update_at(to_stackable(builder, yields[stack.carried]), stack.arg, after))
        else:
            pushed.append(t.update_at(to_stackable(builder, value), stack.arg, position))
        stack.keeps = carried_args[k] if k is not None else value
        stacks.append(stack)
    builder.op(scf.YieldOp, [*yields, *pushed])
    return stacks


def _pop(loop: Loop, stacks: list[Stack]) -> None:
    """Prefix the backward body with the residuals of iteration T-1-k and let it read them."""
    forward, backward, yields, saved, trips = loop.forward, loop.backward, loop.yields, loop.residuals.saved, loop.trips
    prefix = Block()
    builder = Builder(prefix, loop.op.location)
    at, t = Indices(builder), TensorBuilder(builder)
    position = at.sub(at.sub(trips.value, at.constant(1)), backward.args[0])
    values: dict[SSAValue, SSAValue] = {forward.args[0]: trips.induction(at, position)}
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
    redo(builder, loop.residuals.redo, values)
    name_copies(values)
    substitute(backward, values)
    move_to_start(prefix, backward)
