"""A counted loop that is being reversed, and the policy that keeps its carried values alone: the body runs again in reverse.

    %hT, %hs = scf.for %i ... iter_args(%h = %h0, %s = %empty) { %s2 = nd.update_at %h into %s[%t]; ... }
    %hs', %c0 = nd.optimization_barrier %hs, %dhT
    %dh = scf.for %k = 0 to T iter_args(%c = %c0) { %h = nd.index_at %hs'[T-1-k]; the body once more; its backward part }

The body that runs again is what the backward part needs of it. Everything that it reads comes through a barrier that waits for the
cotangents, so that no pass merges the two runs, even where the loops are gone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.ir.core import OpResult

from gradir.autodiff.activity import free_in_block
from gradir.autodiff.names import name_copies, name_stack
from gradir.autodiff.reverse.cotangents import Cotangents
from gradir.autodiff.reverse.indices import Indices, Trips
from gradir.autodiff.reverse.liveness import keep_live, live_values
from gradir.autodiff.reverse.recomputation import drop, fenced
from gradir.autodiff.reverse.report import place
from gradir.autodiff.reverse.residuals import Residuals, redo, substitute
from gradir.autodiff.reverse.stacks import Stack, empty_stack, from_stackable, note_stack, stackable, to_stackable
from gradir.autodiff.reverse.sweep import Sweep, Unit, clone
from gradir.autodiff.tensors import TensorBuilder
from gradir.dialects import nd
from gradir.dialects.upstream import scf
from gradir.ir.builder import Builder
from gradir.ir.structure import move_to_start


@dataclass
class Loop:
    """`forward`: the body, its terminator not yet written, with all that `backward` may read. `on`: numbers of the active carried values.

    `captured`: values from outside, the cotangents of which `backward` carries on.
    """

    op: scf.ForOp
    bounds: list[SSAValue]
    inits: list[SSAValue]
    trips: Trips
    forward: Block
    yields: list[SSAValue]
    backward: Block
    on: list[int]
    captured: list[SSAValue]
    residuals: Residuals

    def bind(self, unit: Unit, results: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """The results of the loop in the new function."""
        unit.bind(self.op.results, results)
        for k in self.on:
            unit.active.add(results[k])
        return results

    def is_idle(self, outer: Cotangents, results: Sequence[SSAValue]) -> bool:
        """Whether no cotangent arrives."""
        return all(outer.get(results[k]) is None for k in self.on) and not self.captured

    def run_backwards(self, outer: Cotangents, results: Sequence[SSAValue], attributes: Mapping[str, Attribute]) -> None:
        """`backward` once per trip, from the cotangents of the results to those of the initial values and of what is captured."""
        at = Indices(outer.builder)
        starts = [*(outer.get_or_zeros(results[k]) for k in self.on), *(outer.accumulator(v) for v in self.captured)]
        bounds = [at.constant(0), self.trips.value, at.constant(1)]
        kinds = [v.type for v in starts]
        new = outer.builder.op(scf.ForOp, [*bounds, *starts], kinds, regions=[Region(self.backward)], attributes=attributes)
        for v, ct in zip(self.captured, new.results[len(self.on) :]):
            outer.set(v, ct)
        for k, ct in zip(self.on, new.results):
            outer.add(self.inits[k], ct)


def run_body_again(sweep: Sweep, loop: Loop, attributes: Mapping[str, Attribute]) -> None:
    """Copy the loop with stacks of its carried values alone; each backward iteration runs what it needs of the body first."""
    unit, op = sweep.unit, loop.op
    kept = _only_what_is_read(unit, loop)
    stacks, results = _copy_with_stacks(sweep, loop, kept, attributes)
    for stack in stacks:
        note_stack(unit.program.ledger, stack, loop.forward, place("loop run again", op, loop.trips.size), again=sweep.again)
    unit.program.ledger.runs_again(loop.forward)

    def reverse(outer: Cotangents) -> None:
        if loop.is_idle(outer, results):
            drop(loop.forward)
            drop(loop.backward)
            return
        outer.builder.loc = op.location
        _run_first(unit, loop, kept, stacks)
        substitute(loop.backward, fenced(outer, free_in_block(loop.backward), [results[k] for k in loop.on]))
        loop.run_backwards(outer, results, attributes)

    sweep.tape.append(reverse)


def _only_what_is_read(unit: Unit, loop: Loop) -> list[int]:
    """Leave of the forward body what gives the residuals; the numbers of the carried values that this takes. What is cheap is redone from
    the residuals, in front of the backward body, as it is where they are saved."""
    forward, backward, saved = loop.forward, loop.backward, loop.residuals.saved
    again, copies = Block(), dict[SSAValue, SSAValue]()
    redo(Builder(again, loop.op.location), loop.residuals.redo, copies)
    name_copies(copies)
    substitute(backward, copies)
    move_to_start(again, backward)

    def replaced(old: SSAValue, new: SSAValue) -> None:
        unit.program.ledger.moved(old, new)
        saved[:] = [new if v is old else v for v in saved]

    live = live_values(forward, saved)
    keep_live(forward, live, replaced)
    return [k for k, a in enumerate(forward.args[1:]) if a in live]


def _copy_with_stacks(
    sweep: Sweep, loop: Loop, kept: Sequence[int], attributes: Mapping[str, Attribute]
) -> tuple[list[Stack], Sequence[SSAValue]]:
    """The loop as it was, which also saves the carried values in `kept` as they enter each iteration."""
    unit, source, trips = sweep.unit, loop.op.body.block, loop.trips
    body = Block(arg_types=[a.type for a in source.args])
    unit.bind(source.args, body.args)
    *ops, last = source.ops
    for inner in ops:
        body.add_op(clone(inner, unit.values, effects=not sweep.again))
    builder = Builder(body, loop.op.location)
    t = TensorBuilder(builder)
    position = trips.position(Indices(builder), body.args[0]) if kept else None
    stacks = [Stack(stackable(loop.inits[k].type), trips.size, trips.entries, keeps=body.args[1 + k]) for k in kept]
    starts = [*loop.inits, *(empty_stack(sweep.builder, stack) for stack in stacks)]
    pushed: list[SSAValue] = []
    for k, start in zip(kept, starts[len(loop.inits) :]):
        argument = body.insert_arg(start.type, len(body.args))
        name_stack(argument, source.args[1 + k])
        assert position is not None
        pushed.append(t.update_at(to_stackable(builder, body.args[1 + k]), argument, position))
    builder.op(scf.YieldOp, [*(sweep.value(v) for v in last.operands), *pushed])
    kinds = [v.type for v in starts]
    new = sweep.builder.op(scf.ForOp, [*loop.bounds, *starts], kinds, regions=[Region(body)], attributes=attributes)
    count = len(loop.inits)
    name_copies(dict(zip(body.args[1 + count :], new.results[count:])))
    for stack, result in zip(stacks, new.results[count:]):
        stack.value = result
    if unit.program.measured is not None:
        unit.program.measured.hold(loop.op, new.results[count:])
    return stacks, loop.bind(unit, new.results[:count])


def _run_first(unit: Unit, loop: Loop, kept: Sequence[int], stacks: Sequence[Stack]) -> None:
    """Put the forward body, on the values saved for iteration T-1-k, in front of the backward body.

    A barrier stands between: both are compiled as they are where the residuals come from stacks, so they give the same bits. What a loop or
    branch gives is in memory in any case.
    """
    forward, backward, trips = loop.forward, loop.backward, loop.trips
    made = [v for v in loop.residuals.saved if isinstance(v, OpResult) and isinstance(v.type, TensorType) and not v.op.regions]
    if made:
        held = Builder(forward, loop.op.location).op(nd.OptimizationBarrierOp, made, [v.type for v in made]).results
        name_copies(dict(zip(made, held)))
        substitute(backward, dict(zip(made, held)))
    prefix = Block()
    builder = Builder(prefix, loop.op.location)
    at, t = Indices(builder), TensorBuilder(builder)
    position = at.sub(at.sub(trips.value, at.constant(1)), backward.args[0])
    values: dict[SSAValue, SSAValue] = {forward.args[0]: trips.induction(at, position)}
    for k, stack in zip(kept, stacks):
        argument = forward.args[1 + k]
        assert stack.value is not None
        values[argument] = from_stackable(builder, t.index_at(stack.value, position), argument.type)
    name_copies(values)
    for size, block in unit.bound.items():
        if block is forward:
            unit.bound[size] = backward
    move_to_start(forward, backward)
    substitute(backward, values)
    move_to_start(prefix, backward)
