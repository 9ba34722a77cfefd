"""Derivatives of sorting: a permutation per row, whose cotangents go back to the positions that its elements came from."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import i64
from xdsl.ir import Region, SSAValue

from gradir.autodiff.registry import Contribution, skip, vjp
from gradir.autodiff.tensors import TensorBuilder, is_differentiable
from gradir.dialects import nd
from gradir.dialects.nd.base import emit
from gradir.dialects.nd.regions import YieldOp
from gradir.dialects.types import shape_of, tensor

Rule = tuple[Contribution, ...]

skip(YieldOp, "part of the op around it, which has the derivative")


@vjp(nd.SortOp)
def sort_vjp(t: TensorBuilder, op: nd.SortOp, cts: SSAValue | Sequence[SSAValue | None]) -> Rule:
    """y = x[p]: dx[p] = ct. The positions p are sorted along; sorting ct by them undoes the permutation."""
    dim = op.number("dim")
    given = [cts] if isinstance(cts, SSAValue) else list(cts)
    if not any(is_differentiable(value.type) for value in op.inputs):
        return tuple(None for _ in op.inputs)
    shape = shape_of(op.inputs[0])
    counted = emit(t.builder, nd.IotaOp.make(tensor(i64, shape), dim, t.sizes(shape)))
    forward = nd.SortOp.make(
        [*op.inputs, counted],
        dim,
        keys=op.number("keys"),
        descending=op.is_descending,
        total_order=op.is_total,
        comparator=None if op.comparator is None else _widened(op.comparator),
    )
    emit(t.builder, forward)
    at = [k for k, ct in enumerate(given) if ct is not None]
    back = nd.SortOp.make([forward.outputs[-1], *(ct for ct in given if ct is not None)], dim)
    emit(t.builder, back)
    found: dict[int, SSAValue] = dict(zip(at, back.outputs[1:]))
    return tuple(found.get(k) for k in range(len(op.inputs)))


def _widened(comparator: Region) -> Region:
    """The comparator of one operand more, which it does not look at."""
    region = comparator.clone()
    for _ in range(2):
        region.block.insert_arg(tensor(i64), len(region.block.args))
    return region
