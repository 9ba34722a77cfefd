"""Composites become primitives, for targets that do not take them whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.ir import Block, Operation, SSAValue

from gradir.dialects.ad import StopGradientOp
from gradir.dialects.nd.composite import Composite
from gradir.ir.builder import Builder
from gradir.ir.passes import Pass, PassContext


@dataclass(frozen=True)
class NdExpand(Pass):
    """Before: level 1, without `ad` requests. After: no composite and no `ad.stop_gradient` is left.

    ```mlir
    %1 = nd.gelu %0 approximate : tensor<4xf32>
    // becomes nd.mul, nd.add, nd.tanh and constants
    ```
    """

    NAME: ClassVar[str] = "nd-expand"
    ANCHOR: ClassVar[str | None] = None

    keep: tuple[str, ...] = ()
    """Composites that stay (`nd.softmax`), for a target that has an implementation of its own."""

    def apply(self, op: Operation, context: PassContext) -> None:
        for inner in list(op.walk()):
            if isinstance(inner, StopGradientOp):
                replace(inner, [inner.operand])
            elif isinstance(inner, Composite) and inner.name not in self.keep:
                expand(inner)


def expand(op: Composite) -> None:
    """Replace `op` by its decomposition, at its place and location."""
    parts = Block()
    results = op.decompose(Builder(parts, op.location), op.operands)
    assert op.parent is not None, "composites stand in functions"
    for part in list(parts.ops):
        if isinstance(part, StopGradientOp):
            results = [part.operand if value is part.result else value for value in results]
            replace(part, [part.operand])
        else:
            part.detach()
            op.parent.insert_op_before(part, op)
    replace(op, results)


def replace(op: Operation, values: Sequence[SSAValue]) -> None:
    """Use `values` in place of the op's results and remove it."""
    for old, new in zip(op.results, values, strict=True):
        if new.name_hint is None:
            new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    op.detach()
    op.erase()
