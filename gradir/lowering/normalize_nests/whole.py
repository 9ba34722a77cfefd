"""Ops on whole tensors that level 2 has and kernels have not: padding, concatenation, elementwise `arith` and `math`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineMap

from gradir.dialects.linear import INDEX, index
from gradir.dialects.nests import Nest
from gradir.dialects.slices import Number, added, insert_slice, mixed, sizes_of
from gradir.dialects.types import element_of, segments, shape_of
from gradir.dialects.upstream import arith, linalg, math, tensor
from gradir.ir.builder import Builder
from gradir.ir.copying import copy_into
from gradir.lowering.normalize_nests.outputs import destination

Rule: TypeAlias = "Callable[[Builder, Any], list[SSAValue] | None]"


def _run_time(builder: Builder, sizes: list[Number], result: SSAValue) -> list[SSAValue]:
    """Those of `sizes` that the type of `result` leaves open, as index values."""
    opened = [n for n, m in zip(sizes, shape_of(result)) if not isinstance(m, int)]
    return [index(builder, n) for n in opened]


def pad(builder: Builder, op: tensor.PadOp) -> list[SSAValue]:
    """A tensor of padding values, and the source inserted into it."""
    low, high, sizes = mixed(op.static_low, op.low), mixed(op.static_high, op.high), sizes_of(builder, op.source)
    result = [added(builder, added(builder, lo, n), hi) for lo, n, hi in zip(low, sizes, high)]
    empty = builder(tensor.EmptyOp, _run_time(builder, result, op.result), [op.result.type])
    rank, region = len(result), op.region.block
    last = region.last_op
    assert last is not None
    value = last.operands[0]
    if value.owner is not region and not (isinstance(value.owner, Operation) and value.owner.parent is region):
        whole: SSAValue = builder(linalg.FillOp, [value, empty], [empty.type], {"operandSegmentSizes": segments(1, 1)})
    else:
        body = Block(arg_types=[element_of(op.result)])
        inner = Builder(body, op.location)
        at = [inner.op(linalg.IndexOp, [], [INDEX], {"dim": _i64(d)}).results[0] for d in range(rank)]
        inner.op(linalg.YieldOp, copy_into(body, region, dict(zip(region.args, at)), terminator=False))
        (whole,) = Nest((), (empty,), (AffineMap.identity(rank),), (True,) * rank, body).emit(builder)
    ones: list[Number] = [1] * rank
    return [insert_slice(builder, op.source, whole, low, sizes, ones)]


def _i64(n: int) -> Any:
    return linalg.IndexOp(n).dim


def concat(builder: Builder, op: tensor.ConcatOp) -> list[SSAValue]:
    """Each input inserted behind the one before."""
    dim = op.dim.value.data
    parts = [sizes_of(builder, x) for x in op.inputs]
    ends: list[Number] = [0]
    for sizes in parts:
        ends.append(added(builder, ends[-1], sizes[dim]))
    shape = [ends[-1] if d == dim else n for d, n in enumerate(parts[0])]
    whole: SSAValue = builder(tensor.EmptyOp, _run_time(builder, shape, op.result), [op.result.type])
    ones: list[Number] = [1] * len(shape)
    for x, start, sizes in zip(op.inputs, ends, parts):
        whole = insert_slice(builder, x, whole, [start if d == dim else 0 for d in range(len(shape))], sizes, ones)
    return [whole]


def elementwise(builder: Builder, op: Operation) -> list[SSAValue] | None:
    """A scalar op on whole tensors of one shape is that op in a nest; a scalar operand (of a selection) stays one."""
    kind = op.results[0].type if len(op.results) == 1 else None
    if not isinstance(kind, TensorType):
        return None
    rank = len(shape_of(kind))
    identity, nothing = AffineMap.identity(rank), AffineMap(rank, 0, ())
    like = next(v for v in op.operands if isinstance(v.type, TensorType))
    body = Block(arg_types=[*(element_of(v) for v in op.operands), kind.element_type])
    inner = Builder(body, op.location)
    made = inner.op(type(op), body.args[:-1], [kind.element_type], op.properties, (), op.attributes)
    inner.op(linalg.YieldOp, made.results)
    if kind.has_static_shape() or like.type == kind:
        start = destination(builder, like) if like.type == kind else builder(tensor.EmptyOp, [], [kind])
    else:
        sizes = [n for n in sizes_of(builder, like) if not isinstance(n, int)]
        start = builder(tensor.EmptyOp, sizes, [kind])
    maps = (*(identity if isinstance(v.type, TensorType) else nothing for v in op.operands), identity)
    return Nest(tuple(op.operands), (start,), maps, (True,) * rank, body).emit(builder)


_ELEMENTWISE = [
    kind
    for dialect in (arith.Arith, math.Math)
    for kind in dialect.operations
    if kind is not arith.ConstantOp and len(kind.get_irdl_definition().results) == 1  # pyright: ignore[reportAttributeAccessIssue] (an IRDL op)
]

WHOLE: dict[type[Operation], Rule] = {
    tensor.PadOp: pad,
    tensor.ConcatOp: concat,
    **dict.fromkeys(_ELEMENTWISE, elementwise),
}
"""Op -> its form in nests and slices; None from a rule leaves it as it is."""
