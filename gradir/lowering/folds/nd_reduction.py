"""Folds of the reductions of `nd`.

Not here: `sum over a dimension of size 1 == x` of floats, since sums start at +0 and so turn -0 into +0.
"""

from __future__ import annotations

from math import prod
from typing import Any

from xdsl.ir import Operation

from gradir.dialects.nd import reduction
from gradir.dialects.nd.elementwise import MulOp
from gradir.dialects.nd.shape import BroadcastOp, ReshapeOp
from gradir.dialects.types import element_of, is_complex, is_float, is_inexact, is_static, numpy_dtype, shape_of
from gradir.lowering.folds.nd_elementwise import first
from gradir.lowering.folds.nd_values import Values, fill, place
from gradir.lowering.folds.table import Folder, Rule

_ORDERED = (reduction.ReduceMaxOp, reduction.ReduceMinOp, reduction.ReduceAnyOp, reduction.ReduceAllOp)


def one_element(op: Any, folder: Folder) -> Values:
    """fold over dimensions of size 1 -> reshape x (a float sum is not: sum([-0]) is +0)."""
    if isinstance(op, reduction.ReduceSumOp) and is_inexact(element_of(op.operand)):
        return None
    if any(shape_of(op.operand)[d] != 1 for d in op.numbers("dims")):
        return None
    return [op.operand if not op.numbers("dims") else place(folder, ReshapeOp.make(op.operand, shape_of(op.result)))]


def of_same_fold(op: Any, folder: Folder) -> Values:
    """fold (fold x over d) over e -> fold x over d and e, where nobody else reads the inner one.

    Sums and products of f16 and bf16 stay apart: they round in between.
    """
    inner = op.operand.owner
    if type(inner) is not type(op) or not op.operand.has_one_use():
        return None
    exact = isinstance(op, _ORDERED) or not is_float(element_of(op.operand))
    if not exact and numpy_dtype(element_of(op.operand)).itemsize < 4:
        return None
    gone = inner.numbers("dims")
    left = [d for d in range(len(shape_of(inner.operand))) if d not in gone]
    dims = sorted((*gone, *(left[d] for d in op.numbers("dims"))))
    return [place(folder, type(op).make(inner.operand, dims))]


def of_broadcast(op: Any, folder: Folder) -> Values:
    """max over repeated elements -> the element;  sum over n repeated elements -> n x."""
    inner = op.operand.owner
    if not isinstance(inner, BroadcastOp):
        return None
    dims, repeated = op.numbers("dims"), [d for d in range(len(shape_of(op.operand))) if d not in inner.numbers("dims")]
    gone = [d for d in dims if d in repeated]
    if set(gone) != set(dims) or not is_static(op.operand):
        return None
    count = prod(n for d, n in enumerate(shape_of(op.operand)) if d in gone and isinstance(n, int))
    if count == 0 or isinstance(op, reduction.ReduceProdOp) or is_complex(element_of(op.operand)):
        return None
    kept = [d for d in range(len(shape_of(op.operand))) if d not in dims]
    places = [kept.index(d) for d in inner.numbers("dims")]
    value = place(folder, BroadcastOp.make(inner.operand, places, shape_of(op.result)))
    if isinstance(op, _ORDERED):
        return [value]
    element = element_of(op.operand)
    limit = {1: 8, 2: 256, 4: 1 << 24}.get(numpy_dtype(element).itemsize, 1 << 53) if is_float(element) else None
    if limit is not None and count > limit:
        return None  # the count itself would round
    return [place(folder, MulOp.make(value, fill(folder, op.result.type, count)))]


FOLDS: dict[type[Operation], Rule] = {
    **{op: first(one_element, of_same_fold, of_broadcast) for op in reduction.OPS if issubclass(op, reduction.Reduce)},
    reduction.ArgmaxOp: first(),
    reduction.ArgminOp: first(),
}
