"""A barrier hands every cotangent on; an assertion happens once, in the forward part, and has nothing to differentiate."""

from __future__ import annotations

from typing import Any

from gradir.autodiff.registry import Contribution, skip, vjp
from gradir.autodiff.tensors import TensorBuilder
from gradir.dialects import nd


@vjp(nd.OptimizationBarrierOp)
def barrier_vjp(t: TensorBuilder, op: nd.OptimizationBarrierOp, ct: Any) -> tuple[Contribution, ...]:
    """d operands[k] = ct[k]"""
    return tuple(ct) if len(op.results) > 1 else (ct,)


skip(nd.AssertOp, "it has no result")
skip(nd.PrintOp, "it has no result")
