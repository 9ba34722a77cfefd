"""Ops that create values have no operand to differentiate."""

from gradir.autodiff.registry import skip
from gradir.dialects import nd

for _op in (nd.ConstantOp, nd.IotaOp, nd.EmptyOp, nd.SymbolOp, nd.BindOp):
    skip(_op, "no differentiable operand")
