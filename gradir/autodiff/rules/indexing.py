"""Derivatives of indexing. Integer operands take none; duplicates add up; clamped reads return to the element that was read."""

from __future__ import annotations

from xdsl.dialects.builtin import TensorType, i1
from xdsl.ir import SSAValue

from gradir import size_algebra
from gradir.autodiff.registry import Contribution, vjp
from gradir.autodiff.tensors import TensorBuilder, named_size
from gradir.dialects import nd
from gradir.dialects.nd.indexing import RUN_TIME
from gradir.dialects.types import i64_array, shape_of, tensor

Rule = tuple[Contribution, ...]


def clamped(t: TensorBuilder, indices: SSAValue, size: int | str) -> SSAValue:
    """`indices` within 0 .. size-1."""
    last = size_algebra.maximum(size_algebra.minus(size, 1), 0)
    assert last is not None
    lo, hi = t.full_like(0, indices), t.full_size(last, indices.type)
    return t.emit(nd.ClampOp, [lo, indices, hi], indices.type)


@vjp(nd.GatherOp)
def gather_vjp(t: TensorBuilder, op: nd.GatherOp, ct: SSAValue) -> Rule:
    """y[i] = x[clamp(k[i])]: dx = scatter-add of ct at clamp(k)"""
    size = named_size(op, op.operand, op.number("dim"))
    at = clamped(t, op.indices, size)
    zeros = t.zeros(op.operand.type)
    return (t.emit(nd.ScatterAddOp, [zeros, at, ct], op.operand.type, dim=op.dim), None)


@vjp(nd.ScatterAddOp)
def scatter_add_vjp(t: TensorBuilder, op: nd.ScatterAddOp, ct: SSAValue) -> Rule:
    """The operand takes ct, an update the row that it was added to, 0 if it was dropped"""
    dim = op.number("dim")
    size = named_size(op, op.operand, dim)

    def by_updates() -> SSAValue:
        if size == 0:  # every update is dropped, and there is no row to read
            return t.zeros(op.updates.type)
        rows = t.emit(nd.GatherOp, [ct, op.indices], op.updates.type, dim=op.dim)
        inside = t.logical_and(
            t.compare("ge", op.indices, t.full_like(0, op.indices)), t.compare("lt", op.indices, t.full_size(size, op.indices.type))
        )
        rank = len(shape_of(op.indices))
        mask = t.broadcast(inside, mask_type(op.updates), [dim + k for k in range(rank)])
        return t.where(mask, rows)

    return (ct, None, by_updates)


def mask_type(value: SSAValue) -> TensorType:
    """The i1 tensor type of the shape of `value`."""
    return tensor(i1, shape_of(value))


@vjp(nd.DynamicSliceOp)
def dynamic_slice_vjp(t: TensorBuilder, op: nd.DynamicSliceOp, ct: SSAValue) -> Rule:
    """Zeros with ct written at the (clamped) start."""
    zeros = t.zeros(op.operand.type)
    return (t.emit(nd.DynamicUpdateSliceOp, [zeros, ct, *op.starts], op.operand.type), *(None for _ in op.starts))


@vjp(nd.DynamicUpdateSliceOp)
def dynamic_update_slice_vjp(t: TensorBuilder, op: nd.DynamicUpdateSliceOp, ct: SSAValue) -> Rule:
    """The operand takes ct except where it was overwritten, the update takes that part."""

    def by_operand() -> SSAValue:
        return t.emit(nd.DynamicUpdateSliceOp, [ct, t.zeros(op.update.type), *op.starts], ct.type)

    def by_update() -> SSAValue:
        taken = [named_size(op, op.update, d) for d in range(len(shape_of(op.update)))]
        sizes = i64_array(size if isinstance(size, int) else RUN_TIME for size in taken)
        return t.emit(nd.DynamicSliceOp, [ct, *op.starts], op.update.type, sizes=sizes)

    return (by_operand, by_update, *(None for _ in op.starts))


@vjp(nd.IndexAtOp)
def index_at_vjp(t: TensorBuilder, op: nd.IndexAtOp, ct: SSAValue) -> Rule:
    """Zeros with ct written at the index; the sweep accumulates into the slice directly instead."""
    return (t.update_at(ct, t.zeros(op.operand.type), op.at, op.number("dim")), None)


@vjp(nd.UpdateAtOp)
def update_at_vjp(t: TensorBuilder, op: nd.UpdateAtOp, ct: SSAValue) -> Rule:
    """The value takes its slice of ct, the operand the rest."""
    dim = op.number("dim")
    return (
        lambda: t.index_at(ct, op.at, dim),
        lambda: t.update_at(t.zeros(op.value.type), ct, op.at, dim),
        None,
    )
