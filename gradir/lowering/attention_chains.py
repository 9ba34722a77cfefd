"""Attention on a GPU: scores, softmax and the product with the values become one kernel, and scores are never in memory.

Part of `fuse`, after its groups are known. Three groups that follow each other, and whose values in between nobody else reads, are a chain
(`gradir.lowering.groups.chain`) that `attention_of` knows; types and sizes have to fit the kernel (`gpu_attention`).
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, Operation

from gradir.dialects.target import CudaTargetAttr
from gradir.dialects.types import i64_attr
from gradir.lowering.fold_widenings import fold, widening_of
from gradir.lowering.groups import STAGE, Group, build, chain_group, loops_of
from gradir.lowering.groups.attention import attention_of
from gradir.lowering.schedules.gpu_attention import fits


def find_attention(block: Block, groups: Sequence[Group], target: CudaTargetAttr) -> list[Group]:
    """`groups` of one block, with chains in place of the groups that are attention."""
    found = list(groups)
    place = {op: k for k, op in enumerate(block.ops)}
    for rows in [g for g in groups if g.rows is not None]:
        owner: dict[Operation, Group] = {o.op: g for g in found for o in g.ops}
        scores, product = _before(rows, owner), _after(rows, owner)
        if scores is None or product is None or not _only_read_by(scores, [rows]) or not _only_read_by(rows, [product]):
            continue
        chain = _chain([scores, rows, product])
        roles = attention_of(chain) if chain is not None else None
        if roles is None:
            continue
        product, cast = _narrow(product, roles.weight.output)
        chain = _chain([scores, rows, product])
        roles = attention_of(chain) if chain is not None else None
        found = [g for g in found if cast is None or [o.op for o in g.ops] != [cast]]
        if chain is None or roles is None or not fits(roles, chain, target):
            found = [product if g.ops[0].op is product.ops[0].op else g for g in found]
            continue
        for number, stage in enumerate((scores, rows, product)):
            for o in stage.ops:
                o.op.attributes[STAGE] = i64_attr(number)
        members = {o.op for o in chain.ops}
        found = [*(g for g in found if g.ops[0].op not in members), chain]
    return sorted(found, key=lambda g: place[g.ops[0].op])


def _chain(stages: Sequence[Group]) -> Group | None:
    return chain_group([[o.loops for o in g.ops] for g in stages])


def _before(rows: Group, owner: dict[Operation, Group]) -> Group | None:
    """The contraction that the softmax reads."""
    inputs = [v.owner for o in rows.ops for v, _ in o.inputs if v not in rows.produced]
    groups = {id(g): g for op in inputs if isinstance(op, Operation) and (g := owner.get(op)) is not None and g.kind == "contraction"}
    return next(iter(groups.values())) if len(groups) == 1 else None


def _after(rows: Group, owner: dict[Operation, Group]) -> Group | None:
    """The contraction that reads it."""
    readers = {id(g): g for o in rows.ops for use in o.output.uses if (g := owner.get(use.operation)) is not None and g is not rows}
    only = next(iter(readers.values())) if len(readers) == 1 else None
    return only if only is not None and only.kind == "contraction" else None


def _only_read_by(group: Group, others: Sequence[Group]) -> bool:
    allowed = {o.op for g in (group, *others) for o in g.ops}
    return all(use.operation in allowed for o in group.ops for use in o.output.uses)


def _narrow(product: Group, weight: object) -> tuple[Group, Operation | None]:
    """The values as they lie in memory, if a nest of its own widens them for this product alone; and that nest, which is gone."""
    assert product.contraction is not None
    op = product.ops[product.contraction.index].op
    for position, value in enumerate(op.inputs):
        cast = widening_of(value) if value is not weight else None
        if cast is None or len(list(cast.results[0].uses)) != 1:
            continue
        fold(op, position, cast)
        new = build([loops_of(o.op) for o in product.ops])
        assert new is not None, "the same ops on narrower operands"
        return new, cast
    return product, None
