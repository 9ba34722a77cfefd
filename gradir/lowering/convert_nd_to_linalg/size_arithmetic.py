"""Run-time sizes as index arithmetic: what `gradir.size_algebra` builds them with.

Ops go where the builder stands. Quotients of sizes are exact or rounded down; operands may be negative (`floordiv(b-4,2)`), so they are
`arith.floordivsi`, whose divisor is a number or a size that is not 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Operation, SSAValue

from gradir.dialects.upstream import arith

if TYPE_CHECKING:
    from gradir.lowering.convert_nd_to_linalg.function import Lowering

_INDEX = IndexType()
_OPS: Mapping[str, type[Operation]] = {"+": arith.AddiOp, "*": arith.MuliOp, "floordiv": arith.FloorDivSIOp, "max": arith.MaxSIOp}


class SizeArithmetic(dict[str, "Callable[[SSAValue, SSAValue], SSAValue]"]):
    """`+`, `*`, `floordiv` and `max` of index values."""

    def __init__(self, lowering: Lowering) -> None:
        super().__init__({name: self._binary(kind) for name, kind in _OPS.items()})
        self.lowering = lowering

    def _binary(self, kind: type[Operation]) -> Callable[[SSAValue, SSAValue], SSAValue]:
        return lambda a, b: self.lowering.builder(kind, (a, b), (_INDEX,))

    def minus(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """a - b"""
        return self.lowering.builder(arith.SubiOp, (a, b), (_INDEX,))
