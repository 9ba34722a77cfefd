"""Copies of ops with their regions under a map of values; cheaper than `Operation.clone`, and locations and names stay."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.traits import IsTerminator

Instead = Callable[[Operation], "SSAValue | None"]
"""A value that stands for the only result of an op, which is then not copied; None to copy it."""


Without = Callable[[Operation], bool]
"""Whether an op that gives nothing is left out."""


def copy_op(op: Operation, values: dict[SSAValue, SSAValue], instead: Instead | None = None, without: Without | None = None) -> Operation:
    """A copy of `op` and its regions; `values` maps operands and learns the new results and block arguments."""
    regions: list[Region] = []
    for region in op.regions:
        blocks: list[Block] = []
        for block in region.blocks:
            new = Block(arg_types=[a.type for a in block.args])
            for a, b in zip(block.args, new.args):
                values[a], b.name_hint = b, a.name_hint
            _copy_ops(new, block.ops, values, instead, without)
            blocks.append(new)
        regions.append(Region(blocks))
    copy = type(op).create(
        operands=[values.get(v, v) for v in op.operands],
        result_types=[r.type for r in op.results],
        properties=dict(op.properties),
        attributes=dict(op.attributes),
        regions=regions,
        location=op.location,
    )
    for a, b in zip(op.results, copy.results):
        values[a], b.name_hint = b, a.name_hint
    return copy


def copy_into(
    block: Block, source: Block, values: dict[SSAValue, SSAValue], instead: Instead | None = None, *, terminator: bool = True
) -> Sequence[SSAValue]:
    """Append copies of the ops of `source` to `block`; the operands of its terminator, which is left out unless `terminator`."""
    last = source.last_op
    assert last is not None and last.has_trait(IsTerminator)
    _copy_ops(block, source.ops if terminator else list(source.ops)[:-1], values, instead)
    return [values.get(v, v) for v in last.operands]


def _copy_ops(
    block: Block, ops: Iterable[Operation], values: dict[SSAValue, SSAValue], instead: Instead | None, without: Without | None = None
) -> None:
    for op in ops:
        if without is not None and without(op):
            continue
        found = instead(op) if instead is not None else None
        if found is not None:
            values[op.results[0]] = found
        else:
            block.add_op(copy_op(op, values, instead, without))
