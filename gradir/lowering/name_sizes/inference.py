"""Sizes of results from sizes of operands: one small rule per kind of op, on shapes whose sizes are numbers or have names.

A rule gives the shape of the op's result for new operands, None where it cannot tell; properties are those of the old op.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xdsl.ir import Operation, SSAValue

from gradir import size_algebra
from gradir.dialects import nd
from gradir.dialects.nd.indexing import RUN_TIME
from gradir.dialects.nd.shape import padded_shape
from gradir.dialects.types import Dim, Shape, shape_of

Rule = Callable[[Any, "Sequence[SSAValue]"], "Shape | None"]

ALIKE = frozenset(
    kind for family in ("elementwise", "mathematics", "bits", "quantization", "special", "complex") for kind in nd.FAMILIES[family]
)
"""Ops whose operands and result have one shape."""


def result_shape(op: Operation, operands: Sequence[SSAValue]) -> Shape | None:
    """The shape of the first result of `op` for these operands."""
    rule = _RULES.get(type(op))
    if rule is not None:
        return rule(op, operands)
    if "dims" in op.properties and issubclass(type(op), nd.Reduce):
        return _without(shape_of(operands[0]), op.numbers("dims"))  # pyright: ignore[reportAttributeAccessIssue]  (an NdOp)
    return None


def like_an_operand(op: Operation, operands: Sequence[SSAValue], result: SSAValue) -> Shape | None:
    """The new shape of the first operand that had the shape of this result: ops along rows, sorts, barriers."""
    for old, new in zip(op.operands, operands):
        if old.type == result.type or (hasattr(old.type, "get_shape") and shape_of(old) == shape_of(result)):
            return shape_of(new)
    return None


def merged(found: Shape | None, declared: Shape) -> Shape:
    """What is declared, with the sizes that were found in place of `?`."""
    if found is None or len(found) != len(declared):
        return declared
    return tuple(have if want is None else want for have, want in zip(found, declared))


def _without(shape: Shape, dims: Sequence[int]) -> Shape:
    return tuple(n for d, n in enumerate(shape) if d not in dims)


def _transpose(op: nd.TransposeOp, operands: Sequence[SSAValue]) -> Shape:
    shape = shape_of(operands[0])
    return tuple(shape[d] for d in op.numbers("perm"))


def _broadcast(op: nd.BroadcastOp, operands: Sequence[SSAValue]) -> Shape:
    shape: list[Dim] = [None] * len(shape_of(op.result))
    for size, d in zip(shape_of(operands[0]), op.numbers("dims")):
        shape[d] = size
    return tuple(shape)


def _reshape(op: nd.ReshapeOp, operands: Sequence[SSAValue]) -> Shape | None:
    """One `?` is what the other sizes leave."""
    before, after = shape_of(operands[0]), shape_of(op.result)
    if after.count(None) != 1 or None in before:
        return before if len(before) == len(after) and shape_of(op.operand) == after else None
    count, known = size_algebra.product(before), size_algebra.product(n for n in after if n is not None)
    exact = size_algebra.quotient(count, known)
    rest = exact if exact is not None else size_algebra.floordiv(count, known)
    return tuple(rest if n is None else n for n in after)


def _slice(op: nd.SliceOp, operands: Sequence[SSAValue]) -> Shape:
    return op.result_shape(shape_of(operands[0]), *(op.numbers(name) for name in ("start", "limit", "stride")))


def _pad(op: nd.PadOp, operands: Sequence[SSAValue]) -> Shape:
    return padded_shape(shape_of(operands[0]), *(op.numbers(name) for name in ("low", "high", "interior")))


def _concatenate(op: nd.ConcatenateOp, operands: Sequence[SSAValue]) -> Shape:
    return op.result_shape(operands, op.number("dim"))


def _dot(op: nd.DotGeneralOp, operands: Sequence[SSAValue]) -> Shape:
    names = ("lhs_batch", "rhs_batch", "lhs_contract", "rhs_contract")
    lhs_batch, rhs_batch, lhs_contract, rhs_contract = (op.numbers(name) for name in names)
    left, right = shape_of(operands[0]), shape_of(operands[1])
    batch = (left[d] if left[d] is not None else right[e] for d, e in zip(lhs_batch, rhs_batch))
    return (*batch, *_without(left, (*lhs_batch, *lhs_contract)), *_without(right, (*rhs_batch, *rhs_contract)))


def _again(op: Any, operands: Sequence[SSAValue]) -> Shape:
    """Ops that state the shape of their result: asked of a copy on the new operands."""
    copy = type(op).create(operands=operands, result_types=[op.result.type], properties=op.properties)
    shape = copy.result_shape()
    for operand in list(copy.operands):
        del operand
    copy.drop_all_references()
    return shape


def _gather(op: nd.GatherOp, operands: Sequence[SSAValue]) -> Shape:
    dim, shape = op.number("dim"), shape_of(operands[0])
    return (*shape[:dim], *shape_of(operands[1]), *shape[dim + 1 :])


def _dropped(op: Any, operands: Sequence[SSAValue]) -> Shape:
    return _without(shape_of(operands[0]), (op.number("dim"),))


def _dynamic_slice(op: nd.DynamicSliceOp, _: Sequence[SSAValue]) -> Shape:
    return tuple(None if n == RUN_TIME else n for n in op.numbers("sizes"))


_RULES: Mapping[type[Operation], Rule] = {
    nd.TransposeOp: _transpose,
    nd.BroadcastOp: _broadcast,
    nd.ReshapeOp: _reshape,
    nd.SliceOp: _slice,
    nd.PadOp: _pad,
    nd.ConcatenateOp: _concatenate,
    nd.DotGeneralOp: _dot,
    nd.ConvGeneralOp: _again,
    nd.ReduceWindowOp: _again,
    nd.GatherOp: _gather,
    nd.IndexAtOp: _dropped,
    nd.ArgmaxOp: _dropped,
    nd.ArgminOp: _dropped,
    nd.LogsumexpOp: _dropped,
    nd.DynamicSliceOp: _dynamic_slice,
}
