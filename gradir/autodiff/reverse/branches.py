"""`scf.if` and `scf.index_switch` in reverse: each branch returns its residuals, the others an `nd.empty` that nobody reads.

The backward op has the same condition; it takes the accumulators of captured values and yields them on, so that a branch that
contributes nothing costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from gradir.autodiff.activity import free_in_block
from gradir.autodiff.names import name_copies
from gradir.autodiff.reverse.cotangents import Cotangents, accumulator_type
from gradir.autodiff.reverse.recomputation import drop, run_branches_again_in_reverse
from gradir.autodiff.reverse.report import place
from gradir.autodiff.reverse.residuals import Residuals, plan, redo, substitute, why_kept
from gradir.autodiff.reverse.stacks import changes_size
from gradir.autodiff.reverse.sweep import Sweep, structured
from gradir.autodiff.scalars import constant
from gradir.autodiff.tensors import TensorBuilder
from gradir.dialects import nd
from gradir.dialects.types import shape_of
from gradir.dialects.upstream import scf
from gradir.ir.builder import Builder
from gradir.ir.structure import block_of, move_to_start


@dataclass
class Branch:
    """One region of the primal op: its copy, what it yields, and its backward block."""

    forward: Block
    sweep: Sweep
    yields: list[SSAValue]
    backward: Block
    residuals: Residuals
    slots: list[int]


@structured(scf.IfOp)
@structured(scf.IndexSwitchOp)
def forward_branches(sweep: Sweep, op: scf.IfOp | scf.IndexSwitchOp) -> None:
    """Copy the branches with their residuals; record the op that runs them backwards."""
    unit = sweep.unit
    condition = sweep.value(op.operands[0])
    copies: list[tuple[Block, Sweep, list[SSAValue]]] = []
    for region in op.regions:
        forward = Block()
        inner = sweep.child(forward)
        copies.append((forward, inner, inner.forward(region.block)))
    on = [k for k, r in enumerate(op.results) if r in unit.activity]
    captured = list(
        dict.fromkeys(
            v for forward, _, ys in copies for v in [*free_in_block(forward), *ys] if v in unit.active and block_of(v) is not forward
        )
    )
    slots: list[Attribute] = []
    branches = [_branch(op, inner, yields, on, captured, slots) for _, inner, yields in copies]
    if any(changes_size(unit, v, branch.forward) for branch in branches for v in branch.residuals.saved):
        for branch in branches:
            drop(branch.forward)
            drop(branch.backward)
        run_branches_again_in_reverse(sweep, op)
        return
    for branch in branches:
        _yield_residuals(branch, slots, op)
    results = [*(r.type for r in op.results), *slots]
    new = sweep.builder.op(type(op), [condition], results, op.properties, regions=[Region(b.forward) for b in branches])
    unit.bind(op.results, new.results)
    outputs = new.results[: len(op.results)]
    saved = new.results[len(op.results) :]
    _note(sweep, branches, saved, op)

    def reverse(outer: Cotangents) -> None:
        if all(outer.get(outputs[k]) is None for k in on):
            return
        outer.builder.loc = op.location
        fresh = [len(on) + k for k, v in enumerate(captured) if not outer.has(v)]
        given = [outer.get_or_zeros(outputs[k]) for k in on] + [outer.accumulator(v) for v in captured]
        for branch in branches:
            for k in fresh:
                _start_from_nothing(branch.backward, branch.backward.args[k])
            _open(branch, given, saved, op)
        kinds = [v.type for v in given[len(on) :]]
        backward = outer.builder.op(type(op), [condition], kinds, op.properties, regions=[Region(b.backward) for b in branches])
        for v, ct in zip(captured, backward.results):
            outer.set(v, ct)

    sweep.tape.append(reverse)


def _branch(
    op: Operation, sweep: Sweep, yields: list[SSAValue], on: Sequence[int], captured: list[SSAValue], slots: list[Attribute]
) -> Branch:
    """The branch that `sweep` copied, with its backward block; `slots` grows by the results that its residuals take besides."""
    backward = _backward_block(op, sweep, [yields[k] for k in on], captured)
    residuals = plan(sweep.block, backward, lambda v: False)
    taken: list[int] = []
    for value in residuals.saved:
        taken.append(_slot(slots, taken, value.type))
    return Branch(sweep.block, sweep, yields, backward, residuals, taken)


def _yield_residuals(branch: Branch, slots: Sequence[Attribute], op: Operation) -> None:
    """Terminate the forward branch: what it yields, then its residuals in their slots, and something in all others."""
    builder = branch.sweep.builder
    builder.loc = op.location
    extra = dict(zip(branch.slots, branch.residuals.saved))
    builder.op(scf.YieldOp, [*branch.yields, *(extra[k] if k in extra else _unread(builder, kind) for k, kind in enumerate(slots))])


def _note(sweep: Sweep, branches: Sequence[Branch], saved: Sequence[SSAValue], op: Operation) -> None:
    """Report the residuals of the branches. A result that several of them use is counted once, for the first."""
    ledger, noted = sweep.unit.program.ledger, set[int]()
    for number, branch in enumerate(branches):
        where = place(f"branch {number} of {op.name}", op)
        for value, slot in zip(branch.residuals.saved, branch.slots):
            if slot not in noted:
                why = why_kept(value, ledger.reader(value, branch.backward))
                ledger.keep(saved[slot], value, where=where, why=why, again=sweep.again)
            noted.add(slot)


def _backward_block(op: Operation, sweep: Sweep, outputs: list[SSAValue], captured: list[SSAValue]) -> Block:
    """From cotangents of `outputs`, and sums so far of those of the captured values, to these sums."""
    block = Block(arg_types=[*(v.type for v in outputs), *(accumulator_type(v.type) for v in captured)])
    cts = Cotangents(Builder(block, op.location), sweep.unit.active)
    for v, arg in zip(captured, block.args[len(outputs) :]):
        cts.set(v, arg)
    for v, arg in zip(outputs, block.args):
        cts.add(v, arg)
    cts.run(sweep.tape)
    cts.builder.op(scf.YieldOp, [cts.accumulator(v) for v in captured])
    return block


def _start_from_nothing(block: Block, total: SSAValue) -> None:
    """The sum that comes in as `total` is 0: whatever is added to it first is the sum. (The sign of a zero derivative is unspecified.)"""
    for use in list(total.uses):
        add = use.operation
        if isinstance(add, nd.AddOp) and use.index == 0 and add.parent is block:
            add.result.replace_all_uses_with(add.rhs)
            add.detach()
            add.erase()


def _slot(slots: list[Attribute], taken: list[int], kind: Attribute) -> int:
    """A result of the forward `if` of type `kind` that this branch does not use yet."""
    for k, have in enumerate(slots):
        if have == kind and k not in taken:
            return k
    slots.append(kind)
    return len(slots) - 1


def _unread(builder: Builder, kind: Attribute) -> SSAValue:
    """A placeholder for a residual of another branch."""
    if isinstance(kind, TensorType):
        return builder(nd.EmptyOp, TensorBuilder(builder).sizes(shape_of(kind)), [kind])
    return constant(builder, 0, kind)


def _open(branch: Branch, given: list[SSAValue], saved: Sequence[SSAValue], op: Operation) -> None:
    """Turn the backward block's arguments into the actual cotangents, and give it its residuals."""
    block = branch.backward
    values: dict[SSAValue, SSAValue] = dict(zip(block.args, given))
    values.update((v, saved[k]) for v, k in zip(branch.residuals.saved, branch.slots))
    prefix = Block()
    redo(Builder(prefix, op.location), branch.residuals.redo, values)
    name_copies(values)
    substitute(block, values)
    move_to_start(prefix, block)
    for arg in reversed(block.args):
        block.erase_arg(arg)
