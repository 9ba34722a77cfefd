"""Derivatives of ops that move data: each is linear, its cotangent moves back."""

from __future__ import annotations

from xdsl.ir import SSAValue

from gradir.autodiff.registry import Contribution, vjp
from gradir.autodiff.tensors import TensorBuilder, needs_static_sizes
from gradir.dialects import nd
from gradir.dialects.nd.shape import TO_END
from gradir.dialects.types import shape_of

Rule = tuple[Contribution, ...]


@vjp(nd.ReshapeOp)
def reshape_vjp(t: TensorBuilder, op: nd.ReshapeOp, ct: SSAValue) -> Rule:
    """Reshape back."""
    return (t.reshape(ct, shape_of(op.operand)),)


@vjp(nd.TransposeOp)
def transpose_vjp(t: TensorBuilder, op: nd.TransposeOp, ct: SSAValue) -> Rule:
    """The inverse permutation."""
    perm = op.numbers("perm")
    return (t.transpose(ct, [perm.index(k) for k in range(len(perm))]),)


@vjp(nd.BroadcastOp)
def broadcast_vjp(t: TensorBuilder, op: nd.BroadcastOp, ct: SSAValue) -> Rule:
    """Sum over the dimensions that were added."""
    dims = op.numbers("dims")
    total = t.sum(ct, [k for k in range(len(shape_of(ct))) if k not in dims])
    kept = sorted(dims)
    return (t.transpose(total, [kept.index(d) for d in dims]), *(None for _ in op.sizes))


@vjp(nd.SliceOp)
def slice_vjp(t: TensorBuilder, op: nd.SliceOp, ct: SSAValue) -> Rule:
    """Zeros where nothing was read."""
    start, limit, stride = op.numbers("start"), op.numbers("limit"), op.numbers("stride")
    low, high, interior = [], [], []
    for lo, hi, st, n, m in zip(start, limit, stride, shape_of(op.operand), shape_of(ct)):
        if not isinstance(n, int):
            if (lo, hi, st) != (0, TO_END, 1):
                raise needs_static_sizes(op, "a slice that takes dimensions of run-time size whole", op.operand)
            for edge in (low, high, interior):
                edge.append(0)
            continue
        assert isinstance(m, int), "a slice of a static dimension is static"
        low.append(lo)
        interior.append(st - 1)
        high.append(n - lo - (m + max(0, m - 1) * (st - 1)))
    return (t.pad(ct, 0.0, low, high, interior),)


@vjp(nd.PadOp)
def pad_vjp(t: TensorBuilder, op: nd.PadOp, ct: SSAValue) -> Rule:
    """The operand takes what it placed, the padding value the sum of the rest."""
    low, high, interior = op.numbers("low"), op.numbers("high"), op.numbers("interior")
    if any(any(edges) for n, *edges in zip(shape_of(op.operand), low, high, interior) if not isinstance(n, int)):
        raise needs_static_sizes(op, "padding of static dimensions only", op.operand)

    def by_operand() -> SSAValue:
        whole = t.pad(ct, 0.0, [-k for k in low], [-k for k in high])
        limit = _ends(whole)
        return t.slice(whole, [0] * len(limit), limit, [k + 1 for k in interior])

    def by_value() -> SSAValue:
        inside = t.full(0.0, op.operand.type)
        mask = t.pad(inside, 1.0, low, high, interior)
        return t.sum(t.mul_strong(ct, mask), range(len(low)))

    return (by_operand, by_value)


@vjp(nd.ConcatenateOp)
def concatenate_vjp(t: TensorBuilder, op: nd.ConcatenateOp, ct: SSAValue) -> Rule:
    """Each input takes its slice."""
    dim, ends = op.number("dim"), _ends(ct)
    parts: list[Contribution] = []
    at = 0
    for x in op.inputs:
        n = shape_of(x)[dim]
        if not isinstance(n, int):
            raise needs_static_sizes(op, f"inputs whose dimension {dim} is static", x)
        start, limit = [0] * len(ends), list(ends)
        start[dim], limit[dim] = at, at + n
        parts.append(lambda start=start, limit=limit: t.slice(ct, start, limit))
        at += n
    return tuple(parts)


def _ends(x: SSAValue) -> list[int]:
    """The limits of a slice that takes all of `x`."""
    return [n if isinstance(n, int) else TO_END for n in shape_of(x)]


@vjp(nd.ReverseOp)
def reverse_vjp(t: TensorBuilder, op: nd.ReverseOp, ct: SSAValue) -> Rule:
    """Its own inverse."""
    return (t.reverse(ct, op.numbers("dims")),)
