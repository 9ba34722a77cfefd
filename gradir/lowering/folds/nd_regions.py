"""Folds of the ops of `nd` that carry code for single elements, and of sorting.

A fold by one op becomes the reduction of that op only where any grouping gives the same bits: integers, extrema, truth values. Sums and
products of floats stay as they are written; an importer that may regroup them says `nd.reduce_sum` itself.
"""

from __future__ import annotations

from typing import Any

from xdsl.ir import Operation, SSAValue

from gradir.dialects.nd import elementwise as el, reduction
from gradir.dialects.nd.gather_scatter import GatherGeneralOp
from gradir.dialects.nd.indexing import GatherOp
from gradir.dialects.nd.region_reduction import ReduceOp
from gradir.dialects.nd.regions import single_op
from gradir.dialects.nd.shape import BroadcastOp, ReshapeOp, TransposeOp
from gradir.dialects.nd.sorting import SortOp
from gradir.dialects.types import element_of, is_bool, is_complex, is_inexact, is_static, rank_of, shape_of
from gradir.lowering.folds.nd_values import Values, place
from gradir.lowering.folds.table import Folder, Rule

_BITS: dict[type[Operation], type[reduction.Reduce]] = {
    **dict.fromkeys((el.OrOp, el.MaxOp, el.AddOp), reduction.ReduceAnyOp),
    **dict.fromkeys((el.AndOp, el.MinOp, el.MulOp), reduction.ReduceAllOp),
}
_EXTREMA: dict[type[Operation], type[reduction.Reduce]] = {el.MaxOp: reduction.ReduceMaxOp, el.MinOp: reduction.ReduceMinOp}
_INTEGERS: dict[type[Operation], type[reduction.Reduce]] = {
    **_EXTREMA,
    el.AddOp: reduction.ReduceSumOp,
    el.MulOp: reduction.ReduceProdOp,
}


def known_reduction(op: ReduceOp, folder: Folder) -> Values:
    """reduce x by max from i -> max(i, reduce_max x); likewise min, and on integers add and mul, on truth values or and and."""
    only = single_op(op.combiner)
    if only is None or len(op.outputs) != 1 or not op.numbers("dims") or not is_static(op.outputs[0]):
        return None
    element = element_of(op.inputs[0])
    if is_complex(element):
        return None
    table = _BITS if is_bool(element) else _EXTREMA if is_inexact(element) else _INTEGERS
    kind = table.get(type(only))
    if kind is None:
        return None
    reduced = place(folder, kind.make(op.inputs[0], op.numbers("dims")))
    start: SSAValue = op.starts[0]
    if rank_of(reduced):
        start = place(folder, BroadcastOp.make(start, (), shape_of(reduced)))
    combined: Any = type(only).create(operands=[start, reduced], result_types=[reduced.type])
    return [place(folder, combined)]


def short_rows(op: SortOp, _: Folder) -> Values:
    """sort of rows of at most one element -> its operands"""
    return list(op.inputs) if shape_of(op.inputs[0])[op.number("dim")] in (0, 1) else None


def unread_values(op: SortOp, folder: Folder) -> Values:
    """sort keys, x -> sort keys, where nobody reads the sorted x"""
    if op.comparator is not None:
        return None
    read = [k for k, value in enumerate(op.outputs) if k < op.number("keys") or value.first_use is not None]
    if len(read) == len(op.outputs):
        return None
    less = SortOp.make(
        [op.inputs[k] for k in read],
        op.number("dim"),
        keys=op.number("keys"),
        descending=op.is_descending,
        total_order=op.is_total,
    )
    place(folder, less)
    found = dict(zip(read, less.outputs))
    return [found.get(k, value) for k, value in enumerate(op.inputs)]


def fold_sort(op: SortOp, folder: Folder) -> Values:
    """Both of the above."""
    found = short_rows(op, folder)
    return unread_values(op, folder) if found is None else found


def gather_of_rows(op: GatherGeneralOp, folder: Folder) -> Values:
    """A gather of whole rows along one dimension -> nd.gather"""
    n, shape, sizes = op.dimensions, shape_of(op.operand), op.numbers("sizes")
    if len(n.map) != 1 or n.operand_batch or n.dropped != n.map or 0 in shape_of(op.result):
        return None
    (axis,) = n.map
    if any(size != total for d, (size, total) in enumerate(zip(sizes, shape)) if d != axis):
        return None
    indices = shape_of(op.indices)[:-1]
    if not all(isinstance(size, int) for size in indices):
        return None
    rows = place(folder, GatherOp.make(op.operand, place(folder, ReshapeOp.make(op.indices, indices)), axis))
    order = [*n.window[:axis], *n.batch, *n.window[axis:]]  # where each dimension of the rows goes
    perm = [order.index(d) for d in range(len(order))]
    return [rows if perm == sorted(perm) else place(folder, TransposeOp.make(rows, perm))]


FOLDS: dict[type[Operation], Rule] = {ReduceOp: known_reduction, SortOp: fold_sort, GatherGeneralOp: gather_of_rows}
