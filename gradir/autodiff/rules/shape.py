"""Derivatives of ops that move data: each is linear, its cotangent moves back."""

from __future__ import annotations

from xdsl.ir import SSAValue

from gradir import size_algebra
from gradir.autodiff.registry import Contribution, skip, vjp
from gradir.autodiff.tensors import TensorBuilder, needs_static_sizes
from gradir.dialects import nd
from gradir.dialects.nd.shape import TO_END, padded_shape
from gradir.dialects.types import Dim, shape_of

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
    start, stride = op.numbers("start"), op.numbers("stride")
    low, high, interior = list(start), list[int](), [step - 1 for step in stride]
    nothing = [0] * len(start)
    for n, spread, lo in zip(shape_of(op.operand), padded_shape(shape_of(ct), nothing, nothing, interior), start):
        rest = size_algebra.minus(size_algebra.minus(n, spread), lo)
        if not isinstance(rest, int):  # `max(b-1,0) + 1` is no `b`: short operands have less than the slice skips
            spread_out = t.pad(ct, 0.0, nothing, nothing, interior)
            return (t.put(spread_out, t.zeros(op.operand.type), start),)
        high.append(rest)
    return (t.pad(ct, 0.0, low, high, interior),)


@vjp(nd.PadOp)
def pad_vjp(t: TensorBuilder, op: nd.PadOp, ct: SSAValue) -> Rule:
    """The operand takes what it placed, the padding value the sum of the rest."""
    low, high, interior = op.numbers("low"), op.numbers("high"), op.numbers("interior")
    if None in shape_of(ct):
        raise needs_static_sizes(op, "a result whose sizes are numbers or have names", op.result)

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
    total: Dim = shape_of(ct)[dim]
    at: Dim = 0
    for x in op.inputs:
        n = shape_of(x)[dim]
        end = size_algebra.plus(at, n)
        rest = size_algebra.minus(total, end)
        if end is None or rest is None:
            raise needs_static_sizes(op, f"inputs whose dimension {dim} has a name", x)
        if isinstance(at, int) and (isinstance(end, int) or isinstance(rest, int)):
            start, limit = [0] * len(ends), list(ends)
            start[dim], limit[dim] = at, end if isinstance(end, int) else TO_END - rest if isinstance(rest, int) else TO_END
            parts.append(lambda start=start, limit=limit: t.slice(ct, start, limit))
        else:
            first: list[int | str] = [at if d == dim else 0 for d in range(len(ends))]
            parts.append(lambda x=x, first=first: t.part(ct, first, shape_of(x)))
        at = end
    return tuple(parts)


def _ends(x: SSAValue) -> list[int]:
    """The limits of a slice that takes all of `x`."""
    return [n if isinstance(n, int) else TO_END for n in shape_of(x)]


@vjp(nd.ReverseOp)
def reverse_vjp(t: TensorBuilder, op: nd.ReverseOp, ct: SSAValue) -> Rule:
    """Its own inverse."""
    return (t.reverse(ct, op.numbers("dims")),)


skip(nd.DimOp, "a size has no derivative")
