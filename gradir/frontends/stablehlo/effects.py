"""What forbids or does something besides computing: barriers."""

from __future__ import annotations

from xdsl.ir import Operation

from gradir.dialects import nd
from gradir.frontends.stablehlo.conversion import Conversion, Rule, Values


def optimization_barrier(conversion: Conversion, op: Operation) -> Values:
    """Values that nothing looks through; a barrier without operands is nothing."""
    operands = conversion.operands(op)
    if not operands:
        return ()
    made = nd.OptimizationBarrierOp.make(operands)
    nd.emit(conversion.builder, made)
    return made.results


RULES: dict[str, Rule] = {"stablehlo.optimization_barrier": optimization_barrier}
