"""Folds by a region have no rule: `nd.reduce` and `nd.reduce_window_general` are differentiated as the loops that they stand for
(`gradir.autodiff.spell_out`); what cannot be is refused by name."""

from __future__ import annotations

from xdsl.ir import SSAValue

from gradir.autodiff.registry import Contribution, vjp
from gradir.autodiff.tensors import TensorBuilder
from gradir.dialects import nd
from gradir.ir.passes import error_at


@vjp(nd.SelectAndScatterGeneralOp)
def select_and_scatter_general_vjp(t: TensorBuilder, op: nd.SelectAndScatterGeneralOp, ct: SSAValue) -> tuple[Contribution, ...]:
    """None is known for any regions"""
    raise error_at(
        op,
        "no derivative of a select_and_scatter with regions",
        part="autodiff",
        code="AD001",
        expected="nd.select_and_scatter: the greatest element, sums",
        found="regions",
        hint="use nd.select_and_scatter, or cut the path with ad.stop_gradient",
    )
