"""Control flow: one branch in place of the op, one trip in place of a loop, carried values that nobody reads."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue

from gradir.tools.reduce.edits.edit import Choose, move_body, remove, replace_results


def keep_branch(module: ModuleOp, choose: Choose) -> None:
    """One region of `scf.if` or `scf.index_switch`, in place of the op; each region is an opportunity."""
    for op in [op for op in module.walk() if isinstance(op, scf.IfOp | scf.IndexSwitchOp)]:
        for region in list(op.regions):
            if len(region.blocks) == 1 and op.parent is not None and choose():
                _inline(op, region.block)


def one_trip(module: ModuleOp, choose: Choose) -> None:
    """The body of a loop once, in place of the loop; of `scf.while` also the condition alone."""
    for op in [op for op in module.walk() if isinstance(op, scf.ForOp | scf.ParallelOp | scf.WhileOp)]:
        if isinstance(op, scf.WhileOp):
            if op.parent is not None and choose():
                _run_while(op, trips=0)
            if op.parent is not None and choose():
                _run_while(op, trips=1)
        elif choose():
            lower = [op.operands[0]] if isinstance(op, scf.ForOp) else list(op.lowerBound)
            carried = list(op.iter_args) if isinstance(op, scf.ForOp) else []
            block = op.regions[0].block
            for argument, value in zip(list(block.args), [*lower, *carried]):
                argument.replace_all_uses_with(value)
            _inline(op, block)


def drop_carried(module: ModuleOp, choose: Choose) -> None:
    """A result of an `scf` op that nobody uses, with what each region yields for it; in a loop also the carried value, if unread."""
    for op in [op for op in module.walk() if isinstance(op, scf.IfOp | scf.IndexSwitchOp | scf.ForOp)]:
        for k in reversed(range(len(op.results))):
            if op.parent is None or op.results[k].uses or not all(len(region.blocks) == 1 for region in op.regions):
                continue
            if isinstance(op, scf.ForOp) and op.regions[0].block.args[1 + k].uses:
                continue
            if choose():
                op = _without_result(op, k)


def _inline(op: Operation, block: Block) -> None:
    """The ops of `block` in place of `op`, its results being what the block yields."""
    last = move_body(block, op)
    assert last is not None
    replace_results(op, list(last.operands)[: len(op.results)])
    last.erase()


def _run_while(op: scf.WhileOp, trips: int) -> None:
    """`trips` rounds of the condition and the body in front of the loop, then the condition once more, in place of the loop."""
    state: Sequence[SSAValue] = list(op.arguments)
    for _ in range(trips):
        passed = _copy(op.before_region, state, op)[1:]
        state = _copy(op.after_region, passed, op)
    replace_results(op, _copy(op.before_region, state, op)[1:])


def _copy(region: Region, arguments: Sequence[SSAValue], before: Operation) -> list[SSAValue]:
    """A copy of the region's ops in front of `before`; what its terminator carries."""
    values: dict[SSAValue, SSAValue] = dict(zip(region.block.args, arguments))
    assert before.parent is not None
    for inner in region.block.ops:
        if inner is region.block.last_op:
            return [values.get(value, value) for value in inner.operands]
        before.parent.insert_op_before(inner.clone(values), before)
    return []


def _without_result(op: scf.IfOp | scf.IndexSwitchOp | scf.ForOp, k: int) -> scf.IfOp | scf.IndexSwitchOp | scf.ForOp:
    """`op` without result `k`."""
    operands = list(op.operands)
    if isinstance(op, scf.ForOp):
        del operands[3 + k]
    regions = [op.detach_region(0) for _ in range(len(op.regions))]
    for region in regions:
        last = region.block.last_op
        assert last is not None
        last.operands = [value for i, value in enumerate(last.operands) if i != k]
        if isinstance(op, scf.ForOp):
            region.block.erase_arg(region.block.args[1 + k])
    new = type(op).create(
        operands=operands,
        result_types=[result.type for i, result in enumerate(op.results) if i != k],
        properties=dict(op.properties),
        attributes=dict(op.attributes),
        regions=regions,
        location=op.location,
    )
    assert op.parent is not None
    op.parent.insert_op_before(new, op)
    for old, value in zip([result for i, result in enumerate(op.results) if i != k], new.results):
        old.replace_all_uses_with(value)
    remove(op)
    return new
