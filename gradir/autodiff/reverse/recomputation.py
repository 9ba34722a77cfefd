"""Regions that reverse mode runs twice: what they save has a size that is known only inside an enclosing region.

Nothing outside of that region could hold such a residual. The forward part therefore runs the region as it is; the backward part runs it
again, right where the cotangents are needed, and then backwards. Nothing of a changing size crosses a region, loops may be nested in
any way, and the price is one more run per level.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.core import OpResult

from gradir.autodiff.activity import free_values
from gradir.autodiff.names import name_copies
from gradir.autodiff.reverse.cotangents import Cotangents
from gradir.autodiff.reverse.residuals import substitute
from gradir.autodiff.reverse.sweep import Sweep
from gradir.dialects import nd
from gradir.dialects.upstream import scf


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
        if not any(outer.has(r) for r in results):
            return
        outer.builder.loc = op.location
        held = fenced(outer, list(dict.fromkeys(given.values())), results)
        found = [outer.get(r) for r in results]
        before = outer.builder.block.last_op
        unit.values.update(given)
        again = Sweep(unit, outer.builder.block, again=True)
        again.builder.loc = op.location
        block = primal(again)
        for value, ct in zip(again.forward(block), found, strict=True):
            if ct is not None:
                outer.add(value, ct)
        outer.run(again.tape)
        drop(block)
        _substitute_after(before, outer.builder.block, held)

    sweep.tape.append(reverse)


def _substitute_after(before: Operation | None, block: Block, values: Mapping[SSAValue, SSAValue]) -> None:
    """Replace operands in the ops of `block` behind `before`."""
    op = before.next_op if before is not None else block.first_op
    while op is not None:
        for inner in op.walk():
            if any(v in values for v in inner.operands):
                inner.operands = [values.get(v, v) for v in inner.operands]
        op = op.next_op


def fenced(outer: Cotangents, read: Sequence[SSAValue], results: Sequence[SSAValue]) -> dict[SSAValue, SSAValue]:
    """What code that runs again reads, behind a barrier that waits for the cotangents of `results`.

    So the code cannot start before it is needed, nor be merged with the first run. Scalars and constants stay as they are. The cotangents
    are read past the barrier: they may be updated in place.
    """
    values = [v for v in read if isinstance(v.type, TensorType) and not (isinstance(v, OpResult) and not v.op.operands)]
    if not values:
        return {}
    operands = [*values, *dict.fromkeys(ct for r in results if (ct := outer.sum_so_far(r)) is not None)]
    held = outer.builder.op(nd.OptimizationBarrierOp, operands, [v.type for v in operands]).results
    copies: dict[SSAValue, SSAValue] = dict(zip(values, held))
    name_copies(copies)
    return copies


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
        held = fenced(outer, list(dict.fromkeys(given.values())), [outputs[k] for k in on])
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
            substitute(block, held)
            regions.append(Region(block))
        backward = outer.builder.op(type(op), [condition], [v.type for v in totals], op.properties, regions)
        for v, ct in zip(captured, backward.results):
            outer.set(v, ct)

    sweep.tape.append(reverse)
