"""What of a region is needed for some of its values: the rest need not run a second time.

A value that a loop only passes on, such as the array in which a scan collects its results, is not needed for anything but itself.
Counted loops and branches are looked through one result at a time; every other op needs all that it reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.core import OpResult

from gradir.autodiff.reverse.sweep import is_effect
from gradir.dialects import nd
from gradir.dialects.upstream import scf

Replaced = Callable[[SSAValue, SSAValue], None]


def live_values(block: Block, wanted: Iterable[SSAValue]) -> set[SSAValue]:
    """`wanted` and everything in `block`, at any depth, or outside that it is computed from."""
    live: set[SSAValue] = set()
    waiting = [*wanted, *(v for op in block.walk() if isinstance(op, nd.BindOp) for v in op.operands)]
    while waiting:
        value = waiting.pop()
        if value not in live:
            live.add(value)
            waiting += _operands(value, block)
    return live


def _operands(value: SSAValue, outermost: Block) -> Iterable[SSAValue]:
    """What `value` is made of, one step back."""
    if isinstance(value, OpResult):
        return _of_result(value.op, value.index)
    block = value.owner
    assert isinstance(block, Block)
    op = block.parent_op()
    if block is outermost or op is None:
        return ()
    return _of_argument(op, block, value)


def _of_result(op: Operation, k: int) -> Iterable[SSAValue]:
    if isinstance(op, scf.ForOp):
        return (op.lb, op.ub, op.step, op.iter_args[k], _handed_on(op.body)[k])
    if isinstance(op, scf.IfOp | scf.IndexSwitchOp):
        return (op.operands[0], *(_handed_on(region)[k] for region in op.regions))
    return (*op.operands, *(v for region in op.regions for inner in region.walk() for v in inner.operands))


def _of_argument(op: Operation, block: Block, value: SSAValue) -> Iterable[SSAValue]:
    k = next(i for i, argument in enumerate(block.args) if argument is value)
    if isinstance(op, scf.ForOp):
        return (op.lb, op.ub, op.step, *(() if k == 0 else (op.iter_args[k - 1], _handed_on(op.body)[k - 1])))
    return op.operands


def _handed_on(region: Region) -> tuple[SSAValue, ...]:
    last = region.block.last_op
    assert last is not None
    return tuple(last.operands)


def keep_live(block: Block, live: set[SSAValue], replaced: Replaced) -> None:
    """Remove what gives no live value, prints and assertions included, and the results of loops and branches that are for nobody.

    `replaced(old, new)` is told of each result of an op that is another op now.
    """
    for op in reversed(list(block.ops)):
        if is_effect(op) or (op.results and not any(r in live for r in op.results)):
            op.detach()
            op.erase(safe_erase=False)
        elif isinstance(op, scf.ForOp):
            keep = [k for k, (a, r) in enumerate(zip(op.body.block.args[1:], op.results)) if a in live or r in live]
            _narrow(op, keep, live, replaced)
        elif isinstance(op, scf.IfOp | scf.IndexSwitchOp):
            _narrow(op, [k for k, r in enumerate(op.results) if r in live], live, replaced)


def _narrow(op: scf.ForOp | scf.IfOp | scf.IndexSwitchOp, keep: Sequence[int], live: set[SSAValue], replaced: Replaced) -> None:
    """The op with the results in `keep` alone."""
    dropped = [k for k in range(len(op.results)) if k not in keep]
    for region in op.regions:
        last = region.block.last_op
        assert last is not None
        last.operands = [last.operands[k] for k in keep]
        keep_live(region.block, live, replaced)
        for k in reversed(dropped if isinstance(op, scf.ForOp) else ()):
            region.block.erase_arg(region.block.args[1 + k], safe_erase=False)
    if not dropped:
        return
    operands = [op.lb, op.ub, op.step, *(op.iter_args[k] for k in keep)] if isinstance(op, scf.ForOp) else list(op.operands)
    new = type(op).create(
        operands=operands,
        result_types=[op.results[k].type for k in keep],
        properties=dict(op.properties),
        attributes=dict(op.attributes),
        regions=[op.detach_region(region) for region in list(op.regions)],
        location=op.location,
    )
    block = op.parent
    assert block is not None
    block.insert_op_before(new, op)
    for k, result in zip(keep, new.results):
        old = op.results[k]
        result.name_hint = old.name_hint
        old.replace_all_uses_with(result)
        live.add(result)
        replaced(old, result)
    op.detach()
    op.erase(safe_erase=False)
