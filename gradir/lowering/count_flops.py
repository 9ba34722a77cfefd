"""`count-flops`: every function learns what one run of it costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.ir import Operation

from gradir.dialects.upstream import func
from gradir.ir.passes import Pass, PassContext
from gradir.lowering.flops import Counter

FLOPS = "gradir.flops"
"""Attribute of a function: floating-point operations of one run."""


@dataclass(frozen=True)
class CountFlops(Pass):
    """Before and after: levels 1 and 2. Each function with a body has the attribute `gradir.flops`: floating-point operations of one run.

    Loops count by their trips, calls by their callee, branches by their dearest side; a transcendental is one operation. For what
    really runs, count after the simplifications: `differentiate,inline,symbol-dce,nd-expand,canonicalize,nd-simplify,cse,dce,count-flops`.

    ```mlir
    func.func @f(%x: tensor<4x4xf32>) -> tensor<4x4xf32> attributes {gradir.flops = 144 : i64} {
      %0 = nd.dot_general %x, %x contract [1] x [0] : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
      %1 = nd.tanh %0 : tensor<4x4xf32>
    ```
    """

    NAME: ClassVar[str] = "count-flops"

    trips: int = -1
    """What stands for each trip count and size that is known only at run time; without it they are an error."""

    def apply(self, op: Operation, context: PassContext) -> None:
        assert isinstance(op, ModuleOp)
        functions = {f.sym_name.data: f for f in op.body.block.ops if isinstance(f, func.FuncOp)}
        counter = Counter(functions, None if self.trips < 0 else self.trips)
        for function in functions.values():
            if function.body.blocks:
                function.attributes[FLOPS] = IntegerAttr(counter.function(function), i64)
