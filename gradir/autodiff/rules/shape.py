"""Derivatives of ops that move data: each is linear, its cotangent moves back."""

from __future__ import annotations

from xdsl.ir import SSAValue

from gradir.autodiff.registry import Contribution, vjp
from gradir.autodiff.rules.convolution import ints
from gradir.autodiff.tensors import TensorBuilder
from gradir.dialects import nd
from gradir.dialects.types import shape_of

Rule = tuple[Contribution, ...]


@vjp(nd.ReshapeOp)
def reshape_vjp(t: TensorBuilder, op: nd.ReshapeOp, ct: SSAValue) -> Rule:
    """Reshape back."""
    return (t.reshape(ct, shape_of(op.operand)),)


@vjp(nd.TransposeOp)
def transpose_vjp(t: TensorBuilder, op: nd.TransposeOp, ct: SSAValue) -> Rule:
    """The inverse permutation."""
    perm = ints(op.perm)
    return (t.transpose(ct, [perm.index(k) for k in range(len(perm))]),)


@vjp(nd.BroadcastOp)
def broadcast_vjp(t: TensorBuilder, op: nd.BroadcastOp, ct: SSAValue) -> Rule:
    """Sum over the dimensions that were added."""
    dims = ints(op.dims)
    total = t.sum(ct, [k for k in range(len(shape_of(ct))) if k not in dims])
    kept = sorted(dims)
    return (t.transpose(total, [kept.index(d) for d in dims]), *(None for _ in op.sizes))


@vjp(nd.SliceOp)
def slice_vjp(t: TensorBuilder, op: nd.SliceOp, ct: SSAValue) -> Rule:
    """Zeros where nothing was read."""
    start, stride = ints(op.start), ints(op.stride)
    low, high, interior = [], [], []
    for lo, st, n, m in zip(start, stride, shape_of(op.operand), shape_of(ct)):
        if not (isinstance(n, int) and isinstance(m, int)):  # a run-time dimension is taken whole
            for edge in (low, high, interior):
                edge.append(0)
            continue
        low.append(lo)
        interior.append(st - 1)
        high.append(n - lo - (m + max(0, m - 1) * (st - 1)))
    return (t.pad(ct, 0.0, low, high, interior),)


@vjp(nd.PadOp)
def pad_vjp(t: TensorBuilder, op: nd.PadOp, ct: SSAValue) -> Rule:
    """The operand takes what it placed, the padding value the sum of the rest."""
    low, high, interior = ints(op.low), ints(op.high), ints(op.interior)

    def by_operand() -> SSAValue:
        whole = t.pad(ct, 0.0, [-k for k in low], [-k for k in high])
        sizes = [n for n in shape_of(whole) if isinstance(n, int)]
        return t.slice(whole, [0] * len(sizes), sizes, [k + 1 for k in interior])

    def by_value() -> SSAValue:
        inside = t.full(0.0, op.operand.type)
        mask = t.pad(inside, 1.0, low, high, interior)
        return t.sum(t.mul_strong(ct, mask), range(len(low)))

    return (by_operand, by_value)


@vjp(nd.ConcatenateOp)
def concatenate_vjp(t: TensorBuilder, op: nd.ConcatenateOp, ct: SSAValue) -> Rule:
    """Each input takes its slice."""
    dim = op.dim.value.data
    sizes = [n for n in shape_of(ct) if isinstance(n, int)]
    parts: list[Contribution] = []
    at = 0
    for x in op.inputs:
        n = shape_of(x)[dim]
        assert isinstance(n, int)
        start, limit = [0] * len(sizes), list(sizes)
        start[dim], limit[dim] = at, at + n
        parts.append(lambda start=start, limit=limit: t.slice(ct, start, limit))
        at += n
    return tuple(parts)


@vjp(nd.ReverseOp)
def reverse_vjp(t: TensorBuilder, op: nd.ReverseOp, ct: SSAValue) -> Rule:
    """Its own inverse."""
    return (t.reverse(ct, ints(op.dims)),)
