"""Derivatives of reductions. Ties share evenly; products never divide by an operand."""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import IntegerAttr, f32, i64
from xdsl.ir import SSAValue

from gradir import size_algebra
from gradir.autodiff.registry import Contribution, skip, vjp
from gradir.autodiff.tensors import TensorBuilder, needs_static_sizes
from gradir.dialects import nd
from gradir.dialects.nd.cumulative import CumprodOp
from gradir.dialects.text import flag_attr
from gradir.dialects.types import NARROW_CLASSES, element_of, shape_of

Rule = tuple[Contribution, ...]


@vjp(nd.ReduceSumOp)
def reduce_sum_vjp(t: TensorBuilder, op: nd.ReduceSumOp, ct: SSAValue) -> Rule:
    """d sum(x) = sum(dx): the cotangent is repeated"""
    return (t.expand(ct, op.operand.type, op.numbers("dims")),)


def reduce_extremum_vjp(t: TensorBuilder, op: Any, ct: SSAValue) -> Rule:
    """ct / n to each of the n elements that equal the result; NaNs count as equal to a NaN result. n is counted in i64."""
    x, dims = op.operand, op.numbers("dims")
    best = t.expand(op.result, x.type, dims)
    equal = t.logical_or(t.compare("eq", x, best), t.is_nan(x))
    count = t.sum(t.convert(equal, i64), dims)
    elem = element_of(x)
    wide = f32 if isinstance(elem, NARROW_CLASSES) else elem
    share = t.div(t.convert(ct, wide), t.convert(count, wide))
    return (t.where(equal, t.expand(t.convert(share, elem), x.type, dims)),)


vjp(nd.ReduceMaxOp)(reduce_extremum_vjp)
vjp(nd.ReduceMinOp)(reduce_extremum_vjp)


@vjp(nd.ReduceProdOp)
def reduce_prod_vjp(t: TensorBuilder, op: nd.ReduceProdOp, ct: SSAValue) -> Rule:
    """d prod(x) = sum_k (prod_{j<k} x_j) (prod_{j>k} x_j) dx_k: exclusive prefix and suffix products, no division.

    The scans double their reach each step (Hillis and Steele, 1986): log2(n) steps, never a loop over n.
    """
    x, dims = op.operand, op.numbers("dims")
    shape = shape_of(x)
    kept = tuple(k for k in range(len(shape)) if k not in dims)
    n = size_algebra.product(shape[k] for k in dims)
    if None in shape or n is None:
        raise needs_static_sizes(op, "sizes that are numbers or have names", x)
    order = (*kept, *dims)
    flat = t.reshape(t.transpose(x, order), (*(shape[k] for k in kept), n))
    others = t.mul(exclusive_product(t, flat, n, False), exclusive_product(t, flat, n, True))
    local = t.transpose(t.reshape(others, [shape[k] for k in order]), [order.index(k) for k in range(len(shape))])
    return (t.mul_strong(t.expand(ct, x.type, dims), local),)


def exclusive_product(t: TensorBuilder, x: SSAValue, n: int | str, backwards: bool) -> SSAValue:
    """Product of all elements before (or after) each one, along the last dimension of size `n`.

    A run-time size does not tell how often the reach doubles: `nd.cumprod` goes there.
    """
    if not isinstance(n, int):
        last = IntegerAttr(len(shape_of(x)) - 1, i64)
        return t.emit(CumprodOp, [x], x.type, dim=last, reverse=flag_attr(backwards), exclusive=flag_attr(True))
    x = shifted(t, x, 1, backwards)
    reach = 1
    while reach < n:
        x = t.mul(x, shifted(t, x, reach, backwards))
        reach *= 2
    return x


def shifted(t: TensorBuilder, x: SSAValue, by: int, backwards: bool) -> SSAValue:
    """`x` moved by `by` along its last dimension, ones moving in."""
    outer = (0,) * (len(shape_of(x)) - 1)
    low, high = (-by, by) if backwards else (by, -by)
    return t.pad(x, 1.0, (*outer, low), (*outer, high))


for _op in (nd.ReduceAnyOp, nd.ReduceAllOp, nd.ArgmaxOp, nd.ArgminOp):
    skip(_op, "integer or boolean result: no derivative")
