"""Attention in a chain: scores, their softmax along the keys, products with the values.

Found by structure and by arithmetic: the exponential of (score - something that is the same along a row), times something that depends
on the row's sum of exponentials only. Then a row's maximum and sum may be known late: what was added up with another maximum is scaled by
the exponential of the difference (Milakov and Gimelshein, 2018; Dao, 2023).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from gradir.dialects.upstream import arith, math
from gradir.lowering.groups.group import Group, GroupOp
from gradir.lowering.groups.kinds import is_contraction

_CASTS = (arith.ExtFOp, arith.TruncFOp)


@dataclass(frozen=True)
class Attention:
    """Ops of a chain, and its dimensions.

    `score`: the last value before the softmax; `shift`: what is subtracted from it, made of `maximum`; `exponential`, and `total`: their
    sum; `factor`: what they are multiplied with, made of `total`; `weight`: what the second product reads.
    """

    scores: GroupOp
    score: GroupOp
    maximum: GroupOp
    shift: GroupOp
    exponential: GroupOp
    total: GroupOp
    factor: GroupOp
    weight: GroupOp
    product: GroupOp
    batch: tuple[int, ...]
    query: int
    key: int
    depth: tuple[int, ...]
    columns: tuple[int, ...]


def attention_of(group: Group) -> Attention | None:
    """The attention that a chain is; None for another chain."""
    products = [o for o in group.ops if is_contraction(o)]
    if len(products) != 2:
        return None
    scores, product = products
    found = _softmax(group, product)
    if found is None:
        return None
    weight, factor, total, exponential, shift, maximum, score = found
    if scores.output not in _behind(group, score) or any(v in group.produced for v, _ in scores.inputs):
        return None
    space = scores.output_dims
    key = next(iter(maximum.reduced)) if len(maximum.reduced) == 1 else -1
    if total.reduced != maximum.reduced or product.reduced != maximum.reduced or key not in space or space[-1] != key:
        return None
    rows = [d for d in space if d != key]
    batch = tuple(d for d in rows if all(d in _dims(o, k) for o in products for k in range(2)))
    queries = [d for d in rows if d not in batch]
    if len(queries) != 1 or any(o.output_dims != space for o in (score, exponential, weight)):
        return None
    position = 0 if product.inputs[0][0] is weight.output else 1
    if queries[0] in _dims(product, 1 - position) or key not in _dims(product, 1 - position):
        return None
    columns = tuple(d for d in product.output_dims if d not in rows)
    if product.output_dims[-len(columns) :] != columns or not columns:
        return None
    depth = tuple(d for d in scores.dims if d in scores.reduced)
    return Attention(
        scores, score, maximum, shift, exponential, total, factor, weight, product, batch, queries[0], key, depth, columns
    )  # fmt: skip


def _dims(o: GroupOp, position: int) -> frozenset[int]:
    return frozenset(o.dims[l] for l in o.inputs[position][1].used_dims())


def _softmax(group: Group, product: GroupOp) -> tuple[GroupOp, ...] | None:
    """weight, factor, total, exponential, shift, maximum, score."""
    made = group.produced
    weight = next((made[v] for v, _ in product.inputs if v in made), None)
    if weight is None or sum(v in made for v, _ in product.inputs) != 1:
        return None
    scaled = weight
    while _body(scaled, _CASTS) and scaled.inputs[0][0] in made:
        scaled = made[scaled.inputs[0][0]]
    weights = _against_reduction(group, scaled, arith.MulfOp, arith.AddfOp)
    if weights is None:
        return None
    exponential, factor, total = weights
    if not _body(exponential, (math.ExpOp,)) or exponential.inputs[0][0] not in made:
        return None
    shifted = _against_reduction(group, made[exponential.inputs[0][0]], arith.SubfOp, arith.MaximumfOp)
    if shifted is None:
        return None
    score, shift, maximum = shifted
    return weight, factor, total, exponential, shift, maximum, score


def _against_reduction(
    group: Group, o: GroupOp, kind: type[Operation], combiner: type[Operation]
) -> tuple[GroupOp, GroupOp, GroupOp] | None:
    """Values that a nest joins by `kind` with rows computed from their own reduction by `combiner`: values, rows, reduction."""
    pair = _two(group, o, kind)
    if pair is None:
        return None
    wide, row = pair
    reduction = _reduction_behind(group, row)
    if reduction is None or reduction.loops.combiner is not combiner or [v for v, _ in reduction.inputs] != [wide.output]:
        return None
    return wide, row, reduction


def _body(o: GroupOp, kinds: Sequence[type[Operation]]) -> Operation | None:
    """The one op of a nest whose body is one op on its inputs."""
    ops = list(o.op.body.block.ops)
    alone = len(ops) == 2 and isinstance(ops[0], tuple(kinds)) and not o.reduced
    return ops[0] if alone and ops[1].operands[0] is ops[0].results[0] else None


def _two(group: Group, o: GroupOp, kind: type[Operation]) -> tuple[GroupOp, GroupOp] | None:
    """The ops whose values a nest joins by `kind`: one of all scores, then one of rows."""
    op = _body(o, (kind,))
    block = o.op.body.block
    if op is None or len(o.inputs) != 2 or list(op.operands) != list(block.args[:2]):
        return None
    if not all(v in group.produced for v, _ in o.inputs):
        return None
    wide, row = (group.produced[v] for v, _ in o.inputs)
    return (wide, row) if set(row.output_dims) < set(wide.output_dims) else None


def _reduction_behind(group: Group, o: GroupOp) -> GroupOp | None:
    """The one reduction that a value of rows depends on: through nests that read nothing else of the group."""
    while not o.reduced:
        inside = [v for v, _ in o.inputs if v in group.produced]
        if len(inside) != 1 or len(o.inputs) != 1:
            return None
        o = group.produced[inside[0]]
    return o if not is_contraction(o) else None


def _behind(group: Group, o: GroupOp) -> set[SSAValue]:
    """Values of the group that `o` is computed from; only of nests without reductions, and products."""
    found: set[SSAValue] = set()
    todo = [o]
    while todo:
        here = todo.pop()
        if here.output in found:
            continue
        found.add(here.output)
        if not here.reduced:
            todo += [group.produced[v] for v, _ in here.inputs if v in group.produced]
    return found
