"""`normalize-nests`: loop nests as people and derivatives write them become those that kernels are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import Block, Operation

from gradir.dialects.kernel import KERNEL_ATTRIBUTE
from gradir.dialects.upstream import func, linalg
from gradir.ir.builder import Builder
from gradir.ir.passes import Pass, PassContext
from gradir.ir.structure import move_before
from gradir.lowering.normalize_nests.outputs import normal_form
from gradir.lowering.normalize_nests.whole import WHOLE


@dataclass(frozen=True)
class NormalizeNests(Pass):
    """Before: level 2, `linalg.generic` in any form. After: each has one result, indexed by dimensions alone, and makes its destination.

    A nest of several results becomes one for each; one that writes over a tensor reads it as an input, or, as a reduction, joins it with
    what it reduced; a result that is written through `d + 1` is inserted as a slice. What depends on the order of its points becomes
    loops. `tensor.pad`, `tensor.concat` and elementwise ops on whole tensors become nests and slices. What `convert-nd-to-linalg` writes
    has this form already.

    ```mlir
    %r = linalg.generic {.. "parallel", "reduction"]} ins(%x : ..) outs(%c : tensor<4xf32>) { .. %s = arith.addf %acc, %p : f32 .. }
    // becomes
    %0 = linalg.fill ins(%zero : f32) outs(%empty : tensor<4xf32>) -> tensor<4xf32>
    %1 = linalg.generic {.. "parallel", "reduction"]} ins(%x : ..) outs(%0 : tensor<4xf32>) { .. }
    %r = linalg.generic {.. "parallel"]} ins(%c, %1 : ..) outs(%empty : tensor<4xf32>) { .. arith.addf .. }
    ```
    """

    NAME: ClassVar[str] = "normalize-nests"

    def apply(self, op: Operation, context: PassContext) -> None:
        for function in op.regions[0].block.ops:
            if isinstance(function, func.FuncOp) and KERNEL_ATTRIBUTE not in function.attributes:
                todo = list(function.walk())
                while todo:
                    todo += _rewritten(todo.pop())


def _rewritten(op: Operation) -> list[Operation]:
    """Replace `op` if it has another form; the new ops, which may want another step."""
    if isinstance(op.parent_op(), linalg.GenericOp):
        return []
    parts = Block()
    builder = Builder(parts, op.location)
    rule = WHOLE.get(type(op)) if op.parent is not None else None
    values = normal_form(builder, op) if isinstance(op, linalg.GenericOp) else rule(builder, op) if rule is not None else None
    if values is None:
        return []
    new = list(parts.walk())
    move_before(parts, op)
    for old, value in zip(op.results, values, strict=True):
        if value.name_hint is None:
            value.name_hint = old.name_hint
        old.replace_all_uses_with(value)
    op.detach()
    op.erase()
    return new


__all__ = ["NormalizeNests"]
