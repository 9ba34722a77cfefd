"""Derivatives of the ops on bits: what only rounds passes the cotangent, reinterpreted bits have none."""

from __future__ import annotations

from xdsl.ir import SSAValue

from gradir.autodiff.registry import Contribution, skip, vjp
from gradir.autodiff.tensors import TensorBuilder
from gradir.dialects.nd import bits as nd

Rule = tuple[Contribution, ...]


@vjp(nd.ReducePrecisionOp)
def reduce_precision_vjp(t: TensorBuilder, op: nd.ReducePrecisionOp, ct: SSAValue) -> Rule:
    """d reduce_precision(x) = dx"""
    return (ct,)


@vjp(nd.NextAfterOp)
def next_after_vjp(t: TensorBuilder, op: nd.NextAfterOp, ct: SSAValue) -> Rule:
    """d next_after(x, y) = dx: the step is constant next to x"""
    return (ct, None)


skip(nd.BitcastConvertOp, "the bits are read as another type: derivative 0, as in JAX")
