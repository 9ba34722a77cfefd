"""Derivatives of contractions: each operand's cotangent is a contraction again."""

from __future__ import annotations

from xdsl.ir import SSAValue

from gradir.autodiff.registry import Contribution, vjp
from gradir.autodiff.tensors import TensorBuilder
from gradir.dialects import nd
from gradir.dialects.types import element_of, shape_of


@vjp(nd.DotGeneralOp)
def dot_general_vjp(t: TensorBuilder, op: nd.DotGeneralOp, ct: SSAValue) -> tuple[Contribution, ...]:
    """C = A B: dA = ct B^T, dB = A^T ct, with batch dimensions carried along

    Where C is wider than A and B, the products are taken in C's type and rounded once.
    """
    lhs, rhs = op.lhs, op.rhs
    lb, rb, lc, rc = (op.numbers(a) for a in ("lhs_batch", "rhs_batch", "lhs_contract", "rhs_contract"))
    lf = tuple(k for k in range(len(shape_of(lhs))) if k not in lb and k not in lc)
    rf = tuple(k for k in range(len(shape_of(rhs))) if k not in rb and k not in rc)
    nb, nl = len(lb), len(lf)
    batch = tuple(range(nb))

    def by_lhs() -> SSAValue:
        # ct[b, l, r] B[b, c, r] -> [b, l, c in the order of rhs]; c is sorted by rhs dimension
        free_of_ct = tuple(range(nb + nl, nb + nl + len(rf)))
        out = t.dot_general(ct, t.convert(rhs, element_of(ct)), (free_of_ct, rf), (batch, rb), element_of(ct))
        order = [*lb, *lf, *(lc[rc.index(k)] for k in sorted(rc))]
        return t.convert(t.transpose(out, [order.index(k) for k in range(len(order))]), element_of(lhs))

    def by_rhs() -> SSAValue:
        # A[b, l, c] ct[b, l, r] -> [b, c in the order of lhs, r]
        free_of_ct = tuple(range(nb, nb + nl))
        out = t.dot_general(t.convert(lhs, element_of(ct)), ct, (lf, free_of_ct), (lb, batch), element_of(ct))
        order = [*rb, *(rc[lc.index(k)] for k in sorted(lc)), *rf]
        return t.convert(t.transpose(out, [order.index(k) for k in range(len(order))]), element_of(rhs))

    return (by_lhs, by_rhs)
