"""Folds of `scf`: branches and loops whose course is known, and values that loops carry for nobody.

No loop is unrolled: only trip counts 0 and 1 disappear, so compile time does not depend on trip counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from gradir.dialects.upstream import scf
from gradir.lowering.folds.table import Folder, Rule

Values = Sequence[SSAValue] | None


def fold_if(op: Any, folder: Folder) -> Values:
    """if true {a} else {b} -> a;  results that both branches take from outside, or that nobody uses, go."""
    truth = folder.truth(op.cond)
    if truth is not None:
        region = op.true_region if truth else op.false_region
        return folder.inline(region.block, ()) if region.first_block is not None else ()
    if not op.results or op.false_region.first_block is None:
        return None
    yields = [region.block.last_op for region in (op.true_region, op.false_region)]
    same = [a is b for a, b in zip(*(y.operands for y in yields))]  # one value seen by both branches is from outside
    keep = [i for i, result in enumerate(op.results) if not same[i] and result.first_use is not None]
    if len(keep) == len(op.results):
        return None
    values: list[SSAValue] = [yields[0].operands[i] if same[i] else op.results[i] for i in range(len(op.results))]
    for y in yields:
        folder.release(y.operands)
        y.operands = [y.operands[i] for i in keep]
    new = _moved(op, scf.IfOp, [op.cond], [op.results[i].type for i in keep], folder)
    return _spread(op, values, keep, new)


def fold_for(op: Any, folder: Folder) -> Values:
    """0 trips -> the initial values;  1 trip -> the body;  carried values that nobody needs, or that never change, go."""
    trips = trip_count(op, folder)
    if trips == 0:
        return list(op.iter_args)
    if trips == 1:
        return folder.inline(op.body.block, (op.lb, *op.iter_args))
    block = op.body.block
    terminator = block.last_op
    carried = block.args[1:]
    needed = _needed(block, terminator, carried, op.results, folder)
    constant = [terminator.operands[i] is arg or terminator.operands[i] is op.iter_args[i] for i, arg in enumerate(carried)]
    keep = [i for i in range(len(carried)) if needed[i] and not constant[i]]
    if len(keep) == len(carried):
        return None
    inits = list(op.iter_args)
    for i, arg in enumerate(carried):  # what a dead value still feeds is dead too: the initial value will do
        if i not in keep:
            arg.replace_all_uses_with(inits[i])
    values: list[SSAValue] = [op.results[i] if i in keep else inits[i] for i in range(len(carried))]
    folder.release(terminator.operands)
    terminator.operands = [terminator.operands[i] for i in keep]
    for i in reversed(range(len(carried))):
        if i not in keep:
            block.erase_arg(block.args[1 + i])
    operands = [op.lb, op.ub, op.step, *(inits[i] for i in keep)]
    new = _moved(op, scf.ForOp, operands, [op.results[i].type for i in keep], folder)
    return _spread(op, values, keep, new)


def fold_while(op: Any, folder: Folder) -> Values:
    """while (false) -> one run of the condition's region."""
    before = op.before_region.block
    condition = before.last_op
    if folder.truth(condition.operands[0]) is not False:
        return None
    return folder.inline(before, tuple(op.arguments))[1:]


def fold_index_switch(op: Any, folder: Folder) -> Values:
    """switch constant -> the case taken."""
    number = folder.integer(op.arg)
    if number is None:
        return None
    cases = list(op.cases.get_values())
    region = op.case_regions[cases.index(number)] if number in cases else op.default_region
    return folder.inline(region.block, ())


def trip_count(op: Any, folder: Folder) -> int | None:
    """How often the body of a `scf.for` with constant bounds runs; 0 if both bounds are one value."""
    if op.lb is op.ub:
        return 0
    lb, ub, step = folder.integer(op.lb), folder.integer(op.ub), folder.integer(op.step)
    if lb is None or ub is None:
        return None
    if ub <= lb:
        return 0
    return -(-(ub - lb) // step) if step is not None and step > 0 else None


def _needed(block: Block, terminator: Operation, carried: Sequence[SSAValue], results: Sequence[SSAValue], folder: Folder) -> list[bool]:
    """Which carried values reach a used result, or an op with an effect, in some iteration."""
    needed = [result.first_use is not None for result in results]
    while True:
        live = {value for i, value in enumerate(terminator.operands) if needed[i]}
        op = terminator.prev_op
        while op is not None:
            if any(result in live for result in op.results) or not folder.purity.is_removable(op):
                live.update(value for inner in op.walk() for value in inner.operands)
            op = op.prev_op
        new = [n or arg in live for n, arg in zip(needed, carried)]
        if new == needed:
            return needed
        needed = new


def _moved(op: Operation, kind: type[Operation], operands: Sequence[SSAValue], types: Sequence[Attribute], folder: Folder) -> Operation:
    """A new op in front of `op` that takes over its regions."""
    regions = [Region() for _ in op.regions]
    for old, new in zip(op.regions, regions):
        for block in list(old.blocks):
            new.add_block(old.detach_block(block))
    return folder.new(kind, operands, types, op.properties, regions=regions, attributes=dict(op.attributes))


def _spread(op: Operation, values: list[SSAValue], keep: Sequence[int], new: Operation) -> list[SSAValue]:
    """`values` with the kept results of `op` replaced by those of `new`."""
    for result, i in zip(new.results, keep):
        result.name_hint = op.results[i].name_hint
        values[i] = result
    return values


FOLDS: dict[type[Operation], Rule] = {
    scf.IfOp: fold_if,
    scf.ForOp: fold_for,
    scf.WhileOp: fold_while,
    scf.IndexSwitchOp: fold_index_switch,
}
